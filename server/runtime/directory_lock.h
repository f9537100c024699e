// SPDX-License-Identifier: Apache-2.0
// One server on a data directory.
//
// flock() on a file in the directory: it ends with the process, so a crash leaves nothing to clean
// up.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace tetrad::server {

/// Holds an exclusive lock on a data directory for as long as it lives; the kernel frees it when
/// the process ends.
class DirectoryLock {
 public:
  /// Makes the directory when it is missing. kConfig: it cannot be made or written, or another
  /// server is on it.
  static Result<DirectoryLock> take(const std::string& directory);

  /// False: somebody has removed the directory, or put another one in its place. What is written now
  /// is not there after the end of the process.
  bool is_in_place() const;

  DirectoryLock() = default;
  DirectoryLock(DirectoryLock&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    return *this;
  }
  ~DirectoryLock();

 private:
  std::string path_;  // of the file that is locked
  // -1: moved from, or never taken.
  int file_ = -1;
};

}  // namespace tetrad::server
