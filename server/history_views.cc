// SPDX-License-Identifier: Apache-2.0
// Tables of the keyspace `system` about what this process keeps: statements that were prepared,
// logged batches that wait, and compactions that have ended; and system_views.streaming.
#include "replication/batches/batch_entry.h"
#include "replication/batches/batch_service.h"
#include "replication/rpc/frame.h"
#include "server/shard_views.h"
#include "storage/engine/compaction_log.h"

namespace tetrad::server {
namespace {

using cql::NodeTable;
using cql::VirtualRows;
using namespace cql::cells;

// A reader must not be what holds up the first shard: 4,000 rows take it some milliseconds.
constexpr size_t kStatementsMax = 4'000;
constexpr size_t kBatchesMax = 1'000;
constexpr size_t kFillsOfAShardMax = 1'000;
constexpr int64_t kTimeUsMax = int64_t{1} << 53;  // in the year 2255

/// A timeuuid of a time, and of something that has it alone among those of that time.
Uuid time_uuid(int64_t time_us, uint16_t sequence, const Uuid& of) {
  uint64_t node = 0;
  for (size_t i = 10; i < 16; ++i) node = node << 8 | of.octets[i];
  // A peer may have said any time.
  const int64_t plausible_us = std::clamp<int64_t>(time_us, 0, kTimeUsMax);
  return base::make_time_uuid(base::uuid_ticks_of_unix_us(plausible_us), sequence, node);
}

/// Of all shards, each once: they share the texts.
NodeTable prepared_statements_table(const NodeViewSources& from) {
  return {
      "prepared_statements",
      {{"prepared_id", "blob", "pk"}, {"logged_keyspace", "text"}, {"query_string", "text"}},
      on_first(from,
               [&from] {
                 VirtualRows rows;
                 for (const auto& one : from.shards.front()->processor->prepared(kStatementsMax))
                   rows.push_back({one.id, one.keyspace.empty() ? kNull : text(utf8(one.keyspace)),
                                   text(utf8(one.text))});
                 return rows;
               }),
      "system"};
}

/// What other nodes' coordinators have stored here, oldest first. The mutations stay on the disk.
/// `version` is of their encoding, as in Cassandra.
NodeTable batches_table(const NodeViewSources& from) {
  return {"batches",
          {{"id", "timeuuid", "pk"}, {"mutations", "list<blob>"}, {"version", "int"}},
          on_first(from,
                   [&from] {
                     VirtualRows rows;
                     for (const auto& batch : from.batches().waiting(kBatchesMax)) {
                       const auto sequence =
                           static_cast<uint16_t>(batch.id.octets[0] << 8 | batch.id.octets[1]);
                       rows.push_back({uuid(time_uuid(batch.created_us, sequence, batch.id)), kNull,
                                       number(replication::kBatchEntryFormat)});
                     }
                     return rows;
                   }),
          "system"};
}

/// A store's files have rows of all its tables: so there is a family, and no keyspace.
NodeTable compaction_history_table(const NodeViewSources& from) {
  return {
      "compaction_history",
      {{"id", "timeuuid", "pk"},
       {"bytes_in", "bigint"},
       {"bytes_out", "bigint"},
       {"columnfamily_name", "text"},
       {"compacted_at", "timestamp"},
       {"compaction_properties", "frozen<map<text, text>>"},
       {"keyspace_name", "text"},
       {"rows_merged", "map<int, bigint>"}},
      on_first(from,
               [&from] {
                 VirtualRows rows;
                 for (const storage::CompactionRecord& one : from.compactions.records())
                   rows.push_back({uuid(time_uuid(one.ended_us, static_cast<uint16_t>(one.number),
                                                  from.meta().self().value)),
                                   count(one.bytes_in), count(one.bytes_out), text(one.family),
                                   big(one.ended_us / 1000),
                                   text_map({{"compaction_type", "Compaction"}}), kNull, kNull});
                 return rows;
               }),
      "system"};
}

/// The rows of system_views.streaming, as they are put together.
struct StreamRows {
  const replication::MetaState& state;
  VirtualRows rows;

  /// The node asks for the pages itself, so it follows nobody. It sends nothing for them and gets no
  /// files; how much is to come nobody knows before the end.
  void add(const replication::FillFacts& fill, HostId self) {
    std::vector<std::string> peers;
    for (const HostId source : fill.sources)
      if (const auto* const node = state.node(source); node != nullptr)
        peers.push_back(replication::make_endpoint(node->address, node->internode_port));
    const auto ms = [](int64_t time_us) { return big(time_us / 1000); };
    const auto sequence = static_cast<uint16_t>(fill.tablet.value);
    Uuid of = self.value;
    of.octets[15] = static_cast<uint8_t>(of.octets[15] ^ fill.store);
    rows.push_back({uuid(time_uuid(fill.began_us, sequence, of)),
                    count(fill.bytes),
                    big(0),
                    fill.is_filled ? count(fill.bytes) : kNull,
                    big(0),
                    ms(fill.changed_us - fill.began_us),
                    kNull,
                    kNull,
                    kNull,
                    kNull,
                    kNull,
                    flag(false),
                    ms(fill.changed_us),
                    text("Relocation"),
                    text_list(peers),
                    fill.is_filled ? cql::make_float(100) : kNull,
                    text(fill.is_filled ? "success" : "start"),
                    kNull,
                    ms(fill.began_us),
                    ms(fill.began_us),
                    fill.is_filled ? ms(fill.changed_us) : kNull,
                    kNull});
  }
};

/// Tablets that come to stores of this node; those that it gives away are in its peers' tables.
NodeTable streaming_table(const NodeViewSources& from) {
  return {"streaming",
          {{"id", "timeuuid", "pk"},
           {"bytes_received", "bigint"},
           {"bytes_sent", "bigint"},
           {"bytes_to_receive", "bigint"},
           {"bytes_to_send", "bigint"},
           {"duration_millis", "bigint"},
           {"failure_cause", "text"},
           {"files_received", "bigint"},
           {"files_sent", "bigint"},
           {"files_to_receive", "bigint"},
           {"files_to_send", "bigint"},
           {"follower", "boolean"},
           {"last_updated_at", "timestamp"},
           {"operation", "text"},
           {"peers", "frozen<list<text>>"},
           {"progress_percentage", "float"},
           {"status", "text"},
           {"status_failure_timestamp", "timestamp"},
           {"status_init_timestamp", "timestamp"},
           {"status_start_timestamp", "timestamp"},
           {"status_success_timestamp", "timestamp"},
           {"success_message", "text"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<std::vector<replication::FillFacts>>(
                from, asker,
                [&from](Shard& shard) { return from.streams(shard).fills(kFillsOfAShardMax); },
                [&from](const auto& parts) {
                  const replication::MetaSnapshot state = from.meta().snapshot();
                  StreamRows out{*state, {}};
                  for (const auto& part : parts)
                    for (const auto& fill : part) out.add(fill, from.meta().self());
                  return std::move(out.rows);
                },
                std::move(done));
          }};
}

}  // namespace

std::vector<NodeTable> history_views(const NodeViewSources& from) {
  return {prepared_statements_table(from), compaction_history_table(from), batches_table(from),
          streaming_table(from)};
}

}  // namespace tetrad::server
