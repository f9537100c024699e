// SPDX-License-Identifier: Apache-2.0
#include "partitioner/tablet_map.h"

#include <catch2/catch.hpp>

#include "base/random.h"
#include "partitioner/placement.h"
#include "partitioner/split_policy.h"
#include "tests/support/hex.h"
#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::partitioner {

namespace {
TabletMap map_of(uint32_t tablets) {
  StoreLoad load;
  return TabletMap(*place_table(Ring(ring_nodes(3)), {.tablets = tablets}, load));
}
}  // namespace

TEST_CASE("every position has its tablet") {
  base::Random random(3);
  const TabletMap map = map_of(9);
  CHECK(map.find(RingPosition::highest()).id == TabletId{9});
  CHECK(map.find({INT64_MIN, 1}).id == TabletId{1});
  for (int i = 0; i < 1000; ++i) {
    const RingPosition position{static_cast<int64_t>(random.next()), random.next()};
    CHECK(map.find(position).range.contains(position));
  }
  for (const Tablet& tablet : map.tablets()) CHECK(map.find(tablet.range.end).id == tablet.id);
}

TEST_CASE("a split keeps members and epoch and raises the version") {
  const TabletMap map = map_of(2);
  const auto split = map.with_split(TabletId{1}, {-5, 77}, TabletId{50});
  REQUIRE(split);
  CHECK(split->version() == map.version() + 1);
  REQUIRE(split->tablets().size() == 3);
  CHECK(split->find({-5, 77}).id == TabletId{1});
  CHECK(split->find({-5, 78}).id == TabletId{50});
  CHECK(split->find({-5, 78}).replicas == map.find({-5, 78}).replicas);
  CHECK(split->find({-5, 78}).epoch == map.find({-5, 78}).epoch);
  CHECK_FALSE(map.with_split(TabletId{2}, {-5, 77}, TabletId{50}));
  CHECK_FALSE(map.with_split(TabletId{9}, {-5, 77}, TabletId{50}));
  CHECK_FALSE(map.with_split(TabletId{2}, RingPosition::highest(), TabletId{50}));
}

TEST_CASE("the example of a tablet map's bytes is what it says") {
  const Bytes bytes = tests::from_hex(
      "02 05 01 07 03 02 01 c801 7fffffffffffffff ffffffffffffffff"
      "01 00000000000000000000000000000001 02 01 00000000000000000000000000000003 00");
  base::ByteReader reader(bytes);
  const auto map = decode_tablet_map(reader);
  REQUIRE(map);
  CHECK(map->version() == 5);
  REQUIRE(map->tablets().size() == 1);
  const Tablet& tablet = map->tablets()[0];
  CHECK(tablet.id == TabletId{7});
  CHECK(tablet.epoch == SetEpoch{3});
  CHECK(tablet.stage == TabletStage::kStream);
  CHECK(tablet.full);
  CHECK(tablet.repaired_us == 100);
  CHECK(tablet.range == RingRange{RingPosition::lowest(), RingPosition::highest()});
  REQUIRE(tablet.replicas.size() == 1);
  CHECK(tablet.replicas[0].host.value.octets[15] == 1);
  CHECK(tablet.replicas[0].store == 2);
  REQUIRE(tablet.new_replicas.size() == 1);
  CHECK(tablet.new_replicas[0].host.value.octets[15] == 3);
  CHECK(tablet.new_replicas[0].store == 0);
  Bytes again;
  encode_tablet_map(*map, again);
  CHECK(again == bytes);
}

TEST_CASE("the example of a map with merges is what it says") {
  const Bytes bytes =
      tests::from_hex("03 09 02 01 08 04 00 0a 00 7fffffffffffffff ffffffffffffffff 00 00");
  base::ByteReader reader(bytes);
  const auto map = decode_tablet_map(reader);
  REQUIRE(map);
  CHECK(map->layout() == 6);
  const Tablet& tablet = map->tablets()[0];
  CHECK(tablet.id == TabletId{8});
  CHECK(tablet.is_merged);
  CHECK(tablet.bounces == 2);
  CHECK_FALSE(tablet.full);
  Bytes again;
  encode_tablet_map(*map, again);
  CHECK(again == bytes);
  // A map without merges has no such tablets.
  Bytes older = bytes;
  older[0] = 2;
  older.erase(2, 1);
  base::ByteReader in(older);
  CHECK_FALSE(decode_tablet_map(in));
  Bytes none = bytes;
  none[2] = 0;
  base::ByteReader of_none(none);
  CHECK_FALSE(decode_tablet_map(of_none));
}

