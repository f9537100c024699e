// SPDX-License-Identifier: Apache-2.0
//
// The grammar is in meta_command.h. Each command has a write_body() and a read function side by
// side, and one number that is never used again. A body that has grown was given a format
// (cluster_format.h): it is written in the format that all nodes of the cluster read. Lengths and
// counts are compared with what is left before memory is taken: a command comes from another node
// or the disk.
// Bytes of metadata commands.
#include "replication/meta/meta_command.h"

#include <charconv>

#include "base/ring_position_io.h"

namespace tetrad::replication {

namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr uint64_t kTokensMax = 4096;
// Names a command of a format: see meta_command.h.
constexpr std::string_view kFormatMark = "+format.";

// On disk and between nodes: never renumber.
enum class CommandType : uint8_t {
  kBootstrapCluster = 1,
  kPutNode = 2,
  kSetNodeState = 3,
  kSchemaChange = 4,
  kSplitTablet = 5,
  kChangeTabletStage = 6,
  kSetTabletFull = 7,
  kSetSetting = 8,
  kForgetRetired = 9,
  kSetTabletRepaired = 10,
  kMergeTablets = 11,
  kRemoveLostNodes = 12,
};

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

/// A count of things that take at least one byte each.
Result<uint64_t> read_count(ByteReader& in) {
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > in.remaining())
    return fail(ErrorCode::kCorruption, "{} things in {} bytes", count, in.remaining());
  return count;
}

void write_optional(const std::optional<std::string>& value, ByteWriter& out) {
  out.u8(value ? 1 : 0);
  if (value) out.bytes(*value);
}

Result<std::optional<std::string>> read_optional(ByteReader& in) {
  TETRAD_TRY(const uint8_t present, in.read_u8());
  if (present == 0) return std::optional<std::string>();
  TETRAD_TRY(std::string value, read_string(in));
  return std::optional<std::string>(std::move(value));
}

void write_table_ids(const std::vector<TableId>& ids, ByteWriter& out) {
  out.varint(ids.size());
  for (const TableId& id : ids) out.raw(id.value.view());
}

Result<std::vector<TableId>> read_table_ids(ByteReader& in) {
  TETRAD_TRY(const uint64_t count, read_count(in));
  std::vector<TableId> ids;
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const Uuid id, read_uuid(in));
    ids.push_back(TableId{id});
  }
  return ids;
}

CommandType write_body(const BootstrapCluster& body, ClusterFormat format, ByteWriter& out) {
  out.raw(body.cluster_id.view());
  out.bytes(body.cluster_name);
  out.bytes(body.secret);
  encode_node_info(body.node, format, out);
  out.u64(body.token_seed);
  return CommandType::kBootstrapCluster;
}

Result<BootstrapCluster> read_bootstrap(uint8_t format, ByteReader& in) {
  BootstrapCluster body;
  TETRAD_TRY(body.cluster_id, read_uuid(in));
  TETRAD_TRY(body.cluster_name, read_string(in));
  TETRAD_TRY(body.secret, read_string(in));
  TETRAD_TRY(body.node, decode_node_info(first_format_of(format), in));
  TETRAD_TRY(body.token_seed, in.read_u64());
  return body;
}

CommandType write_body(const PutNode& body, ClusterFormat format, ByteWriter& out) {
  encode_node_info(body.node, format, out);
  out.u64(body.token_seed);
  return CommandType::kPutNode;
}

Result<PutNode> read_put_node(uint8_t format, ByteReader& in) {
  PutNode body;
  TETRAD_TRY(body.node, decode_node_info(first_format_of(format), in));
  TETRAD_TRY(body.token_seed, in.read_u64());
  return body;
}

CommandType write_body(const SetNodeState& body, ByteWriter& out) {
  out.raw(body.host.value.view());
  out.u8(static_cast<uint8_t>(body.state));
  return CommandType::kSetNodeState;
}

Result<NodeState> read_node_state(ByteReader& in) {
  TETRAD_TRY(const uint8_t state, in.read_u8());
  if (state > static_cast<uint8_t>(NodeState::kRemoved))
    return fail(ErrorCode::kCorruption, "node state {}", state);
  return static_cast<NodeState>(state);
}

Result<SetNodeState> read_set_node_state(ByteReader& in) {
  SetNodeState body;
  TETRAD_TRY(body.host.value, read_uuid(in));
  TETRAD_TRY(body.state, read_node_state(in));
  return body;
}

