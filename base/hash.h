// SPDX-License-Identifier: Apache-2.0
// XXH3 of bytes (the xxHash library), and SHA-256 and HMAC-SHA-256 (OpenSSL).
//
// Which one for what: xxh3 for places and checksums of what nobody forges, sha256 and hmac_sha256
// where somebody would.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace tetrad::base {

/// The second half of a ring position, and part of frames and of index terms: it is on disk and
/// between nodes, so neither the function nor its seed (0) ever changes.
uint64_t xxh3_64(BytesView bytes);

/// An XXH3-128 value. On the wire and in digests `high` comes first.
struct Hash128 {
  uint64_t high = 0, low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
/// For digests of replies, which nobody chooses the bytes of, and for ids made of names.
/// Seed 0. Digests travel between nodes, so this function does not change, either.
Hash128 xxh3_128(BytesView bytes);

/// XXH3-128 fed in pieces; the result is that of the pieces joined.
class StreamingHash128 {
 public:
  StreamingHash128();
  ~StreamingHash128();
  StreamingHash128(const StreamingHash128&) = delete;
  StreamingHash128& operator=(const StreamingHash128&) = delete;
  /// In any number of pieces; digest() may be asked in between.
  void update(BytesView bytes);
  Hash128 digest() const;

 private:
  void* state_;  // XXH3_state_t
};

/// Against those who choose the bytes: for signatures and for what must not be forged.
std::array<uint8_t, 32> sha256(BytesView bytes);
std::array<uint8_t, 32> hmac_sha256(BytesView key, BytesView bytes);

}  // namespace tetrad::base
