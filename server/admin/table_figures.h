// SPDX-License-Identifier: Apache-2.0
// Latencies of tables as Prometheus' text: summaries, since a histogram of each table would be thirty
// lines, and only of the busiest tables, so that thousands of tables do not make thousands of series.
#pragma once

#include <string>

#include "replication/meta/meta_state.h"
#include "replication/replica/table_latencies.h"

namespace tetrad::server {

/// What is exported of a table, and as what.
struct ExportedFigure {
  replication::TableFigure figure;
  const char *name, *help;
};
inline constexpr ExportedFigure kExportedFigures[] = {
    {replication::TableFigure::kCoordinatorRead, "tetrad_table_read_seconds",
     "Latency of reads of partitions at the coordinator, of the busiest tables."},
    {replication::TableFigure::kCoordinatorWrite, "tetrad_table_write_seconds",
     "Latency of writes at the coordinator, of the busiest tables."},
    {replication::TableFigure::kLocalRead, "tetrad_table_local_read_seconds",
     "Latency of reads of partitions in this node's stores, of the busiest tables."},
    {replication::TableFigure::kLocalWrite, "tetrad_table_local_write_seconds",
     "Latency of writes in this node's stores, of the busiest tables."}};
constexpr size_t kTablesExported = 100;

/// Of `measures` the kTablesExported tables with most requests.
std::string export_table_figures(const replication::MetaState& state,
                                 const replication::TableMeasures& measures);

}  // namespace tetrad::server
