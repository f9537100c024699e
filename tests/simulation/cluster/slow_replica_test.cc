// SPDX-License-Identifier: Apache-2.0
// A replica that is live and does not answer: reads wait for it once, and then ask others first.
#include <catch2/catch.hpp>

#include "partitioner/tablet_map.h"
#include "replication/rpc/verbs.h"
#include "tests/simulation/support/cql_client.h"

namespace tetrad::simulation {

namespace {

using replication::Verb;

/// Of so many reads by one client those that waited for a replica: others take a millisecond. The longest
/// is left in `worst_us`.
int late_of(CqlClient& client, int reads, int64_t* worst_us = nullptr) {
  int late = 0;
  for (int i = 0; i < reads; ++i) {
    const CqlClient::Answer answer = client.run("SELECT v FROM ks.t WHERE k = 1");
    REQUIRE(answer.result.has_value());
    if (answer.took_us >= 2'000) ++late;
    if (worst_us != nullptr) *worst_us = std::max(*worst_us, answer.took_us);
  }
  return late;
}

}  // namespace

TEST_CASE(
    "a replica that does not answer is waited for by few reads, and used again when it does") {
  SimCluster cluster(17, 4);
  REQUIRE(cluster.form(30'000'000));
  World& world = cluster.world();
  CqlClient client(cluster[0]);
  make_table_on_four(cluster, client);
  REQUIRE(client.run("INSERT INTO ks.t (k, v) VALUES (1, 1)").result.has_value());

  // Whom a read asks beside the node's own store.
  std::map<replication::Endpoint, int> asked;
  cluster.network().watch([&](const replication::Endpoint& to, BytesView message) {
    const auto decoded = replication::decode_envelope(message);
    if (decoded && decoded->envelope.kind == replication::MessageKind::kRequest &&
        decoded->envelope.verb == Verb::kReadDigest)
      ++asked[to];
  });
  CHECK(late_of(client, 20) == 0);
  REQUIRE_FALSE(asked.empty());
  const replication::Endpoint slow = asked.begin()->first;
  const auto usual = asked;

  cluster.network().hold(Verb::kReadDigest, slow);
  cluster.network().hold_also(Verb::kRead, slow);
  // Nothing is known yet of how long reads take.
  int64_t worst_us = 0;
  CHECK(late_of(client, 1, &worst_us) == 1);
  CHECK(worst_us >= 30'000);
  asked.clear();
  CHECK(late_of(client, 45) == 0);
  CHECK(asked[slow] == 0);
  // Tried now and then.
  int late = 0;
  for (int second = 0; second < 20; ++second) {
    late += late_of(client, 40);
    world.run_for(1'000'000);
  }
  CHECK(late >= 2);
  CHECK(late <= 800 / 50);
  // After more of them it is: one more is asked when 99 in 100 would have had their answers.
  late_of(client, 2'000);
  worst_us = 0;
  late = 0;
  for (int second = 0; second < 20; ++second) {
    late += late_of(client, 40, &worst_us);
    world.run_for(1'000'000);
  }
  CHECK(late >= 1);
  CHECK(worst_us < 8'000);

  cluster.network().hold_no_more();
  cluster.network().release_held();
  world.run_for(20'000'000);
  CHECK(late_of(client, 60) == 0);
  asked.clear();
  CHECK(late_of(client, 20) == 0);
  CHECK(asked == usual);
}

}  // namespace tetrad::simulation
