// SPDX-License-Identifier: Apache-2.0
// What the schema may not become: types that could not be read again, types and changes without a
// bound.
#include <algorithm>

#include <catch2/catch.hpp>

#include "cql/schema/schema_text.h"
#include "tests/unit/cql/good_schema.h"

namespace tetrad::tests {
namespace {

class Fixture : public GoodSchema {
 public:
  /// All else goes on.
  void check_rest() {
    CHECK(rows("SELECT v FROM good WHERE k = 1") == "'x'");
    run("CREATE TABLE other (k int PRIMARY KEY)");
    run("CREATE TYPE fine (x int)");
    run("DROP TYPE fine");
    run("DROP TABLE other");
    // A node that starts now reads all of it.
    CHECK(cql::SchemaSnapshot::build(*meta.snapshot(), nullptr, {})->unreadable().empty());
  }
};

std::string nested(const std::string& word, int levels, const std::string& inner = "int") {
  std::string out;
  for (int i = 0; i < levels; ++i) out += word + "<";
  out += inner;
  return out.append(static_cast<size_t>(levels), '>');
}

}  // namespace

TEST_CASE_METHOD(Fixture, "classes pass the checks of types that are written") {
  run("CREATE TYPE a (b int)");
  constexpr std::pair<const char*, const char*> kRefused[] = {
      {"'TupleType()'", "a tuple has at least one field"},
      {"'MapType(DurationType,Int32Type)'", "Durations are not allowed as map keys"},
      {"'SetType(DurationType)'", "Durations are not allowed inside sets"},
      {"'ListType(CounterColumnType)'", "Counters are not allowed inside collections"},
      {"list<'CounterColumnType'>", "Counters are not allowed inside collections"},
      {"map<'DurationType', int>", "Durations are not allowed as map keys"},
      {"frozen<tuple<int, 'CounterColumnType'>>", "Counters are not allowed inside tuples"},
      {"'VectorType(TupleType(),2)'", "a tuple has at least one field"},
      {"'UserType(ks,6161,62:Int32Type)'", "Unknown type ks.aa"},
      {"'UserType(ks,61,63:Int32Type)'", "does not have its fields"},
      {"'UserType(ks,61,62:LongType)'", "does not have its fields"},
      {"'UserType(other,61,62:Int32Type)'", ""},
      {"'UserType(ks,c080,62:Int32Type)'", "UTF-8"},
      {"'UserType(ks,61,eda080:Int32Type)'", "UTF-8"},
  };
  for (const auto& [type, reason] : kRefused) {
    for (const std::string& statement :
         {std::string("CREATE TABLE t (k int PRIMARY KEY, c ") + type + ")",
          std::string("CREATE TYPE t (c ") + type + ")",
          std::string("ALTER TABLE good ADD c ") + type, std::string("ALTER TYPE a ADD c ") + type,
          std::string("CREATE FUNCTION t (c ") + type +
              ") CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return 1'",
          std::string("CREATE FUNCTION t (c int) CALLED ON NULL INPUT RETURNS ") + type +
              " LANGUAGE lua AS 'return nil'"}) {
      INFO(statement);
      const std::string answer = cql(statement);
      INFO(answer);
      CHECK(answer.starts_with("error: "));
      CHECK(answer.find(reason) != std::string::npos);
    }
  }
  run("CREATE TABLE t (k int PRIMARY KEY, u 'UserType(ks,61,62:Int32Type)', "
      "l 'ListType(UTF8Type)', m 'FrozenType(MapType(Int32Type,ListType(Int32Type)))')");
  CHECK(rows("SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = 'ks' AND "
             "table_name = 't'") ==
        "'k' | 'int'\n'l' | 'list<text>'\n"
        "'m' | 'frozen<map<int, frozen<list<int>>>>'\n'u' | 'a'");
}

TEST_CASE_METHOD(Fixture, "types nest as deep where they are kept as where they are written") {
  run("CREATE TABLE t32 (k int PRIMARY KEY, v frozen<" + nested("tuple", 32) + ">)");
  run("CREATE TABLE t63 (k int PRIMARY KEY, v " + nested("tuple", 63) + ")");
  run("CREATE TABLE f63 (k int PRIMARY KEY, v " + nested("frozen<list", 63) + std::string(63, '>') +
      ")");
  run("ALTER TABLE good ADD l " + nested("frozen<list", 33) + std::string(33, '>'));
  check_rest();
  const std::string kept = rows(
      "SELECT type FROM system_schema.columns WHERE keyspace_name = 'ks' AND table_name = 't63' "
      "AND column_name = 'v'");
  run("CREATE TABLE again (k int PRIMARY KEY, v " + kept.substr(1, kept.size() - 2) + ")");
  CHECK(error("CREATE TABLE t64 (k int PRIMARY KEY, v " + nested("tuple", 64) + ")") ==
        "types may nest 64 deep at most");
  CHECK(error("CREATE TABLE c (k int PRIMARY KEY, v 'ListType(" + [] {
          std::string text;
          for (int i = 0; i < 64; ++i) text += "ListType(";
          return text + "Int32Type" + std::string(64, ')');
        }() + ")')") == "types may nest 64 deep at most");
  run("CREATE TYPE u0 (x int)");
  for (int i = 1; i < 63; ++i) run(fmt::format("CREATE TYPE u{} (x frozen<u{}>)", i, i - 1));
  run("CREATE TABLE of_u (k int PRIMARY KEY, v frozen<u62>)");
  CHECK(error("CREATE TYPE u63 (x frozen<list<frozen<u62>>>)") == "types may nest 64 deep at most");
  // One that is held by others makes them deeper, too.
  CHECK(error("ALTER TYPE u0 ADD y frozen<list<int>>").find("types may nest 64 deep at most") !=
        std::string::npos);
  check_rest();
}

TEST_CASE_METHOD(Fixture, "user types that hold one another have a bound on all their parts") {
  const auto create = [&](int level) {
    std::string fields;
    for (int i = 0; i < 40; ++i) {
      fields += fmt::format("{}f{} {}", i == 0 ? "" : ", ", i,
                            level == 0 ? "int" : fmt::format("frozen<t{}>", level - 1));
    }
    return cql(fmt::format("CREATE TYPE t{} ({})", level, fields));
  };
  CHECK(create(0) == "ok");
  CHECK(create(1) == "ok");
  CHECK(create(2) ==
        "error: types may have 16384 parts at most, those of the user types they hold counted");
  run("CREATE TABLE t (k int PRIMARY KEY, v frozen<tuple<frozen<t1>, frozen<t1>, frozen<t1>, "
      "frozen<t1>, frozen<t1>, frozen<t1>, frozen<t1>, frozen<t1>, frozen<t1>>>)");
  // t1 has 1641 parts, 9 of them fit, not when each has 40 times 5 more.
  CHECK(error("ALTER TYPE t0 ADD more frozen<tuple<int, int, int, int>>") ==
        "The statement would leave a schema that does not read: table ks.t: types may have 16384 "
        "parts at "
        "most, those of the user types they hold counted");
  CHECK(rows("SELECT * FROM t") == "");
  std::string markers, columns;
  for (int i = 0; i < 1000; ++i) {
    markers += i == 0 ? "?" : ",?";
    columns += i == 0 ? "v" : ",v";
  }
  CHECK(error("SELECT k FROM t WHERE v IN (" + markers + ") ALLOW FILTERING")
            .find("take more than") != std::string::npos);
  CHECK(error("SELECT " + columns + " FROM t").find("take more than") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "a change of the schema has a bound on its bytes") {
  run("CREATE TABLE t (k int PRIMARY KEY) WITH comment = '" + std::string(1 << 20, 'c') + "'");
  CHECK(error("ALTER TABLE t WITH comment = '" + std::string(17 << 20, 'c') + "'")
            .find("A change of the schema may take") == 0);
}

}  // namespace tetrad::tests
