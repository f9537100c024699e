// SPDX-License-Identifier: Apache-2.0
// Snapshots of the schema that are built from the one before, and what is read of them by name.
#include "cql/schema/schema_snapshot.h"

#include <catch2/catch.hpp>

#include "cql/schema/schema_text.h"
#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

class Fixture : public LocalCluster {
 public:
  void run(const std::string& statement) {
    INFO(statement);
    const std::string answer = cql(statement);
    CHECK_FALSE(answer.starts_with("error: "));
  }
  void make_keyspace(const std::string& name) {
    run("CREATE KEYSPACE " + name +
        " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  }
  cql::SchemaPtr build(const cql::SchemaPtr& previous) const {
    return cql::SchemaSnapshot::build(*meta.snapshot(), previous.get(), {});
  }
};

/// All that statements see of a schema.
std::string text_of(const cql::SchemaSnapshot& schema) {
  std::string out = schema.version_uuid().to_string();
  for (const auto& [name, keyspace] : schema.keyspaces()) {
    out += "\nkeyspace " + name;
    for (const auto& [key, value] : keyspace->replication) out += " " + key + "=" + value;
    for (const auto& type_name : keyspace->types_in_dependency_order) {
      out += "\ntype " + type_name;
      for (const auto& field : keyspace->types.at(type_name)->components())
        out += " " + field->class_name();
    }
    for (const auto& [table_name, table] : keyspace->tables) {
      out += "\ntable " + table_name + " " + table->id.to_string() + " " +
             std::to_string(table->incarnation.value) + " " + table->options.comment;
      for (const auto& column : table->columns())
        out += " " + column.name + ":" + column.type->class_name();
    }
  }
  return out;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "a schema change keeps the objects that it does not touch") {
  make_keyspace("ks");
  make_keyspace("other");
  run("CREATE TYPE ks.a (x int)");
  run("CREATE TYPE ks.b (x int)");
  run("CREATE TABLE ks.plain (k int PRIMARY KEY, v text)");
  run("CREATE TABLE ks.of_a (k int PRIMARY KEY, v map<int, frozen<a>>)");
  run("CREATE TABLE other.t (k int PRIMARY KEY)");
  const cql::SchemaPtr first = build(nullptr);
  CHECK(text_of(*build(first)) == text_of(*first));

  run("CREATE TABLE ks.more (k int PRIMARY KEY)");
  run("CREATE TYPE ks.c (x int)");
  run("ALTER KEYSPACE ks WITH durable_writes = false");
  const cql::SchemaPtr more = build(first);
  CHECK(text_of(*more) == text_of(*build(nullptr)));
  CHECK_FALSE(more->keyspace("ks")->durable_writes);
  CHECK(more->keyspace("other") == first->keyspace("other"));
  for (const char* name : {"plain", "of_a"})
    CHECK(more->table("ks", name) == first->table("ks", name));

  run("ALTER TYPE ks.a ADD y int");
  const cql::SchemaPtr altered = build(more);
  CHECK(text_of(*altered) == text_of(*build(nullptr)));
  CHECK(altered->table("ks", "plain") == more->table("ks", "plain"));
  CHECK(altered->table("ks", "of_a") != more->table("ks", "of_a"));
  CHECK(altered->keyspace("ks")->types.at("b") == more->keyspace("ks")->types.at("b"));

  run("TRUNCATE ks.plain");
  run("ALTER TABLE ks.of_a WITH comment = 'c'");
  const cql::SchemaPtr truncated = build(altered);
  CHECK(text_of(*truncated) == text_of(*build(nullptr)));
  CHECK(truncated->table("ks", "plain")->incarnation != altered->table("ks", "plain")->incarnation);
  CHECK(truncated->table("ks", "more") == altered->table("ks", "more"));

  run("DROP TABLE ks.plain");
  run("CREATE TABLE ks.plain (k text PRIMARY KEY)");
  run("DROP KEYSPACE other");
  const cql::SchemaPtr last = build(nullptr);
  CHECK(last->keyspace("other") == nullptr);
  for (const cql::SchemaPtr& earlier : {first, more, altered, truncated})
    CHECK(text_of(*build(earlier)) == text_of(*last));
}

TEST_CASE("the text of an object with any bytes in it is made and reads again") {
  const Bytes bytes = "a\xC0\x80\xED\xA0\x80\xF7\xBF\xBF\xBF\xFF\xC3";
  cql::TableSchema table;
  table.keyspace = "ks";
  table.name = "t";
  table.options.comment = bytes;
  cql::ColumnSchema column;
  column.name = bytes;
  column.type = cql::int_type();
  table.set_columns({column});
  CHECK(cql::read_table_text(cql::table_text(table), nullptr));
  const cql::TypePtr type = cql::make_udt("ks", bytes, {bytes}, {cql::int_type()}, false);
  CHECK(cql::read_type_text(cql::type_text(*type), nullptr));
  cql::FunctionSchema function;
  function.keyspace = "ks";
  function.name = function.body = bytes;
  function.return_type = cql::int_type();
  CHECK(cql::read_function_text(cql::function_text(function), nullptr));
  cql::KeyspaceSchema keyspace;
  keyspace.name = keyspace.replication["class"] = bytes;
  CHECK(cql::read_keyspace_text(cql::keyspace_text(keyspace)));
}

TEST_CASE_METHOD(Fixture, "a real keyspace takes the place of a computed one of its name") {
  auto computed = std::make_shared<cql::KeyspaceSchema>();
  computed->name = "ks";
  computed->is_virtual = true;
  const std::vector<std::shared_ptr<const cql::KeyspaceSchema>> virtuals = {computed};
  const auto with_computed = [&](const cql::SchemaPtr& previous) {
    return cql::SchemaSnapshot::build(*meta.snapshot(), previous.get(), virtuals);
  };
  const cql::SchemaPtr before = with_computed(nullptr);
  CHECK(before->keyspace("ks") == computed.get());
  make_keyspace("ks");
  run("CREATE TABLE ks.t (k int PRIMARY KEY)");
  const cql::SchemaPtr real = with_computed(before);
  CHECK_FALSE(real->keyspace("ks")->is_virtual);
  CHECK(real->table("ks", "t") != nullptr);
  make_keyspace("unrelated");
  CHECK(with_computed(real)->keyspace("ks") == real->keyspace("ks"));
  run("DROP KEYSPACE ks");
  CHECK(with_computed(real)->keyspace("ks") == computed.get());
}

TEST_CASE_METHOD(Fixture, "tables of the schema are found by any restriction of their names") {
  make_keyspace("ks");
  make_keyspace("other");
  const std::vector<std::string> names = {"a", "ab", "b", "c", "ca", "d"};
  for (const std::string& name : names) {
    run("CREATE TABLE ks." + name + " (k int PRIMARY KEY, v int, w int)");
    run("ALTER TABLE ks." + name + " DROP w");
  }
  run("CREATE TABLE other.b (k int PRIMARY KEY)");
  const std::pair<const char*, std::vector<std::string>> wanted[] = {
      {"table_name = 'b'", {"b"}},
      {"table_name = 'none'", {}},
      {"table_name > 'ab'", {"b", "c", "ca", "d"}},
      {"table_name >= 'ab'", {"ab", "b", "c", "ca", "d"}},
      {"table_name < 'c'", {"a", "ab", "b"}},
      {"table_name <= 'c'", {"a", "ab", "b", "c"}},
      {"table_name > 'a' AND table_name < 'c'", {"ab", "b"}},
      {"table_name IN ('a', 'c', 'x')", {"a", "c"}},
  };
  for (const auto& [restriction, found] : wanted) {
    INFO(restriction);
    std::string tables, columns, dropped;
    for (const std::string& name : found) {
      const std::string cell = "'" + name + "'";
      tables += (tables.empty() ? "" : "\n") + cell;
      columns += (columns.empty() ? "" : "\n") + cell + " | 'k'\n" + cell + " | 'v'";
      dropped += (dropped.empty() ? "" : "\n") + cell + " | 'w'";
    }
    const std::string where = std::string(" WHERE keyspace_name = 'ks' AND ") + restriction;
    CHECK(rows("SELECT table_name FROM system_schema.tables" + where) == tables);
    CHECK(rows("SELECT table_name, column_name FROM system_schema.columns" + where) == columns);
    CHECK(rows("SELECT table_name, column_name FROM system_schema.dropped_columns" + where) ==
          dropped);
  }
  CHECK(rows("SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'ks' AND "
             "table_name = 'c' AND column_name = 'v'") == "'v'");
  CHECK(rows("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ks' AND "
             "table_name > 'b' ORDER BY table_name DESC") == "'d'\n'ca'\n'c'");
  CHECK(rows("SELECT table_name FROM system_schema.tables WHERE table_name = 'b' ALLOW FILTERING")
            .find("'b'") != std::string::npos);
}

}  // namespace tetrad::tests
