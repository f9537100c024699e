// SPDX-License-Identifier: Apache-2.0
// Tables of system_views about this process. Each function makes one table: its name, its columns
// and how its rows come about; make_node_views() lists them.
#include "server/node_views.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "server/shard_views.h"

namespace tetrad::server {

namespace {

using cql::NodeTable;
using cql::VirtualRow;
using cql::VirtualRows;
using namespace cql::cells;

// A reader of system_views.queries must not be what holds up the shard.
constexpr size_t kQueriesOfAShardMax = 1'000;

// Cassandra's tables have null where nothing is known.
cql::VirtualCell text_or_null(const std::string& value) {
  return value.empty() ? kNull : text(utf8(value));
}

// bigint has a sign; counters never come near it.
int64_t as_signed(uint64_t value) { return static_cast<int64_t>(value); }

// Options do not change, timeouts may: so the rows are made anew for each read.
NodeTable settings_table(const NodeViewSources& from) {
  return {"settings", {{"name", "text", "pk"}, {"value", "text"}}, on_first(from, [&from] {
            VirtualRows rows;
            for (const auto& [name, value] : settings_of(from.options, from.serving.timeouts()))
              rows.push_back({text(name), text(value)});
            return rows;
          })};
}

VirtualRow row_of_client(const ClientFacts& client) {
  std::map<std::string, std::string> options;
  for (const auto& [name, value] : client.options) options[utf8(name)] = utf8(value);
  return {inet(client.address),
          number(client.port),
          text_map(options),
          text(client.stage),
          text_or_null(client.driver_name),
          text_or_null(client.driver_version),
          kNull,  // names are not looked up
          text_or_null(client.keyspace),
          client.protocol_version == 0 ? kNull : number(client.protocol_version),
          big(as_signed(client.requests)),
          text_or_null(client.cipher_suite),
          flag(client.is_encrypted),
          text_or_null(client.tls_version),
          text(client.user.empty() ? "anonymous" : utf8(client.user))};
}

NodeTable clients_table(const NodeViewSources& from) {
  return {"clients",
          {{"address", "inet", "pk"},
           {"port", "int", "ck"},
           {"client_options", "frozen<map<text, text>>"},
           {"connection_stage", "text"},
           {"driver_name", "text"},
           {"driver_version", "text"},
           {"hostname", "text"},
           {"keyspace_name", "text"},
           {"protocol_version", "int"},
           {"request_count", "bigint"},
           {"ssl_cipher_suite", "text"},
           {"ssl_enabled", "boolean"},
           {"ssl_protocol", "text"},
           {"username", "text"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<std::vector<ClientFacts>>(
                from, asker,
                [](Shard& shard) {
                  std::vector<ClientFacts> found;
                  for (const auto& connection : shard.connections->open)
                    found.push_back(connection->facts());
                  return found;
                },
                [](const auto& parts) {
                  VirtualRows rows;
                  for (const auto& clients : parts)
                    for (const ClientFacts& client : clients)
                      if (inet(client.address)) rows.push_back(row_of_client(client));
                  return rows;
                },
                std::move(done));
          }};
}

// Of one cache, all stores together.
struct CacheFigures {
  uint64_t capacity_bytes = 0, bytes = 0, hits = 0, misses = 0;
  double hits_per_s = 0, requests_per_s = 0;
};

VirtualRow row_of_cache(std::string_view name, const CacheFigures& cache) {
  const uint64_t requests = cache.hits + cache.misses;
  const cql::VirtualCell ratio =
      requests == 0 ? kNull : real(static_cast<double>(cache.hits) / static_cast<double>(requests));
  return {text(name),
          big(as_signed(cache.capacity_bytes)),
          kNull,
          big(as_signed(cache.hits)),
          ratio,
          big(static_cast<int64_t>(cache.hits_per_s)),
          big(static_cast<int64_t>(cache.requests_per_s)),
          big(as_signed(requests)),
          big(as_signed(cache.bytes))};
}

/// Cassandra's "chunks" are blocks of files, as our blocks are.
VirtualRows rows_of_caches(const MemoryPlan& memory,
                           const std::vector<storage::StoreStatistics>& stores) {
  CacheFigures blocks{.capacity_bytes = memory.block_cache};
  CacheFigures rows{.capacity_bytes = memory.row_cache};
  for (const storage::StoreStatistics& store : stores) {
    blocks.bytes = std::max(blocks.bytes, store.cache_bytes);  // they share it
    blocks.hits += store.block_cache_hits;
    blocks.misses += store.block_cache_misses;
    blocks.hits_per_s += store.block_cache_hits_per_s;
    blocks.requests_per_s += store.block_cache_requests_per_s;
    rows.bytes += store.row_cache_bytes;
    rows.hits += store.row_cache_hits;
    rows.misses += store.row_cache_misses;
    rows.hits_per_s += store.row_cache_hits_per_s;
    rows.requests_per_s += store.row_cache_requests_per_s;
  }
  return {row_of_cache("chunks", blocks), row_of_cache("rows", rows)};
}

NodeTable caches_table(const NodeViewSources& from) {
  return {"caches",
          {{"name", "text", "pk"},
           {"capacity_bytes", "bigint"},
           {"entry_count", "int"},
           {"hit_count", "bigint"},
           {"hit_ratio", "double"},
           {"recent_hit_rate_per_second", "bigint"},
           {"recent_request_rate_per_second", "bigint"},
           {"request_count", "bigint"},
           {"size_bytes", "bigint"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<storage::StoreStatistics>(
                from, asker, [](Shard& shard) { return shard.store->statistics(); },
                [&from](const auto& parts) { return rows_of_caches(from.memory, parts); },
                std::move(done));
          }};
}

// Of one shard.
struct StatementFigures {
  uint64_t prepared = 0, evicted = 0, executed = 0, plain = 0;
};

VirtualRows rows_of_statements(const std::vector<StatementFigures>& shards) {
  StatementFigures all;
  for (const StatementFigures& shard : shards) {
    all.prepared = std::max(all.prepared, shard.prepared);  // each says the node's
    all.evicted += shard.evicted;
    all.executed += shard.executed;
    all.plain += shard.plain;
  }
  const auto value = [](uint64_t n) { return real(static_cast<double>(n)); };
  const uint64_t statements = all.executed + all.plain;
  const double ratio =
      statements == 0 ? 0 : static_cast<double>(all.executed) / static_cast<double>(statements);
  return {{text("prepared_statements_count"), value(all.prepared)},
          {text("prepared_statements_evicted"), value(all.evicted)},
          {text("prepared_statements_executed"), value(all.executed)},
          {text("prepared_statements_ratio"), real(ratio)},
          {text("regular_statements_executed"), value(all.plain)}};
}

NodeTable cql_metrics_table(const NodeViewSources& from) {
  return {"cql_metrics",
          {{"name", "text", "pk"}, {"value", "double"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<StatementFigures>(
                from, asker,
                [](Shard& shard) {
                  const cql::QueryMetrics& metrics = shard.processor->metrics();
                  return StatementFigures{
                      shard.processor->prepared_count(), metrics.prepared_evicted.value(),
                      metrics.execute.latency.count(), metrics.query.latency.count()};
                },
                [](const auto& parts) { return rows_of_statements(parts); }, std::move(done));
          }};
}

NodeTable queries_table(const NodeViewSources& from) {
  return {"queries",
          {{"thread_id", "text", "pk"},
           {"queued_micros", "bigint"},
           {"running_micros", "bigint"},
           {"task", "text"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<std::vector<cql::RunningRequest>>(
                from, asker,
                [](Shard& shard) { return shard.processor->running(kQueriesOfAShardMax); },
                [](const auto& parts) {
                  VirtualRows rows;
                  for (size_t shard = 0; shard < parts.size(); ++shard)
                    for (size_t i = 0; i < parts[shard].size(); ++i)
                      rows.push_back({text(fmt::format("shard-{}-{}", shard, i)), big(0),
                                      big(parts[shard][i].running_us),
                                      text(utf8(parts[shard][i].task))});
                  return rows;
                },
                std::move(done));
          }};
}

struct WorkFigures {
  uint64_t requests = 0, answered = 0, compactions = 0, flushes = 0;
};

/// Under the names of Cassandra's pools that do the same; there are no pools of theirs behind them,
/// so what only a pool has is null.
VirtualRows rows_of_work(const std::vector<WorkFigures>& shards) {
  WorkFigures all;
  for (const WorkFigures& shard : shards) {
    all.requests += shard.requests;
    all.answered += shard.answered;
    all.compactions += shard.compactions;
    all.flushes += shard.flushes;
  }
  const auto row = [](const char* name, uint64_t active, cql::VirtualCell completed) {
    return VirtualRow{
        text(name), number(static_cast<int32_t>(active)), kNull, kNull, kNull, std::move(completed),
        kNull};
  };
  return {row("CompactionExecutor", all.compactions, kNull),
          row("MemtableFlushWriter", all.flushes, kNull),
          row("Native-Transport-Requests", all.requests, big(as_signed(all.answered)))};
}

NodeTable thread_pools_table(const NodeViewSources& from) {
  return {"thread_pools",
          {{"name", "text", "pk"},
           {"active_tasks", "int"},
           {"active_tasks_limit", "int"},
           {"blocked_tasks", "bigint"},
           {"blocked_tasks_all_time", "bigint"},
           {"completed_tasks", "bigint"},
           {"pending_tasks", "int"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<WorkFigures>(
                from, asker,
                [](Shard& shard) {
                  const storage::StoreStatistics store = shard.store->statistics();
                  return WorkFigures{shard.connections->metrics.in_flight_now(),
                                     shard.connections->metrics.requests_ended.value(),
                                     store.compactions_running, store.flushes_running};
                },
                [](const auto& parts) { return rows_of_work(parts); }, std::move(done));
          }};
}

// Which node is asked for its name and state: a node that was removed has nulls.
VirtualRows rows_of_hints(replication::MetaService& meta,
                          const std::vector<std::vector<HostId>>& parts) {
  std::set<HostId> hosts;
  for (const auto& found : parts) hosts.insert(found.begin(), found.end());
  const replication::MetaSnapshot state = meta.snapshot();
  VirtualRows rows;
  for (const HostId host : hosts) {
    const replication::NodeInfo* const node = state->node(host);
    VirtualRow row = {uuid(host.value)};
    if (node == nullptr) {
      row.resize(9, kNull);
    } else {
      row.insert(row.end(), {inet(node->address), text(node->data_center), kNull, kNull, kNull,
                             number(node->internode_port), text(node->rack),
                             text(meta.is_live(host) ? "UP" : "DOWN")});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Hints are in one log for all nodes, not in files of theirs.
NodeTable pending_hints_table(const NodeViewSources& from) {
  return {"pending_hints",
          {{"host_id", "uuid", "pk"},
           {"address", "inet"},
           {"dc", "text"},
           {"files", "int"},
           {"newest", "timestamp"},
           {"oldest", "timestamp"},
           {"port", "int"},
           {"rack", "text"},
           {"status", "text"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<std::vector<HostId>>(
                from, asker,
                [](Shard& shard) {
                  std::vector<HostId> found;
                  const replication::HintStore& hints = shard.data->hints();
                  for (const StoreAddress& replica : hints.replicas())
                    if (hints.pending_count(replica) != 0) found.push_back(replica.host);
                  return found;
                },
                [&from](const auto& parts) { return rows_of_hints(from.meta(), parts); },
                std::move(done));
          }};
}

// Bytes of replicas on a shard's store, by table.
using BytesOfTables = std::map<TableId, uint64_t>;

// Estimates of RocksDB for the ranges of the tablets that the store is a member of.
BytesOfTables bytes_here(Shard& shard, replication::MetaService& meta) {
  const replication::MetaSnapshot state = meta.snapshot();
  const StoreAddress here{meta.self(), shard.number};
  BytesOfTables out;
  for (const auto& [id, table] : state->tables) {
    for (const auto& tablet : table->tablets.tablets()) {
      if (std::ranges::find(tablet.replicas, here) == tablet.replicas.end()) continue;
      out[id] += shard.store->approximate_bytes(table->incarnation, tablet.range);
    }
  }
  return out;
}

/// Tables of users only: the others are computed.
VirtualRows rows_of_disk_usage(replication::MetaService& meta,
                               const std::vector<BytesOfTables>& parts) {
  const replication::MetaSnapshot state = meta.snapshot();
  VirtualRows rows;
  for (const auto& [id, table] : state->tables) {
    uint64_t bytes = 0;
    for (const BytesOfTables& part : parts) {
      const auto found = part.find(id);
      if (found != part.end()) bytes += found->second;
    }
    const uint64_t mebibytes = (bytes + (1 << 20) - 1) >> 20;  // rounded up, as in Cassandra
    rows.push_back({text(table->keyspace), text(table->name), big(as_signed(mebibytes))});
  }
  return rows;
}

NodeTable disk_usage_table(const NodeViewSources& from) {
  return {"disk_usage",
          {{"keyspace_name", "text", "pk"}, {"table_name", "text", "pk"}, {"mebibytes", "bigint"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<BytesOfTables>(
                from, asker,
                [](Shard& shard) { return bytes_here(shard, shard.processor->meta()); },
                [&from](const auto& parts) { return rows_of_disk_usage(from.meta(), parts); },
                std::move(done));
          }};
}

// A folder that cannot be read shows no snapshots: the log and listsnapshots say why.
VirtualRows rows_of_snapshots(const Result<SnapshotList>& listed) {
  VirtualRows rows;
  if (!listed) return rows;
  for (const SnapshotRow& row : listed->rows)
    rows.push_back({text(row.tag), text(row.keyspace), text(row.table), big(row.created_ms),
                    flag(false), row.expires_ms ? big(*row.expires_ms) : kNull,
                    big(as_signed(row.bytes)), big(as_signed(row.own_bytes))});
  return rows;
}

NodeTable snapshots_table(const NodeViewSources& from) {
  return {"snapshots",
          {{"name", "text", "pk"},
           {"keyspace_name", "text", "ck"},
           {"table_name", "text", "ck"},
           {"created_at", "timestamp"},
           {"ephemeral", "boolean"},
           {"expires_at", "timestamp"},
           {"size_on_disk", "bigint"},
           {"true_size", "bigint"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            from.shards.front()->reactor.post_from_any_thread(
                [&from, &asker, done = std::move(done)]() mutable {
                  from.snapshots().list([&asker, done = std::move(done)](auto listed) mutable {
                    asker.post_from_any_thread(
                        [rows = rows_of_snapshots(listed), done = std::move(done)]() mutable {
                          done(std::move(rows));
                        });
                  });
                });
          }};
}

/// The last warnings and errors, at whatever level below them the log is written.
NodeTable system_logs_table(const NodeViewSources& from) {
  return {"system_logs",
          {{"timestamp", "timestamp", "pk"},
           {"order_in_millisecond", "int", "ck"},
           {"level", "text"},
           {"logger", "text"},
           {"message", "text"}},
          on_first(from, [&from] {
            VirtualRows rows;
            for (const RecentLog::Line& line : from.log.lines())
              rows.push_back({big(line.wall_ms), number(line.order),
                              text(line.level == base::LogLevel::kWarn ? "WARN" : "ERROR"),
                              text(line.component), text(utf8(line.text))});
            return rows;
          })};
}

NodeTable address_counts_table(const NodeViewSources& from) {
  return {"cidr_filtering_metrics_counts",
          {{"name", "text", "pk"}, {"value", "bigint"}},
          on_first(from, [&from] {
            VirtualRows rows;
            if (!from.addresses.is_on()) return rows;
            for (const auto& [group, count] : from.addresses.accepted())
              rows.push_back({text("Number of CIDR accesses accepted from CIDR group - " + group),
                              big(as_signed(count))});
            for (const auto& [group, count] : from.addresses.rejected())
              rows.push_back({text("Number of CIDR accesses rejected from CIDR group - " + group),
                              big(as_signed(count))});
            return rows;
          })};
}

}  // namespace

cql::NodeTables make_node_views(const NodeViewSources& from) {
  std::vector<NodeTable> tables = {
      address_counts_table(from), advice_table(from),        caches_table(from),
      clients_table(from),        cql_metrics_table(from),   disk_usage_table(from),
      hot_keys_table(from),       pending_hints_table(from), queries_table(from),
      settings_table(from),       snapshots_table(from),     system_logs_table(from),
      thread_pools_table(from)};
  for (const auto& more : {build_views(from), table_views(from), peer_views(from),
                           batch_views(from), history_views(from)})
    tables.insert(tables.end(), more.begin(), more.end());
  return std::make_shared<const std::vector<NodeTable>>(std::move(tables));
}

}  // namespace tetrad::server
