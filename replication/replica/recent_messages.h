// SPDX-License-Identifier: Apache-2.0
// What a store that is behind asks others for (Verb::kRecent): what they hold now of each row that
// was written to them in a span of time, or of all rows, a page at a time.
//
//   request  := u8 version (1), u8 flags (1: since when is known, 2: everything),
//               i64 since when (hybrid time, us), i64 us ago that this ended,
//               varint count, tablet*, bytes place to go on from, varint page bytes
//   tablet   := u32 incarnation, u64 epoch, position start, position end
//   position := i64 token, u64 hash
//   answer   := u8 flags (1: exhausted), u64 metadata index applied,
//               varint count, (varint tablet)* that are refused,
//               varint count, (varint tablet)* of which the store lacks something itself,
//               bytes next place, varint count, (bytes mutation)*
#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/ring_position.h"
#include "storage/row/mutation.h"

namespace tetrad::replication {

/// As the one who asks knows it; whoever knows it otherwise refuses that tablet.
struct RecentTablet {
  TableIncarnation incarnation;
  SetEpoch epoch;
  RingRange range;
};

/// kRecent: asks for a page of what was written to a store since a moment.
struct RecentRequest {
  std::optional<int64_t> since_us;
  bool everything = false;
  /// What came later is not asked for: the store has listened since. A duration, so that no clock
  /// decides it.
  int64_t ended_ago_us = 0;
  std::vector<RecentTablet> tablets;
  Bytes after;
  uint64_t bytes_max = 0;
};

/// The page.
struct RecentAnswer {
  bool exhausted = true;
  MetaIndex applied;
  std::vector<uint32_t> refused;  // indexes of the request's tablets; nothing of them is in it
  std::vector<uint32_t> behind;   // of which something may be lost here, too
  Bytes next;
  std::vector<storage::Mutation> mutations;
};

/// Errors of decoding: kCorruption.
Bytes encode_recent_request(const RecentRequest& request);
Result<RecentRequest> decode_recent_request(BytesView body);
Bytes encode_recent_answer(const RecentAnswer& answer);
Result<RecentAnswer> decode_recent_answer(BytesView body);

}  // namespace tetrad::replication
