// SPDX-License-Identifier: Apache-2.0
// tablestats: nodetool's lines, as far as a node measures them of a table, and the stores behind them.
#include <map>

#include <fmt/format.h>

#include "tools/tetractl/orders.h"
#include "tools/tetractl/text_table.h"

namespace tetrad::tools {

using nlohmann::json;

namespace {

/// Those that the words name: "ks" or "ks.t"; without words all.
/// Errors: NodeError, a word that names nothing.
json tables_named(const json& tables, const std::vector<std::string>& words) {
  if (words.empty()) return tables;
  json found = json::array();
  std::vector<bool> is_known(words.size());
  for (const auto& table : tables) {
    const std::string keyspace = table.at("keyspace").get<std::string>();
    const std::string name = keyspace + "." + table.at("table").get<std::string>();
    bool is_named = false;
    for (size_t i = 0; i < words.size(); ++i) {
      const bool fits = words[i] == keyspace || words[i] == name;
      is_known[i] = is_known[i] || fits;
      is_named = is_named || fits;
    }
    if (is_named) found.push_back(table);
  }
  for (size_t i = 0; i < words.size(); ++i)
    // A misspelled name must not look like an empty table.
    if (!is_known[i]) throw NodeError(fmt::format("there is no table in, or called, {}", words[i]));
  return found;
}

}  // namespace

// Keyspaces in the order of their names; figures that a node does not have for each table are left
// out.
int show_table_stats(AdminClient& node, const Invocation& call) {
  json stats = node.fact("/tablestats");
  stats["tables"] = tables_named(stats.at("tables"), call.list("keyspaces_or_tables"));
  if (call.as_json) {
    fmt::print("{}\n", stats.dump(2));
    return 0;
  }
  const auto size = [&](const json& bytes) {
    return call.has("human-readable") ? size_text(bytes.get<uint64_t>()) : bytes.dump();
  };
  std::map<std::string, std::vector<json>> keyspaces;
  for (const auto& table : stats.at("tables")) keyspaces[table.at("keyspace")].push_back(table);
  fmt::print("Total number of tables: {}\n----------------\n", stats.at("tables").size());
  for (const auto& [keyspace, tables] : keyspaces) {
    fmt::print("Keyspace: {}\n", keyspace);
    for (const json& table : tables) {
      fmt::print("\t\tTable: {}\n", cell_text(table.at("table")));
      fmt::print("\t\tSpace used (live): {}\n", size(table.at("bytes_here")));
      fmt::print("\t\tPhysical partitions: {}\n", table.at("partitions").dump());
      fmt::print("\t\tPhysical partitions here: {}\n\n", table.at("partitions_here").dump());
    }
    fmt::print("----------------\n");
  }
  print_rows(stats.at("stores"), {"disk_bytes", "memtable_bytes", "cache_bytes", "row_cache_bytes",
                                  "estimated_keys", "pending_compaction_bytes"});
  fmt::print("\nhints pending: {}\n", stats.at("hints_pending").dump());
  return 0;
}

}  // namespace tetrad::tools
