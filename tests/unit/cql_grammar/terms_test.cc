// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "cql/grammar/ast_print.h"
#include "tests/unit/cql_grammar/parse_as.h"

namespace tetrad::cql::test {

using ast::Literal;

TEST_CASE("every kind of literal keeps its text") {
  const auto check = [](std::string_view text, Literal::Kind kind, std::string_view kept) {
    const ast::Term term = term_of(text);
    INFO(text);
    CHECK(as<Literal>(term).kind == kind);
    CHECK(as<Literal>(term).text == kept);
  };
  check("'it''s'", Literal::Kind::kString, "it's");
  check("$$a'b$$", Literal::Kind::kString, "a'b");
  check("-12345678901234567890123", Literal::Kind::kInteger, "-12345678901234567890123");
  check("1.5e10", Literal::Kind::kFloat, "1.5e10");
  check("nan", Literal::Kind::kFloat, "NaN");
  check("-NaN", Literal::Kind::kFloat, "NaN");
  check("INFINITY", Literal::Kind::kFloat, "Infinity");
  check("-Infinity", Literal::Kind::kFloat, "-Infinity");
  check("True", Literal::Kind::kBoolean, "True");
  check("550E8400-e29b-41d4-a716-446655440000", Literal::Kind::kUuid,
        "550E8400-e29b-41d4-a716-446655440000");
  check("0xCAFE", Literal::Kind::kHex, "0xCAFE");
  check("1y2mo3d4h", Literal::Kind::kDuration, "1y2mo3d4h");
  check("null", Literal::Kind::kNull, "NULL");
  CHECK(term_of("NULL").is_null());
}

TEST_CASE("braces are a set, a map or a user type") {
  CHECK(as<ast::SetTerm>(term_of("{}")).items.empty());
  CHECK(as<ast::SetTerm>(term_of("{1, 2}")).items.size() == 2);
  CHECK(as<ast::MapTerm>(term_of("{'a': 1, 'b': 2}")).entries.size() == 2);
  const ast::Term udt = term_of("{a: 1, \"B\": {1}, int: 3}");
  const auto& fields = as<ast::UdtTerm>(udt).fields;
  REQUIRE(fields.size() == 3);
  CHECK(fields[0].first.text == "a");
  CHECK(fields[1].first.text == "B");
  CHECK(fields[1].first.quoted);
  CHECK(fields[2].first.text == "int");
  CHECK(as<ast::MapTerm>(term_of("{f(1): 2}")).entries.size() == 1);
  CHECK(as<ast::MapTerm>(term_of("{null: 2}")).entries.size() == 1);
  CHECK(as<ast::ListTerm>(term_of("[[1], [], [2, 3]]")).items.size() == 3);
}

TEST_CASE("parentheses are a cast before a term and a tuple otherwise") {
  CHECK(as<ast::TupleTerm>(term_of("(1, 'a')")).items.size() == 2);
  CHECK(as<ast::TupleTerm>(term_of("(1)")).items.size() == 1);
  CHECK(as<ast::TupleTerm>(term_of("('a')")).items.size() == 1);
  const ast::Term cast = term_of("(frozen<map<int, text>>) {1: 'a'}");
  const ast::CqlType& type = *as<ast::TypeCastTerm>(cast).type;
  CHECK(type.kind == ast::CqlType::Kind::kMap);
  CHECK(type.frozen);
  CHECK(type.parameters[1].native == Keyword::kText);
  CHECK(as<ast::TypeCastTerm>(term_of("(ks.my_type) {a: 1}")).type->name.keyspace->text == "ks");
  const ast::Term twice = term_of("(int)(text)5");
  CHECK(as<ast::TypeCastTerm>(*as<ast::TypeCastTerm>(twice).argument).type->native ==
        Keyword::kText);
  CHECK(ast::to_string(term_of("CAST(2.0 AS int)")) == "system.cast_as_int(2.0)");
}

TEST_CASE("arithmetic binds as in school and to the left") {
  CHECK(ast::to_string(term_of("1 + 2 * 3 - 4 / 5 % 6")) ==
        "system.\"_substract\"(system.\"_add\"(1, system.\"_multiply\"(2, 3)), "
        "system.\"_modulo\"(system.\"_divide\"(4, 5), 6))");
  CHECK(ast::to_string(term_of("(1 + 2) * 3")) ==
        "system.\"_multiply\"((system.\"_add\"(1, 2)), 3)");
  CHECK(ast::to_string(term_of("- f(1)")) == "system.\"_negate\"(f(1))");
  CHECK(as<Literal>(term_of("-1")).text == "-1");
  CHECK(as<ast::NegationTerm>(term_of("- 1")).argument->position == ast::Position{1, 2});
}

TEST_CASE("functions have names with and without a keyspace") {
  const ast::Term now = term_of("now()");
  CHECK(as<ast::FunctionTerm>(now).name->name.text == "now");
  CHECK(as<ast::FunctionTerm>(now).arguments.empty());
  const ast::Term nested = term_of("ks.\"F\"(token(1, 'a'), [2], ?)");
  const auto& call = as<ast::FunctionTerm>(nested);
  CHECK(call.name->keyspace->text == "ks");
  CHECK(call.name->name.text == "F");
  CHECK(call.arguments.size() == 3);
  CHECK(as<ast::FunctionTerm>(term_of("count(1)")).name->name.text == "count");
}

TEST_CASE("bind markers count through the whole statement and keep their names") {
  auto parsed = parse_with_markers(
      "UPDATE t USING TTL ? SET a = :x, m[?] = :\"Y z\" WHERE k IN ? AND c IN (:x, ?) IF v = ?");
  REQUIRE(parsed);
  using Names = std::vector<std::optional<std::string>>;
  CHECK(parsed->marker_names == Names{std::nullopt, "x", std::nullopt, "Y z", std::nullopt, "x",
                                      std::nullopt, std::nullopt});
  const auto& update = std::get<ast::Update>(parsed->statement);
  CHECK(as<ast::BindMarker>(*update.attributes.ttl).index == 0);
  CHECK(as<ast::BindMarker>(*update.assignments[1].key).index == 2);
  CHECK(update.where[0].in_marker);
  CHECK(as<ast::BindMarker>(update.where[0].values[0]).index == 4);
  CHECK_FALSE(update.where[1].in_marker);
  CHECK(as<ast::BindMarker>(update.where[1].values[0]).name == "x");
  CHECK(as<ast::BindMarker>(update.conditions[0].values[0]).index == 7);
}

TEST_CASE("types of every kind") {
  const auto check = [](std::string_view text, std::string_view printed) {
    auto type = parse_type(text);
    INFO(text);
    if (!type) FAIL(type.error().message);
    CHECK(ast::to_string(*type) == printed);
  };
  for (std::string_view native :
       {"ascii",  "bigint",    "blob",     "boolean", "counter", "date",     "decimal",
        "double", "duration",  "float",    "inet",    "int",     "smallint", "text",
        "time",   "timestamp", "timeuuid", "tinyint", "uuid",    "varchar",  "varint"}) {
    check(native, native);
  }
  check("INT", "int");
  check("LIST<Text>", "list<text>");
  check("map<int,frozen<set<tuple<int,text,list<uuid>>>>>",
        "map<int, frozen<set<tuple<int, text, list<uuid>>>>>");
  check("vector<float,1536>", "vector<float, 1536>");
  check("frozen<frozen<list<int>>>", "frozen<list<int>>");
  check("address", "address");
  check("ks.\"Address\"", "ks.\"Address\"");
  check("'org.example.Type'", "'org.example.Type'");
  check("list", "list");  // no parameters: a user type's name
  check("int.foo", "int.foo");
  CHECK_FALSE(parse_type("map<int>"));
  CHECK_FALSE(parse_type("set"));
  CHECK_FALSE(parse_type("int int"));
  CHECK_FALSE(parse_type("frozen<int>"));
  CHECK_FALSE(parse_type("list<int"));
  CHECK_FALSE(parse_type("byte"));
  CHECK_FALSE(parse_type(""));
}

}  // namespace tetrad::cql::test
