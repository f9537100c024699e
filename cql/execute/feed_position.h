// SPDX-License-Identifier: Apache-2.0
// Where a reader of the change feed goes on: in the logs of the stores, or in a scan of the table
// that takes their place where they do not reach back. Sealed by the processor into a paging state.
//
//   position := u8 version (1), zigzag start time, varint size, place in the logs,
//               u8 phase (0: the logs, 1: a scan that begins, 2: a scan),
//               [varint size, position of the scan]
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "storage/row/read_command.h"

namespace tetrad::cql {

/// Where a page of a change feed ended: the position inside of its paging state.
struct FeedPosition {
  int64_t since_us = 0;  // of the first page: the statement's may be now()
  Bytes after;           // ChangesPage::next; "" before the first page
  bool scans = false;    // after the scan it goes on from `after`
  std::optional<storage::ReadPosition> scanned;
  /// Of the partition that `scanned` is in the static columns were looked at.
  bool knows_static = false;
};

Bytes encode_feed_position(const FeedPosition& position);
/// Errors: kProtocol.
Result<FeedPosition> decode_feed_position(BytesView encoded);

}  // namespace tetrad::cql
