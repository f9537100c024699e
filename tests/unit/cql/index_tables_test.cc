// SPDX-License-Identifier: Apache-2.0
// What tables about indexes say of those that are built, and of those that are not yet.
#include "cql/system/index_tables.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

using cql::VirtualRow;

/// The place of a column among those of a table.
size_t place_of(const std::vector<cql::ComputedTables::Column>& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, [](const auto& words) { return words[0]; });
  REQUIRE(found != columns.end());
  return static_cast<size_t>(found - columns.begin());
}

}  // namespace

TEST_CASE_METHOD(LocalCluster, "an index is listed as built once all stores of the node have it") {
  for (const char* text :
       {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
        "1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, a int, b text)", "CREATE INDEX first ON ks.t (a)",
        "CREATE INDEX second ON ks.t (b) USING 'sai'"})
    REQUIRE(cql(text) == "ok");
  const cql::TablePtr table = schema()->table("ks", "t");
  REQUIRE(table->indexes.size() == 2);

  const auto names_at = [](const cql::VirtualRows& rows, size_t at) {
    std::vector<std::string> names;
    for (const VirtualRow& row : rows) names.push_back(row[at].value());
    return names;
  };
  const size_t name_at = place_of(cql::built_index_columns(), "index_name");
  CHECK(names_at(built_index_rows(*schema(), {}), name_at) ==
        std::vector<std::string>{"first", "second"});
  for (const cql::IndexSchema& index : table->indexes) {
    const auto built = built_index_rows(*schema(), {{table->incarnation, index.id}});
    CHECK(names_at(built, name_at) ==
          std::vector<std::string>{index.name == "first" ? "second" : "first"});
  }
  // Of another table with the same number: nothing is known against these.
  CHECK(built_index_rows(*schema(), {{TableIncarnation{99}, 1}}).size() == 2);

  const size_t building_at = place_of(cql::sai_index_columns(), "is_building");
  const auto is_building = [&](const cql::UnbuiltIndexes& unbuilt) {
    const cql::VirtualRows rows = sai_index_rows(*schema(), unbuilt);
    REQUIRE(rows.size() == 1);
    return rows[0][building_at] == cql::cells::flag(true);
  };
  const auto second = std::ranges::find(table->indexes, "second", &cql::IndexSchema::name);
  CHECK(!is_building({}));
  CHECK(is_building({{table->incarnation, second->id}}));
}

}  // namespace tetrad::tests
