// SPDX-License-Identifier: Apache-2.0
// A file, folder or socket that is open by its descriptor, for system calls that the standard
// library has not.
#pragma once

#include <unistd.h>
#include <utility>

namespace tetrad::base {

/// Owns a descriptor; what ::open() returned, also when that failed: errno says why.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(OpenFile&& other) noexcept : descriptor_(other.release()) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int operator*() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  /// For another owner.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

}  // namespace tetrad::base
