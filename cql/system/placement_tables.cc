// SPDX-License-Identifier: Apache-2.0
// Tables of system_tetrad about where rows are and how evenly their work is spread: partitions, moves,
// partition_skew and key_location. All of the metadata that every node has, and of what heartbeats say.
#include <algorithm>

#include "base/byte_io.h"
#include "cql/schema/partition_key_text.h"
#include "cql/system/computed_tables.h"
#include "cql/system/virtual_tables.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"
#include "replication/meta/state_names.h"

namespace tetrad::cql {
namespace {

using namespace cells;
using partitioner::Tablet;
using partitioner::TabletStage;
using replication::MetaService;
using replication::MetaState;
using replication::TableInfo;

VirtualCell addresses(const MetaState& state, const std::vector<StoreAddress>& replicas) {
  return text_list(state.addresses_of(replicas));
}

VirtualRow partition_row(const MetaService& meta, const MetaState& state, const TableInfo& table,
                         const Tablet& tablet) {
  const replication::TabletHeat heat = meta.tablet_heat(tablet.id);
  return {text(table.keyspace),
          text(table.name),
          count(tablet.id.value),
          big(tablet.range.start.token),
          big(tablet.range.end.token),
          tablet.repaired_us == 0 ? kNull : big(tablet.repaired_us / 1000),
          addresses(state, tablet.replicas),
          count(meta.tablet_bytes(tablet.id)),
          text(tablet.full ? std::string_view("full") : replication::name_of(tablet.stage)),
          count(heat.ru_per_s()),
          count(heat.read_ru_per_s),
          count(heat.write_ru_per_s),
          count(heat.bytes_per_s),
          count(heat.ru_per_s_most)};
}

VirtualRows rows_of_partitions(const MetaService& meta) {
  const replication::MetaSnapshot state = meta.snapshot();
  VirtualRows rows;
  for (const auto& [id, table] : state->tables) {
    for (const Tablet& tablet : table->tablets.tablets())
      rows.push_back(partition_row(meta, *state, *table, tablet));
  }
  return rows;
}

/// Members of `set` that `other` lacks.
std::vector<StoreAddress> missing_in(const std::vector<StoreAddress>& other,
                                     const std::vector<StoreAddress>& set) {
  std::vector<StoreAddress> out;
  std::ranges::copy_if(set, std::back_inserter(out), [&](const StoreAddress& member) {
    return std::ranges::find(other, member) == other.end();
  });
  return out;
}

VirtualRows rows_of_moves(const MetaService& meta) {
  const replication::MetaSnapshot state = meta.snapshot();
  VirtualRows rows;
  for (const auto& [id, table] : state->tables) {
    for (const Tablet& tablet : table->tablets.tablets()) {
      if (tablet.stage == TabletStage::kNormal) continue;
      rows.push_back({text(table->keyspace), text(table->name), count(tablet.id.value),
                      text(replication::name_of(tablet.stage)),
                      addresses(*state, missing_in(tablet.replicas, tablet.new_replicas)),
                      addresses(*state, missing_in(tablet.new_replicas, tablet.replicas)),
                      count(meta.tablet_bytes(tablet.id))});
    }
  }
  return rows;
}

/// The sum over a table's partitions of one figure, and the most of it.
struct Spread {
  uint64_t sum = 0, most = 0;
  TabletId at;  // which has the most

