// SPDX-License-Identifier: Apache-2.0
// What gets most work: keys as this node's replicas count them, and advice made of them and of what
// heartbeats say of physical partitions.
#include <cmath>

#include "server/hot_keys.h"
#include "server/shard_views.h"

namespace tetrad::server {
namespace {

using cql::NodeTable;
using cql::VirtualRow;
using cql::VirtualRows;
using namespace cql::cells;

// Advice is given on what is worth a change.
constexpr uint64_t kAdviceRuPerSLeast = 100;
constexpr double kAdviceKeyShareLeast = 0.5;  // of its physical partition's work
constexpr double kAdviceSkewLeast = 2;        // the busiest partition's work over the mean

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
  if (key.share < kAdviceKeyShareLeast || ru_per_s < kAdviceRuPerSLeast) return;
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
  uint64_t sum = 0, most = 0;
  TabletId busiest;
  for (const auto& tablet : tablets) {
    if (tablet.full)
      rows.push_back(row_of(table.keyspace, table.name,
                            {"full key", std::to_string(tablet.id.value), 0, 0,
                             fmt::format("physical partition {} holds one key of {} bytes, as "
                                         "large as a key may be, and takes no inserts: "
                                         "add a column to the partition key, or delete rows",
                                         tablet.id.value, meta.tablet_bytes(tablet.id))}));
    const uint64_t ru_per_s = meta.tablet_heat(tablet.id).ru_per_s();
    sum += ru_per_s;
    if (ru_per_s > most) {
      most = ru_per_s;
      busiest = tablet.id;
    }
  }
  if (tablets.size() < 2 || most < kAdviceRuPerSLeast) return;
  const double share = static_cast<double>(most) / static_cast<double>(sum);
  const double skew = share * static_cast<double>(tablets.size());
  if (skew < kAdviceSkewLeast) return;
  rows.push_back(row_of(
      table.keyspace, table.name,
      {"hot partition", std::to_string(busiest.value), share, most,
       fmt::format(
           "physical partition {} gets {:.0f} % of the table's work, {:.1f} times the mean of {}: "
           "it is split "
           "where several keys share the work; system_tetrad.hot_keys of its replicas shows them",
           busiest.value, share * 100, skew, tablets.size())}));
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
                  for (const auto& [id, table] : state->tables)
                    advise_on_table(from.meta(), *table, rows);
                  return rows;
                },
                std::move(done));
          },
          "system_tetrad"};
}

}  // namespace tetrad::server