TEST_CASE("a merge raises epoch and layout, and is undone by a split") {
  TabletMap map = map_of(4);
  Tablet older = map.tablets()[2];
  older.epoch = SetEpoch{9};
  older.bounces = 2;
  CHECK_FALSE(map.with_merge(TabletId{1}, TabletId{3}, TabletId{50}));
  CHECK_FALSE(map.with_merge(TabletId{4}, TabletId{5}, TabletId{50}));
  CHECK_FALSE(map.with_merge(TabletId{9}, TabletId{1}, TabletId{50}));
  for (const bool full : {true, false}) {
    Tablet refused = map.tablets()[1];
    refused.full = full;
    if (!full) refused.stage = TabletStage::kWriteBoth;
    CHECK_FALSE(map.with_tablet(refused)->with_merge(TabletId{2}, TabletId{3}, TabletId{50}));
    CHECK_FALSE(map.with_tablet(refused)->with_merge(TabletId{1}, TabletId{2}, TabletId{50}));
  }
  map = *map.with_merge(TabletId{3}, TabletId{4}, TabletId{50})
             ->with_split(TabletId{50}, map.tablets()[2].range.end, TabletId{51});
  older = map.tablets()[2];
  older.epoch = SetEpoch{9};
  older.bounces = 2;
  map = *map.with_tablet(older);
  const uint64_t layout = map.layout();
  const auto merged = map.with_merge(TabletId{2}, TabletId{50}, TabletId{60});
  REQUIRE(merged);
  CHECK(merged->layout() == layout + 1);
  CHECK(merged->version() == map.version() + 1);
  REQUIRE(merged->tablets().size() == 3);
  const Tablet& whole = merged->tablets()[1];
  CHECK(whole.id == TabletId{60});
  CHECK(whole.range == RingRange{map.tablets()[1].range.start, map.tablets()[2].range.end});
  CHECK(whole.epoch == SetEpoch{10});
  CHECK(whole.is_merged);
  CHECK(whole.bounces == 2);
  const auto split = merged->with_split(TabletId{60}, map.tablets()[1].range.end, TabletId{61});
  REQUIRE(split);
  CHECK(split->layout() == layout + 11);
  for (const size_t half : {1, 2}) {
    CHECK_FALSE(split->tablets()[half].is_merged);
    CHECK(split->tablets()[half].bounces == 2);
    CHECK(split->tablets()[half].epoch == SetEpoch{10});
  }
}

TEST_CASE("a tablet map comes back from its bytes, and broken bytes are refused") {
  TabletMap map = map_of(5);
  Tablet changed = map.tablets()[2];
  changed.stage = TabletStage::kStream;
  changed.new_replicas = changed.replicas;
  changed.full = true;
  changed.epoch = SetEpoch{7};
  map = *map.with_tablet(changed);
  Bytes bytes;
  encode_tablet_map(map, bytes);
  base::ByteReader reader(bytes);
  const auto decoded = decode_tablet_map(reader);
  REQUIRE(decoded);
  CHECK(reader.at_end());
  Bytes again;
  encode_tablet_map(*decoded, again);
  CHECK(again == bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    base::ByteReader cut(BytesView(bytes).substr(0, size));
    CHECK_FALSE(decode_tablet_map(cut));
  }
  base::Random random(5);
  for (int i = 0; i < 5000; ++i) {
    Bytes broken = bytes;
    broken[random.below(broken.size())] = static_cast<char>(random.next());
    base::ByteReader in(broken);
    (void)decode_tablet_map(in);
  }
}

TEST_CASE("a tablet map whose stage and new members do not fit is refused") {
  for (const bool is_changing : {true, false}) {
    Tablet odd = map_of(2).tablets()[1];
    if (is_changing)
      odd.stage = TabletStage::kReadNew;
    else
      odd.new_replicas = odd.replicas;
    Bytes bytes;
    encode_tablet_map(*map_of(2).with_tablet(odd), bytes);
    base::ByteReader in(bytes);
    const auto refused = decode_tablet_map(in);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kCorruption);
  }
}

TEST_CASE("the cut halves the bytes and never cuts a logical partition") {
  Tablet tablet;
  tablet.id = TabletId{1};
  const std::vector<SplitSample> even{{{10, 0}, 5}, {{20, 0}, 5}, {{30, 0}, 5}, {{40, 0}, 5}};
  CHECK(choose_split_point(tablet, even) == RingPosition{20, 0});
  const std::vector<SplitSample> large_first{{{10, 0}, 100}, {{20, 0}, 1}, {{30, 0}, 1}};
  CHECK(choose_split_point(tablet, large_first) == RingPosition{10, 0});
  const std::vector<SplitSample> large_last{{{10, 0}, 1}, {{20, 0}, 1}, {{30, 0}, 100}};
  CHECK(choose_split_point(tablet, large_last) == RingPosition{20, 0});
  const std::vector<SplitSample> one{{{10, 0}, 100}};
  REQUIRE_FALSE(choose_split_point(tablet, one));
  CHECK(choose_split_point(tablet, one).error().code == ErrorCode::kLimit);
  CHECK_FALSE(choose_split_point(tablet, {}));
  tablet.range = {{15, 0}, {30, 0}};
  CHECK(choose_split_point(tablet, even) == RingPosition{20, 0});
  tablet.range = {{25, 0}, {30, 0}};
  CHECK_FALSE(choose_split_point(tablet, even));
}

TEST_CASE("a logical partition is set apart by two cuts at most") {
  const auto range_of = [](RingRange range) {
    Tablet tablet;
    tablet.range = range;
    return tablet;
  };
  const RingPosition at{20, 5}, before{20, 4};
  CHECK(choose_isolating_cut(range_of({{10, 0}, {30, 0}}), at) == at);
  CHECK(choose_isolating_cut(range_of({{10, 0}, at}), at) == before);
  CHECK_FALSE(choose_isolating_cut(range_of({before, at}), at));
  CHECK(choose_isolating_cut(range_of({before, {30, 0}}), at) == at);
  CHECK_FALSE(choose_isolating_cut(range_of({{21, 0}, {30, 0}}), at));
  const RingPosition first_of_token{20, 0}, last_of_before = RingPosition::end_of_token(19);
  CHECK(choose_isolating_cut(range_of({{10, 0}, first_of_token}), first_of_token) ==
        last_of_before);
}

}  // namespace tetrad::partitioner
