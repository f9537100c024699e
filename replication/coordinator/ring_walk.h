// SPDX-License-Identifier: Apache-2.0
// Walking along the ring from tablet to tablet.
#pragma once

#include <algorithm>

#include "replication/meta/meta_state.h"
#include "storage/row/read_command.h"

namespace tetrad::replication {

/// Where a read of a range begins: the range's start, or the place just before the partition it
/// stopped in, which may have more rows.
inline RingPosition start_of(const storage::ReadCommand& command) {
  const RingPosition start = command.range.start;
  if (!command.resume_after) return start;
  const RingPosition at = command.resume_after->position;
  const RingPosition before = at.hash != 0 ? RingPosition{at.token, at.hash - 1}
                              : at.token != RingPosition::lowest().token
                                  ? RingPosition{at.token - 1, RingPosition::highest().hash}
                                  : RingPosition::lowest();
  return std::max(before, start);
}

/// The tablet of the first position after `from`: ranges are (start, end].
inline const partitioner::Tablet& tablet_after(const TableInfo& table, RingPosition from) {
  return table.tablets.find(from.hash != RingPosition::highest().hash
                                ? RingPosition{from.token, from.hash + 1}
                                : RingPosition{from.token + 1, 0});
}

}  // namespace tetrad::replication
