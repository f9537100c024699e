// SPDX-License-Identifier: Apache-2.0
// The metadata state and its bytes.
//
//   state := u8 version (4; 3 has no numbers of formats in its nodes, 2 no throughputs, 1 no change
//            logs), 16 B cluster id, name, secret,
//            varint applied, varint schema version, schema objects, nodes, tables, retired,
//            settings, varint next incarnation, varint next tablet id, outcomes
//   table := 16 B id, keyspace, name, varint incarnation, varint max partition MB,
//            varint incarnation of the change log (0: none), throughput, tablet map
// Lists are a varint count and their parts; texts are a varint size and bytes.
#include "replication/meta/meta_state.h"

#include <algorithm>

#include "base/assert.h"
#include "base/hash.h"
#include "replication/meta/meta_command.h"

namespace tetrad::replication {

namespace {

using base::ByteReader;
using base::ByteWriter;

Result<Uuid> read_uuid(ByteReader& in) {
  TETRAD_TRY(const BytesView bytes, in.read_raw(16));
  return Uuid::from_bytes(bytes);
}

Result<std::string> read_string(ByteReader& in) {
  TETRAD_TRY(const BytesView bytes, in.read_bytes());
  return std::string(bytes);
}

Result<uint32_t> read_u32(ByteReader& in) {
  TETRAD_TRY(const uint64_t value, in.read_varint());
  if (value > 0xffffffff) return fail(ErrorCode::kCorruption, "{} is no 32 bit number", value);
  return static_cast<uint32_t>(value);
}

template <class Texts>
void write_texts(const Texts& texts, ByteWriter& out) {
  out.varint(texts.size());
  for (const auto& [name, text] : texts) {
    out.bytes(name);
    out.bytes(text);
  }
}

Result<std::map<std::string, std::string>> read_texts(ByteReader& in) {
  TETRAD_TRY(const uint64_t count, in.read_varint());
  std::map<std::string, std::string> texts;
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(std::string name, read_string(in));
    TETRAD_TRY(std::string text, read_string(in));
    texts.emplace(std::move(name), std::move(text));
  }
  return texts;
}

void write_table(const TableInfo& table, ByteWriter& out) {
  out.raw(table.id.value.view());
  out.bytes(table.keyspace);
  out.bytes(table.name);
  out.varint(table.incarnation.value);
  out.varint(table.max_partition_mb);
  out.varint(table.change_log ? table.change_log->value : 0);
  encode_throughput(table.throughput, out);
  partitioner::encode_tablet_map(table.tablets, out.out());
}

Result<std::shared_ptr<const TableInfo>> read_table(uint8_t format, ByteReader& in) {
  auto table = std::make_shared<TableInfo>();
  TETRAD_TRY(table->id.value, read_uuid(in));
  TETRAD_TRY(table->keyspace, read_string(in));
  TETRAD_TRY(table->name, read_string(in));
  TETRAD_TRY(table->incarnation.value, read_u32(in));
  TETRAD_TRY(table->max_partition_mb, read_u32(in));
  if (format > kMetaEncodingWithoutChangeLogs) {
    TETRAD_TRY(const uint32_t change_log, read_u32(in));
    if (change_log != 0) table->change_log = TableIncarnation{change_log};
  }
  if (format > kMetaEncodingWithoutThroughput) {
    TETRAD_TRY(table->throughput, decode_throughput(in));
  }
  TETRAD_TRY(table->tablets, partitioner::decode_tablet_map(in));
  return std::shared_ptr<const TableInfo>(std::move(table));
}

void count_members(const partitioner::Tablet& tablet, partitioner::StoreLoad& load, int64_t each) {
  for (const StoreAddress& member : tablet.replicas) {
    const auto entry = load.try_emplace(member, 0).first;
    TETRAD_ASSERT(each > 0 || entry->second > 0);
    entry->second += static_cast<uint64_t>(each);
    if (entry->second == 0) load.erase(entry);
  }
}

/// `before` no longer counts, `after` does; null: there is none. Most tablets are in both: those
/// are compared and left as they are counted.
void count_change(const TableInfo* before, const TableInfo* after, MetaState& state) {
  static const std::vector<partitioner::Tablet> kNone;
  const auto& old_ones = before == nullptr ? kNone : before->tablets.tablets();
  const auto& new_ones = after == nullptr ? kNone : after->tablets.tablets();
  auto old_one = old_ones.begin();
  auto new_one = new_ones.begin();
  while (old_one != old_ones.end() || new_one != new_ones.end()) {
    const bool has_both = old_one != old_ones.end() && new_one != new_ones.end();
    if (has_both && old_one->range.end == new_one->range.end) {
      if (old_one->replicas != new_one->replicas) {
        count_members(*new_one, state.load, 1);
        count_members(*old_one, state.load, -1);
      }
      ++old_one;
      ++new_one;
    } else if (new_one == new_ones.end() || (has_both && old_one->range.end < new_one->range.end)) {
      count_members(*old_one++, state.load, -1);
    } else {
      count_members(*new_one++, state.load, 1);
    }
  }
  const auto is_limited = [](const TableInfo* table) {
    return table != nullptr && table->throughput.is_limited() ? uint64_t{1} : 0;
  };
  TETRAD_ASSERT(state.limited_tables >= is_limited(before));
  state.limited_tables += is_limited(after) - is_limited(before);
}

void write_outcomes(const MetaState& state, ByteWriter& out) {
  out.varint(state.recent_outcomes.size());
  for (const MetaState::Outcome& outcome : state.recent_outcomes) {
    out.raw(outcome.command_id.view());
    out.varint(outcome.index.value);
    out.u8(outcome.failed ? 1 : 0);
    out.u8(static_cast<uint8_t>(outcome.code));
    out.bytes(outcome.message);
  }
}

Result<void> read_outcomes(ByteReader& in, MetaState& state) {
  TETRAD_TRY(const uint64_t count, in.read_varint());
  for (uint64_t i = 0; i < count; ++i) {
    MetaState::Outcome outcome;
    TETRAD_TRY(outcome.command_id, read_uuid(in));
    TETRAD_TRY(outcome.index.value, in.read_varint());
    TETRAD_TRY(const uint8_t failed, in.read_u8());
    TETRAD_TRY(const uint8_t code, in.read_u8());
    outcome.failed = failed != 0;
    // A code of a later program becomes a plain error.
    outcome.code = code > static_cast<uint8_t>(base::kErrorCodeLast) ? ErrorCode::kServerError
                                                                     : static_cast<ErrorCode>(code);
    TETRAD_TRY(outcome.message, read_string(in));
    state.recent_outcomes.push_back(std::move(outcome));
  }
  return {};
}

Result<void> read_nodes_and_tables(uint8_t format, ByteReader& in, MetaState& state) {
  TETRAD_TRY(const uint64_t nodes, in.read_varint());
  for (uint64_t i = 0; i < nodes; ++i) {
    TETRAD_TRY(NodeInfo node, decode_node_info(first_format_of(format), in));
    const HostId host = node.host;
    state.nodes.emplace(host, std::move(node));
  }
  state.look_at_nodes();
  TETRAD_TRY(const uint64_t tables, in.read_varint());
  std::map<TableId, std::shared_ptr<const TableInfo>> by_id;
  std::map<TableIncarnation, std::shared_ptr<const TableInfo>> by_incarnation;
  for (uint64_t i = 0; i < tables; ++i) {
    TETRAD_TRY(std::shared_ptr<const TableInfo> table, read_table(format, in));
    const bool is_first = by_id.try_emplace(table->id, table).second &&
                          by_incarnation.try_emplace(table->incarnation, table).second;
    if (!is_first)
      return fail(ErrorCode::kCorruption, "two tables of id {} or incarnation {}",
                  table->id.to_string(), table->incarnation.value);
    count_change(nullptr, table.get(), state);
  }
  state.by_incarnation = base::SharedMap(std::move(by_incarnation));
  state.tables = base::SharedMap(std::move(by_id));
  TETRAD_TRY(const uint64_t retired, in.read_varint());
  for (uint64_t i = 0; i < retired; ++i) {
    TETRAD_TRY(const uint32_t incarnation, read_u32(in));
    state.retired.push_back(TableIncarnation{incarnation});
  }
  return {};
}

}  // namespace

