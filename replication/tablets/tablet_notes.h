// SPDX-License-Identifier: Apache-2.0
// What a shard remembers of single tablets. A tablet is gone when its table is dropped or
// truncated, and when a split or a merge has put another one in its place; what was remembered of
// it goes, too.
#pragma once

#include <unordered_map>
#include <utility>

#include "partitioner/tablet_map.h"
#include "replication/meta/meta_state.h"

namespace tetrad::replication {

/// Values by tablet: no more than there are tablets, if forget_gone() is called now and then.
/// Belongs to one thread.
template <class Value>
class TabletNotes {
 public:
  /// Null: there is no note of it. Valid until the next change.
  const Value* find(TabletId tablet) const {
    const auto found = notes_.find(tablet);
    return found == notes_.end() ? nullptr : &found->second.value;
  }
  /// In place of an earlier one.
  void put(TableId table, const partitioner::Tablet& tablet, Value value) {
    notes_.insert_or_assign(tablet.id, Note{table, tablet.range.end, std::move(value)});
  }
  void erase(TabletId tablet) { notes_.erase(tablet); }
  /// Erases the notes of tablets that `state` does not have where they were.
  void forget_gone(const MetaState& state) {
    std::erase_if(notes_, [&](const auto& entry) {
      const TableInfo* const table = state.table(entry.second.table);
      return table == nullptr || table->tablets.find(entry.second.end).id != entry.first;
    });
  }
  size_t count() const { return notes_.size(); }

 private:
  /// A value with the place at which its tablet was: a split leaves that place to a tablet with
  /// another number.
  struct Note {
    TableId table;
    RingPosition end;  // the last position of the tablet
    Value value;
  };
  std::unordered_map<TabletId, Note> notes_;
};

}  // namespace tetrad::replication
