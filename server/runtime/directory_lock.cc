// SPDX-License-Identifier: Apache-2.0
// flock() on a file in the directory: the kernel drops it with the process, so there is no stale
// lock after a crash.
#include "server/runtime/directory_lock.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/runtime/data_folder.h"

namespace tetrad::server {
namespace {

namespace fs = std::filesystem;

/// Every folder on the way; a new one is in the one around it even after a power cut.
Result<void> make_folders(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder, error)) return {};
  TETRAD_TRY_VOID(make_folders(folder.parent_path()));
  fs::create_directory(folder, error);
  if (error)
    return fail(ErrorCode::kIo, "cannot make the data directory {}: {}{}", folder.string(),
                error.message(), read_only_hint(error.value()));
  return sync_folder(folder.parent_path().string());
}

}  // namespace

Result<DirectoryLock> DirectoryLock::take(const std::string& directory) {
  std::error_code error;
  const fs::path folder = fs::absolute(directory, error).lexically_normal();
  if (error)
    return fail(ErrorCode::kConfig, "the data directory {}: the working directory: {}", directory,
                error.message());
  if (folder.empty()) return fail(ErrorCode::kConfig, "'{}' is no data directory", directory);
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    return fail(ErrorCode::kConfig, "the data directory {} is a file", directory);
  TETRAD_TRY_VOID(make_folders(folder));
  const std::string path = directory + "/LOCK";
  DirectoryLock lock;
  lock.path_ = path;
  lock.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock.file_ < 0)
    return fail(ErrorCode::kIo, "cannot write in the data directory {}: {}{}", directory,
                std::strerror(errno), read_only_hint(errno));
  // `lock` closes the file when it is destroyed here.
  if (::flock(lock.file_, LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::kIo, "the data directory {} is in use by another tetrad", directory);
  }
  return lock;
}

bool DirectoryLock::is_in_place() const {
  struct stat held {
  }, there{};
  return ::fstat(file_, &held) == 0 && ::stat(path_.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace tetrad::server
