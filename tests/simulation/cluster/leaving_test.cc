// SPDX-License-Identifier: Apache-2.0
// A node that leaves and cannot, since another one died beside it.
#include "replication/membership/leaving.h"

#include <catch2/catch.hpp>

#include "replication/membership/formation.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

using replication::NodeState;

Task<void> order(Task<Result<void>> ordered, std::optional<Result<void>>* answer) {
  auto result = co_await std::move(ordered);
  answer->emplace(std::move(result));
}

base::Deadline deadline_of(SimNode& node) { return {node.reactor().now_us() + 5'000'000}; }

Task<void> set_leaving(SimNode* node, HostId host) {
  replication::MetaCommandBody body(replication::SetNodeState{host, NodeState::kLeaving});
  auto result = co_await node->node().meta_group().propose(std::move(body), deadline_of(*node));
  CHECK(result);
}

/// Three nodes and a table.
struct Three {
  Three() {
    for (int i = 0; i < 3; ++i) cluster.add(1, 1);
    REQUIRE(cluster.form(30'000'000));
    bool created = false;
    cluster[0].spawn(create_table(&cluster[0], 0, &created));
    REQUIRE(world.run_until([&] { return created; }, 5'000'000));
  }
  SimCluster cluster{3};
  World& world = cluster.world();
};

NodeState state_of(SimNode& asked, HostId host) { return asked.state()->node(host)->state; }

}  // namespace

TEST_CASE_METHOD(Three,
                 "a decommission that a death holds up is cancelled, and the dead node removed") {
  const HostId dead = cluster[1].node().self(), leaving = cluster[2].node().self();
  std::optional<Result<void>> answer;
  SimNode& node = cluster[2];

  node.spawn(order(node.node().cancel_decommission(deadline_of(node)), &answer));
  REQUIRE(world.run_until([&] { return answer.has_value(); }, 6'000'000));
  CHECK(answer->error().message == "this node is not leaving");

  cluster[1].kill();
  answer.reset();
  node.spawn(order(node.node().decommission(deadline_of(node)), &answer));
  REQUIRE(world.run_until([&] { return answer.has_value(); }, 6'000'000));
  REQUIRE(*answer);
  // Of the node that stays and the dead one no quorum is alive: nothing moves.
  world.run_for(20'000'000);
  CHECK(replication::replicas_on(*node.state(), leaving) != 0);
  const auto is_live = [&](HostId host) { return node.node().meta().is_live(host); };
  const auto refused = replication::check_leaving(*node.state(), dead, true, is_live);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("decommission --cancel") != std::string::npos);

  answer.reset();
  node.spawn(order(node.node().cancel_decommission(deadline_of(node)), &answer));
  REQUIRE(world.run_until([&] { return answer.has_value(); }, 6'000'000));
  REQUIRE(*answer);
  CHECK(state_of(node, leaving) == NodeState::kNormal);
  CHECK(replication::check_leaving(*node.state(), dead, true, is_live));
  node.spawn(set_leaving(&node, dead));
  CHECK(world.run_until([&] { return state_of(node, dead) == NodeState::kRemoved; }, 60'000'000));

  // Nothing of the cancelled order is left: it may leave as any other, and knows that it was meant.
  answer.reset();
  node.spawn(order(node.node().decommission(deadline_of(node)), &answer));
  CHECK(world.run_until([&] { return state_of(cluster[0], leaving) == NodeState::kRemoved; },
                        60'000'000));
}

TEST_CASE_METHOD(Three,
                 "a decommission that is refused takes back its own note, and no earlier one") {
  cluster[1].kill();  // nothing moves
  std::optional<Result<void>> answer;
  const auto decommission = [&](SimNode& node) {
    answer.reset();
    node.spawn(order(node.node().decommission(deadline_of(node)), &answer));
    return world.run_until([&] { return answer.has_value(); }, 6'000'000);
  };
  const auto is_noted = [](SimNode& node) {
    return replication::is_decommissioned(node.local_log()).value();
  };
  REQUIRE(decommission(cluster[2]));
  REQUIRE(*answer);
  CHECK(is_noted(cluster[2]));
  // One node leaves at a time.
  REQUIRE(decommission(cluster[0]));
  CHECK_FALSE(*answer);
  CHECK_FALSE(is_noted(cluster[0]));
  // With a note of an order before it, which may yet come true, the refusal of another changes nothing.
  std::optional<Result<void>> noted;
  cluster[0].spawn(order(replication::note_decommission(cluster[0].local_log(), true), &noted));
  REQUIRE(world.run_until([&] { return noted.has_value(); }, 1'000'000));
  REQUIRE(decommission(cluster[0]));
  CHECK_FALSE(*answer);
  CHECK(is_noted(cluster[0]));
  // One order at a time, of either kind.
  std::optional<Result<void>> first, second;
  cluster[2].spawn(order(cluster[2].node().decommission(deadline_of(cluster[2])), &first));
  cluster[2].spawn(order(cluster[2].node().cancel_decommission(deadline_of(cluster[2])), &second));
  REQUIRE(world.run_until([&] { return first && second; }, 6'000'000));
  CHECK(*first);
  CHECK(second->error().code == ErrorCode::kConflict);
  // Ordered again, it leaves as before.
  REQUIRE(decommission(cluster[2]));
  CHECK(*answer);
  CHECK(is_noted(cluster[2]));
}

}  // namespace tetrad::simulation