  void add(TabletId tablet, uint64_t value) {
    sum += value;
    if (value <= most) return;
    most = value;
    at = tablet;
  }
  /// Of the most over the mean; null where there is nothing.
  VirtualCell skew(size_t partitions) const {
    if (sum == 0) return kNull;
    return real(static_cast<double>(most) * static_cast<double>(partitions) /
                static_cast<double>(sum));
  }
};

VirtualRows rows_of_skew(const MetaService& meta) {
  const replication::MetaSnapshot state = meta.snapshot();
  VirtualRows rows;
  for (const auto& [id, table] : state->tables) {
    const std::vector<Tablet>& tablets = table->tablets.tablets();
    Spread work, bytes;
    for (const Tablet& tablet : tablets) {
      work.add(tablet.id, meta.tablet_heat(tablet.id).ru_per_s());
      bytes.add(tablet.id, meta.tablet_bytes(tablet.id));
    }
    rows.push_back({text(table->keyspace), text(table->name),
                    number(static_cast<int32_t>(tablets.size())), count(work.sum), count(work.most),
                    work.most == 0 ? kNull : count(work.at.value), work.skew(tablets.size()),
                    count(bytes.sum), count(bytes.most),
                    bytes.most == 0 ? kNull : count(bytes.at.value), bytes.skew(tablets.size())});
  }
  return rows;
}

constexpr std::string_view kHowToLocate =
    "system_tetrad.key_location is read with keyspace_name = ..., table_name = ... and key = ..., "
    "where key is a text: the values of the partition key with ':' between them";

/// The table that a read of key_location names, and the keys.
struct Asked {
  TablePtr table;
  std::vector<std::string> keys;
};

Result<Asked> asked_of(const SchemaSnapshot& schema, const storage::ReadCommand& command) {
  if (command.is_range || command.rows.empty())
    return fail(ErrorCode::kInvalid, "{}", kHowToLocate);
  base::ByteReader in(command.partition_key);
  std::string names[2];
  for (std::string& name : names) {
    TETRAD_TRY(const auto size, in.read_u16());
    TETRAD_TRY(name, in.read_raw(size));
    TETRAD_TRY_VOID(in.read_u8());
  }
  Asked asked{schema.table(names[0], names[1]), {}};
  if (asked.table == nullptr || asked.table->is_virtual)
    return fail(ErrorCode::kInvalid, "{}.{} is no table that nodes keep rows of", names[0],
                names[1]);
  for (BytesView place : command.rows) {
    TETRAD_TRY(const auto key, decode_ordered(place, *text_type(), false));
    if (!key) return fail(ErrorCode::kInvalid, "{}", kHowToLocate);
    asked.keys.emplace_back(*key);
  }
  return asked;
}

Result<VirtualRows> rows_of_keys(const MetaService& meta, const SchemaSnapshot& schema,
                                 const storage::ReadCommand& command) {
  TETRAD_TRY(const Asked asked, asked_of(schema, command));
  const replication::MetaSnapshot state = meta.snapshot();
  const TableInfo* table = state->table(asked.table->id);
  if (table == nullptr)
    return fail(ErrorCode::kInvalid, "{} is dropped", asked.table->qualified_name());
  VirtualRows rows;
  for (const std::string& key : asked.keys) {
    TETRAD_TRY(const Bytes bytes, partition_key_of_text(*asked.table, key));
    const RingPosition position = partitioner::position_of(bytes);
    const Tablet& tablet = table->tablets.find(position);
    std::vector<StoreAddress> live;
    std::ranges::copy_if(tablet.replicas, std::back_inserter(live),
                         [&](const StoreAddress& one) { return meta.is_replica_live(one); });
    rows.push_back({text(asked.table->keyspace), text(asked.table->name), text(key),
                    big(position.token), count(tablet.id.value), addresses(*state, tablet.replicas),
                    addresses(*state, live), text(replication::name_of(tablet.stage))});
  }
  return rows;
}

}  // namespace

void define_placement_tables(ComputedTables& tables, MetaService& meta) {
  tables.define("system_tetrad", "partitions",
                {{"keyspace_name", "text", "pk"},
                 {"table_name", "text", "ck"},
                 {"id", "bigint", "ck"},
                 {"range_start", "bigint"},
                 {"range_end", "bigint"},
                 {"repaired_at", "timestamp"},
                 {"replicas", "frozen<list<text>>"},
                 {"size_bytes", "bigint"},
                 {"state", "text"},
                 {"ru_per_s", "bigint"},
                 {"read_ru_per_s", "bigint"},
                 {"write_ru_per_s", "bigint"},
                 {"bytes_per_s", "bigint"},
                 {"ru_per_s_most", "bigint"}},
                [&meta](const SchemaSnapshot&) { return rows_of_partitions(meta); });
  tables.define("system_tetrad", "moves",
                {{"keyspace_name", "text", "pk"},
                 {"table_name", "text", "ck"},
                 {"id", "bigint", "ck"},
                 {"stage", "text"},
                 {"joining", "frozen<list<text>>"},
                 {"leaving", "frozen<list<text>>"},
                 {"size_bytes", "bigint"}},
                [&meta](const SchemaSnapshot&) { return rows_of_moves(meta); });
  tables.define("system_tetrad", "partition_skew",
                {{"keyspace_name", "text", "pk"},
                 {"table_name", "text", "ck"},
                 {"partitions", "int"},
                 {"ru_per_s", "bigint"},
                 {"ru_per_s_most", "bigint"},
                 {"busiest_id", "bigint"},
                 {"ru_skew", "double"},
                 {"size_bytes", "bigint"},
                 {"size_bytes_most", "bigint"},
                 {"largest_id", "bigint"},
                 {"size_skew", "double"}},
                [&meta](const SchemaSnapshot&) { return rows_of_skew(meta); });
  tables.define("system_tetrad", "key_location",
                {{"keyspace_name", "text", "pk"},
                 {"table_name", "text", "pk"},
                 {"key", "text", "ck"},
                 {"token", "bigint"},
                 {"partition_id", "bigint"},
                 {"replicas", "frozen<list<text>>"},
                 {"live", "frozen<list<text>>"},
                 {"state", "text"}},
                [&meta](const SchemaSnapshot& schema, const storage::ReadCommand& command) {
                  return rows_of_keys(meta, schema, command);
                });
}

}  // namespace tetrad::cql