CommandType write_body(const SchemaChange& body, ByteWriter& out) {
  out.varint(body.expected.value);
  out.varint(body.objects.size());
  for (const auto& [name, text] : body.objects) {
    out.bytes(name);
    write_optional(text, out);
  }
  out.varint(body.new_tables.size());
  for (const auto& table : body.new_tables) {
    out.raw(table.id.value.view());
    out.bytes(table.keyspace);
    out.bytes(table.name);
    out.varint(table.max_partition_mb);
    out.varint(table.initial_tablets);
    out.u8(table.change_log ? 1 : 0);
    encode_throughput(table.throughput, out);
  }
  out.varint(body.altered_tables.size());
  for (const auto& table : body.altered_tables) {
    out.raw(table.id.value.view());
    out.bytes(table.keyspace);
    out.bytes(table.name);
    out.varint(table.max_partition_mb);
    out.u8(table.change_log ? 1 : 0);
    encode_throughput(table.throughput, out);
  }
  write_table_ids(body.dropped_tables, out);
  write_table_ids(body.truncated_tables, out);
  return CommandType::kSchemaChange;
}

Result<bool> read_change_log(uint8_t format, ByteReader& in) {
  if (format == kMetaEncodingWithoutChangeLogs) return false;
  TETRAD_TRY(const uint8_t on, in.read_u8());
  if (on > 1) return fail(ErrorCode::kCorruption, "a change log that is {}", on);
  return on == 1;
}

Result<SchemaChange> read_schema_change(uint8_t format, ByteReader& in) {
  SchemaChange body;
  TETRAD_TRY(body.expected.value, in.read_varint());
  TETRAD_TRY(const uint64_t objects, read_count(in));
  for (uint64_t i = 0; i < objects; ++i) {
    TETRAD_TRY(std::string name, read_string(in));
    TETRAD_TRY(std::optional<std::string> text, read_optional(in));
    body.objects.emplace_back(std::move(name), std::move(text));
  }
  TETRAD_TRY(const uint64_t new_tables, read_count(in));
  for (uint64_t i = 0; i < new_tables; ++i) {
    SchemaChange::NewTable table;
    TETRAD_TRY(table.id.value, read_uuid(in));
    TETRAD_TRY(table.keyspace, read_string(in));
    TETRAD_TRY(table.name, read_string(in));
    TETRAD_TRY(table.max_partition_mb, read_u32(in));
    TETRAD_TRY(table.initial_tablets, read_u32(in));
    TETRAD_TRY(table.change_log, read_change_log(format, in));
    if (format > kMetaEncodingWithoutThroughput) {
      TETRAD_TRY(table.throughput, decode_throughput(in));
    }
    body.new_tables.push_back(std::move(table));
  }
  TETRAD_TRY(const uint64_t altered_tables, read_count(in));
  for (uint64_t i = 0; i < altered_tables; ++i) {
    SchemaChange::AlteredTable table;
    TETRAD_TRY(table.id.value, read_uuid(in));
    TETRAD_TRY(table.keyspace, read_string(in));
    TETRAD_TRY(table.name, read_string(in));
    TETRAD_TRY(table.max_partition_mb, read_u32(in));
    TETRAD_TRY(table.change_log, read_change_log(format, in));
    if (format > kMetaEncodingWithoutThroughput) {
      TETRAD_TRY(table.throughput, decode_throughput(in));
    }
    body.altered_tables.push_back(std::move(table));
  }
  TETRAD_TRY(body.dropped_tables, read_table_ids(in));
  TETRAD_TRY(body.truncated_tables, read_table_ids(in));
  return body;
}

CommandType write_body(const SplitTablet& body, ByteWriter& out) {
  out.varint(body.incarnation.value);
  out.varint(body.tablet.value);
  write_position(body.range.start, out);
  write_position(body.range.end, out);
  write_position(body.at, out);
  out.varint(body.tablets_max);
  return CommandType::kSplitTablet;
}

Result<SplitTablet> read_split_tablet(uint8_t format, ByteReader& in) {
  SplitTablet body;
  TETRAD_TRY(body.incarnation.value, read_u32(in));
  TETRAD_TRY(body.tablet.value, in.read_varint());
  TETRAD_TRY(body.range.start, read_position(in));
  TETRAD_TRY(body.range.end, read_position(in));
  TETRAD_TRY(body.at, read_position(in));
  if (format > kMetaEncodingWithoutThroughput) {
    TETRAD_TRY(body.tablets_max, read_u32(in));
  }
  return body;
}

