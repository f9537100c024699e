// SPDX-License-Identifier: Apache-2.0
// Hex digits, and the arena's blocks: small pieces share a block, a large one gets its own, so that
// little is left over.
#include "base/bytes.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::base {

std::string to_hex(BytesView bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    out.push_back(digits[b >> 4]);
    out.push_back(digits[b & 15]);
  }
  return out;
}

// Three ways: the rest of the newest block, a block of its own for a large piece, a new block for a
// small one. The end of the old block is given up then, at most a quarter of it.
char* Arena::allocate(size_t size) {
  allocated_bytes_ += size;
  if (size > left_) {
    if (size > kBlockBytes / 4) {  // its own block, the current one goes on
      blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
      return blocks_.back().get();
    }
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlockBytes));
    next_ = blocks_.back().get();
    left_ = kBlockBytes;
  }
  TETRAD_ASSERT(size <= left_);
  char* result = next_;
  next_ += size;
  left_ -= size;
  return result;
}

// The buffer itself moves to the heap: a short string keeps its bytes inside itself, and views into
// those would not outlive a move.
BytesView Arena::adopt(Bytes buffer) {
  allocated_bytes_ += buffer.size();
  adopted_.push_back(std::make_unique<Bytes>(std::move(buffer)));
  return *adopted_.back();
}

// The other one's last block goes on to be used by nobody: this arena keeps its own.
void Arena::absorb(Arena&& other) {
  TETRAD_ASSERT(this != &other);
  std::move(other.blocks_.begin(), other.blocks_.end(), std::back_inserter(blocks_));
  std::move(other.adopted_.begin(), other.adopted_.end(), std::back_inserter(adopted_));
  allocated_bytes_ += other.allocated_bytes_;
  other = Arena();
}

}  // namespace tetrad::base
