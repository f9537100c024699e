// SPDX-License-Identifier: Apache-2.0
#include "cql/system/node_table.h"

#include "cql/system/virtual_rows.h"
#include "storage/row/row_record.h"
#include "tests/unit/cql/whole_requests.h"

namespace tetrad::tests {
namespace {

using cql::NodeTable;
using cql::NodeTables;
using cql::RunningRequest;
using cql::VirtualRows;

/// A table `figures` of system_views, whose rows `gather` gives.
NodeTables one_table(std::function<void(base::Reactor&, NodeTable::Done)> gather) {
  return std::make_shared<const std::vector<NodeTable>>(std::vector<NodeTable>{
      {"figures", {{"name", "text", "pk"}, {"value", "bigint"}}, std::move(gather)}});
}

int32_t row_count(const cql::client::Response& response) {
  const auto* rows = std::get_if<cql::client::RowsReply>(&response.reply);
  REQUIRE(rows != nullptr);
  return rows->row_count;
}

TEST_CASE("rows that the server gives later are asked for anew by each page") {
  int asked = 0;
  WholeRequests node(one_table([&asked](base::Reactor& asker, NodeTable::Done done) {
    ++asked;
    asker.post([asked, done = std::move(done)] {
      VirtualRows rows;
      for (int i = 0; i < 4 + asked; ++i)
        rows.push_back({cql::cells::text(fmt::format("f{}", i)), cql::cells::big(i)});
      done(std::move(rows));
    });
  }));
  CHECK(row_count(node.query("SELECT * FROM system_views.figures")) == 5);
  CHECK(row_count(node.query("SELECT * FROM system_views.figures")) == 6);
  CHECK(row_count(node.query("SELECT value FROM system_views.figures WHERE name = 'f1'")) == 1);
  CHECK(row_count(node.query("SELECT value FROM system_views.figures WHERE name = 'none'")) == 0);
  CHECK(asked == 4);
}

TEST_CASE("such a table may be of system_tetrad") {
  cql::NodeTables tables = one_table([](base::Reactor& asker, NodeTable::Done done) {
    asker.post([done = std::move(done)] { done({{cql::cells::text("f"), cql::cells::big(1)}}); });
  });
  auto moved = *tables;
  moved[0].keyspace = "system_tetrad";
  WholeRequests node(std::make_shared<const std::vector<NodeTable>>(std::move(moved)));
  CHECK(row_count(node.query("SELECT * FROM system_tetrad.figures")) == 1);
  CHECK(row_count(node.query("SELECT * FROM tetrad.figures WHERE name = 'f'")) == 1);
  CHECK(row_count(node.query("SELECT * FROM system_tetrad.nodes")) >= 0);
}

TEST_CASE("a part of the server that does not answer costs a request its time, not more") {
  bool answers = false;
  NodeTable::Done late;
  WholeRequests node(one_table([&](base::Reactor& asker, NodeTable::Done done) {
    if (answers) return asker.post([done = std::move(done)] { done({}); });
    late = std::move(done);
  }));
  CHECK(WholeRequests::error_of(node.query("SELECT * FROM system_views.figures")) ==
        "0 a part of this node does not answer: no figures");
  late({});
  answers = true;
  CHECK(row_count(node.query("SELECT * FROM system_views.figures")) == 0);
}

TEST_CASE("without a server its tables are not there") {
  WholeRequests node;
  CHECK(WholeRequests::error_of(node.query("SELECT * FROM system_views.clients")) ==
        "2200 table clients does not exist");
  CHECK(row_count(node.query("SELECT * FROM system_views.repairs")) == 0);
}

TEST_CASE("running requests are told by their statements, without passwords") {
  cql::QueryProcessor* processor = nullptr;
  std::vector<RunningRequest> running, limited;
  WholeRequests node(one_table([&](base::Reactor& asker, NodeTable::Done done) {
    running = processor->running(10);
    limited = processor->running(0);
    asker.post([done = std::move(done)] { done({}); });
  }));
  processor = node.processor.get();
  node.query("SELECT value FROM system_views.figures WHERE name = 'the password is x'");
  REQUIRE(running.size() == 1);
  CHECK(running[0].task.starts_with("QUERY SELECT value FROM system_views.figures WHERE name = "));
  CHECK(running[0].task.find("is x") == std::string::npos);
  CHECK(limited.empty());
  const Bytes id = node.prepare("SELECT value FROM system_views.figures WHERE name = 'a'");
  CHECK(processor->prepared_count() == 1);
  node.run(id);
  REQUIRE(running.size() == 1);
  CHECK(running[0].task == "EXECUTE SELECT value FROM system_views.figures WHERE name = 'a'");
  CHECK(processor->running(10).empty());
}

TEST_CASE("prepared statements are told by their texts, without passwords, each once") {
  WholeRequests node;
  const auto texts = [](const cql::QueryProcessor& shard, size_t count_max = 10) {
    std::vector<std::string> out;
    for (const cql::ListedStatement& listed : shard.prepared(count_max)) {
      CHECK(listed.keyspace.empty());
      CHECK(listed.id.size() == 16);
      out.push_back(listed.text);
    }
    return out;
  };
  CHECK(texts(*node.processor).empty());
  const std::string select = "SELECT c FROM ks.t WHERE k = ?";
  node.prepare(select);
  node.prepare("ALTER ROLE r WITH PASSWORD = 'secret'");
  node.prepare(select);
  const std::vector<std::string> expected = {select, "ALTER ROLE r"};
  CHECK(texts(*node.processor) == expected);
  CHECK(texts(*node.processor, 1) == std::vector<std::string>{select});
  // Shards share the texts.
  CHECK(texts(*node.another_shard()) == expected);
  // The only shard of a node has its own alone.
  const auto tables = cql::make_system_tables(node.meta, {});
  auto alone =
      std::make_unique<cql::QueryProcessor>(node.reactor, node.random, *node.coordinator, node.meta,
                                            *tables, cql::QueryProcessorOptions(), Logger());
  std::swap(node.processor, alone);
  node.prepare(expected[1] + " WITH PASSWORD = 'secret'");
  node.prepare(select);
  CHECK(texts(*node.processor) == expected);
  std::swap(node.processor, alone);
  // A large one is cut.
  const std::string large = "SELECT c FROM ks.t WHERE k = ?" + std::string(20'000, ' ');
  node.prepare(large);
  CHECK(texts(*node.processor)[0] == large.substr(0, 16'384));
}

TEST_CASE(
    "the texts of a list of prepared statements are bounded together, and the oldest are left "
    "out") {
  WholeRequests node;
  const auto tables = cql::make_system_tables(node.meta, {});
  cql::QueryProcessorOptions alone, sharing;
  sharing.prepared_texts = std::make_shared<cql::PreparedTexts>(1'000, 64u << 20);
  for (const cql::QueryProcessorOptions& options : {alone, sharing}) {
    node.processor = std::make_unique<cql::QueryProcessor>(
        node.reactor, node.random, *node.coordinator, node.meta, *tables, options, Logger());
    node.prepare("SELECT c FROM ks.t WHERE k = 7");
    for (int k = 0; k < 130; ++k)
      node.prepare(fmt::format("SELECT c FROM ks.t WHERE k = {:03}", k) + std::string(16'384, ' '));
    const std::vector<cql::ListedStatement> listed = node.processor->prepared(1'000);
    CHECK(listed.size() == 128);  // 2 MiB
    CHECK(listed.front().text.substr(0, 32) == "SELECT c FROM ks.t WHERE k = 129");
    CHECK(listed.back().text.substr(0, 32) == "SELECT c FROM ks.t WHERE k = 002");
    CHECK(node.processor->prepared(0).empty());
    node.processor.reset();  // before its tables
  }
}

TEST_CASE(
    "a set that is not frozen in a computed table has a cell for each element, in their order") {
  cql::ComputedTables tables;
  tables.define("system_views", "sets",
                {{"k", "text", "pk"}, {"a", "set<text>"}, {"b", "set<text>"}, {"c", "int"}},
                cql::no_rows);
  const auto keyspaces = tables.keyspaces();
  const auto table = keyspaces[0]->tables.find("sets")->second;
  storage::ReadCommand command;
  command.is_range = true;
  const auto read =
      cql::select_virtual_rows(*table,
                               {{cql::cells::text("k"), cql::cells::text_set({"z", "", "y"}),
                                 cql::cells::text_set({}), cql::cells::number(7)}},
                               command);
  REQUIRE(read.has_value());
  REQUIRE(read->partitions.size() == 1);
  const auto record = storage::decode_row_record(read->partitions[0].rows[0].record);
  REQUIRE(record.has_value());
  REQUIRE(record->cells.size() == 4);
  for (size_t i = 0; i < 3; ++i) CHECK(record->cells[i].has_path);
  CHECK(record->cells[0].path < record->cells[1].path);
  CHECK(record->cells[1].path < record->cells[2].path);
  CHECK_FALSE(record->cells[3].has_path);
}

}  // namespace
}  // namespace tetrad::tests
