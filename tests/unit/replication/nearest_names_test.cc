// SPDX-License-Identifier: Apache-2.0
// Whether what members name as the nearest is enough to know the nearest.
#include "replication/coordinator/nearest_names.h"

#include <map>

#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "base/random.h"
#include "replication/coordinator/nearest_limits.h"
#include "storage/index/nearest_reader.h"

namespace tetrad::replication {
namespace {

/// What one member has of each row: a version, and how far it is.
struct Version {
  int number = 0;
  double distance = 0;
};
using Member = std::map<int, Version>;

Bytes key_of(int row) { return "k" + std::to_string(row); }

storage::ReplicaReply names_of(const Member& member, uint32_t rows_max) {
  storage::NearestPlaces places(rows_max);
  for (const auto& [row, version] : member)
    places.offer(version.distance, {row, 0}, key_of(row), "c");
  return {{}, places.take(true)};
}

}  // namespace

TEST_CASE("names are joined: each row once, nearest first, by its smallest distance") {
  std::vector<storage::ReplicaReply> replies;
  replies.push_back(names_of({{1, {1, 5}}, {2, {1, 3}}}, 9));
  replies.push_back(names_of({{1, {2, 1}}, {3, {1, 4}}, {4, {1, 8}}}, 2));
  const auto names = join_names(replies);
  REQUIRE(names.has_value());
  std::string shown;
  for (const auto& row : names->rows)
    shown += fmt::format("{}:{} ", row.partition_key, row.distance);
  CHECK(shown == "k1:1 k2:3 k3:4 ");
  CHECK(names->beyond == 4.0);  // the first member has named all that it has
}

TEST_CASE("a member's row without a distance is refused") {
  for (const double distance :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    std::vector<storage::ReplicaReply> replies;
    replies.push_back(names_of({{1, {1, distance}}}, 9));
    const auto names = join_names(replies);
    REQUIRE_FALSE(names.has_value());
    CHECK(names.error().code == ErrorCode::kCorruption);
  }
  std::vector<storage::ReplicaReply> replies;
  replies.push_back(names_of({{1, {1, 1}}}, 9));
  replies.front().result.partitions.front().rows.front().record = "short";
  CHECK_FALSE(join_names(replies).has_value());
}

TEST_CASE("of many names the nearest are kept, and how far the others are") {
  const auto names_at = [](int count, size_t key_bytes) {
    NearestNames names;
    for (int i = 0; i < count; ++i)
      names.rows.push_back({static_cast<double>(i), {}, Bytes(key_bytes, 'k'), ""});
    return names;
  };
  NearestNames all = names_at(5, 10);
  keep_nearest(all, 5, 50);
  CHECK(all.rows.size() == 5);
  CHECK_FALSE(all.beyond);
  keep_nearest(all, 3, 50);
  CHECK(all.rows.size() == 3);
  CHECK(all.beyond == 3.0);
  keep_nearest(all, 3, 25);
  CHECK(all.rows.size() == 2);
  CHECK(all.beyond == 2.0);
  keep_nearest(all, 3, 5);
  CHECK(all.rows.size() == 1);
  CHECK(all.beyond == 1.0);
  all = names_at(5, 10);
  all.beyond = 0.5;
  keep_nearest(all, 2, 50);
  CHECK(all.beyond == 0.5);
}

// Each row's newest version is on three of four members; the others have old ones, near or far, or none.
// Any three are asked, more and more. What they name is measured by its newest version, as a quorum
// read would, and the search ends by the rule of NearestNames: the answer is that of a search of all.
TEST_CASE("members that have missed writes hide none of the nearest") {
  constexpr size_t kWanted = 5;
  uint64_t rounds = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    base::Random random(seed);
    std::vector<Member> members(4);
    std::map<int, double> now;
    for (int row = 0; row < 60; ++row) {
      for (int version = 1; version <= 3; ++version) {
        const double distance = static_cast<double>(random.below(10'000));
        now[row] = distance;
        const size_t missing = random.below(4);
        for (size_t i = 0; i < members.size(); ++i)
          if (i != missing) members[i][row] = {version, distance};
      }
    }
    std::vector<std::pair<double, int>> exact;
    for (const auto& [row, distance] : now) exact.emplace_back(distance, row);
    std::ranges::sort(exact);
    const size_t unasked = random.below(4);
    std::vector<double> found;
    for (uint32_t rows_max = kWanted;; rows_max *= 2) {
      ++rounds;
      std::vector<storage::ReplicaReply> replies;
      for (size_t i = 0; i < members.size(); ++i)
        if (i != unasked) replies.push_back(names_of(members[i], rows_max));
      const auto names = join_names(replies);
      REQUIRE(names.has_value());
      found.clear();
      bool is_complete = true;
      for (const auto& name : names->rows) {
        std::ranges::sort(found);
        if (found.size() >= kWanted && found[kWanted - 1] <= name.distance) break;
        found.push_back(now[static_cast<int>(name.position.token)]);
      }
      std::ranges::sort(found);
      if (names->beyond)
        is_complete = found.size() >= kWanted && found[kWanted - 1] <= *names->beyond;
      if (is_complete) break;
      REQUIRE(rows_max < 1000);
    }
    CAPTURE(seed);
    REQUIRE(found.size() >= kWanted);
    for (size_t i = 0; i < kWanted; ++i) CHECK(found[i] == exact[i].first);
  }
  CHECK(rounds > 300);  // once was not always enough
}

}  // namespace tetrad::replication