CommandType write_body(const ChangeTabletStage& body, ByteWriter& out) {
  out.varint(body.incarnation.value);
  out.varint(body.tablet.value);
  out.varint(body.expected.value);
  out.u8(static_cast<uint8_t>(body.next));
  out.u8(body.give_up ? 1 : 0);
  out.varint(body.new_replicas.size());
  for (const StoreAddress& store : body.new_replicas) {
    out.raw(store.host.value.view());
    out.varint(store.store);
  }
  return CommandType::kChangeTabletStage;
}

Result<ChangeTabletStage> read_change_tablet_stage(ByteReader& in) {
  ChangeTabletStage body;
  TETRAD_TRY(body.incarnation.value, read_u32(in));
  TETRAD_TRY(body.tablet.value, in.read_varint());
  TETRAD_TRY(body.expected.value, in.read_varint());
  TETRAD_TRY(const uint8_t next, in.read_u8());
  if (next > static_cast<uint8_t>(partitioner::TabletStage::kWriteNew))
    return fail(ErrorCode::kCorruption, "tablet stage {}", next);
  body.next = static_cast<partitioner::TabletStage>(next);
  TETRAD_TRY(const uint8_t give_up, in.read_u8());
  body.give_up = give_up != 0;
  TETRAD_TRY(const uint64_t replicas, read_count(in));
  for (uint64_t i = 0; i < replicas; ++i) {
    StoreAddress store;
    TETRAD_TRY(store.host.value, read_uuid(in));
    TETRAD_TRY(store.store, read_u32(in));
    body.new_replicas.push_back(store);
  }
  return body;
}

CommandType write_body(const SetTabletFull& body, ByteWriter& out) {
  out.varint(body.incarnation.value);
  out.varint(body.tablet.value);
  out.u8(body.full ? 1 : 0);
  return CommandType::kSetTabletFull;
}

Result<SetTabletFull> read_set_tablet_full(ByteReader& in) {
  SetTabletFull body;
  TETRAD_TRY(body.incarnation.value, read_u32(in));
  TETRAD_TRY(body.tablet.value, in.read_varint());
  TETRAD_TRY(const uint8_t full, in.read_u8());
  body.full = full != 0;
  return body;
}

CommandType write_body(const SetTabletRepaired& body, ByteWriter& out) {
  out.varint(body.incarnation.value);
  out.varint(body.tablet.value);
  out.varint(body.epoch.value);
  write_position(body.range.start, out);
  write_position(body.range.end, out);
  out.zigzag(body.repaired_us);
  return CommandType::kSetTabletRepaired;
}

Result<SetTabletRepaired> read_set_tablet_repaired(ByteReader& in) {
  SetTabletRepaired body;
  TETRAD_TRY(body.incarnation.value, read_u32(in));
  TETRAD_TRY(body.tablet.value, in.read_varint());
  TETRAD_TRY(body.epoch.value, in.read_varint());
  TETRAD_TRY(body.range.start, read_position(in));
  TETRAD_TRY(body.range.end, read_position(in));
  TETRAD_TRY(body.repaired_us, in.read_zigzag());
  return body;
}

CommandType write_body(const MergeTablets& body, ByteWriter& out) {
  out.varint(body.incarnation.value);
  out.varint(body.left.value);
  out.varint(body.right.value);
  out.varint(body.left_epoch.value);
  out.varint(body.right_epoch.value);
  write_position(body.range.start, out);
  write_position(body.cut, out);
  write_position(body.range.end, out);
  out.varint(body.tablets_min);
  out.u8(body.bounces_most);
  return CommandType::kMergeTablets;
}

Result<MergeTablets> read_merge_tablets(ByteReader& in) {
  MergeTablets body;
  TETRAD_TRY(body.incarnation.value, read_u32(in));
  TETRAD_TRY(body.left.value, in.read_varint());
  TETRAD_TRY(body.right.value, in.read_varint());
  TETRAD_TRY(body.left_epoch.value, in.read_varint());
  TETRAD_TRY(body.right_epoch.value, in.read_varint());
  TETRAD_TRY(body.range.start, read_position(in));
  TETRAD_TRY(body.cut, read_position(in));
  TETRAD_TRY(body.range.end, read_position(in));
  TETRAD_TRY(body.tablets_min, read_u32(in));
  TETRAD_TRY(body.bounces_most, in.read_u8());
  return body;
}

