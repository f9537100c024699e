// SPDX-License-Identifier: Apache-2.0
// Tables of system_views about each table of this node: how long its requests take, and what its
// reads find. Every table has a row, as in Cassandra; what nobody has asked for has zeros.
#include "server/shard_views.h"

namespace tetrad::server {
namespace {

using cql::NodeTable;
using cql::VirtualRow;
using cql::VirtualRows;
using namespace cql::cells;
using replication::TableFigure;
using replication::TableMeasure;
using replication::TableMeasures;

using Columns = std::vector<cql::ComputedTables::Column>;

/// `row` makes the cells behind the two names.
NodeTable measured_table(const NodeViewSources& from, std::string name, TableFigure figure,
                         const Columns& columns,
                         std::function<VirtualRow(const TableMeasure&)> row) {
  Columns all = {{"keyspace_name", "text", "pk"}, {"table_name", "text", "pk"}};
  all.insert(all.end(), columns.begin(), columns.end());
  const auto join = [&from, figure, row](const std::vector<TableMeasures>& parts) {
    VirtualRows rows;
    const replication::MetaSnapshot state = from.meta().snapshot();
    for (const auto& [id, table] : state->tables) {
      TableMeasure measure;
      for (const TableMeasures& part : parts)
        if (const auto found = part.find({table->incarnation, figure}); found != part.end())
          measure.add(found->second);
      VirtualRow cells = {text(table->keyspace), text(table->name)};
      for (cql::VirtualCell& cell : row(measure)) cells.push_back(std::move(cell));
      rows.push_back(std::move(cells));
    }
    return rows;
  };
  return {std::move(name), std::move(all),
          [&from, figure, join](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<TableMeasures>(
                from, asker,
                [figure](Shard& shard) {
                  return shard.data->replicas().latencies().measures({&figure, 1});
                },
                join, std::move(done));
          }};
}

NodeTable latency_table(const NodeViewSources& from, std::string name, TableFigure figure) {
  return measured_table(
      from, std::move(name), figure,
      {{"count", "bigint"},
       {"max_ms", "double"},
       {"p50th_ms", "double"},
       {"p99th_ms", "double"},
       {"per_second", "double"}},
      [](const TableMeasure& of) -> VirtualRow {
        const auto ms = [&of](double part) { return real(of.recent.at(part) / 1000); };
        return {count(of.count), ms(1), ms(0.5), ms(0.99), real(of.recent.per_second)};
      });
}

NodeTable per_read_table(const NodeViewSources& from, std::string name, TableFigure figure) {
  return measured_table(
      from, std::move(name), figure,
      {{"count", "bigint"}, {"max", "double"}, {"p50th", "double"}, {"p99th", "double"}},
      [](const TableMeasure& of) -> VirtualRow {
        return {count(of.count), real(number_at(of.recent, 1)), real(number_at(of.recent, 0.5)),
                real(number_at(of.recent, 0.99))};
      });
}

}  // namespace

std::vector<NodeTable> table_views(const NodeViewSources& from) {
  return {latency_table(from, "coordinator_read_latency", TableFigure::kCoordinatorRead),
          latency_table(from, "coordinator_scan_latency", TableFigure::kCoordinatorScan),
          latency_table(from, "coordinator_write_latency", TableFigure::kCoordinatorWrite),
          latency_table(from, "local_read_latency", TableFigure::kLocalRead),
          latency_table(from, "local_scan_latency", TableFigure::kLocalScan),
          latency_table(from, "local_write_latency", TableFigure::kLocalWrite),
          per_read_table(from, "rows_per_read", TableFigure::kRowsOfRead),
          per_read_table(from, "tombstones_per_read", TableFigure::kTombstonesOfRead)};
}

}  // namespace tetrad::server
