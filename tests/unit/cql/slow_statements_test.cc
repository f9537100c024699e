// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/slow_statements.h"

#include "cql/system/virtual_rows.h"
#include "tests/support/kept_lines.h"
#include "tests/unit/cql/whole_requests.h"

namespace tetrad::tests {

TEST_CASE("a request that takes long is logged with who asked, without a password") {
  int64_t takes_us = 0;
  WholeRequests node(std::make_shared<const std::vector<cql::NodeTable>>(
      std::vector<cql::NodeTable>{{"figures",
                                   {{"name", "text", "pk"}, {"value", "bigint"}},
                                   [&](base::Reactor& asker, cql::NodeTable::Done done) {
                                     asker.call_at(asker.now_us() + takes_us,
                                                   [done = std::move(done)] { done({}); });
                                   }}}));
  const auto log = std::make_shared<KeptLines>(base::LogLevel::kInfo);
  cql::QueryProcessorOptions options;
  options.settings.slow_us = 300'000;
  node.processor = node.another_shard(options, Logger(log, "cql"));
  log->lines.clear();
  node.client.client_address = "127.0.0.9";
  node.client.user = "ann\" failed=true";
  takes_us = 200'000;
  node.query("SELECT value FROM system_views.figures");
  CHECK(log->lines.empty());
  takes_us = 310'000;
  node.query("SELECT value FROM system_views.figures WHERE name = 'the password is x'");
  REQUIRE(log->lines.size() == 1);
  CHECK(log->lines[0].starts_with(
      "slow statement took_ms=310 statement=\"QUERY SELECT value FROM system_views.figures WHERE "
      "name = 'the password\" keyspace=\"\" client=127.0.0.9 role=\"ann\\\" failed=true\" "
      "failed=false not_logged=0"));
  node.processor->settings().slow_us = 0;
  node.query("SELECT value FROM system_views.figures");
  CHECK(log->lines.size() == 1);
}

TEST_CASE("where all is slow a few lines tell of it, and how many they leave out") {
  cql::SlowStatements slow;
  const auto log = std::make_shared<KeptLines>(base::LogLevel::kInfo);
  const Logger logger(log, "cql");
  const std::string none;
  int64_t now_us = 1'000'000'000;
  const auto happen = [&](int times) {
    for (int i = 0; i < times; ++i)
      if (slow.has_room(now_us)) slow.log({"BATCH", 1'000'000, none, none, none, true}, logger);
  };
  happen(100);
  CHECK(log->lines.size() == 5);
  CHECK(log->lines.back().ends_with("failed=true not_logged=0"));
  now_us += 5'000'000;
  happen(1);
  REQUIRE(log->lines.size() == 6);
  CHECK(log->lines.back().ends_with("not_logged=95"));
  happen(1);
  CHECK(log->lines.back().ends_with("not_logged=0"));
}

}  // namespace tetrad::tests
