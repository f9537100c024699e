// SPDX-License-Identifier: Apache-2.0
// Bodies of messages, in the order of their fields: indexes, terms, rounds and contexts as varints,
// flags as u8 0 or 1.
//
//   append request   := previous_index previous_term commit, varint count, entries
//   install snapshot := snapshot
//   fetch reply      := after applied applied_term, varint count, entries
#include "replication/meta/raft_messages.h"

#include <array>

namespace tetrad::replication {
namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr uint8_t kVersion = 1;
constexpr size_t kEntryBytesMin = 4;  // three varints or bytes, and the length of no data

Result<uint64_t> read_number(ByteReader& in) {
  TETRAD_TRY(const uint64_t number, in.read_varint());
  if (number > kRaftNumberMax) return fail(ErrorCode::kCorruption, "raft number {}", number);
  return number;
}

Result<bool> read_flag(ByteReader& in) {
  TETRAD_TRY(const uint8_t flag, in.read_u8());
  if (flag > 1) return fail(ErrorCode::kCorruption, "raft flag {}", flag);
  return flag == 1;
}

Result<Uuid> read_uuid(ByteReader& in) {
  TETRAD_TRY(const BytesView bytes, in.read_raw(16));
  return Uuid::from_bytes(bytes);
}

Result<void> read_version(ByteReader& in) {
  TETRAD_TRY(const uint8_t version, in.read_u8());
  if (version != kVersion) {
    return fail(ErrorCode::kCorruption, "raft bytes of version {}", version);
  }
  return {};
}

Result<void> want_end(const ByteReader& in) {
  if (!in.at_end()) {
    return fail(ErrorCode::kCorruption, "{} bytes too many", in.remaining());
  }
  return {};
}

Result<std::vector<RaftEntry>> read_entries(ByteReader& in) {
  TETRAD_TRY(const uint64_t count, in.read_varint());
  if (count > kRaftMessageEntriesMax || count > in.remaining() / kEntryBytesMin) {
    return fail(ErrorCode::kCorruption, "{} raft entries in {} bytes", count, in.remaining());
  }
  std::vector<RaftEntry> entries;
  entries.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(RaftEntry entry, decode_raft_entry(in));
    entries.push_back(std::move(entry));
  }
  return entries;
}

struct BodyWriter {
  ByteWriter& out;

  void entries(const std::vector<RaftEntry>& entries) {
    out.varint(entries.size());
    for (const RaftEntry& entry : entries) encode(entry, out);
  }

  void operator()(const RaftPreVoteRequest& body) {
    out.varint(body.campaign_term);
    out.varint(body.last_index);
    out.varint(body.last_term);
  }
  void operator()(const RaftPreVoteReply& body) {
    out.varint(body.campaign_term);
    out.u8(body.granted ? 1 : 0);
  }
  void operator()(const RaftVoteRequest& body) {
    out.varint(body.last_index);
    out.varint(body.last_term);
    out.u8(body.transfer ? 1 : 0);
  }
  void operator()(const RaftVoteReply& body) { out.u8(body.granted ? 1 : 0); }
  void operator()(const RaftAppendRequest& body) {
    out.varint(body.previous_index);
    out.varint(body.previous_term);
    out.varint(body.commit);
    entries(body.entries);
  }
  void operator()(const RaftAppendReply& body) {
    out.u8(body.accepted ? 1 : 0);
    out.varint(body.index);
    out.varint(body.hint_index);
    out.varint(body.hint_term);
  }
  void operator()(const RaftHeartbeat& body) {
    out.varint(body.commit);
    out.varint(body.read_round);
  }
  void operator()(const RaftHeartbeatReply& body) { out.varint(body.read_round); }
  void operator()(const RaftInstallSnapshot& body) { encode(body.meta, out); }
  void operator()(const RaftTimeoutNow&) {}
  void operator()(const RaftReadRequest& body) { out.varint(body.context); }
  void operator()(const RaftReadReply& body) {
    out.varint(body.context);
    out.u8(body.confirmed ? 1 : 0);
    out.varint(body.index);
  }
  void operator()(const RaftFetchRequest& body) { out.varint(body.after); }
  void operator()(const RaftFetchReply& body) {
    out.varint(body.after);
    out.varint(body.applied);
    out.varint(body.applied_term);
    entries(body.entries);
  }
};

