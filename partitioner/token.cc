// SPDX-License-Identifier: Apache-2.0
// Murmur3 as Cassandra computes it, with its signed tail bytes, and the serialized partition key.
#include "partitioner/token.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/byte_io.h"
#include "base/hash.h"

namespace tetrad::partitioner {

namespace {

constexpr uint64_t kC1 = 0x87c37b91114253d5ULL;
constexpr uint64_t kC2 = 0x4cf5ad432745937fULL;

uint64_t load_little_endian(const char* from) {
  uint64_t value;
  std::memcpy(&value, from, 8);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

uint64_t mix_k1(uint64_t k) { return std::rotl(k * kC1, 31) * kC2; }
uint64_t mix_k2(uint64_t k) { return std::rotl(k * kC2, 33) * kC1; }

uint64_t finish(uint64_t k) {
  k ^= k >> 33;
  k *= 0xff51afd7ed558ccdULL;
  k ^= k >> 33;
  k *= 0xc4ceb9fe1a85ec53ULL;
  k ^= k >> 33;
  return k;
}

/// A tail byte as Cassandra takes it: widened as a signed byte, so that one of 0x80 and above also
/// flips every bit above its own place.
uint64_t tail_byte(char byte, size_t place) {
  return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(byte))) << (8 * place);
}

}  // namespace

int64_t murmur3_hash(BytesView bytes) {
  uint64_t h1 = 0, h2 = 0;
  const char* next = bytes.data();
  for (size_t block = bytes.size() / 16; block > 0; --block, next += 16) {
    h1 = std::rotl(h1 ^ mix_k1(load_little_endian(next)), 27) + h2;
    h1 = h1 * 5 + 0x52dce729;
    h2 = std::rotl(h2 ^ mix_k2(load_little_endian(next + 8)), 31) + h1;
    h2 = h2 * 5 + 0x38495ab5;
  }
  const size_t tail = bytes.size() & 15;
  if (tail > 8) {
    uint64_t k2 = 0;
    for (size_t i = 8; i < tail; ++i) k2 ^= tail_byte(next[i], i - 8);
    h2 ^= mix_k2(k2);
  }
  if (tail > 0) {
    uint64_t k1 = 0;
    for (size_t i = 0; i < tail && i < 8; ++i) k1 ^= tail_byte(next[i], i);
    h1 ^= mix_k1(k1);
  }
  h1 ^= bytes.size();
  h2 ^= bytes.size();
  h1 += h2;
  h2 += h1;
  return static_cast<int64_t>(finish(h1) + finish(h2));
}

int64_t token_of(BytesView partition_key) {
  // As Cassandra: the smallest token is that of the empty key, and no hash may be it.
  if (partition_key.empty()) return kMinimumToken;
  const int64_t hash = murmur3_hash(partition_key);
  return hash == kMinimumToken ? std::numeric_limits<int64_t>::max() : hash;
}

RingPosition position_of(BytesView partition_key) {
  return {token_of(partition_key), base::xxh3_64(partition_key)};
}

Result<void> append_partition_key(Bytes& out, std::span<const BytesView> components) {
  size_t size = 0;
  for (const BytesView component : components) size += component.size();
  if (components.size() > 1) size += 3 * components.size();
  if (size > kKeyComponentBytesMax) {
    return fail(ErrorCode::kInvalid, "Key length of {} is longer than maximum of {}", size,
                kKeyComponentBytesMax);
  }
  out.reserve(out.size() + size);
  // A single column is its value as it is; several have their lengths and a zero byte behind each
  // (Cassandra's CompositeType).
  if (components.size() == 1) {
    out.append(components[0]);
    return {};
  }
  base::ByteWriter writer(out);
  for (const BytesView component : components) {
    writer.u16(static_cast<uint16_t>(component.size()));
    writer.raw(component);
    writer.u8(0);
  }
  return {};
}

Result<Bytes> serialize_partition_key(std::span<const BytesView> components) {
  Bytes out;
  TETRAD_TRY_VOID(append_partition_key(out, components));
  return out;
}

Result<std::vector<BytesView>> split_partition_key(BytesView partition_key, size_t count) {
  std::vector<BytesView> components;
  if (count == 1) {
    components.push_back(partition_key);
    return components;
  }
  components.reserve(count);
  base::ByteReader reader(partition_key);
  for (size_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint16_t size, reader.read_u16());
    TETRAD_TRY(const BytesView component, reader.read_raw(size));
    TETRAD_TRY(const uint8_t end, reader.read_u8());
    if (end != 0) return fail(ErrorCode::kCorruption, "key component {} ends with {}", i, end);
    components.push_back(component);
  }
  if (!reader.at_end()) {
    return fail(ErrorCode::kCorruption, "{} bytes after a key of {} components", reader.remaining(),
                count);
  }
  return components;
}

}  // namespace tetrad::partitioner
