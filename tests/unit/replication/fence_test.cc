// SPDX-License-Identifier: Apache-2.0
// The fence: which writes are let in, which passes a new map makes void, and what is waited for.
#include "replication/replica/fence.h"

#include <catch2/catch.hpp>

#include "replication/replica/place.h"
#include "tests/support/manual_reactor.h"
#include "tests/unit/replication/one_table_meta.h"

namespace tetrad::replication {
namespace {

using partitioner::Tablet;
using partitioner::TabletMap;

constexpr TableIncarnation kTable{7}, kTruncated{8};
constexpr RingPosition kCut{0, 0};
const RingRange kAll{};
const RingRange kLeft{kAll.start, kCut}, kRight{kCut, kAll.end};
constexpr base::Deadline kLong{1'000'000'000};

/// A table whose map the test sets.
class MapMeta final : public OneTableMeta {
 public:
  MapMeta() { set_whole(5); }
  void set_whole(uint64_t epoch) { set(kTable, {tablet(1, kAll, epoch)}); }
  void set_halves(uint64_t left, uint64_t right) {
    set(kTable, {tablet(1, kLeft, left), tablet(2, kRight, right)});
  }
  void truncate() { set(kTruncated, {tablet(3, kAll, 1)}); }
  /// Snapshots are of the new map before anybody is told of it.
  void set_in_silence(uint64_t epoch) {
    const Listener told = std::exchange(listener_, nullptr);
    set_whole(epoch);
    listener_ = told;
  }

 private:
  static Tablet tablet(uint64_t id, RingRange range, uint64_t epoch) {
    Tablet out;
    out.id = TabletId{id};
    out.range = range;
    out.epoch = SetEpoch{epoch};
    return out;
  }
  void set(TableIncarnation incarnation, std::vector<Tablet> tablets) {
    auto table = std::make_shared<TableInfo>();
    table->incarnation = incarnation;
    table->tablets = TabletMap(std::move(tablets));
    set_table(std::move(table));
  }
};

struct Rig {
  tests::ManualReactor reactor;
  MapMeta meta;
  std::unique_ptr<Fence> fence = std::make_unique<Fence>(reactor, meta);

  storage::WritePass enter(RingPosition at, TableIncarnation incarnation = kTable) {
    const MetaSnapshot now = meta.snapshot();
    const TableInfo& table = *now->table(incarnation);
    return fence->enter(now, table, table.tablets.find(at));
  }
  struct Wait {
    std::optional<bool> drained;
    Fence::Then take() {
      return [this](bool is_drained) { drained = is_drained; };
    }
  };
};

}  // namespace

TEST_CASE("a new epoch makes passes of the one before void, and waits for them") {
  Rig rig;
  storage::WritePass pass = rig.enter(kCut);
  storage::WritePass other = pass;
  CHECK(pass.is_valid());
  rig.meta.set_whole(6);
  CHECK_FALSE(pass.is_valid());
  const storage::WritePass newer = rig.enter(kCut);
  Rig::Wait old_ones, late, of_nobody;
  rig.fence->drained(kTable, kAll, SetEpoch{6}, kLong, old_ones.take());
  rig.fence->drained(kTable, kAll, SetEpoch{6}, {rig.reactor.now_us() + 1000}, late.take());
  rig.fence->drained(kTable, kAll, SetEpoch{5}, kLong, of_nobody.take());
  CHECK(of_nobody.drained == true);  // at once
  rig.reactor.advance_us(2000);
  CHECK(late.drained == false);
  pass.give_back();
  rig.reactor.run_until_idle();
  CHECK_FALSE(old_ones.drained.has_value());
  other.give_back();
  rig.reactor.run_until_idle();
  CHECK(old_ones.drained == true);
  CHECK(newer.is_valid());
}

TEST_CASE("who asks before the fence has been told of a map is let in by that map") {
  Rig rig;
  const storage::WritePass old = rig.enter(kCut);
  rig.meta.set_in_silence(6);
  const storage::WritePass newer = rig.enter(kCut);
  CHECK_FALSE(old.is_valid());
  CHECK(newer.is_valid());
}

TEST_CASE("a split lets passes be; an epoch of either half ends them") {
  Rig rig;
  storage::WritePass whole = rig.enter(kCut);
  rig.meta.set_halves(5, 5);
  CHECK(whole.is_valid());
  storage::WritePass left = rig.enter(kCut);
  storage::WritePass right = rig.enter(kAll.end);
  rig.meta.set_halves(5, 6);
  CHECK_FALSE(whole.is_valid());
  CHECK(left.is_valid());
  CHECK_FALSE(right.is_valid());
  Rig::Wait of_right, of_left;
  rig.fence->drained(kTable, kRight, SetEpoch{6}, kLong, of_right.take());
  rig.fence->drained(kTable, kLeft, SetEpoch{5}, kLong, of_left.take());
  CHECK(of_left.drained == true);
  right.give_back();
  rig.reactor.run_until_idle();
  CHECK_FALSE(of_right.drained.has_value());  // a write of before the split may be of this half
  whole.give_back();
  rig.reactor.run_until_idle();
  CHECK(of_right.drained == true);
}

TEST_CASE("TRUNCATE ends the passes of the old incarnation") {
  Rig rig;
  storage::WritePass old = rig.enter(kCut);
  rig.meta.truncate();
  CHECK_FALSE(old.is_valid());
  const storage::WritePass newer = rig.enter(kCut, kTruncated);
  CHECK(newer.is_valid());
  old.give_back();
  CHECK(newer.is_valid());
}

TEST_CASE("all writes that are in can be waited for, and later ones are not") {
  Rig rig;
  storage::WritePass early = rig.enter(kCut);
  Rig::Wait wait;
  rig.fence->drained_now(kTable, kAll, kLong, wait.take());
  CHECK(early.is_valid());
  const storage::WritePass later = rig.enter(kCut);
  CHECK_FALSE(wait.drained.has_value());
  early.give_back();
  rig.reactor.run_until_idle();
  CHECK(wait.drained == true);
  CHECK(later.is_valid());
}

TEST_CASE("passes may outlive the fence") {
  Rig rig;
  storage::WritePass current = rig.enter(kCut);
  storage::WritePass former = current;
  rig.meta.set_whole(6);
  const storage::WritePass newer = rig.enter(kCut);
  rig.fence.reset();
  former.give_back();
  CHECK_FALSE(current.is_valid());
  CHECK(newer.is_valid());
}

TEST_CASE("a range is current only where one tablet holds all of it") {
  MapMeta meta;
  meta.set_halves(5, 5);
  const MetaSnapshot state = meta.snapshot();
  const auto standing = [&](const RingRange& range, uint64_t epoch) {
    return place_of_range(*state, kTable, range, SetEpoch{epoch}).standing;
  };
  CHECK(standing(kLeft, 5) == MapStanding::kCurrent);
  CHECK(standing(kRight, 5) == MapStanding::kCurrent);
  CHECK(standing({{-5, 0}, {-1, 0}}, 5) == MapStanding::kCurrent);
  CHECK(standing(kAll, 5) == MapStanding::kStaleEpoch);
  CHECK(standing({{-1, 0}, {1, 0}}, 5) == MapStanding::kStaleEpoch);
  CHECK(standing(kLeft, 4) == MapStanding::kStaleEpoch);
  CHECK(standing(kLeft, 6) == MapStanding::kAhead);
  CHECK(place_of_range(*state, {5}, kLeft, SetEpoch{5}).standing == MapStanding::kStaleSchema);
  CHECK(place_of_range(*state, {9}, kLeft, SetEpoch{5}).standing == MapStanding::kAhead);
}

}  // namespace tetrad::replication
