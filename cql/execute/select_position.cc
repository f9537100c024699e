// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/select_position.h"

#include "base/byte_io.h"
#include "cql/protocol/paging_state.h"

namespace tetrad::cql {

namespace {
constexpr uint8_t kVersion = 1;
}

Bytes encode_select_position(const SelectPosition& position) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.zigzag(position.rows_left);
  writer.varint(position.partition_rows_done);
  writer.i64(position.after.position.token);
  writer.u64(position.after.position.hash);
  writer.bytes(position.after.partition_key);
  writer.u8(position.after.clustering_key ? 1 : 0);
  if (position.after.clustering_key) writer.bytes(*position.after.clustering_key);
  return out;
}

Result<SelectPosition> decode_select_position(BytesView encoded) {
  const auto decode = [&]() -> Result<SelectPosition> {
    base::ByteReader reader(encoded);
    SelectPosition position;
    TETRAD_TRY(const uint8_t version, reader.read_u8());
    if (version != kVersion) return fail(ErrorCode::kCorruption, "version {}", version);
    TETRAD_TRY(position.rows_left, reader.read_zigzag());
    TETRAD_TRY(const uint64_t done, reader.read_varint());
    position.partition_rows_done = static_cast<uint32_t>(done);
    TETRAD_TRY(position.after.position.token, reader.read_i64());
    TETRAD_TRY(position.after.position.hash, reader.read_u64());
    TETRAD_TRY(const BytesView key, reader.read_bytes());
    position.after.partition_key = Bytes(key);
    TETRAD_TRY(const uint8_t has_clustering, reader.read_u8());
    if (has_clustering != 0) {
      TETRAD_TRY(const BytesView clustering, reader.read_bytes());
      position.after.clustering_key = Bytes(clustering);
    }
    if (!reader.at_end()) return fail(ErrorCode::kCorruption, "bytes left");
    return position;
  };
  auto position = decode();
  if (!position) return fail(ErrorCode::kProtocol, kUnfitPagingState);
  return position;
}

}  // namespace tetrad::cql
