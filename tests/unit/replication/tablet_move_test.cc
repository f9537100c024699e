// SPDX-License-Identifier: Apache-2.0
// When the stage in which members are filled is over: who has to be filled.
#include "replication/tablets/tablet_move.h"

#include <catch2/catch.hpp>

#include "replication/meta/data_centers.h"

namespace tetrad::replication {
namespace {

using partitioner::Tablet;
using partitioner::TabletStage;
using Set = std::vector<StoreAddress>;

HostId host(uint8_t number) {
  HostId out;
  out.value.octets[15] = number;
  return out;
}

Set stores(std::initializer_list<int> numbers) {
  Set out;
  for (const int number : numbers) out.push_back({host(static_cast<uint8_t>(number)), 0});
  return out;
}

Tablet in_stream(const Set& old_set, const Set& new_set) {
  Tablet tablet;
  tablet.stage = TabletStage::kStream;
  tablet.replicas = old_set;
  tablet.new_replicas = new_set;
  return tablet;
}

/// Whether the stage is over when these were filled.
bool is_over(const Tablet& tablet, const Set& filled, const DataCenters* centers = nullptr) {
  MoveProgress progress;
  progress.epoch = tablet.epoch;
  for (const StoreAddress& member : all_members(tablet)) progress.confirmed.insert(member);
  progress.filled.insert(filled.begin(), filled.end());
  return next_stage(tablet, progress, centers) == TabletStage::kReadNew;
}

/// Members 1 to 4 in one data centre, 5 to 8 in another.
DataCenters two_centers() {
  std::map<HostId, uint32_t> of_node;
  for (uint8_t i = 1; i <= 8; ++i) of_node[host(i)] = i <= 4 ? 0 : 1;
  return DataCenters(std::move(of_node));
}

TEST_CASE("members that come are filled, those that stay need nothing", "[tablets]") {
  const Tablet tablet = in_stream(stores({1, 2, 3, 4}), stores({1, 2, 3, 5}));
  CHECK(members_to_fill(tablet, nullptr) == stores({5}));
  CHECK_FALSE(is_over(tablet, {}));
  CHECK(is_over(tablet, stores({5})));
}

TEST_CASE("a quorum of the new set that may have missed a decision is filled", "[tablets]") {
  // Three of four decide, so each of them may be the one that has missed it.
  const Tablet to_one = in_stream(stores({1, 2, 3, 4}), stores({3}));
  CHECK(members_to_fill(to_one, nullptr) == stores({3}));
  CHECK_FALSE(is_over(to_one, {}));
  CHECK(is_over(to_one, stores({3})));
  CHECK(members_to_fill(in_stream(stores({1, 2, 3}), stores({2})), nullptr) == stores({2}));
  // Of two members one at least has it.
  const Tablet to_two = in_stream(stores({1, 2, 3, 4}), stores({2, 3}));
  CHECK(members_to_fill(to_two, nullptr).empty());
  CHECK(is_over(to_two, {}));
  // Both of two decide.
  CHECK(members_to_fill(in_stream(stores({1, 2}), stores({2})), nullptr).empty());
}

TEST_CASE("when a data centre goes, one of each quorum that stays is filled", "[tablets]") {
  const DataCenters centers = two_centers();
  // Five of eight decide: of the four that stay three may have missed it, which are their quorum.
  const Tablet tablet = in_stream(stores({1, 2, 3, 4, 5, 6, 7, 8}), stores({1, 2, 3, 4}));
  CHECK(members_to_fill(tablet, &centers) == stores({1, 2, 3, 4}));
  CHECK_FALSE(is_over(tablet, {}, &centers));
  CHECK_FALSE(is_over(tablet, stores({2}), &centers));
  CHECK(is_over(tablet, stores({2, 4}), &centers));
  // The other way: who comes has all, and two of those that were there are none of their quorums.
  const Tablet back = in_stream(stores({1, 2, 3, 4}), stores({1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK(members_to_fill(back, &centers) == stores({5, 6, 7, 8}));
  CHECK(is_over(back, stores({5, 6, 7, 8}), &centers));
}

TEST_CASE("a data centre's own statements count by its own members", "[tablets]") {
  const DataCenters centers = two_centers();
  // LOCAL_SERIAL of the first one was decided by three of four, and will be by one.
  const Tablet tablet = in_stream(stores({1, 2, 3, 4, 5, 6, 7, 8}), stores({4, 5, 6, 7, 8}));
  CHECK(members_to_fill(tablet, &centers) == stores({4, 5, 6, 7, 8}));
  CHECK_FALSE(is_over(tablet, stores({5, 6, 7, 8}), &centers));
  CHECK(is_over(tablet, stores({4, 5, 6, 7}), &centers));
}

}  // namespace
}  // namespace tetrad::replication
