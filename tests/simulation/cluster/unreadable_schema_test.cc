// SPDX-License-Identifier: Apache-2.0
// Objects of the schema that no node reads: the nodes serve what is beside them, start with them,
// and drop them.
#include <catch2/catch.hpp>

#include "cql/schema/schema_text.h"
#include "tests/simulation/support/cql_client.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

/// Past the checks of CQL, as a program with fewer of them would.
void plant(SimNode& node, const std::string& key, const std::string& from, const std::string& to) {
  std::string text = node.state()->schema_objects.find(key)->second;
  text.replace(text.find(from), from.size(), to);
  replication::SchemaChange change;
  change.objects.emplace_back(key, std::move(text));
  bool done = false;
  node.spawn(change_schema_now(&node, std::move(change), &done));
  REQUIRE(node.world().run_until([&] { return done; }, 30'000'000));
}

size_t unreadable(SimNode& node) {
  return cql::SchemaSnapshot::build(*node.state(), nullptr, {})->unreadable().size();
}

void run(SimNode& node, std::string_view text) {
  INFO(text);
  CqlClient client(node);
  const auto answer = client.run(text);
  INFO((answer.result ? "" : answer.result.error().message));
  CHECK(answer.result.has_value());
}

}  // namespace

TEST_CASE("a cluster serves, starts and changes beside a schema that does not read") {
  SimCluster cluster(5, 4);
  REQUIRE(cluster.form(30'000'000));
  for (const char* text :
       {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
        "'replication_factor': 4}",
        "CREATE TABLE ks.good (k int PRIMARY KEY, v int)", "CREATE TYPE ks.u (x blob)",
        "CREATE TABLE ks.bad (k int PRIMARY KEY, v frozen<u>)",
        "CREATE KEYSPACE two WITH replication = {'class': 'SimpleStrategy', "
        "'replication_factor': 4}"})
    run(cluster[0], text);
  plant(cluster[0], cql::type_key("ks", "u"), "\"blob\"", "\"set<duration>\"");
  plant(cluster[1], cql::keyspace_key("two"), "\"format\":1", "\"format\":99");

  const auto everywhere = [&](size_t count) {
    return cluster.world().run_until(
        [&] {
          for (size_t i = 0; i < 4; ++i)
            if (unreadable(cluster[i]) != count) return false;
          return true;
        },
        30'000'000);
  };
  CHECK(everywhere(3));  // the type, the table that needs it, the keyspace
  run(cluster[1], "INSERT INTO ks.good (k, v) VALUES (1, 1)");
  run(cluster[2], "CREATE TABLE ks.more (k int PRIMARY KEY)");
  cluster[3].kill();
  cluster[3].start();
  REQUIRE(cluster.world().run_until([&] { return cluster[3].is_ready(); }, 60'000'000));
  CHECK(unreadable(cluster[3]) == 3);
  run(cluster[3], "SELECT v FROM ks.good WHERE k = 1");
  run(cluster[3], "SELECT * FROM system_tetrad.unreadable_objects");
  for (const char* text : {"DROP TABLE ks.bad", "DROP TYPE ks.u", "DROP KEYSPACE two"})
    run(cluster[3], text);
  CHECK(everywhere(0));
  CHECK(cluster[0].state()->tables.size() == 2);
}

}  // namespace tetrad::simulation
