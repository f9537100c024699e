// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/feed_position.h"

#include "base/byte_io.h"
#include "cql/execute/select_position.h"
#include "cql/protocol/paging_state.h"

namespace tetrad::cql {

namespace {
// Both are in paging states that clients hold (feed_position.h): never renumber.
constexpr uint8_t kVersion = 1;
enum Phase : uint8_t { kLogs = 0, kScanBegins = 1, kScan = 2 };
}  // namespace

Bytes encode_feed_position(const FeedPosition& position) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.zigzag(position.since_us);
  writer.bytes(position.after);
  writer.u8(!position.scans ? kLogs : !position.scanned ? kScanBegins : kScan);
  if (position.scans && position.scanned) {
    writer.bytes(encode_select_position({*position.scanned, -1, position.knows_static ? 1u : 0u}));
  }
  return out;
}

Result<FeedPosition> decode_feed_position(BytesView encoded) {
  const auto decode = [&]() -> Result<FeedPosition> {
    base::ByteReader reader(encoded);
    FeedPosition position;
    TETRAD_TRY(const uint8_t version, reader.read_u8());
    if (version != kVersion) return fail(ErrorCode::kCorruption, "version {}", version);
    TETRAD_TRY(position.since_us, reader.read_zigzag());
    TETRAD_TRY(const BytesView after, reader.read_bytes());
    position.after = Bytes(after);
    TETRAD_TRY(const uint8_t phase, reader.read_u8());
    if (phase > kScan) return fail(ErrorCode::kCorruption, "phase {}", phase);
    position.scans = phase != kLogs;
    if (phase == kScan) {
      TETRAD_TRY(const BytesView scanned, reader.read_bytes());
      TETRAD_TRY(SelectPosition scan, decode_select_position(scanned));
      position.scanned = std::move(scan.after);
      position.knows_static = scan.partition_rows_done != 0;
    }
    if (!reader.at_end()) return fail(ErrorCode::kCorruption, "bytes left");
    return position;
  };
  auto position = decode();
  if (!position) return fail(ErrorCode::kProtocol, kUnfitPagingState);
  return position;
}

}  // namespace tetrad::cql
