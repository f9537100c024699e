// SPDX-License-Identifier: Apache-2.0
#include "server/hot_keys.h"

#include "base/byte_io.h"
#include "cql/types/literal.h"
#include "server/shard.h"
#include "storage/row/row_weight.h"

namespace tetrad::server {

namespace {

constexpr size_t kHotKeysOfATabletMax = 10;
constexpr double kHotKeyShareLeast = 0.01;  // of its tablet's work

/// As nodetool shows a key: its values with ':' between them. What was cut, or is of no table that is
/// known, in hex.
std::string text_of_key(const cql::TableSchema* table, const partitioner::HeavyKeys::Heavy& heavy) {
  const auto hex = [&] { return "0x" + base::to_hex(heavy.key) + (heavy.is_cut ? "..." : ""); };
  if (table == nullptr || heavy.is_cut) return hex();
  const auto columns = table->partition_key();
  if (columns.size() == 1) return cql::to_string(*columns[0].type, heavy.key);
  std::string out;
  base::ByteReader in(heavy.key);
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto size = in.read_u16();
    const auto value = size ? in.read_raw(*size) : std::unexpected(size.error());
    if (!value || !in.read_u8()) return hex();
    out += (i == 0 ? "" : ":") + cql::to_string(*columns[i].type, *value);
  }
  return out;
}

void add_hot_keys(const replication::TableInfo& table, const replication::MeteredTablet& tablet,
                  const cql::TableSchema* schema, std::vector<HotKey>& out) {
  constexpr double kUnit = storage::kWeightOfUnit;
  for (const auto& heavy : tablet.keys->heaviest(kHotKeysOfATabletMax)) {
    if (heavy.reads + heavy.writes < kUnit || heavy.share < kHotKeyShareLeast) break;
    out.push_back({table.keyspace, table.name, text_of_key(schema, heavy),
                   static_cast<int64_t>(tablet.id.value), heavy.position.token, heavy.reads / kUnit,
                   heavy.writes / kUnit, heavy.share});
  }
}

}  // namespace

std::vector<HotKey> hot_keys_of(Shard& shard) {
  const replication::MetaSnapshot state = shard.processor->meta().snapshot();
  std::vector<HotKey> out;
  const cql::SchemaPtr schema = shard.processor->schema();
  for (const auto& fence : shard.data->replicas().fences()) {
    if (fence == nullptr) continue;
    for (const auto& [table, tablet] : fence->heat().tablets(*state)) {
      if (tablet->keys == nullptr) continue;
      const cql::TablePtr known =
          schema == nullptr ? nullptr : schema->table(table->keyspace, table->name);
      add_hot_keys(*table, *tablet, known.get(), out);
    }
  }
  return out;
}

}  // namespace tetrad::server
