// SPDX-License-Identifier: Apache-2.0
// What a store knows of the indexes of its tables: who makes their claims, and how far each is
// built. How far is written as the store's own keys:
//
//   key   := the store's own, "index", u32 incarnation, u16 index id
//   value := u8 1 (built) | u8 0 (being built), place that the build goes on after (its next page's)
//
// A store may take rows while it does not know of an index that it has begun to build in an earlier
// life: its metadata may have fallen back behind CREATE INDEX. Such rows leave no claims, so what
// was built counts for nothing, and the build begins anew once the index is known.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "storage/index/claim.h"

namespace tetrad::storage {

/// How far an index is built in a store.
struct IndexBuild {
  bool built = false;
  Bytes after;  // what is before it has claims; "" at the start
};

/// Of one table.
struct TableIndexes {
  ClaimMakerPtr maker;  // null: no indexes are known
  std::map<uint16_t, IndexBuild> builds;

  bool knows(uint16_t index_id) const {
    return maker != nullptr && std::ranges::binary_search(maker->index_ids(), index_id);
  }
  bool is_built(uint16_t index_id) const {
    const auto build = builds.find(index_id);
    return build != builds.end() && build->second.built;
  }
};

Bytes index_key(TableIncarnation incarnation, uint16_t index_id);
Bytes index_value(const IndexBuild& build);
/// What claims of the index begin with, of its index_key().
Bytes claims_of_index_key(BytesView index_key);

/// By incarnation; only tables that have, or had, indexes are in it.
class IndexesKnown {
 public:
  /// Takes what one of the store's own keys says, if it is of an index.
  void load(BytesView key, BytesView value);
  /// Null: nothing is known of indexes of this table.
  TableIndexes* find(TableIncarnation incarnation) {
    const auto table = tables_.find(incarnation.value);
    return table == tables_.end() ? nullptr : &table->second;
  }
  TableIndexes& at(TableIncarnation incarnation) { return tables_[incarnation.value]; }
  std::vector<TableIncarnation> incarnations() const {
    std::vector<TableIncarnation> all;
    for (const auto& [incarnation, table] : tables_) all.push_back({incarnation});
    return all;
  }

  /// Another schema is known. What is not needed any more is given out as keys to erase.
  std::vector<Bytes> set(TableIncarnation incarnation, ClaimMakerPtr maker);
  std::vector<Bytes> erase(TableIncarnation incarnation);

 private:
  std::unordered_map<uint32_t, TableIndexes> tables_;
};

/// Rows are about to be taken. Builds of indexes that are not known count for nothing from now on:
/// their keys are to be erased with the rows.
std::vector<Bytes> forget_unknown_builds(TableIncarnation incarnation, TableIndexes& table);

}  // namespace tetrad::storage
