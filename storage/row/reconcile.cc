// SPDX-License-Identifier: Apache-2.0
// The reconciliation of row records; the rules are described in reconcile.h.
//
//   1. The later row deletion, the later marker; a marker that the deletion hides goes.
//   2. Both lists of cells are sorted by place, so one walk over both meets cells of one place
//      together: the winner stays.
//   3. In the same walk cells are dropped that the row's deletion hides, or that of their column,
//      which comes before its elements. So the result is canonical, and joining again in another
//      order gives the same.
//
// No clock is read and no input is an error (rule 16): compaction, reads, repairs and hints at any
// time give the same record.
#include "storage/row/reconcile.h"

#include <algorithm>
#include <optional>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::storage {
namespace {

/// Of two values or tombstones with one timestamp at one place. As Cassandra: a tombstone wins over
/// a value, a value with a TTL over one without, then the later end, then the larger bytes. A total
/// order, so that joining is associative.
bool wins_tie(const Cell& a, const Cell& b) {
  const bool a_value = a.kind == CellKind::kValue, b_value = b.kind == CellKind::kValue;
  if (a_value != b_value) return TETRAD_MUTANT(tombstone_loses_tie) ? a_value : !a_value;
  if (!a_value) return TETRAD_MUTANT(deletion_time_ignored) || a.expiry_s >= b.expiry_s;
  const bool a_ttl = a.ttl_s > 0, b_ttl = b.ttl_s > 0;
  if (a_ttl != b_ttl) return a_ttl;
  if (a_ttl && a.expiry_s != b.expiry_s) return a.expiry_s > b.expiry_s;
  const int order = a.value.compare(b.value);
  if (order != 0) return order > 0;
  return a.ttl_s <= b.ttl_s;  // the same end with the shorter TTL was written later
}

const Cell& winner(const Cell& a, const Cell& b) {
  if (a.timestamp_us != b.timestamp_us) return a.timestamp_us > b.timestamp_us ? a : b;
  return wins_tie(a, b) ? a : b;
}

/// Walks cells in order and tells which of them row and column deletions hide. The deletion of a
/// column sorts before its elements, so one pass is enough.
class HiddenTest {
 public:
  explicit HiddenTest(const Deletion& row) : row_(row) {}
  bool operator()(const Cell& cell) {
    if (row_.hides(cell.timestamp_us)) return true;
    if (cell.kind == CellKind::kColumnDeletion) {
      column_id_ = cell.column_id;
      column_ = {cell.timestamp_us, cell.expiry_s};
      return false;
    }
    return column_.present() && cell.column_id == column_id_ && column_.hides(cell.timestamp_us);
  }

 private:
  const Deletion row_;
  uint32_t column_id_ = 0;
  Deletion column_;
};

}  // namespace

// Of equal timestamps the later deletion time wins (rule 16), so that the purge waits for both.
Deletion later_of(const Deletion& a, const Deletion& b) {
  if (a.timestamp_us != b.timestamp_us) return a.timestamp_us > b.timestamp_us ? a : b;
  return TETRAD_MUTANT(deletion_time_ignored) || a.deletion_time_s >= b.deletion_time_s ? a : b;
}

// The rules of cells, for a row's marker: it has no tombstone of its own.
Liveness reconcile_liveness(const Liveness& a, const Liveness& b) {
  if (a.timestamp_us != b.timestamp_us) return a.timestamp_us > b.timestamp_us ? a : b;
  const bool a_ttl = a.ttl_s > 0, b_ttl = b.ttl_s > 0;
  if (a_ttl != b_ttl) return a_ttl ? a : b;
  if (a.expiry_s != b.expiry_s) return a.expiry_s > b.expiry_s ? a : b;
  return a.ttl_s <= b.ttl_s ? a : b;
}

RowRecord reconcile(const RowRecord& a, const RowRecord& b) {
  RowRecord merged;
  merged.deletion = later_of(a.deletion, b.deletion);
  merged.liveness = reconcile_liveness(a.liveness, b.liveness);
  if (merged.deletion.hides(merged.liveness.timestamp_us)) merged.liveness = {};
  TETRAD_ASSERT(merged.deletion.timestamp_us >= a.deletion.timestamp_us &&
                merged.deletion.timestamp_us >= b.deletion.timestamp_us);
  merged.cells.reserve(a.cells.size() + b.cells.size());
  // Only the merged row deletion: it hides at least what either one hides.
  HiddenTest hidden(merged.deletion);
  const auto keep = [&](const Cell& cell) {
    if (!hidden(cell)) merged.cells.push_back(cell);
  };
  auto left = a.cells.begin(), right = b.cells.begin();
  while (left != a.cells.end() && right != b.cells.end()) {
    const int order = compare_cell_places(*left, *right);
    if (order < 0) {
      keep(*left++);
    } else if (order > 0) {
      keep(*right++);
    } else {
      keep(winner(*left++, *right++));
    }
  }
  for (; left != a.cells.end(); ++left) keep(*left);
  for (; right != b.cells.end(); ++right) keep(*right);
  TETRAD_ASSERT(merged.cells.size() <= a.cells.size() + b.cells.size());
  return merged;
}

// Idempotent; what reads decode may come of a store that wrote it before some deletion was joined.
void drop_hidden(RowRecord& record) {
  if (record.deletion.hides(record.liveness.timestamp_us)) record.liveness = {};
  HiddenTest hidden(record.deletion);
  std::erase_if(record.cells, [&](const Cell& cell) { return hidden(cell); });
}

void hide(RowRecord& record, const Deletion& cover) {
  if (!cover.present()) return;
  if (cover.hides(record.liveness.timestamp_us)) record.liveness = {};
  // An older row deletion is hidden by a later cover, too.
  if (cover.hides(record.deletion.timestamp_us)) record.deletion = {};
  std::erase_if(record.cells, [&](const Cell& cell) { return cover.hides(cell.timestamp_us); });
}

bool is_live(const RowRecord& record, int64_t now_s) {
  if (record.liveness.live_at(now_s)) return true;
  // Cells of the key column are there to carry a key's bytes and are no reason for a row to live.
  return std::any_of(record.cells.begin(), record.cells.end(), [&](const Cell& cell) {
    return cell.column_id != kKeyCellColumnId && cell.live_at(now_s);
  });
}

void keep_live(RowRecord& record, int64_t now_s) {
  record.deletion = {};
  if (!record.liveness.live_at(now_s)) record.liveness = {};
  std::erase_if(record.cells, [&](const Cell& cell) { return !cell.live_at(now_s); });
}

void drop_expired_values(RowRecord& record, int64_t now_s) {
  for (Cell& cell : record.cells)
    if (cell.kind == CellKind::kValue && !cell.live_at(now_s)) cell.value = {};
}

// Both are canonical. A cell that `held` has and `wanted` has not was hidden or lost by the merge:
// what hides it is part of `missing` or already there.
RowRecord missing_part(const RowRecord& wanted, const RowRecord& held) {
  RowRecord missing;
  if (wanted.liveness != held.liveness) missing.liveness = wanted.liveness;
  if (wanted.deletion != held.deletion) missing.deletion = wanted.deletion;
  auto have = held.cells.begin();
  for (const Cell& cell : wanted.cells) {
    while (have != held.cells.end() && compare_cell_places(*have, cell) < 0) ++have;
    const bool same = have != held.cells.end() && *have == cell;
    if (!same) missing.cells.push_back(cell);
  }
  return missing;
}

}  // namespace tetrad::storage
