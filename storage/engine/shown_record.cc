// SPDX-License-Identifier: Apache-2.0
// What of a record is dead, and what of that an answer that is compared leaves out.
#include "storage/engine/shown_record.h"

#include <algorithm>

#include "base/data_mutants.h"
#include "storage/engine/tombstone_filter.h"
#include "storage/row/reconcile.h"

namespace tetrad::storage {

uint32_t dead_cells_in(const RowRecord& record, int64_t now_s) {
  return static_cast<uint32_t>(std::ranges::count_if(record.cells, [now_s](const Cell& cell) {
    return cell.kind != CellKind::kColumnDeletion && !cell.live_at(now_s);
  }));
}

uint32_t tombstones_in(const RowRecord& row, bool live, int64_t now_s) {
  const uint32_t cells = dead_cells_in(row, now_s);
  if (live || cells != 0) return cells;
  const bool is_dead_itself = row.deletion.present() || row.liveness.present();
  return is_dead_itself ? 1 : 0;
}

void drop_long_dead(RowRecord& record, const PurgeBound& bound, int64_t now_s) {
  if (TETRAD_MUTANT(expired_forgotten))
    std::erase_if(record.cells, [&](const Cell& cell) {
      return cell.kind == CellKind::kValue && !cell.live_at(now_s);
    });
  purge(record, bound);
  drop_expired_values(record, now_s - kExpiredValueMargin_s);
}

}  // namespace tetrad::storage
