// SPDX-License-Identifier: Apache-2.0
// USING TIMEOUT: a request that its replicas do not answer ends after the time it asked for.
#include <catch2/catch.hpp>

#include "cql/grammar/parser.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/system/virtual_tables.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {
namespace {

/// Runs statements on one node.
class Client {
 public:
  explicit Client(SimNode& node)
      : node_(node),
        answers_(node.reactor(), 32u << 20),
        tables_(cql::make_system_tables(node.node().meta(), {})) {}

  struct Answer {
    bool done = false;
    Result<cql::StatementResult> result = cql::StatementResult();
    int64_t took_us = 0;
  };

  Answer run(std::string_view text) {
    auto schema = cql::SchemaSnapshot::build(*node_.state(), nullptr, tables_->keyspaces());
    REQUIRE(schema.has_value());
    const auto parsed = cql::parse_with_markers(text);
    INFO((parsed ? "" : parsed.error().message));
    REQUIRE(parsed.has_value());
    const cql::PrepareContext prepare{*schema, "ks", settings_, parsed->marker_names};
    const auto statement = cql::prepare_statement(parsed->statement, prepare);
    INFO((statement ? "" : statement.error().message));
    REQUIRE(statement.has_value());
    cql::ExecuteContext context{node_.reactor(),
                                node_.data().coordinator(),
                                node_.node().meta(),
                                *tables_,
                                settings_,
                                random_,
                                scripts_,
                                answers_,
                                *schema,
                                state_,
                                {},
                                {},
                                1'700'000'000};
    context.options.consistency = ConsistencyLevel::kQuorum;
    Answer answer;
    node_.spawn(execute(statement->get(), &context, &answer));
    REQUIRE(node_.world().run_until([&] { return answer.done; }, 30'000'000));
    return answer;
  }

  /// Without an answer from enough replicas: after so long, with this error.
  void check_timeout(std::string_view text, int64_t after_us, ErrorCode code) {
    INFO(text);
    const Answer answer = run(text);
    REQUIRE_FALSE(answer.result.has_value());
    INFO(answer.result.error().message);
    CHECK(answer.result.error().code == code);
    CHECK(answer.took_us >= after_us);
    CHECK(answer.took_us < after_us + 50'000);
  }

 private:
  static Task<void> execute(const cql::Statement* statement, cql::ExecuteContext* context,
                            Answer* answer) {
    const int64_t began_us = context->reactor.now_us();
    answer->result = co_await statement->execute(*context, {});
    answer->took_us = context->reactor.now_us() - began_us;
    answer->done = true;
  }

  SimNode& node_;
  cql::QuerySettings settings_;
  base::Random random_{7};
  cql::ScriptEngine scripts_{cql::ScriptLimits()};
  cql::AnswerBudget answers_;
  cql::ClientState state_;
  std::unique_ptr<cql::VirtualTables> tables_;
};

}  // namespace

TEST_CASE("a request whose replicas are slow fails after the time that USING TIMEOUT gives it") {
  SimCluster cluster(11, 4);
  REQUIRE(cluster.form(30'000'000));
  Client client(cluster[0]);
  for (const char* text : {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                           "'replication_factor': 4}",
                           "CREATE TABLE ks.t (k int PRIMARY KEY, v int)"}) {
    INFO(text);
    REQUIRE(client.run(text).result.has_value());
  }
  const auto is_whole = [&] {
    for (const auto& [incarnation, table] : cluster[0].state()->tables) {
      for (const auto& tablet : table->tablets.tablets()) {
        if (tablet.stage != partitioner::TabletStage::kNormal || tablet.replicas.size() != 4)
          return false;
      }
    }
    return true;
  };
  REQUIRE(cluster.world().run_until(is_whole, 60'000'000));
  REQUIRE(client.run("INSERT INTO ks.t (k, v) VALUES (1, 1) USING TIMEOUT 5s").result.has_value());
  REQUIRE(client.run("SELECT * FROM ks.t WHERE k = 1 USING TIMEOUT 5s").result.has_value());

  const auto check = [&](std::string_view text, int64_t after_us, ErrorCode code) {
    // Asked while the two are still taken for alive.
    cluster.isolate(2);
    cluster.isolate(3);
    client.check_timeout(text, after_us, code);
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

}  // namespace tetrad::simulation