/// One table: the fields of each type of message, in the order in which BodyWriter writes them.
/// Errors: kCorruption for a type that this program does not know.
Result<RaftMessageBody> read_body(uint8_t type, ByteReader& in) {
  switch (type) {
    case 0: {
      RaftPreVoteRequest body;
      TETRAD_TRY(body.campaign_term, read_number(in));
      TETRAD_TRY(body.last_index, read_number(in));
      TETRAD_TRY(body.last_term, read_number(in));
      return body;
    }
    case 1: {
      RaftPreVoteReply body;
      TETRAD_TRY(body.campaign_term, read_number(in));
      TETRAD_TRY(body.granted, read_flag(in));
      return body;
    }
    case 2: {
      RaftVoteRequest body;
      TETRAD_TRY(body.last_index, read_number(in));
      TETRAD_TRY(body.last_term, read_number(in));
      TETRAD_TRY(body.transfer, read_flag(in));
      return body;
    }
    case 3: {
      RaftVoteReply body;
      TETRAD_TRY(body.granted, read_flag(in));
      return body;
    }
    case 4: {
      RaftAppendRequest body;
      TETRAD_TRY(body.previous_index, read_number(in));
      TETRAD_TRY(body.previous_term, read_number(in));
      TETRAD_TRY(body.commit, read_number(in));
      TETRAD_TRY(body.entries, read_entries(in));
      return body;
    }
    case 5: {
      RaftAppendReply body;
      TETRAD_TRY(body.accepted, read_flag(in));
      TETRAD_TRY(body.index, read_number(in));
      TETRAD_TRY(body.hint_index, read_number(in));
      TETRAD_TRY(body.hint_term, read_number(in));
      return body;
    }
    case 6: {
      RaftHeartbeat body;
      TETRAD_TRY(body.commit, read_number(in));
      TETRAD_TRY(body.read_round, in.read_varint());
      return body;
    }
    case 7: {
      RaftHeartbeatReply body;
      TETRAD_TRY(body.read_round, in.read_varint());
      return body;
    }
    case 8: {
      RaftInstallSnapshot body;
      TETRAD_TRY(body.meta, decode_raft_snapshot_meta(in));
      return body;
    }
    case 9:
      return RaftTimeoutNow{};
    case 10: {
      RaftReadRequest body;
      TETRAD_TRY(body.context, in.read_varint());
      return body;
    }
    case 11: {
      RaftReadReply body;
      TETRAD_TRY(body.context, in.read_varint());
      TETRAD_TRY(body.confirmed, read_flag(in));
      TETRAD_TRY(body.index, read_number(in));
      return body;
    }
    case 12: {
      RaftFetchRequest body;
      TETRAD_TRY(body.after, read_number(in));
      return body;
    }
    case 13: {
      RaftFetchReply body;
      TETRAD_TRY(body.after, read_number(in));
      TETRAD_TRY(body.applied, read_number(in));
      TETRAD_TRY(body.applied_term, read_number(in));
      TETRAD_TRY(body.entries, read_entries(in));
      return body;
    }
    default:
      return fail(ErrorCode::kCorruption, "raft message of type {}", type);
  }
}

}  // namespace

const char* name_of(const RaftMessageBody& body) {
  static constexpr std::array kNames = {
      "pre-vote request", "pre-vote reply", "vote request",    "vote reply",       "append request",
      "append reply",     "heartbeat",      "heartbeat reply", "install snapshot", "timeout now",
      "read request",     "read reply",     "fetch request",   "fetch reply"};
  static_assert(kNames.size() == std::variant_size_v<RaftMessageBody>);
  return kNames[body.index()];
}

void encode(const RaftEntry& entry, ByteWriter& out) {
  out.varint(entry.term);
  out.varint(entry.index);
  out.u8(static_cast<uint8_t>(entry.kind));
  out.bytes(entry.data);
}

void encode(const RaftHardState& state, ByteWriter& out) {
  out.u8(kVersion);
  out.varint(state.term);
  out.u8(state.vote ? 1 : 0);
  if (state.vote) out.raw(state.vote->value.view());
  out.varint(state.commit);
}

