// SPDX-License-Identifier: Apache-2.0
// USING TIMEOUT: a request that its replicas do not answer ends after the time it asked for.
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "cql/types/value.h"
#include "partitioner/token.h"
#include "tests/simulation/support/cql_client.h"

namespace tetrad::simulation {
namespace {

/// Without an answer from enough replicas: after so long, with this error.
void check_timeout(CqlClient& client, std::string_view text, int64_t after_us, ErrorCode code) {
  INFO(text);
  const CqlClient::Answer answer = client.run(text);
  REQUIRE_FALSE(answer.result.has_value());
  INFO(answer.result.error().message);
  CHECK(answer.result.error().code == code);
  CHECK(answer.took_us >= after_us);
  CHECK(answer.took_us < after_us + 50'000);
}

}  // namespace

TEST_CASE("a request whose replicas are slow fails after the time that USING TIMEOUT gives it") {
  SimCluster cluster(11, 4);
  REQUIRE(cluster.form(30'000'000));
  CqlClient client(cluster[0]);
  make_table_on_four(cluster, client);
  REQUIRE(client.run("INSERT INTO ks.t (k, v) VALUES (1, 1) USING TIMEOUT 5s").result.has_value());
  REQUIRE(client.run("SELECT * FROM ks.t WHERE k = 1 USING TIMEOUT 5s").result.has_value());

  const auto check = [&](std::string_view text, int64_t after_us, ErrorCode code) {
    // Asked while the two are still taken for alive.
    cluster.isolate(2);
    cluster.isolate(3);
    check_timeout(client, text, after_us, code);
    cluster.network().mend_all();
    cluster.world().run_for(10'000'000);
  };
  check("INSERT INTO ks.t (k, v) VALUES (1, 2) USING TIMEOUT 300ms", 300'000,
        ErrorCode::kWriteTimeout);
  check("UPDATE ks.t USING TTL 100 AND TIMEOUT 200ms SET v = 3 WHERE k = 1", 200'000,
        ErrorCode::kWriteTimeout);
  check("DELETE FROM ks.t USING TIMEOUT 100ms WHERE k = 1", 100'000, ErrorCode::kWriteTimeout);
  check(
      "BEGIN UNLOGGED BATCH USING TIMEOUT 150ms INSERT INTO ks.t (k, v) VALUES (1, 4) APPLY BATCH",
      150'000, ErrorCode::kWriteTimeout);
  check("SELECT * FROM ks.t WHERE k = 1 USING TIMEOUT 250ms", 250'000, ErrorCode::kReadTimeout);
  check("SELECT * FROM ks.t USING TIMEOUT 120ms", 120'000, ErrorCode::kReadTimeout);
  check("SELECT count(*) FROM ks.t USING TIMEOUT 120ms", 120'000, ErrorCode::kReadTimeout);
}

TEST_CASE("a part that more replicas acknowledge than it needs does not count for another part") {
  SimCluster cluster(12, 7);
  REQUIRE(cluster.form(30'000'000));
  CqlClient client(cluster[0]);
  for (const char* text : {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                           "'replication_factor': 4}",
                           "CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH "
                           "tetrad_initial_partitions = 16"}) {
    INFO(text);
    REQUIRE(client.run(text).result.has_value());
  }
  const auto members_of = [&](int key) {
    const auto& table = *cluster[0].state()->tables.begin()->second;
    const auto position = partitioner::position_of(cql::make_int(key));
    std::set<HostId> hosts;
    for (const StoreAddress& member : table.tablets.find(position).replicas)
      hosts.insert(member.host);
    return hosts;
  };
  // Two of the second key's members, neither the coordinator nor a member of the first key.
  int second = 1;
  std::vector<size_t> apart;
  for (; second < 1'000 && apart.size() < 2; ++second) {
    apart.clear();
    const std::set<HostId> first = members_of(0), others = members_of(second);
    REQUIRE(others.size() == 4);
    for (size_t i = 1; i < cluster.size(); ++i) {
      const HostId host = cluster[i].node().self();
      if (others.contains(host) && !first.contains(host)) apart.push_back(i);
    }
  }
  REQUIRE(apart.size() >= 2);
  --second;
  for (const size_t node : apart) cluster.isolate(node);
  const std::string batch = fmt::format(
      "BEGIN UNLOGGED BATCH USING TIMEOUT 300ms INSERT INTO ks.t (k, v) VALUES (0, 1); "
      "INSERT INTO ks.t (k, v) VALUES ({}, 1) APPLY BATCH",
      second);
  check_timeout(client, batch, 300'000, ErrorCode::kWriteTimeout);
}

}  // namespace tetrad::simulation