CommandType write_body(const RemoveLostNodes& body, ByteWriter& out) {
  out.varint(body.hosts.size());
  for (const HostId& host : body.hosts) out.raw(host.value.view());
  return CommandType::kRemoveLostNodes;
}

Result<RemoveLostNodes> read_remove_lost_nodes(ByteReader& in) {
  RemoveLostNodes body;
  TETRAD_TRY(const uint64_t count, read_count(in));
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const Uuid host, read_uuid(in));
    body.hosts.push_back(HostId{host});
  }
  return body;
}

CommandType write_body(const SetSetting& body, ByteWriter& out) {
  out.bytes(body.name);
  write_optional(body.value, out);
  return CommandType::kSetSetting;
}

Result<SetSetting> read_set_setting(ByteReader& in) {
  SetSetting body;
  TETRAD_TRY(body.name, read_string(in));
  TETRAD_TRY(body.value, read_optional(in));
  return body;
}

CommandType write_body(const ForgetRetired& body, ByteWriter& out) {
  out.varint(body.incarnations.size());
  for (const TableIncarnation incarnation : body.incarnations) out.varint(incarnation.value);
  return CommandType::kForgetRetired;
}

Result<ForgetRetired> read_forget_retired(ByteReader& in) {
  ForgetRetired body;
  TETRAD_TRY(const uint64_t count, read_count(in));
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint32_t incarnation, read_u32(in));
    body.incarnations.push_back(TableIncarnation{incarnation});
  }
  return body;
}

/// The first format of programs that read it.
ClusterFormat first_format_of(CommandType type) {
  if (type == CommandType::kMergeTablets) return kFormatMerges;
  return type == CommandType::kRemoveLostNodes ? kFormatLostNodes : kFormatFirst;
}

Result<void> read_body(uint8_t format, CommandType type, ByteReader& in, MetaCommand& command) {
  switch (type) {
    case CommandType::kBootstrapCluster: {
      TETRAD_TRY(command.body, read_bootstrap(format, in));
      return {};
    }
    case CommandType::kPutNode: {
      TETRAD_TRY(command.body, read_put_node(format, in));
      return {};
    }
    case CommandType::kSetNodeState: {
      TETRAD_TRY(command.body, read_set_node_state(in));
      return {};
    }
    case CommandType::kSchemaChange: {
      TETRAD_TRY(command.body, read_schema_change(format, in));
      return {};
    }
    case CommandType::kSplitTablet: {
      TETRAD_TRY(command.body, read_split_tablet(format, in));
      return {};
    }
    case CommandType::kChangeTabletStage: {
      TETRAD_TRY(command.body, read_change_tablet_stage(in));
      return {};
    }
    case CommandType::kSetTabletFull: {
      TETRAD_TRY(command.body, read_set_tablet_full(in));
      return {};
    }
    case CommandType::kSetSetting: {
      TETRAD_TRY(command.body, read_set_setting(in));
      return {};
    }
    case CommandType::kForgetRetired: {
      TETRAD_TRY(command.body, read_forget_retired(in));
      return {};
    }
    case CommandType::kSetTabletRepaired: {
      TETRAD_TRY(command.body, read_set_tablet_repaired(in));
      return {};
    }
    case CommandType::kMergeTablets: {
      TETRAD_TRY(command.body, read_merge_tablets(in));
      return {};
    }
    case CommandType::kRemoveLostNodes: {
      TETRAD_TRY(command.body, read_remove_lost_nodes(in));
      return {};
    }
  }
  return fail(ErrorCode::kCorruption, "metadata command of type {}", static_cast<int>(type));
}

}  // namespace

void encode_node_info(const NodeInfo& node, ClusterFormat format, ByteWriter& out) {
  out.raw(node.host.value.view());
  out.bytes(node.address);
  out.u16(node.native_port);
  out.u16(node.internode_port);
  out.u16(node.admin_port);
  out.bytes(node.data_center);
  out.bytes(node.rack);
  out.varint(node.tokens.size());
  for (const int64_t token : node.tokens) out.i64(token);
  out.varint(node.store_count);
  out.u8(static_cast<uint8_t>(node.state));
  if (format >= kFormatNumbered) {
    out.bytes(node.version);
    out.varint(node.format);
    if (format >= kFormatClientAddress) out.bytes(node.client_address);
  } else if (node.format > kFormatFirst) {
    out.bytes(fmt::format("{}{}{}", node.version, kFormatMark, node.format));
  } else {
    out.bytes(node.version);
  }
}

