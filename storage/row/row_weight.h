// SPDX-License-Identifier: Apache-2.0
// What a row weighs in the price of a request. Whole numbers, so that sums do not depend on the
// order of rows or on who adds them.
#pragma once

#include <cstdint>

#include "storage/row/row_record.h"

namespace tetrad::storage {

/// Weighs as much as one request unit.
inline constexpr uint64_t kWeightOfUnit = 11 * 1024;

/// Of a row of `bytes`: the first KiB by the byte, each further whole KiB an eleventh of a
/// unit. So 1 KiB weighs one unit and 100 KiB ten.
constexpr uint64_t row_weight(uint64_t bytes) {
  if (bytes < 1024) return 11 * bytes;
  return kWeightOfUnit + 1024 * (bytes / 1024 - 1);
}

/// Bytes of the paths and values of a record's live cells: of what a client can see.
inline uint64_t live_bytes(const RowRecord& record, int64_t now_s) {
  uint64_t bytes = 0;
  for (const Cell& cell : record.cells) {
    if (cell.live_at(now_s) && cell.column_id != kKeyCellColumnId)
      bytes += cell.path.size() + cell.value.size();
  }
  return bytes;
}

}  // namespace tetrad::storage
