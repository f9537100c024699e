// SPDX-License-Identifier: Apache-2.0
// Objects of the schema that do not read: planted in the metadata past all checks, as an earlier or
// a newer program leaves them there.
#include <algorithm>

#include <catch2/catch.hpp>

#include "cql/schema/schema_text.h"
#include "tests/unit/cql/good_schema.h"

namespace tetrad::tests {
namespace {

class Fixture : public GoodSchema {
 public:
  const std::string& text_of(const std::string& key) {
    const auto found = meta.snapshot()->schema_objects.find(key);
    REQUIRE(found != meta.snapshot()->schema_objects.end());
    return found->second;
  }
  void plant(const std::string& key, std::optional<std::string> text) {
    replication::SchemaChange change;
    change.expected = meta.snapshot()->schema_version;
    change.objects.emplace_back(key, std::move(text));
    REQUIRE(run_task(reactor, meta.change_schema(std::move(change), base::Deadline{}, nullptr)));
  }
  /// The object with one text in place of another.
  void plant_changed(const std::string& key, std::string_view from, std::string_view to) {
    std::string text = text_of(key);
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    plant(key, text.replace(at, from.size(), to));
  }
  std::string unreadable() {
    return rows(
        "SELECT kind, name FROM system_tetrad.unreadable_objects WHERE keyspace_name = 'ks'");
  }
  /// All else goes on.
  void check_rest() {
    CHECK(rows("SELECT v FROM good WHERE k = 1") == "'x'");
    run("CREATE TABLE other (k int PRIMARY KEY)");
    run("CREATE TYPE fine (x int)");
    run("DROP TYPE fine");
    run("DROP TABLE other");
    // A node that starts now sees the same as one that followed the changes.
    const auto fresh = cql::SchemaSnapshot::build(*meta.snapshot(), nullptr, {});
    const auto listed = rows("SELECT keyspace_name, reason FROM system_tetrad.unreadable_objects");
    CHECK(static_cast<size_t>(std::ranges::count(listed, '\n')) + (listed.empty() ? 0 : 1) ==
          fresh->unreadable().size());
  }
  bool has_objects(std::string_view part) const {
    for (const auto& [key, text] : meta.snapshot()->schema_objects)
      if (key.find(part) != std::string::npos) return true;
    for (const auto& [id, table] : meta.snapshot()->tables)
      if ((table->keyspace + "/" + table->name).find(part) != std::string::npos) return true;
    return false;
  }
};

/// Texts of types that earlier programs kept and could not read again, and what is wrong with them.
constexpr std::pair<const char*, const char*> kBadTypes[] = {
    {"frozen<tuple<>>", "no viable alternative"},
    {"map<duration, int>", "Durations are not allowed as map keys"},
    {"set<duration>", "Durations are not allowed inside sets"},
    {"list<counter>", "Counters are not allowed inside collections"},
    {"frozen<tuple<counter>>", "Counters are not allowed inside tuples"},
    {"a", "Unknown type a"},
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a table that does not read is left out, named and dropped") {
  for (const auto& [type, reason] : kBadTypes) {
    INFO(type);
    run("CREATE TABLE bad (k int PRIMARY KEY, v blob)");
    plant_changed("table/ks/bad", "\"blob\"", std::string("\"") + type + "\"");
    CHECK(unreadable() == "'table' | 'bad'");
    CHECK(rows("SELECT reason FROM system_tetrad.unreadable_objects").find(reason) !=
          std::string::npos);
    check_rest();
    for (const char* statement :
         {"SELECT * FROM bad", "INSERT INTO bad (k) VALUES (1)", "UPDATE bad SET v = 1 WHERE k = 1",
          "DELETE FROM bad WHERE k = 1", "CREATE TABLE bad (k int PRIMARY KEY)",
          "CREATE TABLE IF NOT EXISTS bad (k int PRIMARY KEY)", "ALTER TABLE bad ADD w int",
          "ALTER TABLE IF EXISTS bad ADD w int", "TRUNCATE bad", "DESCRIBE TABLE bad",
          "DESCRIBE bad"}) {
      INFO(statement);
      const std::string text = error(statement);
      CHECK(text.starts_with("The schema of table ks.bad does not read, it can only be dropped: "));
      CHECK(text.find(reason) != std::string::npos);
    }
    run("DROP TABLE bad");
    CHECK(unreadable() == "");
    CHECK_FALSE(has_objects("ks/bad"));
  }
}

TEST_CASE_METHOD(Fixture, "what needs a type that does not read does not read either") {
  for (const auto& [type, reason] : kBadTypes) {
    INFO(type);
    run("CREATE TYPE u (x blob)");
    run("CREATE TYPE outer (y frozen<u>)");
    run("CREATE TABLE of_u (k int PRIMARY KEY, v frozen<outer>)");
    run("CREATE FUNCTION f (s int, v u) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return "
        "s'");
    run("CREATE AGGREGATE g (u) SFUNC f STYPE int INITCOND 0");
    const std::string before = text_of("type/ks/u");
    plant_changed("type/ks/u", "\"blob\"", std::string("\"") + type + "\"");
    CHECK(unreadable() ==
          "'aggregate' | 'g(u)'\n'function' | 'f(int, u)'\n'table' | 'of_u'\n'type' | 'outer'\n"
          "'type' | 'u'");
    check_rest();
    for (const char* statement : {"CREATE TYPE u (x int)", "DESCRIBE TYPE u"})
      CHECK(error(statement).starts_with("The schema of type ks.u does not read"));
    CHECK(error("ALTER TYPE u ADD z int").find("can only be dropped") != std::string::npos);

    plant("type/ks/u", before);  // a newer program might read it
    CHECK(unreadable() == "");
    CHECK(rows("SELECT g(v.y) FROM of_u") == "0");
    plant_changed("type/ks/u", "\"blob\"", std::string("\"") + type + "\"");
    run("DROP AGGREGATE g");
    run("DROP FUNCTION f (int, u)");
    run("DROP TABLE of_u");
    run("DROP TYPE outer");
    run("DROP TYPE u");
    CHECK(unreadable() == "");
    CHECK_FALSE(has_objects("u"));
  }
}

TEST_CASE_METHOD(Fixture, "functions that do not read are told apart by their arguments") {
  run("CREATE FUNCTION f (v int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return v'");
  run("CREATE FUNCTION f (v text) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return 1'");
  run("CREATE FUNCTION f (v blob) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return 2'");
  for (const char* types : {"text", "blob"})
    plant_changed(std::string("function/ks/f(") + types + ")", "\"return_type\":\"int\"",
                  "\"return_type\":\"frozen<tuple<>>\"");
  CHECK(unreadable() == "'function' | 'f(blob)'\n'function' | 'f(text)'");
  CHECK(error("DROP FUNCTION f").find("matches several") != std::string::npos);
  CHECK(error("CREATE OR REPLACE FUNCTION f (v text) CALLED ON NULL INPUT RETURNS int LANGUAGE "
              "lua AS 'return 1'")
            .find("can only be dropped") != std::string::npos);
  run("DROP FUNCTION f (text)");
  run("DROP FUNCTION f (blob)");
  CHECK(unreadable() == "");
  CHECK(rows("SELECT f(k) FROM good") == "1");
}

TEST_CASE_METHOD(Fixture, "a keyspace that does not read is dropped with all that it holds") {
  run("CREATE KEYSPACE two WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
      "1}");
  run("CREATE TYPE two.u (x int)");
  run("CREATE TABLE two.t (k int PRIMARY KEY, v u)");
  const std::string text = text_of("keyspace/two");
  for (const std::optional<std::string>& bad :
       {std::optional<std::string>("{"), std::optional<std::string>(R"({"format": 99})"),
        std::optional<std::string>()}) {
    plant("keyspace/two", bad);
    CHECK(rows("SELECT kind, name FROM system_tetrad.unreadable_objects WHERE keyspace_name = "
               "'two'") == "'keyspace' | ''");
    check_rest();
    for (const char* statement :
         {"SELECT * FROM two.t", "USE two", "CREATE TABLE two.o (k int PRIMARY KEY)",
          "DROP TABLE two.t", "TRUNCATE two.t", "CREATE TYPE two.o (x int)", "DROP TYPE two.u",
          "CREATE FUNCTION two.f (v int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return "
          "v'",
          "DROP FUNCTION two.f", "ALTER KEYSPACE two WITH durable_writes = false",
          "DESCRIBE KEYSPACE two", "DESCRIBE TABLE two.t",
          "CREATE KEYSPACE two WITH replication = {'class': 'SimpleStrategy', "
          "'replication_factor': 1}"}) {
      INFO(statement);
      CHECK(error(statement).starts_with(
          "The schema of keyspace two does not read, it can only be dropped: "));
    }
    plant("keyspace/two", text);
    CHECK(rows("SELECT * FROM two.t") == "");
  }
  plant("keyspace/two", std::nullopt);
  run("DROP KEYSPACE two");
  CHECK_FALSE(has_objects("two"));
}

TEST_CASE_METHOD(Fixture, "an object under another's name does not read") {
  run("CREATE TABLE bad (k int PRIMARY KEY, v int)");
  run("CREATE TYPE u (x int)");
  const std::string table = text_of("table/ks/bad"), type = text_of("type/ks/u");
  plant("table/ks/bad", text_of("table/ks/good"));
  plant_changed("type/ks/u", "\"name\":\"u\"", "\"name\":\"w\"");
  CHECK(unreadable() == "'table' | 'bad'\n'type' | 'u'");
  check_rest();
  plant("type/ks/u", type);
  // A column's number beyond all that there can be would take memory without a bound.
  plant("table/ks/bad", table);
  plant_changed("table/ks/bad", "\"id\":1,", "\"id\":4000000000,");
  CHECK(rows("SELECT reason FROM system_tetrad.unreadable_objects") ==
        "'id 4000000000 of column v'");
  run("DROP KEYSPACE ks");
  CHECK(rows("SELECT * FROM system_tetrad.unreadable_objects") == "");
  CHECK_FALSE(has_objects("ks"));
}

}  // namespace tetrad::tests
