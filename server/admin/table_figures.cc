// SPDX-License-Identifier: Apache-2.0
#include "server/admin/table_figures.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

namespace tetrad::server {
namespace {

using replication::TableMeasure;
using replication::TableMeasures;

/// By incarnation, at most kTablesExported; those that were dropped meanwhile are left out.
std::vector<const replication::TableInfo*> busiest_tables(const replication::MetaState& state,
                                                          const TableMeasures& measures) {
  std::map<TableIncarnation, uint64_t> requests;
  for (const auto& [key, measure] : measures) requests[key.first] += measure.count;
  std::vector<std::pair<uint64_t, const replication::TableInfo*>> found;
  for (const auto& [incarnation, count] : requests)
    if (const auto* table = state.table(incarnation); table != nullptr)
      found.emplace_back(count, table);
  std::ranges::stable_sort(found, std::greater(), &decltype(found)::value_type::first);
  if (found.size() > kTablesExported) found.resize(kTablesExported);
  std::vector<const replication::TableInfo*> out;
  for (const auto& [count, table] : found) out.push_back(table);
  std::ranges::sort(out, {}, &replication::TableInfo::incarnation);
  return out;
}

void export_one(const ExportedFigure& exported, const replication::TableInfo& table,
                const TableMeasure& measure, std::string& out) {
  const std::string labels =
      fmt::format("keyspace=\"{}\",table=\"{}\"", table.keyspace, table.name);
  for (const double part : {0.5, 0.95, 0.99})
    out += fmt::format("{}{{{},quantile=\"{}\"}} {}\n", exported.name, labels, part,
                       measure.recent.at(part) / 1e6);
  out += fmt::format("{}_sum{{{}}} {}\n", exported.name, labels,
                     static_cast<double>(measure.total) / 1e6);
  out += fmt::format("{}_count{{{}}} {}\n", exported.name, labels, measure.count);
}

}  // namespace

std::string export_table_figures(const replication::MetaState& state,
                                 const TableMeasures& measures) {
  const std::vector<const replication::TableInfo*> tables = busiest_tables(state, measures);
  std::string out;
  for (const ExportedFigure& exported : kExportedFigures) {
    std::string lines;
    for (const replication::TableInfo* table : tables) {
      const auto found = measures.find({table->incarnation, exported.figure});
      if (found != measures.end()) export_one(exported, *table, found->second, lines);
    }
    if (lines.empty()) continue;
    out += fmt::format("# HELP {} {}\n# TYPE {} summary\n", exported.name, exported.help,
                       exported.name);
    out += lines;
  }
  return out;
}

}  // namespace tetrad::server
