// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/directory_lock.h"

#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace tetrad::server {

Result<DirectoryLock> DirectoryLock::take(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return fail(ErrorCode::kConfig, "cannot make the data directory {}: {}", directory,
                error.message());
  const std::string path = directory + "/LOCK";
  DirectoryLock lock;
  lock.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock.file_ < 0)
    return fail(ErrorCode::kConfig, "cannot write in the data directory {}", directory);
  if (::flock(lock.file_, LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::kConfig, "the data directory {} is in use by another tetrad", directory);
  }
  return lock;
}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace tetrad::server
