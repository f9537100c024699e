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

  DirectoryLock() = default;
  DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~DirectoryLock();

 private:
  // -1: moved from, or never taken.
  int file_ = -1;
};

}  // namespace tetrad::server
