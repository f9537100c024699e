// SPDX-License-Identifier: Apache-2.0
// Room on the disk that is kept back as a file of its own.
#include "storage/engine/ballast.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace tetrad::storage {
namespace {

constexpr off_t kBallastBytes = 64 << 20;
constexpr uint64_t kDiskBytesLeast = 4 * kBallastBytes;  // free, to keep this much back

std::string file_in(const std::string& directory) { return directory + "/BALLAST"; }

}  // namespace

void make_ballast(const std::string& directory) {
  const std::string file = file_in(directory);
  struct statvfs disk {};
  struct stat made {};
  const bool exists = ::stat(file.c_str(), &made) == 0;
  if ((exists && made.st_size >= kBallastBytes) || ::statvfs(directory.c_str(), &disk) != 0) return;
  if (uint64_t{disk.f_bavail} * disk.f_frsize < kDiskBytesLeast) return;
  const int descriptor = ::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor < 0) return;
  // Not sparse: the blocks are the file's from now on. A power cut may shorten it: that shows at
  // the next start.
  const bool allocated = ::posix_fallocate(descriptor, 0, kBallastBytes) == 0;
  ::close(descriptor);
  if (!allocated) ::unlink(file.c_str());
}

bool release_ballast(const std::string& directory) {
  return ::unlink(file_in(directory).c_str()) == 0;
}

}  // namespace tetrad::storage
