// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "cql/grammar/ast_print.h"
#include "tests/unit/cql_grammar/parse_as.h"

namespace tetrad::cql::test {

TEST_CASE("result names read as Cassandra's") {
  const ast::FunctionNamer namer = [](const ast::FunctionName& name) {
    return name.keyspace ? ast::to_string(name) : "system." + name.name.text;
  };
  const auto check = [&](std::string_view selector, std::string_view expected) {
    const auto select = parse_as<ast::Select>(fmt::format("SELECT {} FROM t", selector));
    CHECK(ast::result_name(select.items.at(0).selector, namer) == expected);
  };
  check("COUNT(*)", "count");
  check("count(1)", "count");
  check("count(v)", "system.count(v)");
  check("MAX(\"Q x\")", "system.max(Q x)");
  check("toTimestamp(now())", "system.totimestamp(system.now())");
  check("ks.f(a,b)", "ks.f(a, b)");
  check("WRITETIME(v)", "writetime(v)");
  check("maxwritetime(m['a'])", "maxwritetime(m['a'])");
  check("ttl(u.f)", "ttl(u.f)");
  check("CAST(v AS BigInt)", "cast(v as bigint)");
  check("m['it''s']", "m['it's']");
  check("m[..'b']", "m[..'b']");
  check("st[1..2]", "st[1..2]");
  check("v + 1 - 2*w / 3 % 2", "v + 1 - 2 * w / 3 % 2");
  check("(v+w) * 2", "(v + w) * 2");
  check("- - v", "--v");
  check("-v + -w", "-v + -w");
  check("(INT)5", "(int)5");
  check("(map<int,int>){v:w}", "(map<int, int>){v: w}");
  check("(boolean)TRUE", "(boolean)TRUE");
  check("(double)-nan", "(double)NaN");
  check("(double)-infinity", "(double)-Infinity");
  check("(frozen<list<int>>)[v]", "(frozen<list<int>>)[v]");
  check("(vector<int,1>)[v]", "(vector<int, 1>)[v]");
  check("\"A\"\"b\"", "A\"b");
  check("(int)?", "(int)?");
}

TEST_CASE("relations read as in Cassandra's messages") {
  const auto check = [](std::string_view text, std::string_view expected) {
    auto relations = parse_where(text);
    REQUIRE(relations);
    CHECK(ast::to_string(relations->front()) == expected);
  };
  check("\"Q x\"!=TRUE", "\"Q x\" != TRUE");
  check("(k, \"Q x\") != (1,2)", "(k, \"Q x\") != (1, 2)");
  check("token(\"Q x\")!=5", "token(\"Q x\") != 5");
  check("m['b']  != 'c'", "m['b'] != 'c'");
  check("c IS NOT NULL", "c IS NOT NULL");
  check("k IN (1,2)", "k IN (1, 2)");
  check("k IN :x", "k IN ?");
  check("fu != {f:1,\"G\":null}", "fu != {f: 1, G: NULL}");
  check("c != (int)1 + abs(2) * 3",
        "c != system.\"_add\"((int)1, system.\"_multiply\"(abs(2), 3))");
  check("c LIKE 'x'", "c LIKE 'x'");
  check("c BETWEEN 1 AND 2", "c BETWEEN 1 AND 2");
}

TEST_CASE("names are quoted when they would not read back") {
  CHECK(quote_identifier("abc_1") == "abc_1");
  CHECK(quote_identifier("Abc") == "\"Abc\"");
  CHECK(quote_identifier("a b") == "\"a b\"");
  CHECK(quote_identifier("a\"b") == "\"a\"\"b\"");
  CHECK(quote_identifier("1a") == "\"1a\"");
  CHECK(quote_identifier("") == "\"\"");
  CHECK(quote_identifier("select") == "\"select\"");
  CHECK(quote_identifier("token") == "\"token\"");
  CHECK(quote_identifier("key") == "key");
  CHECK(ast::quote_string("it's") == "'it''s'");
}

}  // namespace tetrad::cql::test
