// SPDX-License-Identifier: Apache-2.0
// Commits of conditional statements to members that lost power, or that know a later epoch; and
// what is told of those that end without promises.
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "tests/simulation/support/conditional_row.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

struct ThreeNodes {
  SimCluster cluster{7, 3};
  TableIncarnation incarnation;

  ThreeNodes() {
    REQUIRE(cluster.form(30'000'000));
    bool created = false;
    cluster[0].spawn(create_table(&cluster[0], 0, &created));
    REQUIRE(cluster.world().run_until([&] { return created; }, 10'000'000));
    cluster.world().run_for(5'000'000);
    incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    REQUIRE(tablet().replicas.size() == 3);
  }
  const partitioner::Tablet& tablet() {
    return cluster[0].state()->tables.begin()->second->tablets.tablets().front();
  }
};

}  // namespace

TEST_CASE("a commit to a member that is behind counts") {
  ThreeNodes three;
  SimCluster& cluster = three.cluster;
  cluster[1].power_cut();
  cluster[1].start();
  const auto is_back = [&] {
    return cluster[1].is_ready() &&
           cluster[0].node().meta().is_replica_live({cluster[1].node().self(), 0});
  };
  REQUIRE(cluster.world().run_until(is_back, 4'000'000));
  REQUIRE(cluster[1].is_behind());
  cluster.network().hold(replication::Verb::kPaxosCommit, cluster[2].endpoint());
  std::optional<Result<bool>> answer;
  cluster[0].spawn(write_conditional(&cluster[0], three.incarnation, "key", &answer));
  REQUIRE(cluster.world().run_until([&] { return answer.has_value(); }, 3'000'000));
  CHECK(cluster[1].is_behind());
  CHECK(cluster.network().held() == 1);
  INFO((*answer ? "" : answer->error().message));
  REQUIRE(answer->has_value());
  CHECK(**answer);
}

TEST_CASE("a member that knows a later epoch gets a hint of what was committed without it") {
  ThreeNodes three;
  SimCluster& cluster = three.cluster;
  cluster.network().hold(replication::Verb::kPaxosCommit, cluster[2].endpoint());
  std::optional<Result<bool>> answer;
  cluster[0].spawn(write_conditional(&cluster[0], three.incarnation, "key", &answer));
  REQUIRE(cluster.world().run_until([&] { return answer.has_value(); }, 1'000'000));
  REQUIRE((answer->has_value() && **answer));
  REQUIRE(cluster.network().held() == 1);
  const SetEpoch epoch = three.tablet().epoch;
  const std::vector<StoreAddress> members = three.tablet().replicas;
  cluster[0].spawn(propose(
      &cluster[0], replication::ChangeTabletStage{three.incarnation, three.tablet().id, epoch,
                                                  partitioner::TabletStage::kWriteBoth, members}));
  const auto is_known = [&] {
    const auto& table = *cluster[2].state()->tables.begin()->second;
    return table.tablets.tablets().front().epoch > epoch;
  };
  REQUIRE(cluster.world().run_until(is_known, 500'000));
  CHECK(cluster[0].data().hints().metrics().stored.value() == 0);
  cluster.network().hold_no_more();
  cluster.network().release_held();
  cluster.world().run_for(100'000);
  CHECK(cluster[0].data().hints().metrics().stored.value() == 1);
}

TEST_CASE("who waits in line is told of the quorum, when the time of contention is over") {
  ThreeNodes three;
  SimCluster& cluster = three.cluster;
  for (const size_t other : {1u, 2u})
    cluster.network().cut(cluster[0].endpoint(), cluster[other].endpoint());
  std::optional<Result<bool>> first, second;
  cluster[0].spawn(write_conditional(&cluster[0], three.incarnation, "key", &first));
  cluster[0].spawn(write_conditional(&cluster[0], three.incarnation, "key", &second, 300'000));
  cluster.world().run_for(299'000);
  CHECK(!second);
  cluster.world().run_for(2'000);
  CHECK(!first);
  REQUIRE((second && !*second));
  CHECK(second->error().code == ErrorCode::kWriteTimeout);
  const auto& detail = std::get<base::TimeoutDetail>(*second->error().detail);
  CHECK(detail.write_type == base::WriteType::kCas);
  CHECK(detail.level == ConsistencyLevel::kSerial);
  CHECK(detail.received == 0);
  CHECK(detail.required == 2);
}

TEST_CASE("members that fail are named to the client") {
  ThreeNodes three;
  SimCluster& cluster = three.cluster;
  std::set<std::string> addresses;
  for (const size_t other : {1u, 2u}) {
    cluster[other].faults(0).refusal = Error(ErrorCode::kIo, "the disk is broken");
    addresses.insert(cluster[other].options().address);
  }
  std::optional<Result<bool>> answer;
  cluster[0].spawn(write_conditional(&cluster[0], three.incarnation, "key", &answer));
  REQUIRE(cluster.world().run_until([&] { return answer.has_value(); }, 3'000'000));
  REQUIRE(!*answer);
  INFO(answer->error().message);
  REQUIRE(answer->error().code == ErrorCode::kWriteFailure);
  const auto& detail = std::get<base::FailureDetail>(*answer->error().detail);
  CHECK(detail.required == 2);
  std::set<std::string> named;
  for (const auto& [address, reason] : detail.failures) named.insert(address);
  CHECK(named == addresses);
}

}  // namespace tetrad::simulation
