// SPDX-License-Identifier: Apache-2.0
// Merges that are ordered at several nodes.
#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

using partitioner::Tablet;

TEST_CASE("of two merges that share a tablet, ordered at two nodes at once, one is given up") {
  SimCluster cluster(7);
  for (int i = 0; i < 6; ++i) cluster.add(1, 2);
  REQUIRE(cluster.form(30'000'000));
  World& world = cluster.world();
  replication::SchemaChange change;
  change.new_tables.push_back(table_t());
  change.new_tables.back().initial_tablets = 12;
  bool created = false;
  cluster[0].spawn(change_schema_now(&cluster[0], std::move(change), &created));
  REQUIRE(world.run_until([&] { return created; }, 5'000'000));
  world.run_for(2'000'000);

  const auto state = cluster[0].state();
  const std::vector<Tablet>& tablets = state->tables.begin()->second->tablets.tablets();
  const auto members = [](const Tablet& tablet) {
    std::vector<StoreAddress> sorted = tablet.replicas;
    std::ranges::sort(sorted);
    return sorted;
  };
  const auto middle = std::ranges::find_if(tablets, [&](const Tablet& tablet) {
    const auto i = static_cast<size_t>(&tablet - tablets.data());
    if (i == 0 || i + 1 >= tablets.size()) return false;
    const auto left = members(tablets[i - 1]), own = members(tablet),
               right = members(tablets[i + 1]);
    return left != own && own != right && left != right;
  });
  REQUIRE(middle != tablets.end());
  // The half with fewer bytes moves, so the one in the middle would go after either neighbour.
  const TabletId left = std::prev(middle)->id, right = std::next(middle)->id;
  for (size_t i : {size_t{0}, size_t{1}}) {
    cluster[i].node().meta_group().set_tablet_bytes(left, 1000);
    cluster[i].node().meta_group().set_tablet_bytes(right, 1000);
  }
  std::vector<std::optional<Result<void>>> ended(2);
  cluster[0].node().merges().order(left, [&](Result<void> end) { ended[0] = std::move(end); });
  cluster[1].node().merges().order(middle->id,
                                   [&](Result<void> end) { ended[1] = std::move(end); });
  REQUIRE(world.run_until([&] { return ended[0] && ended[1]; }, 60'000'000));

  const bool first_has_lower_id = cluster[0].node().self() < cluster[1].node().self();
  CHECK(*ended[first_has_lower_id ? 0 : 1]);
  const auto& given_up = *ended[first_has_lower_id ? 1 : 0];
  REQUIRE_FALSE(given_up);
  CHECK(given_up.error().code == ErrorCode::kConflict);
  CHECK(given_up.error().message.find("merges one of the physical partitions already") !=
        std::string::npos);
}

}  // namespace tetrad::simulation
