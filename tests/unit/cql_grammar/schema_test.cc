// SPDX-License-Identifier: Apache-2.0
// The trees of schema statements, roles, permissions and DESCRIBE.
#include <catch2/catch.hpp>

#include "cql/grammar/ast_print.h"
#include "tests/unit/cql_grammar/parse_as.h"

namespace tetrad::cql::test {

TEST_CASE("keyspaces carry their options") {
  const auto create = parse_as<ast::CreateKeyspace>(
      "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', "
      "'replication_factor': 4} AND durable_writes = true");
  CHECK(create.if_not_exists);
  REQUIRE(create.properties.size() == 2);
  CHECK(create.properties[0].name.text == "replication");
  const auto& map = std::get<ast::PropertyValue::Map>(create.properties[0].value.value);
  REQUIRE(map.size() == 2);
  CHECK(map[1].first.text == "replication_factor");
  CHECK(map[1].second.kind == ast::Literal::Kind::kInteger);
  CHECK(std::get<ast::Literal>(create.properties[1].value.value).text == "true");
  CHECK(parse_as<ast::AlterKeyspace>("ALTER KEYSPACE IF EXISTS k WITH a = 1").if_exists);
  CHECK(parse_as<ast::DropKeyspace>("DROP KEYSPACE IF EXISTS k").if_exists);
}

TEST_CASE("CREATE TABLE with everything") {
  const auto create = parse_as<ast::CreateTable>(
      "CREATE TABLE IF NOT EXISTS ks.t (a int, b text, c frozen<list<int>>, d int STATIC, "
      "e text MASKED WITH mask_inner(1, null), f int MASKED WITH DEFAULT, g 'a.B', "
      "PRIMARY KEY ((a, b), c)) WITH COMPACT STORAGE AND CLUSTERING ORDER BY (c DESC) AND "
      "comment = 'x' AND id = 5a1c395e-b41f-11e5-9f22-ba0be0483c18 AND caching = {} AND x = ascii");
  CHECK(create.if_not_exists);
  REQUIRE(create.columns.size() == 7);
  CHECK(create.columns[3].is_static);
  CHECK(create.columns[4].mask->arguments.size() == 2);
  CHECK(create.columns[5].mask->is_default);
  CHECK(create.columns[6].type.class_name == "a.B");
  REQUIRE(create.primary_keys.size() == 1);
  CHECK(create.primary_keys[0].partition.size() == 2);
  CHECK(create.primary_keys[0].clustering.size() == 1);
  CHECK(create.options.compact_storage);
  REQUIRE(create.options.clustering_order.size() == 1);
  CHECK(create.options.clustering_order[0].descending);
  REQUIRE(create.options.properties.size() == 4);
  CHECK(std::get<ast::Literal>(create.options.properties[3].value.value).text == "ascii");
  const auto simple = parse_as<ast::CreateTable>("CREATE TABLE t (id UUID PRIMARY KEY, n text,)");
  REQUIRE(simple.primary_keys.size() == 1);
  CHECK(simple.primary_keys[0].partition[0].text == "id");
  CHECK(parse_as<ast::CreateTable>("CREATE TABLE t (a int PRIMARY KEY, PRIMARY KEY (a))")
            .primary_keys.size() == 2);
}

TEST_CASE("ALTER TABLE has seven actions") {
  const auto action = [](std::string_view text) { return parse_as<ast::AlterTable>(text).action; };
  CHECK(std::get<ast::AddColumns>(action("ALTER TABLE t ADD a int")).columns.size() == 1);
  const auto add = action("ALTER TABLE t ADD IF NOT EXISTS (a int, b text static)");
  CHECK(std::get<ast::AddColumns>(add).if_not_exists);
  CHECK(std::get<ast::AddColumns>(add).columns[1].is_static);
  const auto drop = action("ALTER TABLE t DROP IF EXISTS (a, b) USING TIMESTAMP 7");
  CHECK(std::get<ast::DropColumns>(drop).columns.size() == 2);
  CHECK(std::get<ast::DropColumns>(drop).timestamp);
  CHECK(std::get<ast::DropColumns>(action("ALTER TABLE t DROP compact")).columns[0].text ==
        "compact");
  CHECK(std::holds_alternative<ast::DropCompactStorage>(
      action("ALTER TABLE t DROP COMPACT STORAGE")));
  CHECK(std::get<ast::RenameColumns>(action("ALTER TABLE t RENAME IF EXISTS a TO b AND c TO d"))
            .renames.size() == 2);
  CHECK(std::get<ast::AlterColumnType>(action("ALTER TABLE t ALTER a TYPE text")).type.native ==
        Keyword::kText);
  CHECK(std::get<ast::MaskColumn>(action("ALTER TABLE t ALTER a MASKED WITH DEFAULT")).mask);
  CHECK_FALSE(
      std::get<ast::MaskColumn>(action("ALTER TABLE t ALTER IF EXISTS a DROP MASKED")).mask);
  CHECK(
      std::get<ast::TableOptions>(action("ALTER TABLE t WITH a = 1 AND b = 2")).properties.size() ==
      2);
  CHECK(parse_as<ast::AlterTable>("ALTER TABLE IF EXISTS k.t ADD a int").if_exists);
  CHECK(parse_as<ast::DropTable>("DROP COLUMNFAMILY IF EXISTS k.t").if_exists);
}

TEST_CASE("user types") {
  const auto create = parse_as<ast::CreateType>("CREATE TYPE IF NOT EXISTS k.u (a int, b u2)");
  CHECK(create.fields.size() == 2);
  CHECK(create.name.keyspace->text == "k");
  const auto rename = parse_as<ast::AlterType>("ALTER TYPE u RENAME a TO b AND c TO d");
  CHECK(std::get<ast::RenameFields>(rename.action).renames.size() == 2);
  const auto add = parse_as<ast::AlterType>("ALTER TYPE IF EXISTS u ADD IF NOT EXISTS a int");
  CHECK(std::get<ast::AddField>(add.action).if_not_exists);
  CHECK(std::holds_alternative<ast::AlterFieldType>(
      parse_as<ast::AlterType>("ALTER TYPE u ALTER a TYPE int").action));
  CHECK(parse_as<ast::DropType>("DROP TYPE k.u").name.name.text == "u");
}

TEST_CASE("indexes and views") {
  const auto index = parse_as<ast::CreateIndex>(
      "CREATE CUSTOM INDEX IF NOT EXISTS i ON k.t (keys(a), values(b), entries(c), full(d), e) "
      "USING 'sai' WITH OPTIONS = {'x': 'y'}");
  CHECK(index.custom);
  CHECK(index.name->name.text == "i");
  REQUIRE(index.targets.size() == 5);
  CHECK(index.targets[3].kind == ast::IndexTarget::Kind::kFull);
  CHECK(index.targets[4].kind == ast::IndexTarget::Kind::kSimple);
  CHECK(index.using_class == "sai");
  CHECK(index.properties[0].name.text == "options");
  CHECK(parse_as<ast::CreateIndex>("CREATE INDEX ON t (keys)").targets[0].column.text == "keys");
  const auto local = parse_as<ast::CreateIndex>("CREATE INDEX ON t ((a, b), c)");
  CHECK(local.local_partition_key.size() == 2);
  CHECK(local.targets[0].column.text == "c");
  CHECK(parse_as<ast::DropIndex>("DROP INDEX IF EXISTS k.i").name.keyspace->text == "k");
  const auto view = parse_as<ast::CreateView>(
      "CREATE MATERIALIZED VIEW IF NOT EXISTS k.v AS SELECT a, b FROM k.t WHERE a IS NOT NULL AND "
      "b IS NOT NULL PRIMARY KEY ((b), a) WITH CLUSTERING ORDER BY (a ASC) AND comment = 'x'");
  CHECK(view.items.size() == 2);
  CHECK(view.where.size() == 2);
  CHECK(view.primary_keys[0].partition[0].text == "b");
  CHECK(view.options.properties.size() == 1);
  CHECK(
      parse_as<ast::AlterView>("ALTER MATERIALIZED VIEW v WITH a = 1").options.properties.size() ==
      1);
  CHECK(parse_as<ast::DropView>("DROP MATERIALIZED VIEW IF EXISTS k.v").if_exists);
}

TEST_CASE("functions, aggregates and triggers") {
  const auto function = parse_as<ast::CreateFunction>(
      "CREATE OR REPLACE FUNCTION k.f (a int, b frozen<list<text>>) CALLED ON NULL INPUT RETURNS "
      "text LANGUAGE Lua AS $$ return 'x' $$");
  CHECK(function.or_replace);
  CHECK(function.called_on_null_input);
  CHECK(function.parameters.size() == 2);
  CHECK(function.language == "lua");
  CHECK(function.body == " return 'x' ");
  CHECK_FALSE(parse_as<ast::CreateFunction>("CREATE FUNCTION IF NOT EXISTS f () RETURNS NULL ON "
                                            "NULL INPUT RETURNS int LANGUAGE lua AS 'x'")
                  .called_on_null_input);
  const auto aggregate = parse_as<ast::CreateAggregate>(
      "CREATE AGGREGATE a (int, text) SFUNC s STYPE tuple<int, int> FINALFUNC f INITCOND (0, 0)");
  CHECK(aggregate.parameters.size() == 2);
  CHECK(aggregate.state_function.text == "s");
  CHECK(aggregate.final_function->text == "f");
  CHECK(aggregate.initial_condition);
  CHECK_FALSE(parse_as<ast::DropFunction>("DROP FUNCTION f").parameters);
  CHECK(parse_as<ast::DropFunction>("DROP FUNCTION k.f ()").parameters->empty());
  CHECK(parse_as<ast::DropAggregate>("DROP AGGREGATE IF EXISTS a (int)").parameters->size() == 1);
  CHECK(parse_as<ast::CreateTrigger>("CREATE TRIGGER x ON k.t USING 'c'").class_name == "c");
  CHECK(parse_as<ast::DropTrigger>("DROP TRIGGER IF EXISTS x ON t").if_exists);
}

TEST_CASE("roles and users") {
  const auto role = parse_as<ast::CreateRole>(
      "CREATE ROLE IF NOT EXISTS Bob WITH PASSWORD = 'p' AND LOGIN = true AND SUPERUSER = false "
      "AND "
      "OPTIONS = {'a': 1} AND ACCESS TO DATACENTERS {'x', 'y'} AND ACCESS FROM ALL CIDRS");
  CHECK(role.name.text == "bob");
  CHECK(role.options.password == "p");
  CHECK(role.options.login == true);
  CHECK(role.options.superuser == false);
  CHECK(role.options.custom->front().second == "1");
  CHECK(role.options.datacenters->size() == 2);
  CHECK(role.options.cidrs->empty());
  CHECK(parse_as<ast::CreateRole>("CREATE ROLE 'A b'").name.text == "A b");
  CHECK(
      parse_as<ast::AlterRole>("ALTER ROLE r WITH HASHED PASSWORD = 'h'").options.hashed_password ==
      "h");
  const auto user = parse_as<ast::CreateRole>("CREATE USER Bob WITH PASSWORD 'p' SUPERUSER");
  CHECK(user.name.text == "Bob");
  CHECK(user.is_user_statement);
  CHECK(user.options.login == true);
  CHECK(user.options.superuser == true);
  CHECK(parse_as<ast::AlterRole>("ALTER USER bob NOSUPERUSER").options.superuser == false);
  CHECK(parse_as<ast::DropRole>("DROP USER IF EXISTS bob").is_user_statement);
  CHECK(parse_as<ast::GrantRole>("GRANT a TO 'B'").grantee.text == "B");
  CHECK(parse_as<ast::GrantRole>("GRANT all TO b").role.text == "all");
  CHECK(parse_as<ast::RevokeRole>("REVOKE a FROM b").role.text == "a");
  CHECK_FALSE(parse_as<ast::ListRoles>("LIST ROLES OF a NORECURSIVE").recursive);
  CHECK(parse_as<ast::ListRoles>("LIST USERS").is_user_statement);
  CHECK(parse_as<ast::AddIdentity>("ADD IDENTITY IF NOT EXISTS 'i' TO ROLE 'r'").role == "r");
  CHECK(parse_as<ast::DropIdentity>("DROP IDENTITY 'i'").identity == "i");
}

TEST_CASE("permissions and what they are about") {
  using Kind = ast::Resource::Kind;
  const auto kind = [](std::string_view resource) {
    return parse_as<ast::GrantPermissions>(fmt::format("GRANT ALL ON {} TO r", resource))
        .resource.kind;
  };
  CHECK(kind("ALL KEYSPACES") == Kind::kAllKeyspaces);
  CHECK(kind("KEYSPACE k") == Kind::kKeyspace);
  CHECK(kind("ALL TABLES IN KEYSPACE k") == Kind::kAllTables);
  CHECK(kind("TABLE k.t") == Kind::kTable);
  CHECK(kind("t") == Kind::kTable);
  CHECK(kind("function") == Kind::kTable);
  CHECK(kind("role") == Kind::kTable);
  CHECK(kind("ALL ROLES") == Kind::kAllRoles);
  CHECK(kind("ROLE x") == Kind::kRole);
  CHECK(kind("ALL FUNCTIONS") == Kind::kAllFunctions);
  CHECK(kind("ALL FUNCTIONS IN KEYSPACE k") == Kind::kKeyspaceFunctions);
  CHECK(kind("FUNCTION k.f(int, text)") == Kind::kFunction);
  CHECK(kind("ALL MBEANS") == Kind::kAllMbeans);
  CHECK(kind("MBEAN 'x'") == Kind::kMbean);
  CHECK(kind("MBEANS 'x*'") == Kind::kMbeans);
  const auto grant = parse_as<ast::GrantPermissions>(
      "GRANT SELECT PERMISSION, MODIFY, UNMASK, SELECT_MASKED ON t TO r");
  CHECK(grant.permissions.size() == 4);
  CHECK_FALSE(grant.all);
  CHECK(parse_as<ast::RevokePermissions>("REVOKE ALL PERMISSIONS ON t FROM r").all);
  const auto list = parse_as<ast::ListPermissions>("LIST ALL PERMISSIONS ON k.t OF r NORECURSIVE");
  CHECK(list.resource);
  CHECK(list.of->text == "r");
  CHECK_FALSE(list.recursive);
}

TEST_CASE("DESCRIBE in all its forms") {
  using Target = ast::Describe::Target;
  const auto target = [](std::string_view text) { return parse_as<ast::Describe>(text).target; };
  CHECK(target("DESCRIBE CLUSTER") == Target::kCluster);
  CHECK(target("DESC SCHEMA") == Target::kSchema);
  CHECK(parse_as<ast::Describe>("DESCRIBE FULL SCHEMA").full);
  CHECK(target("DESCRIBE KEYSPACES") == Target::kKeyspaces);
  CHECK(target("DESCRIBE TABLES") == Target::kTables);
  CHECK(target("DESCRIBE COLUMNFAMILIES") == Target::kTables);
  CHECK(target("DESCRIBE TYPES") == Target::kTypes);
  CHECK(target("DESCRIBE FUNCTIONS") == Target::kFunctions);
  CHECK(target("DESCRIBE AGGREGATES") == Target::kAggregates);
  CHECK(target("DESCRIBE TABLE k.t") == Target::kTable);
  CHECK(target("DESCRIBE INDEX k.i") == Target::kIndex);
  CHECK(target("DESCRIBE MATERIALIZED VIEW v") == Target::kView);
  CHECK(target("DESCRIBE TYPE u") == Target::kType);
  CHECK(target("DESCRIBE FUNCTION f") == Target::kFunction);
  CHECK(target("DESCRIBE AGGREGATE a") == Target::kAggregate);
  const auto only = parse_as<ast::Describe>("DESCRIBE ONLY KEYSPACE k WITH INTERNALS");
  CHECK(only.only);
  CHECK(only.with_internals);
  CHECK(only.keyspace->text == "k");
  CHECK_FALSE(parse_as<ast::Describe>("DESCRIBE KEYSPACE").keyspace);
  const auto generic = parse_as<ast::Describe>("DESCRIBE k.t WITH INTERNALS");
  CHECK(generic.target == Target::kGeneric);
  CHECK(generic.keyspace->text == "k");
  CHECK(generic.name->text == "t");
  CHECK(parse_as<ast::Describe>("DESC foo;").name->text == "foo");
  CHECK(parse_as<ast::Describe>("DESC \"Foo\"").name->text == "Foo");
}

}  // namespace tetrad::cql::test