namespace {

/// Takes the format off a version that carries it.
void part_version(NodeInfo& node) {
  const size_t mark = node.version.rfind(kFormatMark);
  if (mark == std::string::npos) return;
  const std::string_view digits = std::string_view(node.version).substr(mark + kFormatMark.size());
  uint32_t format = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), format);
  if (status != std::errc() || end != digits.data() + digits.size() || format <= kFormatFirst)
    return;  // not ours
  node.format = format;
  node.version.resize(mark);
}

}  // namespace

Result<NodeInfo> decode_node_info(ClusterFormat format, ByteReader& in) {
  NodeInfo node;
  TETRAD_TRY(node.host.value, read_uuid(in));
  TETRAD_TRY(node.address, read_string(in));
  TETRAD_TRY(node.native_port, in.read_u16());
  TETRAD_TRY(node.internode_port, in.read_u16());
  TETRAD_TRY(node.admin_port, in.read_u16());
  TETRAD_TRY(node.data_center, read_string(in));
  TETRAD_TRY(node.rack, read_string(in));
  TETRAD_TRY(const uint64_t tokens, read_count(in));
  if (tokens > kTokensMax) return fail(ErrorCode::kCorruption, "{} tokens of a node", tokens);
  for (uint64_t i = 0; i < tokens; ++i) {
    TETRAD_TRY(const int64_t token, in.read_i64());
    node.tokens.push_back(token);
  }
  TETRAD_TRY(node.store_count, read_u32(in));
  if (node.store_count == 0 || node.store_count > 1024)
    return fail(ErrorCode::kCorruption, "{} stores of a node", node.store_count);
  TETRAD_TRY(node.state, read_node_state(in));
  TETRAD_TRY(node.version, read_string(in));
  if (format >= kFormatNumbered) {
    TETRAD_TRY(node.format, read_u32(in));
    if (node.format < kFormatFirst) return fail(ErrorCode::kCorruption, "a node of format 0");
    if (format >= kFormatClientAddress) {
      TETRAD_TRY(node.client_address, read_string(in));
    }
  } else {
    part_version(node);
  }
  return node;
}

void encode_throughput(const Throughput& throughput, ByteWriter& out) {
  out.varint(throughput.ru_per_s);
  out.u8(throughput.of_keyspace ? 1 : 0);
}

Result<Throughput> decode_throughput(ByteReader& in) {
  Throughput throughput;
  TETRAD_TRY(throughput.ru_per_s, read_u32(in));
  TETRAD_TRY(const uint8_t of_keyspace, in.read_u8());
  if (of_keyspace > 1) return fail(ErrorCode::kCorruption, "a throughput of kind {}", of_keyspace);
  throughput.of_keyspace = of_keyspace == 1;
  return throughput;
}

Bytes encode_meta_command(const MetaCommand& command, ClusterFormat format) {
  Bytes body;
  ByteWriter body_writer(body);
  const auto write = [&](const auto& of_type) {
    if constexpr (requires { of_type.node; })
      return write_body(of_type, format, body_writer);
    else
      return write_body(of_type, body_writer);
  };
  const CommandType type = std::visit(write, command.body);
  Bytes out;
  ByteWriter writer(out);
  writer.u8(meta_encoding_of(format));
  writer.u8(static_cast<uint8_t>(type));
  writer.raw(command.id.view());
  writer.raw(command.origin.value.view());
  writer.raw(body);
  return out;
}

Result<MetaCommand> decode_meta_command(BytesView encoded, ClusterFormat known) {
  ByteReader in(encoded);
  TETRAD_TRY(const uint8_t format, in.read_u8());
  if (format < kMetaEncodingWithoutChangeLogs)
    return fail(ErrorCode::kCorruption, "metadata command format {}", format);
  if (format > kMetaEncodingNewest || first_format_of(format) > known)
    return fail(ErrorCode::kConfig, "a metadata command of a later program (its version {})",
                format);
  TETRAD_TRY(const uint8_t type, in.read_u8());
  if (known < first_format_of(static_cast<CommandType>(type)))
    return fail(ErrorCode::kConfig, "a metadata command of a later program (its type {})", type);
  MetaCommand command;
  TETRAD_TRY(command.id, read_uuid(in));
  TETRAD_TRY(command.origin.value, read_uuid(in));
  TETRAD_TRY_VOID(read_body(format, static_cast<CommandType>(type), in, command));
  if (!in.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after a metadata command", in.remaining());
  return command;
}

}  // namespace tetrad::replication
