// SPDX-License-Identifier: Apache-2.0
// Random records of few columns, few timestamps and few values, so that ties are common.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {

class RandomRows {
 public:
  explicit RandomRows(uint64_t seed) : random_(seed) {}

  base::Random& random() { return random_; }
  uint64_t below(uint64_t n) { return random_.below(n); }
  bool one_in(uint64_t n) { return random_.one_in(n); }

  int64_t timestamp() { return 100 + static_cast<int64_t>(below(timestamps)); }
  int64_t deletion_time() { return 5 + static_cast<int64_t>(below(2)); }
  int64_t expiry() { return kNow_s - 400 + static_cast<int64_t>(below(4)) * 200 + 100; }
  BytesView value() {
    static constexpr BytesView values[] = {"", "a", "b", "bb"};
    return values[below(4)];
  }
  BytesView path() {
    static constexpr BytesView paths[] = {"", "x", "y"};
    return paths[below(3)];
  }

  void give_ttl(Cell& cell) {
    cell.ttl_s = one_in(2) ? 300 : 500;
    cell.expiry_s = expiry();
  }
  Liveness liveness(int64_t ts) {
    Liveness l{ts, 0, 0};
    if (one_in(4)) l = {ts, 300, expiry()};
    return l;
  }

  /// Any mix of columns 1 to 3 (simple) and 4 (a collection). Not canonical.
  RowRecord record() {
    RowRecord r;
    if (one_in(2)) r.liveness = liveness(timestamp());
    if (one_in(6)) r.deletion = {timestamp(), deletion_time()};
    for (uint32_t column = 1; column <= 3; ++column) {
      if (one_in(2)) continue;
      Cell cell = one_in(4) ? tombstone_cell(column, timestamp(), deletion_time())
                            : value_cell(column, timestamp(), value());
      if (cell.kind == CellKind::kValue && one_in(3)) give_ttl(cell);
      r.cells.push_back(cell);
    }
    if (one_in(2)) {
      if (one_in(2)) r.cells.push_back(column_deletion(4, timestamp(), deletion_time()));
      for (const BytesView p : {BytesView(""), BytesView("x"), BytesView("y")}) {
        if (one_in(2)) continue;
        Cell cell = element_cell(4, timestamp(), p, value());
        if (one_in(4)) {
          cell.kind = CellKind::kTombstone;
          cell.value = {};
          cell.expiry_s = deletion_time();
        } else if (one_in(4)) {
          give_ttl(cell);
        }
        r.cells.push_back(cell);
      }
    }
    return r;
  }
  RowRecord canonical_record() {
    RowRecord r = record();
    drop_hidden(r);
    return r;
  }
  /// An INSERT of every regular column: what may be Put.
  RowRecord complete_record(int64_t ts) {
    RowRecord r;
    r.liveness = liveness(ts);
    for (uint32_t column = 1; column <= 3; ++column) {
      Cell cell =
          one_in(4) ? tombstone_cell(column, ts, deletion_time()) : value_cell(column, ts, value());
      if (cell.kind == CellKind::kValue && r.liveness.ttl_s > 0) give_ttl(cell);
      r.cells.push_back(cell);
    }
    r.cells.push_back(column_deletion(4, ts - 1, deletion_time()));
    if (one_in(2)) r.cells.push_back(element_cell(4, ts, "x", value()));
    return r;
  }

  uint64_t timestamps = 12;

 private:
  base::Random random_;
};

}  // namespace tetrad::storage
