// SPDX-License-Identifier: Apache-2.0
// The one read algorithm, over an ordered view of keys and values: both engines use it.
//
//   1. A partition: its header says what its deletion hides, and which static cells there are.
//   2. Range tombstones over its rows: looked up as rows need them (tombstone_window.h), or all of
//      them where the read comes by them anyway (partition_tombstones.h).
//   3. Its rows, slice by slice, or key by key where they are named. Each loses what its own
//      deletions, the range's and the partition's hide; what is left is delivered, counted, folded
//      or given to a sink. Runs of dead rows are skipped and reported (dead_walk.h).
//   4. An answer for the client has live rows only. One that is to be merged has dead ones, headers
//      and tombstones too, less what is dead since before the horizon, so that replicas which have
//      purged and replicas which have not answer the same.
//   5. The page ends at a limit of rows, bytes or keys looked at, and says behind which place to go
//      on; range tombstones are cut there.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/engine/dead_runs.h"
#include "storage/engine/key_view.h"
#include "storage/engine/store.h"
#include "storage/row/read_command.h"

namespace tetrad::storage {

/// What a table is known not to have, so that it is not looked up.
struct TableContents {
  bool headers = true;
  bool range_tombstones = true;       // of all keys with one prefix
  bool straddling_tombstones = true;  // of other ranges
  /// Other ranges may lie among those with one prefix: all that begin before a row are looked at.
  bool scattered_tombstones = false;
  bool dead_rows = true;  // what is deleted, or may expire

  static TableContents nothing() { return {false, false, false, false, false}; }
  bool any_range_tombstones() const { return range_tombstones || straddling_tombstones; }
};

/// Answers a read command. It looks at no more keys than `keys_max`, tombstones and dead rows too,
/// before it ends its page. Errors: kCorruption, and those of the view.
Result<ReadResult> read_partitions(KeyView& view, const ReadCommand& command,
                                   const TableContents& contents, uint64_t keys_max);

/// As read_partitions() of a command that is live_only; the rows go to the sink. After an error
/// what it got counts for nothing.
Result<ReadEnd> read_partitions_into(KeyView& view, const ReadCommand& command,
                                     const TableContents& contents, RowSink& sink,
                                     uint64_t keys_max);

}  // namespace tetrad::storage
