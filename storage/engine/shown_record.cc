// SPDX-License-Identifier: Apache-2.0
// What an answer that is compared leaves out of a record.
#include "storage/engine/shown_record.h"

#include "base/data_mutants.h"
#include "storage/engine/tombstone_filter.h"
#include "storage/row/reconcile.h"

namespace tetrad::storage {

void drop_long_dead(RowRecord& record, const PurgeBound& bound, int64_t now_s) {
  if (TETRAD_MUTANT(expired_forgotten))
    std::erase_if(record.cells, [&](const Cell& cell) {
      return cell.kind == CellKind::kValue && !cell.live_at(now_s);
    });
  purge(record, bound);
  drop_expired_values(record, now_s - kExpiredValueMargin_s);
}

}  // namespace tetrad::storage
