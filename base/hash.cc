// SPDX-License-Identifier: Apache-2.0
// Doors to xxHash and OpenSSL, so that no other file includes them.
#include "base/hash.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <xxhash.h>

#include "base/assert.h"

namespace tetrad::base {

uint64_t xxh3_64(BytesView bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Hash128 xxh3_128(BytesView bytes) {
  // The two halves are numbers here; whoever writes them decides on the order of bytes.
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

// Null only for want of memory, which nothing here could answer.
StreamingHash128::StreamingHash128() : state_(XXH3_createState()) {
  TETRAD_ASSERT(state_ != nullptr);
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}
StreamingHash128::~StreamingHash128() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }
void StreamingHash128::update(BytesView bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}
Hash128 StreamingHash128::digest() const {
  const XXH128_hash_t h = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return {h.high64, h.low64};
}

std::array<uint8_t, 32> sha256(BytesView bytes) {
  std::array<uint8_t, 32> out{};
  unsigned size = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), out.data(), &size, EVP_sha256(), nullptr);
  TETRAD_ASSERT(ok == 1);
  return out;
}

std::array<uint8_t, 32> hmac_sha256(BytesView key, BytesView bytes) {
  std::array<uint8_t, 32> out{};
  unsigned size = 0;
  const auto* p =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), out.data(), &size);
  TETRAD_ASSERT(p != nullptr);
  return out;
}

}  // namespace tetrad::base
