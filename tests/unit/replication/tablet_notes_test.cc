// SPDX-License-Identifier: Apache-2.0
#include "replication/tablets/tablet_notes.h"

#include <catch2/catch.hpp>

namespace tetrad::replication {

namespace {

using partitioner::Tablet;
using partitioner::TabletMap;

TableId table_number(uint8_t number) {
  TableId id;
  id.value.octets[0] = number;
  return id;
}

/// Tablets 1 and 2, cut at 0.
TabletMap two_tablets() {
  Tablet left, right;
  left.id = TabletId{1};
  left.range = {RingPosition::lowest(), {0, 0}};
  right.id = TabletId{2};
  right.range = {{0, 0}, RingPosition::highest()};
  return TabletMap({left, right});
}

MetaState state_of(TabletMap tablets) {
  auto table = std::make_shared<TableInfo>();
  table->id = table_number(1);
  table->tablets = std::move(tablets);
  MetaState state;
  state.tables.put(table_number(1), std::move(table));
  return state;
}

/// Of both tablets, as they are before anything happens to them.
TabletNotes<int> notes_of_two() {
  TabletNotes<int> notes;
  const TabletMap map = two_tablets();
  for (const Tablet& tablet : map.tablets())
    notes.put(table_number(1), tablet, static_cast<int>(tablet.id.value) * 10);
  return notes;
}

}  // namespace

TEST_CASE("a note of a tablet is found until it is replaced or erased") {
  TabletNotes<int> notes = notes_of_two();
  REQUIRE(notes.find(TabletId{2}) != nullptr);
  CHECK(*notes.find(TabletId{2}) == 20);
  CHECK(notes.find(TabletId{3}) == nullptr);
  const TabletMap map = two_tablets();
  notes.put(table_number(1), map.tablets()[1], 7);
  CHECK(*notes.find(TabletId{2}) == 7);
  CHECK(notes.count() == 2);
  notes.erase(TabletId{2});
  CHECK(notes.find(TabletId{2}) == nullptr);
}

TEST_CASE("notes of tablets that are gone are forgotten, others stay") {
  TabletNotes<int> notes = notes_of_two();
  notes.forget_gone(state_of(two_tablets()));
  CHECK(notes.count() == 2);
  // A split: the left half keeps the id, and is another tablet.
  notes.forget_gone(state_of(*two_tablets().with_split(TabletId{2}, {5, 5}, TabletId{3})));
  CHECK(notes.find(TabletId{1}) != nullptr);
  CHECK(notes.find(TabletId{2}) == nullptr);
  notes = notes_of_two();
  notes.forget_gone(state_of(*two_tablets().with_merge(TabletId{1}, TabletId{2}, TabletId{4})));
  CHECK(notes.count() == 0);
  notes = notes_of_two();
  notes.forget_gone(MetaState());  // the table is dropped
  CHECK(notes.count() == 0);
}

}  // namespace tetrad::replication