void encode(const RaftSnapshotMeta& meta, ByteWriter& out) {
  out.u8(kVersion);
  out.varint(meta.index);
  out.varint(meta.term);
  encode(meta.configuration, out);
}

void encode(const RaftMessage& message, ByteWriter& out) {
  out.u8(kVersion);
  out.u8(static_cast<uint8_t>(message.body.index()));
  out.raw(message.cluster_id.view());
  out.varint(message.group_id.value);
  out.raw(message.from.value.view());
  out.raw(message.to.value.view());
  out.varint(message.term);
  std::visit(BodyWriter{out}, message.body);
}

Result<RaftEntry> decode_raft_entry(ByteReader& in) {
  RaftEntry entry;
  TETRAD_TRY(entry.term, read_number(in));
  TETRAD_TRY(entry.index, read_number(in));
  TETRAD_TRY(const uint8_t kind, in.read_u8());
  if (kind > static_cast<uint8_t>(RaftEntryKind::kConfiguration)) {
    return fail(ErrorCode::kCorruption, "raft entry of kind {}", kind);
  }
  entry.kind = static_cast<RaftEntryKind>(kind);
  TETRAD_TRY(const BytesView data, in.read_bytes());
  entry.data = Bytes(data);
  return entry;
}

Result<RaftEntry> decode_raft_entry(BytesView bytes) {
  ByteReader in(bytes);
  TETRAD_TRY(RaftEntry entry, decode_raft_entry(in));
  TETRAD_TRY_VOID(want_end(in));
  return entry;
}

Result<RaftHardState> decode_raft_hard_state(BytesView bytes) {
  ByteReader in(bytes);
  RaftHardState state;
  TETRAD_TRY_VOID(read_version(in));
  TETRAD_TRY(state.term, read_number(in));
  TETRAD_TRY(const bool voted, read_flag(in));
  if (voted) {
    TETRAD_TRY(const Uuid vote, read_uuid(in));
    state.vote = RaftServerId{vote};
  }
  TETRAD_TRY(state.commit, read_number(in));
  TETRAD_TRY_VOID(want_end(in));
  return state;
}

Result<RaftSnapshotMeta> decode_raft_snapshot_meta(ByteReader& in) {
  RaftSnapshotMeta meta;
  TETRAD_TRY_VOID(read_version(in));
  TETRAD_TRY(meta.index, read_number(in));
  TETRAD_TRY(meta.term, read_number(in));
  TETRAD_TRY(meta.configuration, decode_raft_configuration(in));
  return meta;
}

Result<RaftSnapshotMeta> decode_raft_snapshot_meta(BytesView bytes) {
  ByteReader in(bytes);
  TETRAD_TRY(RaftSnapshotMeta meta, decode_raft_snapshot_meta(in));
  TETRAD_TRY_VOID(want_end(in));
  return meta;
}

Result<RaftMessage> decode_raft_message(BytesView bytes) {
  ByteReader in(bytes);
  RaftMessage message;
  TETRAD_TRY_VOID(read_version(in));
  TETRAD_TRY(const uint8_t type, in.read_u8());
  TETRAD_TRY(message.cluster_id, read_uuid(in));
  TETRAD_TRY(message.group_id.value, in.read_varint());
  TETRAD_TRY(message.from.value, read_uuid(in));
  TETRAD_TRY(message.to.value, read_uuid(in));
  TETRAD_TRY(message.term, read_number(in));
  TETRAD_TRY(message.body, read_body(type, in));
  TETRAD_TRY_VOID(want_end(in));
  return message;
}

Bytes encode_configuration_data(const RaftConfiguration& configuration) {
  Bytes data;
  ByteWriter out(data);
  encode(configuration, out);
  return data;
}

Result<RaftConfiguration> decode_configuration_data(BytesView data) {
  ByteReader in(data);
  TETRAD_TRY(RaftConfiguration configuration, decode_raft_configuration(in));
  TETRAD_TRY_VOID(want_end(in));
  if (configuration.voters.empty()) {
    return fail(ErrorCode::kCorruption, "raft configuration without voters");
  }
  return configuration;
}

}  // namespace tetrad::replication
