// SPDX-License-Identifier: Apache-2.0
// Bytes and views of bytes; an arena for many small views that live as long as one answer.
//
// Answers of reads are views into an Arena: rows, keys and cells of one answer are allocated in
// blocks and go together.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tetrad::base {

/// Owned bytes, and a look at bytes of somebody else, which must outlive it. Strings, so that text
/// and bytes need no copy from one to the other; embedded zeros are ordinary bytes.
using Bytes = std::string;
using BytesView = std::string_view;

/// "0a1b", lower case, without a prefix.
std::string to_hex(BytesView bytes);

/// Bump allocator. Views handed out stay valid until the arena is destroyed; moving the arena keeps
/// them valid.
/// Not thread-safe. Nothing in it is ever freed alone, and nothing is destroyed: bytes only.
class Arena {
 public:
  Arena() = default;
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  /// The other one is empty afterwards and may be used again.
  Arena& operator=(Arena&& other) noexcept {
    if (this == &other) return *this;
    blocks_ = std::exchange(other.blocks_, {});
    adopted_ = std::exchange(other.adopted_, {});
    next_ = std::exchange(other.next_, nullptr);
    left_ = std::exchange(other.left_, 0);
    allocated_bytes_ = std::exchange(other.allocated_bytes_, 0);
    return *this;
  }

  /// A copy of the bytes in the arena.
  BytesView copy(BytesView bytes) {
    char* to = allocate(bytes.size());
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return {to, bytes.size()};
  }
  /// `size` bytes without alignment and without a value. 0 is allowed.
  char* allocate(size_t size);
  /// Of all pieces and adopted buffers, without the unused ends of blocks: what memory limits
  /// count.
  size_t allocated_bytes() const { return allocated_bytes_; }
  /// Takes over a buffer so that views into it live as long as the arena; returns its view.
  BytesView adopt(Bytes buffer);
  /// Takes over everything another arena holds.
  void absorb(Arena&& other);

 private:
  // next_ and left_ are the unused end of the newest shared block. Pieces of more than a quarter of
  // a block get a block of their own and leave next_ alone. Adopted buffers stand behind pointers,
  // so that their views survive when adopted_ grows.
  static constexpr size_t kBlockBytes = 4096;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::vector<std::unique_ptr<Bytes>> adopted_;
  char* next_ = nullptr;
  size_t left_ = 0;
  size_t allocated_bytes_ = 0;
};

}  // namespace tetrad::base

namespace tetrad {
using base::Bytes;
using base::BytesView;
}  // namespace tetrad
