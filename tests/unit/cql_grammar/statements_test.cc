// SPDX-License-Identifier: Apache-2.0
// The trees of SELECT and of the statements that change data.
#include <catch2/catch.hpp>

#include "cql/grammar/ast_print.h"
#include "tests/unit/cql_grammar/parse_as.h"

namespace tetrad::cql::test {

using ast::RelationOperator;
using Target = ast::Relation::Target;

TEST_CASE("a SELECT with every clause") {
  const auto select = parse_as<ast::Select>(
      "SELECT JSON DISTINCT a AS x, b FROM ks.t WHERE k = 1 AND c > 2 GROUP BY k, floor(c, 1h) "
      "ORDER BY c DESC, d PER PARTITION LIMIT 3 LIMIT ? ALLOW FILTERING;");
  CHECK(select.json);
  CHECK(select.distinct);
  REQUIRE(select.items.size() == 2);
  CHECK(select.items[0].alias->text == "x");
  CHECK(as<ast::ColumnSelector>(select.items[1].selector).name.text == "b");
  CHECK(select.from.keyspace->text == "ks");
  CHECK(select.from.name.text == "t");
  CHECK(select.where.size() == 2);
  REQUIRE(select.group_by.size() == 2);
  CHECK(as<ast::FunctionSelector>(select.group_by[1]).arguments.size() == 2);
  REQUIRE(select.order_by.size() == 2);
  CHECK(select.order_by[0].descending);
  CHECK_FALSE(select.order_by[1].descending);
  CHECK(as<ast::Literal>(*select.per_partition_limit).text == "3");
  CHECK(as<ast::BindMarker>(*select.limit).index == 0);
  CHECK(select.allow_filtering);
}

TEST_CASE("json, distinct and other unreserved words are columns where no list follows") {
  const auto first_column = [](std::string_view text) {
    const auto select = parse_as<ast::Select>(text);
    CHECK_FALSE(select.json);
    CHECK_FALSE(select.distinct);
    return as<ast::ColumnSelector>(select.items.at(0).selector).name.text;
  };
  CHECK(first_column("SELECT json FROM t") == "json");
  CHECK(first_column("SELECT json, a FROM t") == "json");
  CHECK(first_column("SELECT json AS x FROM t") == "json");
  CHECK(first_column("SELECT distinct, a FROM t") == "distinct");
  CHECK(first_column("SELECT ttl FROM t") == "ttl");
  CHECK(first_column("SELECT count FROM t") == "count");
  CHECK(first_column("SELECT key FROM t") == "key");
  CHECK(parse_as<ast::Select>("SELECT JSON json FROM t").json);
  CHECK(parse_as<ast::Select>("SELECT JSON * FROM t").items.empty());
  CHECK(parse_as<ast::Select>("SELECT * FROM t").items.empty());
}

TEST_CASE("selectors of every kind") {
  const auto select = parse_as<ast::Select>(
      "SELECT count(*), count(1), writetime(a), ttl(m['x']), maxwritetime(u.f), cast(a as text), "
      "u.f.g, m['k'], m['a'..], m[..'b'], m['a'..?], (a + b) * -c, [a, 1], {a, b}, {a: b}, "
      "(list<int>)[1], token(a, b), ks.f(g(a)), (a, b), 'x', :m, {}, count(a) FROM t");
  const auto node = [&](size_t i) -> const ast::Selector& { return select.items.at(i).selector; };
  as<ast::CountRowsSelector>(node(0));
  as<ast::CountRowsSelector>(node(1));
  CHECK(as<ast::WriteTimeSelector>(node(2)).kind == ast::WriteTimeSelector::Kind::kWriteTime);
  CHECK(as<ast::WriteTimeSelector>(node(3)).kind == ast::WriteTimeSelector::Kind::kTtl);
  as<ast::ElementSelector>(*as<ast::WriteTimeSelector>(node(3)).target);
  as<ast::FieldSelector>(*as<ast::WriteTimeSelector>(node(4)).target);
  CHECK(as<ast::CastSelector>(node(5)).type->native == Keyword::kText);
  CHECK(as<ast::FieldSelector>(node(6)).field.text == "g");
  as<ast::FieldSelector>(*as<ast::FieldSelector>(node(6)).source);
  as<ast::ElementSelector>(node(7));
  CHECK_FALSE(as<ast::SliceSelector>(node(8)).upper);
  CHECK_FALSE(as<ast::SliceSelector>(node(9)).lower);
  as<ast::BindMarker>(*as<ast::SliceSelector>(node(10)).upper);
  const auto& product = as<ast::ArithmeticSelector>(node(11));
  CHECK(product.op == ast::ArithmeticOperator::kMultiply);
  CHECK(as<ast::TupleSelector>(*product.left).items.size() == 1);
  as<ast::NegationSelector>(*product.right);
  CHECK(as<ast::ListSelector>(node(12)).items.size() == 2);
  CHECK(as<ast::SetSelector>(node(13)).items.size() == 2);
  CHECK(as<ast::MapSelector>(node(14)).entries.size() == 1);
  as<ast::ListSelector>(*as<ast::TypeHintSelector>(node(15)).argument);
  CHECK(as<ast::FunctionSelector>(node(16)).name->name.text == "token");
  CHECK(as<ast::FunctionSelector>(node(17)).name->keyspace->text == "ks");
  CHECK(as<ast::TupleSelector>(node(18)).items.size() == 2);
  as<ast::Literal>(as<ast::TermSelector>(node(19)).term);
  CHECK(as<ast::BindMarker>(as<ast::TermSelector>(node(20)).term).name == "m");
  CHECK(as<ast::SetSelector>(node(21)).items.empty());
  CHECK(as<ast::FunctionSelector>(node(22)).name->name.text == "count");
}

TEST_CASE("(type) x is a hint, (x) - y is arithmetic, (x) AS y has an alias") {
  const auto select =
      parse_as<ast::Select>("SELECT (int)-5, (a) - 5, (a) AS y, (u) {f: a}, (int) (a) FROM t");
  as<ast::TypeHintSelector>(select.items[0].selector);
  as<ast::ArithmeticSelector>(select.items[1].selector);
  CHECK(select.items[2].alias->text == "y");
  as<ast::TypeHintSelector>(select.items[3].selector);
  as<ast::TypeHintSelector>(select.items[4].selector);
}

TEST_CASE("relations of every kind") {
  const auto where = [](std::string_view text) {
    auto relations = parse_where(text);
    INFO(text);
    if (!relations) FAIL(relations.error().message);
    REQUIRE(relations->size() == 1);
    return std::move(relations->front());
  };
  const auto check = [&](std::string_view text, RelationOperator op, size_t value_count,
                         Target target = Target::kColumn) {
    const ast::Relation relation = where(text);
    INFO(text);
    CHECK(relation.op == op);
    CHECK(relation.values.size() == value_count);
    CHECK(relation.target == target);
  };
  check("a = 1", RelationOperator::kEqual, 1);
  check("a != 1", RelationOperator::kNotEqual, 1);
  check("a < 1", RelationOperator::kLess, 1);
  check("a <= 1", RelationOperator::kLessOrEqual, 1);
  check("a > 1", RelationOperator::kGreater, 1);
  check("a >= 1", RelationOperator::kGreaterOrEqual, 1);
  check("a IN (1, 2, 3)", RelationOperator::kIn, 3);
  check("a IN ()", RelationOperator::kIn, 0);
  check("a IN ?", RelationOperator::kIn, 1);
  check("a NOT IN (1)", RelationOperator::kNotIn, 1);
  check("a CONTAINS 1", RelationOperator::kContains, 1);
  check("a CONTAINS KEY 1", RelationOperator::kContainsKey, 1);
  check("a NOT CONTAINS 1", RelationOperator::kNotContains, 1);
  check("a NOT CONTAINS KEY 1", RelationOperator::kNotContainsKey, 1);
  check("a BETWEEN 1 AND 2", RelationOperator::kBetween, 2);
  check("between between 1 AND 2", RelationOperator::kBetween, 2);
  check("a LIKE 'x%'", RelationOperator::kLike, 1);
  check("a IS NOT NULL", RelationOperator::kIsNotNull, 0);
  check("m['x'] = 1", RelationOperator::kEqual, 1, Target::kElement);
  check("(a, b) >= (1, 2)", RelationOperator::kGreaterOrEqual, 1, Target::kTuple);
  check("(a, b) = ?", RelationOperator::kEqual, 1, Target::kTuple);
  check("(a, b) IN ((1, 2), (3, 4))", RelationOperator::kIn, 2, Target::kTuple);
  check("(a, b) IN (?, :x)", RelationOperator::kIn, 2, Target::kTuple);
  check("(a, b) IN ?", RelationOperator::kIn, 1, Target::kTuple);
  check("(a) = (1)", RelationOperator::kEqual, 1, Target::kTuple);
  check("token(a, b) > token(1, 2)", RelationOperator::kGreater, 1, Target::kToken);
  check("token(a) <= -5", RelationOperator::kLessOrEqual, 1, Target::kToken);
  check("Cosmos_ChangeFeed_Start_Time() = 'x'", RelationOperator::kEqual, 1, Target::kChangeFeed);
  check("cosmos_changefeed_start_time() >= ?", RelationOperator::kGreaterOrEqual, 1,
        Target::kChangeFeed);
  check("cosmos_changefeed_start_time() IN (1, 2)", RelationOperator::kIn, 2, Target::kChangeFeed);
  check("cosmos_changefeed_start_time() BETWEEN 1 AND 2", RelationOperator::kBetween, 2,
        Target::kChangeFeed);
  check("cosmos_changefeed_start_time = 1", RelationOperator::kEqual, 1);
  check("expr(idx, 'x')", RelationOperator::kCustomIndex, 1, Target::kCustomIndex);
  check("((a = 1))", RelationOperator::kEqual, 1);
  check("expr = 1", RelationOperator::kEqual, 1);
  CHECK(where("a IN ?").in_marker);
  CHECK_FALSE(where("a IN (?)").in_marker);
  CHECK(where("(a, \"B\") > (1, 2)").columns[1].text == "B");
}

TEST_CASE("INSERT keeps columns, values and attributes") {
  const auto insert = parse_as<ast::Insert>(
      "INSERT INTO ks.\"T\" (a, \"B\") VALUES (1, ?) IF NOT EXISTS USING TIMESTAMP 5 AND TTL :x");
  CHECK(insert.table.name.text == "T");
  REQUIRE(insert.columns.size() == 2);
  CHECK(insert.columns[1].text == "B");
  CHECK(insert.values.size() == 2);
  CHECK(insert.if_not_exists);
  CHECK(as<ast::Literal>(*insert.attributes.timestamp).text == "5");
  CHECK(as<ast::BindMarker>(*insert.attributes.ttl).name == "x");
  CHECK(parse_as<ast::Insert>("INSERT INTO t (a) VALUES (1) USING TTL 1 AND TTL 2")
            .attributes.ttl->get_if<ast::Literal>()
            ->text == "2");
  const auto json = parse_as<ast::InsertJson>("INSERT INTO t JSON '{}' DEFAULT UNSET USING TTL 3");
  CHECK(json.default_unset);
  CHECK(as<ast::Literal>(json.value).text == "{}");
  CHECK_FALSE(parse_as<ast::InsertJson>("INSERT INTO t JSON ? DEFAULT NULL").default_unset);
}

TEST_CASE("UPDATE knows every form of assignment") {
  using Kind = ast::Assignment::Kind;
  const auto update = parse_as<ast::Update>(
      "UPDATE t SET a = 1, b = b + ?, c = [1] + c, d = d - {1}, e += 1, f -= 1, g[2] = 3, h.i = 4, "
      "j = j -1, k = f(1) + 2, l = 'x' + now() WHERE p = 1");
  const std::vector<Kind> kinds = {Kind::kSet, Kind::kAdd,      Kind::kPrepend, Kind::kSubtract,
                                   Kind::kAdd, Kind::kSubtract, Kind::kElement, Kind::kField,
                                   Kind::kAdd, Kind::kSet,      Kind::kSet};
  REQUIRE(update.assignments.size() == kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) CHECK(update.assignments[i].kind == kinds[i]);
  CHECK(as<ast::Literal>(update.assignments[8].value).text == "-1");
  CHECK(update.assignments[7].field->text == "i");
}

TEST_CASE("conditions stand on columns, elements and fields") {
  const auto update = parse_as<ast::Update>(
      "UPDATE t SET a = 1 WHERE k = 1 IF a = 1 AND b IN (1, 2) AND c[0] != 2 AND d.e >= 3 AND "
      "f IN ? AND g CONTAINS 1 AND m['x'] IN (1) AND exists = 2");
  REQUIRE(update.conditions.size() == 8);
  CHECK(update.conditions[2].element);
  CHECK(update.conditions[3].field->text == "e");
  CHECK(update.conditions[4].in_marker);
  CHECK(update.conditions[5].op == RelationOperator::kContains);
  CHECK(update.conditions[7].column.text == "exists");
  CHECK(parse_as<ast::Update>("UPDATE t SET a = 1 WHERE k = 1 IF EXISTS").if_exists);
}

TEST_CASE("DELETE takes columns, elements and fields") {
  const auto remove =
      parse_as<ast::Delete>("DELETE a, b[1], c.d FROM t USING TIMESTAMP 9 WHERE k = 1 IF EXISTS");
  REQUIRE(remove.deletions.size() == 3);
  CHECK(remove.deletions[1].element);
  CHECK(remove.deletions[2].field->text == "d");
  CHECK(as<ast::Literal>(*remove.attributes.timestamp).text == "9");
  CHECK(remove.if_exists);
  CHECK(parse_as<ast::Delete>("DELETE FROM t WHERE k = 1").deletions.empty());
}

TEST_CASE("BATCH holds its statements, with or without semicolons") {
  const std::string_view text =
      "BEGIN UNLOGGED BATCH USING TIMESTAMP ? INSERT INTO t (a) VALUES (?) "
      "UPDATE t SET b = ? WHERE a = 1; DELETE FROM t WHERE a = ?; INSERT INTO t JSON '{}' "
      "APPLY BATCH;";
  const auto batch = parse_as<ast::Batch>(text);
  CHECK(batch.type == ast::Batch::Type::kUnlogged);
  REQUIRE(batch.statements.size() == 4);
  const auto& remove = std::get<ast::Delete>(batch.statements[2]);
  CHECK(as<ast::BindMarker>(remove.where[0].values[0]).index == 3);
  CHECK(remove.position == ast::Position{1, static_cast<int32_t>(text.find("DELETE"))});
  CHECK(parse_as<ast::Batch>("BEGIN BATCH APPLY BATCH").statements.empty());
  CHECK(parse_as<ast::Batch>("begin counter batch apply batch").type == ast::Batch::Type::kCounter);
}

TEST_CASE("TRUNCATE and USE") {
  CHECK(parse_as<ast::Truncate>("TRUNCATE ks.t").table.name.text == "t");
  CHECK(parse_as<ast::Truncate>("TRUNCATE TABLE t").table.name.text == "t");
  CHECK(parse_as<ast::Use>("USE \"Ks\"").keyspace.text == "Ks");
  CHECK(parse_as<ast::Use>("use Ks").keyspace.text == "ks");
}

TEST_CASE("comments stand wherever white space may") {
  const auto select = parse_as<ast::Select>(
      "/* a */ SELECT -- b\n a // c\n FROM/**/t /* d\n e */ WHERE k = 1;/* f */");
  CHECK(select.where.size() == 1);
  CHECK(select.where[0].position == ast::Position{4, 12});
}

TEST_CASE("a tree can be copied and outlives its text") {
  ast::Statement copy;
  {
    const std::string text =
        "SELECT f(a + 1)['x'].g FROM t WHERE k = {'long enough to be on the heap': [1]}";
    auto parsed = parse_statement(text);
    REQUIRE(parsed);
    copy = *parsed;
  }
  const auto& select = std::get<ast::Select>(copy);
  CHECK(ast::to_string(select.items[0].selector) == "f(a + 1)['x'].g");
  CHECK(ast::to_string(select.where[0]) == "k = {'long enough to be on the heap': [1]}");
}

}  // namespace tetrad::cql::test
