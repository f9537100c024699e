// SPDX-License-Identifier: Apache-2.0
// What the admin port tells of tables: what they hold of the node's stores, and how long their requests
// take. Latencies are those of the last minutes, counts those since the table's first request in this
// life of the node.
#include <algorithm>

#include "base/shown_percentiles.h"
#include "server/admin/admin_service.h"
#include "server/admin/json_text.h"
#include "server/admin/table_figures.h"

namespace tetrad::server {

using nlohmann::json;
using replication::TableFigure;
using replication::TableMeasure;
using replication::TableMeasures;

namespace {

constexpr std::pair<const char*, TableFigure> kNamedFigures[] = {
    {"local_reads", TableFigure::kLocalRead},
    {"local_scans", TableFigure::kLocalScan},
    {"local_writes", TableFigure::kLocalWrite},
    {"coordinator_reads", TableFigure::kCoordinatorRead},
    {"coordinator_scans", TableFigure::kCoordinatorScan},
    {"coordinator_writes", TableFigure::kCoordinatorWrite}};

/// Without requests all of it is 0.
const TableMeasure& measure_of(const TableMeasures& measures, const replication::TableInfo& table,
                               TableFigure figure) {
  // A measure has some kilobytes, which are not made or copied for each table.
  static const TableMeasure kNone;
  const auto found = measures.find({table.incarnation, figure});
  return found == measures.end() ? kNone : found->second;
}

json figures_of(const TableMeasures& measures, const replication::TableInfo& table,
                TableFigure figure) {
  const TableMeasure& measure = measure_of(measures, table, figure);
  json out = {{"count", measure.count}, {"mean_us", measure.recent.mean()}};
  for (const auto& [name, part] : base::kShownPercentiles) out[name] = measure.recent.at(part);
  return out;
}

/// Of what reads have come by, which is no latency.
json found_of(const TableMeasures& measures, const replication::TableInfo& table,
              TableFigure figure) {
  const TableMeasure& measure = measure_of(measures, table, figure);
  return {{"count", measure.count}, {"mean", measure.recent.mean()}, {"max", measure.recent.at(1)}};
}

}  // namespace

TableMeasures AdminService::measures_of(const AllFigures& figures) {
  TableMeasures out;
  for (const StoreFigures& shard : figures)
    for (const auto& [key, measure] : shard.measures) out[key].add(measure);
  return out;
}

void AdminService::answer_table_histograms(const HttpRequest& request, Respond respond) {
  Result<std::vector<NamedTable>> tables = tables_named(request);
  if (!tables) return respond(http_error(404, tables.error().message));
  std::ranges::sort(*tables, {}, [](const NamedTable& table) {
    return std::pair(std::string_view(table->keyspace), std::string_view(table->name));
  });
  FiguresWanted wanted;
  for (const auto& [name, figure] : kNamedFigures) wanted.measures.push_back(figure);
  with_figures(std::move(wanted), std::move(respond),
               [this, tables = *tables](const AllFigures& figures) {
                 return HttpResponse{200, "application/json", table_histograms(tables, figures)};
               });
}

std::string AdminService::table_histograms(const std::vector<NamedTable>& tables,
                                           const AllFigures& figures) const {
  const TableMeasures measures = measures_of(figures);
  json out = json::array();
  for (const NamedTable& table : tables) {
    json row = {{"keyspace", table->keyspace}, {"table", table->name}};
    for (const auto& [name, figure] : kNamedFigures)
      row[name] = figures_of(measures, *table, figure);
    out.push_back(std::move(row));
  }
  return json_text({{"tables", out}});
}

void AdminService::answer_view_builds(const HttpRequest&, Respond respond) {
  FiguresWanted wanted;
  wanted.views = true;
  with_figures(std::move(wanted), std::move(respond), [this](const AllFigures& figures) {
    return HttpResponse{200, "application/json", view_builds(figures)};
  });
}

// A view is built when it is in all stores. Other nodes answer for themselves.
std::string AdminService::view_builds(const AllFigures& figures) const {
  const auto state = parts_.node.meta().snapshot();
  std::map<TableIncarnation, bool> built;
  for (const StoreFigures& shard : figures) {
    for (const replication::ViewStatus& status : shard.views) {
      bool& is_built = built.try_emplace(status.view, true).first->second;
      is_built = is_built && status.complete;
    }
  }
  json views = json::array();
  for (const auto& [incarnation, is_built] : built) {
    if (const auto* table = state->table(incarnation); table != nullptr)
      views.push_back({{"keyspace", table->keyspace}, {"view", table->name}, {"built", is_built}});
  }
  return json_text({{"address", state->address_of(parts_.node.self())}, {"views", views}});
}

// `figures` by store, of this node only.
std::string AdminService::table_stats(const AllFigures& figures) const {
  const auto state = parts_.node.meta().snapshot();
  const replication::TableMeasures measures = measures_of(figures);
  json tables = json::array();
  for (const auto& [id, table] : state->tables) {
    uint64_t bytes = 0, here = 0;
    for (const auto& tablet : table->tablets.tablets()) {
      for (const auto& replica : tablet.replicas)
        here += replica.host == parts_.node.self() ? 1 : 0;
    }
    for (const StoreFigures& store : figures) {
      const auto found = store.bytes.find(id);
      if (found != store.bytes.end()) bytes += found->second;
    }
    tables.push_back(
        {{"keyspace", table->keyspace},
         {"table", table->name},
         {"partitions", table->tablets.tablets().size()},
         {"partitions_here", here},
         {"bytes_here", bytes},
         {"local_reads", figures_of(measures, *table, TableFigure::kLocalRead)},
         {"local_writes", figures_of(measures, *table, TableFigure::kLocalWrite)},
         {"rows_per_read", found_of(measures, *table, TableFigure::kRowsOfRead)},
         {"tombstones_per_read", found_of(measures, *table, TableFigure::kTombstonesOfRead)}});
  }
  json stores = json::array();
  for (const StoreFigures& store : figures) {
    const auto& s = store.statistics;
    stores.push_back({{"disk_bytes", s.disk_bytes},
                      {"memtable_bytes", s.memtable_bytes},
                      {"cache_bytes", s.cache_bytes},
                      {"row_cache_bytes", s.row_cache_bytes},
                      {"estimated_keys", s.estimated_keys},
                      {"pending_compaction_bytes", s.pending_compaction_bytes},
                      {"writes_stopped", s.writes_stopped}});
  }
  uint64_t hints = 0;
  for (const Shard& shard : parts_.shards) hints += shard.data.hints().pending_count();
  json out = {{"tables", tables}, {"stores", stores}, {"hints_pending", hints}};
  return json_text(out);
}

}  // namespace tetrad::server
