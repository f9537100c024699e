// SPDX-License-Identifier: Apache-2.0
// What a store knows of its tables without reading them.
#pragma once

#include <unordered_map>

#include "storage/engine/partition_reader.h"
#include "storage/engine/table_marks.h"
#include "storage/index/table_indexes.h"

namespace tetrad::storage {

/// What a store knows of one table. Nothing of it is ever lowered but by erase().
struct TableKnowledge {
  /// Whether files of older programs may hold range tombstones of it; for later files the marks
  /// say.
  TableContents contents = TableContents::nothing();
  TableMarks marks;
  uint64_t schema_version = 0;      // the newest a mutation has named
  TableIndexes* indexes = nullptr;  // null: there are none
  bool has_views = false;           // StoreViews knows which
  bool has_graphs = false;          // of vectors: StoreGraphs knows which
  uint64_t dead = 0;  // tombstones, and what has a TTL, ever written; 0: there are none
};

/// By incarnation. Owned by the store, on its thread.
class TablesKnown {
 public:
  /// Made when it is asked for.
  TableKnowledge& at(TableIncarnation incarnation) {
    const auto [table, is_new] = tables_.try_emplace(incarnation.value);
    if (is_new && unknown_) forget_what_is_not(table->second);
    return table->second;
  }
  /// Null: nothing was written to it as far as this store knows; see unknown().
  const TableKnowledge* find(TableIncarnation incarnation) const {
    const auto table = tables_.find(incarnation.value);
    return table == tables_.end() ? nullptr : &table->second;
  }
  /// `indexes` outlives the table's stay here; null: it has none.
  void set_indexes(TableIncarnation incarnation, TableIndexes* indexes) {
    if (indexes != nullptr || find(incarnation) != nullptr) at(incarnation).indexes = indexes;
  }
  /// As set_indexes().
  void set_views(TableIncarnation incarnation, bool has_views) {
    if (has_views || find(incarnation) != nullptr) at(incarnation).has_views = has_views;
  }
  /// As set_indexes().
  void set_graphs(TableIncarnation incarnation, bool has_graphs) {
    if (has_graphs || find(incarnation) != nullptr) at(incarnation).has_graphs = has_graphs;
  }
  /// The table is retired: its marks give their memory back.
  void erase(TableIncarnation incarnation) {
    const auto table = tables_.find(incarnation.value);
    if (table == tables_.end()) return;
    table->second.marks.release(budget_);
    tables_.erase(table);
  }
  /// Memory of all marks of the store.
  MarkBudget& budget() { return budget_; }

  /// There is a file without its summary: every table may have everything.
  void set_unknown() {
    unknown_ = true;
    for (auto& [incarnation, table] : tables_) forget_what_is_not(table);
  }
  /// What is not known may be there: reads look for everything, and nothing is Put.
  bool unknown() const { return unknown_; }

 private:
  /// Anything may be in the table, and its marks allow no Put.
  static void forget_what_is_not(TableKnowledge& table) {
    table.contents = {};
    table.contents.scattered_tombstones = true;
    table.marks.raise_all_to_the_end();
  }

  /// By number of the incarnation. References stay good until the entry's own erase().
  std::unordered_map<uint32_t, TableKnowledge> tables_;
  MarkBudget budget_;
  bool unknown_ = false;
};

}  // namespace tetrad::storage
