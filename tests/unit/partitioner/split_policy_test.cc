// SPDX-License-Identifier: Apache-2.0
// Which tablets are split for a throughput, and where those are cut that hold nothing.
#include "partitioner/split_policy.h"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "base/random.h"

namespace tetrad::partitioner {

namespace {

constexpr uint64_t kTop = UINT64_MAX;

/// Tablets that end at these positions, the last at the ring's end; ids count down from `first`.
TabletMap map_of(std::vector<RingPosition> ends, uint64_t first) {
  ends.push_back(RingPosition::highest());
  std::vector<Tablet> tablets;
  RingPosition start = RingPosition::lowest();
  for (const RingPosition end : ends) {
    Tablet tablet;
    tablet.id = TabletId{first--};
    tablet.range = {start, end};
    tablets.push_back(std::move(tablet));
    start = end;
  }
  return TabletMap(std::move(tablets));
}

Tablet tablet_of(RingPosition start, RingPosition end) {
  Tablet tablet;
  tablet.range = {start, end};
  return tablet;
}

unsigned __int128 width_of(const Tablet& tablet) {
  const auto number = [](RingPosition p) {
    return (static_cast<unsigned __int128>(static_cast<uint64_t>(p.token)) << 64) + p.hash;
  };
  return number(tablet.range.end) - number(tablet.range.start);
}

using Places = std::vector<size_t>;

}  // namespace

TEST_CASE(
    "the widest tablets are split first, of equal ones the lower id, never more than wanted") {
  // Widths of a quarter, a half, an eighth and an eighth of the ring; ids 9, 8, 7, 6.
  const TabletMap map =
      map_of({RingPosition::end_of_token(-(int64_t{1} << 62)),
              RingPosition::end_of_token(int64_t{1} << 62),
              RingPosition::end_of_token((int64_t{1} << 62) + (int64_t{1} << 61))},
             9);
  CHECK(choose_tablets_to_split(map, 0).empty());
  CHECK(choose_tablets_to_split(map, 4).empty());
  CHECK(choose_tablets_to_split(map, 5) == Places{1});
  CHECK(choose_tablets_to_split(map, 6) == Places{1, 0});
  // The ring's last token is one less than half of all.
  CHECK(choose_tablets_to_split(map, 8) == Places{1, 0, 2, 3});
  CHECK(choose_tablets_to_split(map, 1000).size() == 4);

  const TabletMap equal = map_of({RingPosition::end_of_token(-100), RingPosition::end_of_token(0),
                                  RingPosition::end_of_token(100), RingPosition::end_of_token(200)},
                                 50);
  Places chosen = choose_tablets_to_split(equal, 8);
  CHECK(chosen.size() == 3);
  CHECK(chosen.back() == 3);  // after both ends of the ring, of three the one with the lowest id
}

TEST_CASE("tablets that change members or are one position are not chosen") {
  TabletMap map = map_of({{0, 4}, {0, 5}, RingPosition::end_of_token(1000)}, 9);
  CHECK(choose_tablets_to_split(map, 4 + 3).size() == 3);  // the second is one position
  for (const size_t place : choose_tablets_to_split(map, 100)) CHECK(place != 1);
  Tablet moving = map.tablets()[0];
  moving.stage = TabletStage::kStream;
  const auto moved = map.with_tablet(moving);
  REQUIRE(moved);
  CHECK(choose_tablets_to_split(*moved, 5) == Places{3});
  CHECK(choose_tablets_to_split(*moved, 100) == Places{3, 2});
}

TEST_CASE("a tablet without rows is cut in the middle, whatever its ends") {
  CHECK(choose_middle(tablet_of(RingPosition::lowest(), RingPosition::highest())) ==
        RingPosition::end_of_token(-1));
  CHECK(choose_middle(tablet_of({5, kTop}, {15, kTop})) == RingPosition::end_of_token(10));
  CHECK(choose_middle(tablet_of({5, kTop}, {7, 0})) == RingPosition::end_of_token(6));
  CHECK(choose_middle(tablet_of({5, kTop - 1}, {6, 0})) == RingPosition{5, kTop});
  CHECK_FALSE(choose_middle(tablet_of({5, kTop}, {6, 0})));
  CHECK(choose_middle(tablet_of({5, kTop}, {6, 1})) == RingPosition{6, 0});
  CHECK(choose_middle(tablet_of({-1, kTop}, {0, kTop})) == RingPosition{0, kTop / 2});
  CHECK(choose_middle(tablet_of({7, 10}, {7, 20})) == RingPosition{7, 15});
  CHECK(choose_middle(tablet_of({7, 10}, {7, 12})) == RingPosition{7, 11});
  CHECK_FALSE(choose_middle(tablet_of({7, 10}, {7, 11})));
}

TEST_CASE("splits of random maps end at what is wanted, as even as halving makes them") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    INFO(seed);
    base::Random random(seed);
    std::set<RingPosition> ends;
    const bool narrow = random.below(4) == 0;
    for (uint64_t i = random.below(20); i > 0; --i) {
      const auto token = static_cast<int64_t>(narrow ? random.below(3) : random.next());
      ends.insert({token, random.below(2) == 0 ? kTop : narrow ? random.below(3) : random.next()});
    }
    ends.erase(RingPosition::highest());
    TabletMap map = map_of({ends.begin(), ends.end()}, 1000);
    const size_t before = map.tablets().size();
    const size_t wanted = random.below(80);
    uint64_t next_id = 2000;
    for (int round = 0; round < 100; ++round) {
      const Places chosen = choose_tablets_to_split(map, wanted);
      CHECK(chosen.size() <= wanted - std::min(wanted, map.tablets().size()));
      if (chosen.empty()) break;
      // No tablet that was left is wider than one that was chosen.
      unsigned __int128 narrowest = ~static_cast<unsigned __int128>(0);
      for (const size_t place : chosen)
        narrowest = std::min(narrowest, width_of(map.tablets()[place]));
      if (map.tablets().size() + chosen.size() == wanted) {
        for (size_t i = 0; i < map.tablets().size(); ++i)
          if (std::ranges::find(chosen, i) == chosen.end())
            CHECK(width_of(map.tablets()[i]) <= narrowest);
      }
      std::vector<Tablet> tablets;
      for (const size_t place : chosen) tablets.push_back(map.tablets()[place]);
      for (const Tablet& tablet : tablets) {
        const auto at = choose_middle(tablet);
        REQUIRE(at);
        auto split = map.with_split(tablet.id, *at, TabletId{next_id++});
        REQUIRE(split);
        map = std::move(*split);
      }
    }
    CHECK(map.tablets().size() == std::max(before, wanted));
  }
}

}  // namespace tetrad::partitioner
