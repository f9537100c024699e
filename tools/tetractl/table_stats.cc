// SPDX-License-Identifier: Apache-2.0
// tablestats, tablehistograms, datapaths and viewbuildstatus: nodetool's lines, as far as a node measures
// them of a table, and the stores behind them.
#include <map>

#include <fmt/format.h>

#include "tools/tetractl/orders.h"
#include "tools/tetractl/text_table.h"

namespace tetrad::tools {

using nlohmann::json;

namespace {

/// What each node makes of what it knows, and counts nothing of: scripts for nodetool may name it.
bool is_of_system(const std::string& word) {
  static constexpr std::string_view kKeyspaces[] = {
      "system",        "system_auth",   "system_distributed",    "system_schema",
      "system_tetrad", "system_traces", "system_virtual_schema", "system_views"};
  return std::ranges::find(kKeyspaces, word.substr(0, word.find('.'))) != std::end(kKeyspaces);
}

/// Those that the words name, "ks" or "ks.t", or all others; without words all.
/// Errors: NodeError, a word that names nothing.
json tables_named(const json& tables, const std::vector<std::string>& words, bool others) {
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
    if (is_named != others) found.push_back(table);
  }
  for (size_t i = 0; i < words.size(); ++i)
    // A misspelled name must not look like an empty table.
    if (!is_known[i] && !is_of_system(words[i]))
      throw NodeError(fmt::format("there is no table in, or called, {}", words[i]));
  return found;
}

/// nodetool's two lines of a latency; without recent requests it is NaN, as there.
void print_local(const char* kind, const json& figures) {
  const bool is_known = figures.at("max_us").get<double>() != 0;
  const double mean_ms = figures.at("mean_us").get<double>() / 1000;
  fmt::print("\t\tLocal {} count: {}\n", kind, figures.at("count").dump());
  fmt::print("\t\tLocal {} latency: {} ms\n", kind,
             is_known ? fmt::format("{:.3f}", mean_ms) : "NaN");
}

/// nodetool's lines of what a read comes by, in the last minutes.
void print_found(const char* what, const json& figures) {
  const bool is_known = figures.at("count").get<uint64_t>() != 0;
  const auto number = [&](const char* name) {
    return is_known ? fmt::format("{:.1f}", figures.at(name).get<double>()) : "NaN";
  };
  fmt::print("\t\tAverage {} per slice (last five minutes): {}\n", what, number("mean"));
  fmt::print("\t\tMaximum {} per slice (last five minutes): {}\n", what, number("max"));
}

/// nodetool's four lines of a keyspace: of all its tables here.
void print_keyspace_totals(const std::vector<json>& tables) {
  for (const auto& [kind, figures] :
       {std::pair{"Read", "local_reads"}, {"Write", "local_writes"}}) {
    uint64_t count = 0;
    double weight = 0, weighted_us = 0;
    for (const json& table : tables) {
      const json& of = table.at(figures);
      const auto requests = of.at("count").get<uint64_t>();
      count += requests;
      if (of.at("max_us").get<double>() == 0) continue;
      weight += static_cast<double>(requests);
      weighted_us += static_cast<double>(requests) * of.at("mean_us").get<double>();
    }
    fmt::print("\t{} Count: {}\n", kind, count);
    fmt::print("\t{} Latency: {} ms\n", kind,
               weight == 0 ? "NaN" : fmt::format("{:.3f}", weighted_us / weight / 1000));
  }
}

/// Keyspace and table of "ks.t" in one word, as nodetool takes it, or of two words. Errors: NodeError.
std::pair<std::string, std::string> named_table(const Invocation& call, std::string_view what) {
  const std::string keyspace = call.text("keyspace"), table = call.text(what);
  const size_t dot = keyspace.find('.');
  if (dot == std::string::npos) return {keyspace, table};
  if (!table.empty()) throw NodeError(fmt::format("{} names a {} already", keyspace, what));
  return {keyspace.substr(0, dot), keyspace.substr(dot + 1)};
}

/// In the order of the keyspaces' names.
std::map<std::string, std::vector<json>> by_keyspace(const json& tables) {
  std::map<std::string, std::vector<json>> keyspaces;
  for (const auto& table : tables) keyspaces[table.at("keyspace")].push_back(table);
  return keyspaces;
}

void print_histograms(const json& table) {
  constexpr std::pair<const char*, const char*> kColumns[] = {{"Read Latency", "local_reads"},
                                                              {"Write Latency", "local_writes"},
                                                              {"Scan Latency", "local_scans"}};
  std::string heading = fmt::format("{:<10}", "Percentile"), units = fmt::format("{:<10}", "");
  for (const auto& [name, figures] : kColumns) {
    heading += fmt::format("{:>19}", name);
    units += fmt::format("{:>19}", "(micros)");
  }
  fmt::print("{}/{} histograms\n{}\n{}\n", cell_text(table.at("keyspace")),
             cell_text(table.at("table")), heading, units);
  for (const auto& [name, figure] : {std::pair{"50%", "p50_us"},
                                     {"75%", "p75_us"},
                                     {"95%", "p95_us"},
                                     {"98%", "p98_us"},
                                     {"99%", "p99_us"},
                                     {"Min", "min_us"},
                                     {"Max", "max_us"}}) {
    std::string line = fmt::format("{:<10}", name);
    for (const auto& [column, figures] : kColumns)
      line += fmt::format("{:>19.2f}", table.at(figures).at(figure).get<double>());
    fmt::print("{}\n", line);
  }
  fmt::print("\n");
}

}  // namespace

