// SPDX-License-Identifier: Apache-2.0
// Statements over a simulated cluster.
#pragma once

#include <memory>
#include <string_view>

#include <catch2/catch.hpp>

#include "cql/grammar/parser.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/system/virtual_tables.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

/// Runs statements on one node.
class CqlClient {
 public:
  explicit CqlClient(SimNode& node)
      : node_(node),
        answers_(node.reactor(), 32u << 20),
        tables_(cql::make_system_tables(node.node().meta(), {})) {}

  struct Answer {
    bool done = false;
    Result<cql::StatementResult> result = cql::StatementResult();
    std::vector<std::string> warnings;
    int64_t took_us = 0;
  };

  Answer run(std::string_view text) {
    const auto schema = cql::SchemaSnapshot::build(*node_.state(), nullptr, tables_->keyspaces());
    const auto parsed = cql::parse_with_markers(text);
    INFO((parsed ? "" : parsed.error().message));
    REQUIRE(parsed.has_value());
    const cql::PrepareContext prepare{schema, "ks", settings_, parsed->marker_names};
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
                                schema,
                                state_,
                                {},
                                {},
                                node_.data().coordinator().now_us() / 1'000'000};
    context.options.consistency = ConsistencyLevel::kQuorum;
    context.disk_guard = &disk_guard_;
    Answer answer;
    node_.spawn(execute(statement->get(), &context, &answer));
    REQUIRE(node_.world().run_until([&] { return answer.done; }, 30'000'000));
    return answer;
  }

 private:
  static Task<void> execute(const cql::Statement* statement, cql::ExecuteContext* context,
                            Answer* answer) {
    const int64_t began_us = context->reactor.now_us();
    answer->result = co_await statement->execute(*context, {});
    answer->warnings = context->warnings;
    answer->took_us = context->reactor.now_us() - began_us;
    answer->done = true;
  }

  SimNode& node_;
  cql::QuerySettings settings_;
  base::Random random_{7};
  cql::ScriptEngine scripts_{cql::ScriptLimits()};
  cql::AnswerBudget answers_;
  cql::DiskGuard disk_guard_;
  cql::ClientState state_;
  std::unique_ptr<cql::VirtualTables> tables_;
};

/// Table ks.t (k int PRIMARY KEY, v int); all of its partitions have four replicas when it returns.
inline void make_table_on_four(SimCluster& cluster, CqlClient& client) {
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
}

}  // namespace tetrad::simulation