void MetaState::look_at_nodes() {
  std::optional<ClusterFormat> lowest;
  std::map<std::string_view, uint32_t> numbers;
  for (const auto& [host, node] : nodes) {
    if (node.state == NodeState::kRemoved) continue;
    lowest = std::min(lowest.value_or(node.format), node.format);
    numbers.try_emplace(node.data_center, static_cast<uint32_t>(numbers.size()));
  }
  if (lowest) format = *lowest;
  data_centers = nullptr;
  if (numbers.size() < 2) return;
  std::map<HostId, uint32_t> of_node;
  for (const auto& [host, node] : nodes) {
    const auto number = numbers.find(node.data_center);
    if (number != numbers.end()) of_node[host] = number->second;
  }
  data_centers = std::make_shared<const DataCenters>(std::move(of_node));
}

void MetaState::put_table(std::shared_ptr<const TableInfo> table) {
  const TableId id = table->id;
  const auto known = tables.find(id);
  count_change(known == tables.end() ? nullptr : known->second.get(), table.get(), *this);
  if (known != tables.end()) by_incarnation.erase(known->second->incarnation);
  TETRAD_ASSERT(!by_incarnation.contains(table->incarnation));
  by_incarnation.put(table->incarnation, table);
  tables.put(id, std::move(table));
  TETRAD_ASSERT(by_incarnation.size() == tables.size());
}

