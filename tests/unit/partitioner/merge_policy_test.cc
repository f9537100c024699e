// SPDX-License-Identifier: Apache-2.0
#include "partitioner/merge_policy.h"

#include <set>

#include <catch2/catch.hpp>

#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::partitioner {

namespace {

constexpr int64_t kAgeUs = 60'000'000;

StoreAddress store(uint8_t host, uint32_t number = 0) { return {host_number(host), number}; }

/// Tablets on nodes 1 to 4 that are cold, small and old.
struct Row {
  explicit Row(size_t count) : tablets(count), weighed(count) {
    for (size_t i = 0; i < count; ++i) {
      tablets[i].id = TabletId{i + 1};
      tablets[i].replicas = {store(1), store(2), store(3), store(4)};
      weighed[i] = {&tablets[i], true, 100, 10, 1000, kAgeUs};
    }
  }
  std::vector<MergePair> choose() const { return choose_merges(weighed, limits); }

  std::vector<Tablet> tablets;
  std::vector<MergeTablet> weighed;
  MergeLimits limits{1000, 100, 10'000, kAgeUs, 1};
};

}  // namespace

TEST_CASE("neighbours are merged that are cold, small and old") {
  Row row(4);
  CHECK(row.choose() == std::vector<MergePair>{{0, 0}, {2, 0}});
  row.weighed[0].bytes = 900;
  CHECK(row.choose() == std::vector<MergePair>{{1, 0}});
  row.weighed[2].ru_per_s = 90;
  CHECK(row.choose().empty());
  row.limits.ru_per_s = 0;
  CHECK(row.choose() == std::vector<MergePair>{{1, 0}});
  row.weighed[1].bytes_per_s = 9'000;
  CHECK(row.choose() == std::vector<MergePair>{{2, 0}});
  row.weighed[3].age_us = kAgeUs - 1;
  CHECK(row.choose().empty());
  row.weighed[3].age_us = kAgeUs;
  row.weighed[3].may_merge = false;
  CHECK(row.choose().empty());
}

TEST_CASE("a table keeps as many tablets as it must") {
  Row row(8);
  CHECK(row.choose().size() == 4);
  row.limits.tablets_min = 6;
  CHECK(row.choose() == std::vector<MergePair>{{0, 0}, {2, 0}});
  row.limits.tablets_min = 8;
  CHECK(row.choose().empty());
  CHECK(Row(1).choose().empty());
  CHECK(Row(0).choose().empty());
}

TEST_CASE("where merges were undone the next one waits longer") {
  Row row(2);
  row.tablets[1].bounces = 1;
  CHECK(row.choose().empty());
  for (MergeTablet& tablet : row.weighed) tablet.age_us = 10 * kAgeUs;
  CHECK(row.choose().size() == 1);
  row.tablets[0].bounces = 2;
  CHECK(row.choose().empty());
  for (MergeTablet& tablet : row.weighed) tablet.age_us = 60 * kAgeUs;
  CHECK(row.choose().size() == 1);
  row.tablets[0].bounces = kBouncesMost;
  CHECK(row.choose().size() == 1);
}

TEST_CASE("pairs on the same stores come first, then the cheapest") {
  Row row(5);
  row.tablets[0].replicas = {store(5), store(6), store(3), store(4)};
  row.tablets[3].replicas = {store(4), store(3), store(2), store(5)};
  row.weighed[0].bytes = 5 << 20;
  row.limits.bytes = 100 << 20;
  CHECK(row.choose() == std::vector<MergePair>{{1, 0}, {3, 1 << 20}});
  row.weighed[1].may_merge = false;
  CHECK(row.choose() == std::vector<MergePair>{{2, 1 << 20}});
  CHECK(left_half_moves(row.weighed[1], row.weighed[0]));
  CHECK_FALSE(left_half_moves(row.weighed[0], row.weighed[1]));
  row.tablets[3].replicas.pop_back();
  CHECK(row.choose().empty());
}

TEST_CASE("members are exchanged one by one, never two on a node, within racks") {
  const std::vector<RingNode> nodes = ring_nodes(8, 4, 2);
  // Nodes 1 and 5, 2 and 6, 3 and 7, 4 and 8 are in a rack each.
  const std::vector<StoreAddress> target{store(5), store(6), store(3, 1), store(8)};
  std::vector<StoreAddress> moving{store(4), store(1), store(3), store(6)};
  size_t steps = 0;
  for (;; ++steps) {
    const auto next = step_towards(moving, target, nodes);
    REQUIRE(next);
    if (*next == moving) break;
    size_t changed = 0;
    for (size_t i = 0; i < moving.size(); ++i) {
      if ((*next)[i] == moving[i]) continue;
      ++changed;
      const auto rack = [&](const StoreAddress& member) {
        return std::ranges::find(nodes, member.host, &RingNode::host)->rack;
      };
      CHECK(rack((*next)[i]) == rack(moving[i]));
    }
    CHECK(changed == 1);
    std::set<HostId> hosts;
    for (const StoreAddress& member : *next) hosts.insert(member.host);
    CHECK(hosts.size() == moving.size());
    moving = *next;
  }
  CHECK(steps == 3);
  // Not all can be brought there: a member of another data centre, sets of other sizes.
  std::vector<RingNode> apart = nodes;
  apart[4].data_center = "dc2";
  const std::vector<StoreAddress> here{store(1), store(2)}, there{store(5), store(2)};
  CHECK_FALSE(step_towards(here, there, apart));
  const std::vector<StoreAddress> few{store(2)};
  CHECK_FALSE(step_towards(few, there, nodes));
}

}  // namespace tetrad::partitioner
