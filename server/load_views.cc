// SPDX-License-Identifier: Apache-2.0
// What gets most work: keys as this node's replicas count them, and advice made of them and of what
// heartbeats say of physical partitions.
#include <cmath>
#include <set>

#include "replication/throughput/throughput_holder.h"
#include "server/admin/ownership.h"
#include "server/hot_keys.h"
#include "server/load_advice.h"
#include "server/shard_views.h"
#include "storage/row/row_weight.h"

namespace tetrad::server {
namespace {

using cql::NodeTable;
using cql::VirtualRow;
using cql::VirtualRows;
using namespace cql::cells;

constexpr double kAdviceKeyShareLeast = 0.5;  // of its physical partition's work
/// More than of a physical partition: one of eight requests tells of keys (partitioner/heavy_keys.h), so
/// less than this may be a handful of them.
constexpr uint64_t kAdviceKeyRuPerSLeast = 500;
constexpr uint64_t kAdviceUsedPercentLeast = 95;

// A row of system_tetrad.advice, but for the table it is about.
struct Advice {
  std::string_view kind;
  std::string subject;
  double share;  // of the partition's work, or of the table's
  uint64_t ru_per_s;
  std::string text;
};

VirtualRow row_of(std::string_view keyspace, std::string_view table, const Advice& advice) {
  return {text(keyspace),     text(table),
          text(advice.kind),  text(utf8(advice.subject)),
          real(advice.share), count(advice.ru_per_s),
          text(advice.text)};
}

/// A partition of one key cannot be split, whatever it gets or holds.
void advise_on_key(const HotKey& key, VirtualRows& rows) {
  const auto ru_per_s = static_cast<uint64_t>(std::llround(key.reads + key.writes));
  if (key.share < kAdviceKeyShareLeast || ru_per_s < kAdviceKeyRuPerSLeast) return;
  const char* what = key.reads >= key.writes
                         ? "cache what is read of it, or keep copies under several keys"
                         : "add a column to the partition key that spreads its writes, such as a "
                           "bucket or an hour";
  rows.push_back(row_of(key.keyspace, key.table,
                        {"hot key", key.key, key.share, ru_per_s,
                         fmt::format("the key gets {:.0f} % of the work of physical partition {}, "
                                     "and no split divides a key: {}",
                                     key.share * 100, key.partition, what)}));
}

void advise_on_table(const replication::MetaService& meta, const replication::TableInfo& table,
                     VirtualRows& rows) {
  const auto& tablets = table.tablets.tablets();
  std::vector<PartitionLoad> loads;
  for (const auto& tablet : tablets) {
    if (tablet.full)
      rows.push_back(row_of(table.keyspace, table.name,
                            {"full key", std::to_string(tablet.id.value), 0, 0,
                             fmt::format("physical partition {} holds one key of {} bytes, as "
                                         "large as a key may be, and takes no inserts: "
                                         "add a column to the partition key, or delete rows",
                                         tablet.id.value, meta.tablet_bytes(tablet.id))}));
    loads.push_back({part_of_ring(tablet.range), meta.tablet_heat(tablet.id).ru_per_s()});
  }
  const auto hot = hot_partition_of(loads);
  if (!hot) return;
  const uint64_t id = tablets[hot->index].id.value;
  rows.push_back(row_of(
      table.keyspace, table.name,
      {"hot partition", std::to_string(id), hot->share, loads[hot->index].ru_per_s,
       fmt::format(
           "physical partition {} gets {:.0f} % of the table's work, {:.1f} times the mean of {}: "
           "it is split where several keys share the work; system_tetrad.hot_keys of its replicas "
           "shows them",
           id, hot->share * 100, hot->skew, tablets.size())}));
}

/// Of what has a throughput. The counts of a bucket go on for as long as its holder keeps it: that
/// something is refused now shows in a second that was used up.
void advise_on_throughput(const replication::MetaService& meta, const replication::TableInfo& table,
                          VirtualRows& rows) {
  const bool is_shared = table.throughput.of_keyspace;
  uint64_t provided = 0, used = 0, refused = 0, full = 0, parts = 0;
  for (const auto& tablet : table.tablets.tablets()) {
    const replication::BucketName bucket =
        replication::bucket_of(table, is_shared ? TabletId() : tablet.id);
    const uint64_t part = std::max<uint64_t>(bucket.per_s / storage::kWeightOfUnit, 1);
    const replication::UsedThroughput use = meta.used_throughput(bucket.key);
    ++parts;
    provided += part;
    used += use.used_ru_per_s;
    refused += use.refused;
    // A request is refused whole: what is left of a second is less than one.
    if (use.refused != 0 && use.used_ru_per_s * 100 >= part * kAdviceUsedPercentLeast) ++full;
    if (is_shared) break;
  }
  if (full == 0) return;
  const std::string where =
      is_shared ? "the keyspace used up its throughput"
                : fmt::format("{} of {} physical partitions used up their part of the throughput",
                              full, parts);
  rows.push_back(row_of(
      table.keyspace, is_shared ? std::string_view() : table.name,
      {"throttled", "", static_cast<double>(used) / static_cast<double>(provided), used,
       fmt::format("{} in the last second ({} of {} RU/s altogether), and {} requests have been "
                   "refused with OVERLOADED: provide more, or spread them; "
                   "system_tetrad.throughput has all figures",
                   where, used, provided, refused)}));
}

}  // namespace

/// Of this node's replicas: each counts what it does itself.
NodeTable hot_keys_table(const NodeViewSources& from) {
  return {"hot_keys",
          {{"keyspace_name", "text", "pk"},
           {"table_name", "text", "ck"},
           {"partition_id", "bigint", "ck"},
           {"token", "bigint", "ck"},
           {"key", "text", "ck"},
           {"ru_per_s", "bigint"},
           {"read_ru_per_s", "bigint"},
           {"write_ru_per_s", "bigint"},
           {"share", "double"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<std::vector<HotKey>>(
                from, asker, hot_keys_of,
                [](const auto& parts) {
                  VirtualRows rows;
                  for (const auto& keys : parts)
                    for (const HotKey& key : keys)
                      rows.push_back({text(key.keyspace), text(key.table), big(key.partition),
                                      big(key.token), text(utf8(key.key)),
                                      big(std::llround(key.reads + key.writes)),
                                      big(std::llround(key.reads)), big(std::llround(key.writes)),
                                      real(key.share)});
                  return rows;
                },
                std::move(done));
          },
          "system_tetrad"};
}

/// Keys are those of this node's replicas, partitions all of the cluster.
NodeTable advice_table(const NodeViewSources& from) {
  return {"advice",
          {{"keyspace_name", "text", "pk"},
           {"table_name", "text", "ck"},
           {"kind", "text", "ck"},
           {"subject", "text", "ck"},
           {"share", "double"},
           {"ru_per_s", "bigint"},
           {"advice", "text"}},
          [&from](base::Reactor& asker, NodeTable::Done done) {
            ask_shards<std::vector<HotKey>>(
                from, asker, hot_keys_of,
                [&from](const auto& parts) {
                  VirtualRows rows;
                  for (const auto& keys : parts)
                    for (const HotKey& key : keys) advise_on_key(key, rows);
                  const replication::MetaSnapshot state = from.meta().snapshot();
                  std::set<std::string_view> keyspaces;  // whose tables share a throughput
                  for (const auto& [id, table] : state->tables) {
                    advise_on_table(from.meta(), *table, rows);
                    const auto& throughput = table->throughput;
                    if (throughput.is_limited() &&
                        (!throughput.of_keyspace || keyspaces.insert(table->keyspace).second))
                      advise_on_throughput(from.meta(), *table, rows);
                  }
                  return rows;
                },
                std::move(done));
          },
          "system_tetrad"};
}

}  // namespace tetrad::server