// Of the last minutes, in this node's stores.
int show_table_histograms(AdminClient& node, const Invocation& call) {
  const auto [keyspace, name] = named_table(call, "table");
  const json answer = node.fact("/table-histograms", {{"keyspace", keyspace}, {"tables", name}});
  if (call.as_json) {
    fmt::print("{}\n", answer.dump(2));
    return 0;
  }
  for (const json& table : answer.at("tables")) print_histograms(table);
  fmt::print(
      "SSTables, Partition Size and Cell Count are not measured: files have rows of all tables\n");
  return 0;
}

// Of all tables the same: a store's files have rows of all of them.
int show_data_paths(AdminClient& node, const Invocation& call) {
  const std::string path = node.fact("/info").at("data_directory").get<std::string>();
  const json tables =
      tables_named(node.fact("/tablestats").at("tables"), call.list("keyspaces_or_tables"), false);
  const auto keyspaces = by_keyspace(tables);
  if (call.as_json) {
    json out = json::object();
    for (const auto& [keyspace, of_it] : keyspaces)
      for (const json& table : of_it)
        out[keyspace][table.at("table").get<std::string>()] = json::array({path});
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  for (const auto& [keyspace, of_it] : keyspaces) {
    fmt::print("Keyspace: {}\n", keyspace);
    for (const json& table : of_it)
      fmt::print("\tTable: {}\n\tPaths:\n\t\t{}\n\n", cell_text(table.at("table")), path);
    fmt::print("----------------\n");
  }
  return 0;
}

// nodetool's lines, of this node: each node builds its own part and answers for it.
int show_view_build(AdminClient& node, const Invocation& call) {
  const auto [keyspace, name] = named_table(call, "view");
  if (name.empty()) throw NodeError("viewbuildstatus requires keyspace and view name arguments");
  const json answer = node.fact("/view-builds");
  for (const json& view : answer.at("views")) {
    if (view.at("keyspace") != keyspace || view.at("view") != name) continue;
    const bool is_built = view.at("built").get<bool>();
    if (call.as_json) {
      fmt::print("{}\n", view.dump(2));
    } else if (is_built) {
      fmt::print("{}.{} has finished building on this node\n", keyspace, name);
    } else {
      fmt::print("{}.{} has not finished building; node status is below.\n\n", keyspace, name);
      print_lines({{"Host", "Info"}, {cell_text(answer.at("address")), "STARTED"}});
    }
    return is_built ? 0 : 1;
  }
  throw NodeError(fmt::format("there is no materialized view {}.{}", keyspace, name));
}

// Keyspaces in the order of their names; figures that a node does not have for each table are left
// out.
int show_table_stats(AdminClient& node, const Invocation& call) {
  json stats = node.fact("/tablestats");
  stats["tables"] =
      tables_named(stats.at("tables"), call.list("keyspaces_or_tables"), call.has("ignore"));
  if (call.as_json) {
    fmt::print("{}\n", stats.dump(2));
    return 0;
  }
  const auto size = [&](const json& bytes) {
    return call.has("human-readable") ? size_text(bytes.get<uint64_t>()) : bytes.dump();
  };
  const auto keyspaces = by_keyspace(stats.at("tables"));
  fmt::print("Total number of tables: {}\n----------------\n", stats.at("tables").size());
  for (const auto& [keyspace, tables] : keyspaces) {
    // As nodetool: with a blank before the colon.
    fmt::print("Keyspace : {}\n", keyspace);
    print_keyspace_totals(tables);
    for (const json& table : tables) {
      fmt::print("\t\tTable: {}\n", cell_text(table.at("table")));
      fmt::print("\t\tSpace used (live): {}\n", size(table.at("bytes_here")));
      print_local("read", table.at("local_reads"));
      print_local("write", table.at("local_writes"));
      print_found("live cells", table.at("rows_per_read"));
      print_found("tombstones", table.at("tombstones_per_read"));
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