void MetaState::erase_table(TableId id) {
  const auto known = tables.find(id);
  if (known == tables.end()) return;
  count_change(known->second.get(), nullptr, *this);
  by_incarnation.erase(known->second->incarnation);
  tables.erase(id);
  TETRAD_ASSERT(by_incarnation.size() == tables.size());
}

const TableInfo* MetaState::table(TableIncarnation incarnation) const {
  const auto found = by_incarnation.find(incarnation);
  return found == by_incarnation.end() ? nullptr : found->second.get();
}

const TableInfo* MetaState::table(TableId id) const {
  const auto found = tables.find(id);
  return found == tables.end() ? nullptr : found->second.get();
}

const NodeInfo* MetaState::node(HostId host) const {
  const auto found = nodes.find(host);
  return found == nodes.end() ? nullptr : &found->second;
}

std::string MetaState::address_of(HostId host) const {
  const NodeInfo* known = node(host);
  return known == nullptr ? host.to_string() : known->address;
}

std::vector<std::string> MetaState::addresses_of(std::span<const StoreAddress> replicas) const {
  std::vector<std::string> out;
  out.reserve(replicas.size());
  for (const StoreAddress& replica : replicas) out.push_back(address_of(replica.host));
  return out;
}

Uuid MetaState::schema_version_uuid() const {
  Bytes name(cluster_id.view());
  ByteWriter(name).u64(schema_version.value);
  const base::Hash128 hash = base::xxh3_128(name);
  Bytes octets;
  ByteWriter writer(octets);
  writer.u64(hash.high);
  writer.u64(hash.low);
  Uuid uuid = Uuid::from_bytes(octets);
  uuid.octets[6] = static_cast<uint8_t>((uuid.octets[6] & 0x0f) | 0x30);  // version 3, by name
  uuid.octets[8] = static_cast<uint8_t>((uuid.octets[8] & 0x3f) | 0x80);
  return uuid;
}

void encode_meta_state(const MetaState& state, Bytes& out) {
  ByteWriter writer(out);
  writer.u8(meta_encoding_of(state.format));
  writer.raw(state.cluster_id.view());
  writer.bytes(state.cluster_name);
  writer.bytes(state.secret);
  writer.varint(state.applied.value);
  writer.varint(state.schema_version.value);
  write_texts(state.schema_objects, writer);
  writer.varint(state.nodes.size());
  for (const auto& [host, node] : state.nodes) encode_node_info(node, state.format, writer);
  writer.varint(state.tables.size());
  for (const auto& [id, table] : state.tables) write_table(*table, writer);
  writer.varint(state.retired.size());
  for (const TableIncarnation incarnation : state.retired) writer.varint(incarnation.value);
  write_texts(state.settings, writer);
  writer.varint(state.next_incarnation);
  writer.varint(state.next_tablet_id);
  write_outcomes(state, writer);
}

Result<MetaSnapshot> decode_meta_state(BytesView encoded, ClusterFormat known) {
  ByteReader in(encoded);
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format < kMetaEncodingWithoutChangeLogs)
    return fail(ErrorCode::kCorruption, "metadata state format {}", format);
  if (format > kMetaEncodingNewest || first_format_of(format) > known) {
    return fail(ErrorCode::kConfig,
                "the metadata was written by a later program (its version {}): this one does not "
                "read it; start the later one",
                format);
  }
  auto state = std::make_shared<MetaState>();
  TETRAD_TRY(state->cluster_id, read_uuid(in));
  TETRAD_TRY(state->cluster_name, read_string(in));
  TETRAD_TRY(state->secret, read_string(in));
  TETRAD_TRY(state->applied.value, in.read_varint());
  TETRAD_TRY(state->schema_version.value, in.read_varint());
  TETRAD_TRY(auto objects, read_texts(in));
  state->schema_objects = base::SharedMap(std::move(objects));
  TETRAD_TRY_VOID(read_nodes_and_tables(format, in, *state));
  TETRAD_TRY(state->settings, read_texts(in));
  TETRAD_TRY(state->next_incarnation, read_u32(in));
  for (const auto& [incarnation, table] : state->by_incarnation)
    if (incarnation.value >= state->next_incarnation)
      return fail(ErrorCode::kCorruption, "table incarnation {}, the next one is {}",
                  incarnation.value, state->next_incarnation);
  TETRAD_TRY(state->next_tablet_id, in.read_varint());
  TETRAD_TRY_VOID(read_outcomes(in, *state));
  if (!in.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after the metadata state", in.remaining());
  return MetaSnapshot(std::move(state));
}

}  // namespace tetrad::replication
