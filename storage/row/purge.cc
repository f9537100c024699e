// SPDX-License-Identifier: Apache-2.0
// What a record loses to a bound. The key's cell alone keeps no row.
#include "storage/row/purge.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::storage {

size_t purge(RowRecord& record, const PurgeBound& bound) {
  size_t dropped = 0;
  if (record.deletion.present() && bound.takes(record.deletion)) {
    record.deletion = {};
    ++dropped;
  }
  if (record.liveness.present() && bound.takes(record.liveness)) {
    record.liveness = {};
    ++dropped;
  }
  dropped += std::erase_if(record.cells, [&](const Cell& cell) { return bound.takes(cell); });
  const bool only_key = dropped != 0 && !record.liveness.present() && !record.deletion.present() &&
                        std::all_of(record.cells.begin(), record.cells.end(), [](const Cell& cell) {
                          return cell.column_id == kKeyCellColumnId;
                        });
  if (only_key) record.cells.clear();
  TETRAD_ASSERT(!record.deletion.present() || !bound.takes(record.deletion));
  return dropped;
}

}  // namespace tetrad::storage
