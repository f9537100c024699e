// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/map_entry.h"

#include "base/byte_io.h"
#include "cql/types/ordered_encoding.h"

namespace tetrad::cql {

namespace {

// On disk, as the last byte of the value: never renumber (the grammar is in map_entry.h).
constexpr char kPlain = 0, kWithKey = 1;
constexpr size_t kTail = 5;  // u32 and mark

}  // namespace

bool has_entry_mark(const DataType& key_type) { return can_be_lossy(key_type); }

Bytes encode_map_entry(const DataType& key_type, BytesView key, BytesView value) {
  Bytes out(value);
  if (!is_lossy(key_type, key)) {
    out += kPlain;
    return out;
  }
  out.append(key);
  base::ByteWriter(out).u32(static_cast<uint32_t>(key.size()));
  out += kWithKey;
  return out;
}

Result<MapEntry> decode_map_entry(BytesView encoded) {
  if (!encoded.empty() && encoded.back() == kPlain) {
    return MapEntry{encoded.substr(0, encoded.size() - 1), std::nullopt};
  }
  if (encoded.size() >= kTail && encoded.back() == kWithKey) {
    const BytesView parts = encoded.substr(0, encoded.size() - kTail);
    // The key's size stands behind it, so that a value is found without a copy.
    const auto size = base::load_big_endian<uint32_t>(encoded.data() + parts.size());
    if (size <= parts.size()) {
      const size_t value_size = parts.size() - size;
      return MapEntry{parts.substr(0, value_size), parts.substr(value_size)};
    }
  }
  return fail(ErrorCode::kCorruption, "a map's entry of {} bytes without its mark", encoded.size());
}

}  // namespace tetrad::cql
