// SPDX-License-Identifier: Apache-2.0
// system_views.batch_metrics: over how many partitions the batches of this node's clients are. Rows
// of different tables are of different partitions here; as Cassandra's, of the last minutes.
#include "server/shard_views.h"

namespace tetrad::server {

using cql::BatchFigures;
using cql::BatchType;
using cql::NodeTable;
using namespace cql::cells;

std::vector<NodeTable> batch_views(const NodeViewSources& from) {
  struct Kind {
    const char* name;
    BatchType type;
  };
  static constexpr std::array<Kind, 3> kKinds = {
      {{"partitions_per_counter_batch", BatchType::kCounter},
       {"partitions_per_logged_batch", BatchType::kLogged},
       {"partitions_per_unlogged_batch", BatchType::kUnlogged}}};
  using OfKinds = std::array<base::RecentFigures, kKinds.size()>;
  const auto of_shard = [](Shard& shard) {
    const BatchFigures& batches = shard.processor->metrics().batches;
    OfKinds out;
    for (size_t i = 0; i < kKinds.size(); ++i)
      out[i].add(batches.of(kKinds[i].type), shard.reactor.now_us());
    return out;
  };
  const auto join = [](const std::vector<OfKinds>& parts) {
    cql::VirtualRows rows;
    for (size_t i = 0; i < kKinds.size(); ++i) {
      base::RecentFigures all;
      for (const OfKinds& part : parts) all.add(part[i]);
      rows.push_back({text(kKinds[i].name), big(static_cast<int64_t>(number_at(all, 1))),
                      real(number_at(all, 0.5)), real(number_at(all, 0.999)),
                      real(number_at(all, 0.99))});
    }
    return rows;
  };
  return {{"batch_metrics",
           {{"name", "text", "pk"},
            {"max", "bigint"},
            {"p50th", "double"},
            {"p999th", "double"},
            {"p99th", "double"}},
           [&from, of_shard, join](base::Reactor& asker, NodeTable::Done done) {
             ask_shards<OfKinds>(from, asker, of_shard, join, std::move(done));
           }}};
}

}  // namespace tetrad::server
