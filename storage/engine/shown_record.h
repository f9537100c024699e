// SPDX-License-Identifier: Apache-2.0
// What a read shows of one record, besides what its deletions hide: most rows have neither
// tombstones nor TTL, and their bytes are delivered as they are stored.
#pragma once

#include "storage/row/purge.h"
#include "storage/row/row_record.h"

namespace tetrad::storage {

/// Whether a row is already what a read shows; only then `live` says whether the row is. `cover`:
/// what hides things in it beside its own deletions. `bound`: what an answer that is compared
/// leaves out. `tombstones`: how many it has, of a row that is shown so. Header only: it runs for
/// each row of a read.
inline bool is_shown_as_stored(const RowRecord& row, const Deletion& cover, const PurgeBound& bound,
                               bool live_only, bool& live, uint32_t& tombstones) {
  const Liveness& marker = row.liveness;
  if (row.deletion.present() || marker.ttl_s != 0) return false;
  if (marker.present() && cover.hides(marker.timestamp_us)) return false;
  live = marker.present();
  bool as_stored = true;
  for (const Cell& cell : row.cells) {
    if (cell.kind == CellKind::kValue) {
      as_stored &= cell.ttl_s == 0;
      live |= cell.column_id != kKeyCellColumnId;
    } else {
      as_stored &= cell.kind == CellKind::kTombstone && !live_only && !bound.takes(cell);
      ++tombstones;
    }
    as_stored &= !cover.hides(cell.timestamp_us);
  }
  return as_stored;
}

/// Cells that are deleted, or have expired.
uint32_t dead_cells_in(const RowRecord& record, int64_t now_s);

/// As Cassandra counts them: dead cells, or the row where it has none and is dead by itself. What
/// covers it has hidden things already; `live`: whether it is.
uint32_t tombstones_in(const RowRecord& row, bool live, int64_t now_s);

/// Of an answer that is compared: what is dead since before the horizon goes. A value goes only
/// long after its end: who reads or repairs with a clock that is behind still needs it.
void drop_long_dead(RowRecord& record, const PurgeBound& bound, int64_t now_s);

}  // namespace tetrad::storage
