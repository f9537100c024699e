// SPDX-License-Identifier: Apache-2.0
// Conditional statements of one partition that come to all nodes at once: they take turns
// (replication/paxos/turn_keeper.h), and without a fault each is told what became of it.
#include <string>

#include <catch2/catch.hpp>

#include "tests/simulation/support/conditional_row.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

struct Outcomes {
  int applied = 0, unknown = 0, others = 0, left = 0;
  std::string error;
};

/// One client: a statement after the other, through one node.
Task<void> write_often(SimNode* node, TableIncarnation incarnation, int count, Outcomes* outcomes) {
  for (int i = 0; i < count; ++i) {
    std::optional<Result<bool>> answer;
    co_await write_conditional(node, incarnation, "key", &answer, 1'000'000);
    if (answer->has_value()) {
      outcomes->applied += **answer ? 1 : 0;
    } else {
      outcomes->error = answer->error().message;
      (answer->error().code == ErrorCode::kCasWriteUnknown ? outcomes->unknown
                                                           : outcomes->others)++;
    }
    --outcomes->left;
  }
}

struct FourNodes {
  SimCluster cluster{11, 4};
  TableIncarnation incarnation;

  FourNodes() {
    REQUIRE(cluster.form(30'000'000));
    bool created = false;
    cluster[0].spawn(create_table(&cluster[0], 0, &created));
    REQUIRE(cluster.world().run_until([&] { return created; }, 10'000'000));
    cluster.world().run_for(5'000'000);
    incarnation = cluster[0].state()->tables.begin()->second->incarnation;
  }
  Outcomes contend(int clients_of_node, int each) {
    Outcomes outcomes;
    outcomes.left = static_cast<int>(cluster.size()) * clients_of_node * each;
    for (size_t i = 0; i < cluster.size(); ++i)
      for (int client = 0; client < clients_of_node; ++client)
        cluster[i].spawn(write_often(&cluster[i], incarnation, each, &outcomes));
    REQUIRE(cluster.world().run_until([&] { return outcomes.left == 0; }, 120'000'000));
    return outcomes;
  }
  SimNode& keeper() {
    const StoreAddress first =
        cluster[0].state()->tables.begin()->second->tablets.tablets().front().replicas.front();
    for (size_t i = 0; i < cluster.size(); ++i)
      if (cluster[i].node().self() == first.host) return cluster[i];
    FAIL("no keeper");
    return cluster[0];
  }
};

}  // namespace

TEST_CASE("without a fault each of many conditional statements of a row is known to be applied") {
  FourNodes four;
  const Outcomes outcomes = four.contend(4, 25);
  INFO(outcomes.error);
  CHECK(outcomes.applied == 400);
  CHECK(outcomes.unknown == 0);
  CHECK(outcomes.others == 0);
  uint64_t turns = 0, contentions = 0;
  for (size_t i = 0; i < four.cluster.size(); ++i) {
    turns += four.cluster[i].data().coordinator_impl().metrics().conditional_turns.value();
    contentions +=
        four.cluster[i].data().coordinator_impl().metrics().conditional_contentions.value();
  }
  CHECK(turns > 100);
  CHECK(contentions < 40);
}

TEST_CASE("conditional statements go on without turns when nobody gives them") {
  FourNodes four;
  four.cluster.network().hold(replication::Verb::kPaxosTurn, four.keeper().endpoint());
  const Outcomes outcomes = four.contend(1, 5);
  INFO(outcomes.error);
  CHECK(outcomes.applied + outcomes.unknown == 20);
}

TEST_CASE("a turn that was not given back ends by itself") {
  FourNodes four;
  four.cluster.network().hold(replication::Verb::kPaxosTurnEnded, four.keeper().endpoint());
  const Outcomes outcomes = four.contend(1, 5);
  INFO(outcomes.error);
  CHECK(outcomes.applied + outcomes.unknown == 20);
}

}  // namespace tetrad::simulation
