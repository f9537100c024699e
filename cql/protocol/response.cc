// SPDX-License-Identifier: Apache-2.0
// Responses of the server as envelopes, appended to the connection's buffer. EnvelopeWriter writes
// a header with an open length and what may stand before each body (tracing id, warnings, custom
// payload, in this order); finish() fills in the length. Framing and compression come later, for a
// whole turn (frame_encoder.cc).
#include "cql/protocol/response.h"

#include "base/assert.h"
#include "cql/protocol/envelope_writer.h"
#include "cql/protocol/notation.h"

namespace tetrad::cql {
namespace {

namespace result_kind {
constexpr int32_t kVoid = 1;
constexpr int32_t kSetKeyspace = 3;
constexpr int32_t kPrepared = 4;
constexpr int32_t kSchemaChange = 5;
}  // namespace result_kind
constexpr uint32_t kGlobalTable = 0x01;
constexpr uint32_t kNoMetadata = 0x04;

// A message that is one [string].
void append_message(Bytes& out, const ReplyHead& head, Opcode opcode, std::string_view text) {
  EnvelopeWriter envelope(out, head, opcode);
  append_string(out, text);
  envelope.finish();
}

/// The body of a schema change result or event. v3 does not know functions: their keyspace changed.
void append_schema_change_body(Bytes& out, int version, const SchemaChange& change) {
  using Target = SchemaChange::Target;
  const bool function = change.target == Target::kFunction || change.target == Target::kAggregate;
  const bool untold = function && version < 4;
  const Target target = untold ? Target::kKeyspace : change.target;
  append_string(out, name_of(untold ? SchemaChange::Kind::kUpdated : change.kind));
  append_string(out, name_of(target));
  append_string(out, change.keyspace);
  if (target != Target::kKeyspace) append_string(out, change.name);
  if (function && !untold) append_string_list(out, change.argument_types);
}

// Of the markers of a prepared statement. From v4 on with the positions of the partition key among
// them, by which drivers route requests.
void append_marker_metadata(Bytes& out, int version, const PreparedReply& prepared) {
  append_int(out, has_global_table(prepared.markers) ? kGlobalTable : 0u);
  append_int(out, static_cast<int32_t>(prepared.markers.size()));
  if (version >= 4) {
    append_int(out, static_cast<int32_t>(prepared.partition_key_markers.size()));
    for (const uint16_t marker : prepared.partition_key_markers) append_int(out, marker);
  }
  append_column_specs(out, prepared.markers, version);
}

// Null: the statement gives no rows, or a conditional one, whose columns are known when it has run.
void append_result_metadata(Bytes& out, int version, const EncodedMetadata* metadata) {
  if (metadata == nullptr) {
    append_int(out, kNoMetadata);
    append_int(out, int32_t{0});
    return;
  }
  append_int(out, metadata->global_table() ? kGlobalTable : 0u);
  append_int(out, static_cast<int32_t>(metadata->column_count()));
  out.append(metadata->encoded(version));
}

}  // namespace

// In the order of the flags in the header: tracing id, warnings, custom payload.
EnvelopeWriter::EnvelopeWriter(Bytes& out, const ReplyHead& head, Opcode opcode)
    : out_(out), start_(out.size()) {
  EnvelopeHeader header;
  header.version = static_cast<uint8_t>(head.version);
  header.response = true;
  header.stream = head.stream;
  header.opcode = opcode;
  // v3 has neither warnings nor a custom payload: they are left out.
  const bool with_extras = head.version >= 4;
  const bool warned = with_extras && !head.warnings.empty();
  const bool payload = with_extras && !head.custom_payload.empty();
  if (head.tracing_id != nullptr) header.flags |= envelope_flag::kTracing;
  if (warned) header.flags |= envelope_flag::kWarnings;
  if (payload) header.flags |= envelope_flag::kCustomPayload;
  char bytes[kEnvelopeHeaderBytes];
  encode_envelope_header(bytes, header);
  out.append(bytes, sizeof(bytes));
  if (head.tracing_id != nullptr) out.append(head.tracing_id->view());
  if (warned) append_string_list(out, head.warnings);
  if (payload) {
    append_int(out, static_cast<uint16_t>(head.custom_payload.size()));
    for (const auto& [key, value] : head.custom_payload) {
      append_string(out, key);
      append_bytes(out, value);
    }
  }
}

void EnvelopeWriter::finish() { patch_body_length(out_, start_); }

void patch_body_length(Bytes& out, size_t start) {
  const size_t size = out.size() - start - kEnvelopeHeaderBytes;
  // Writers of large answers check before (rows_writer.cc).
  TETRAD_ASSERT(size <= kResponseBodyBytesMax);
  base::store_big_endian(out.data() + start + 5, static_cast<int32_t>(size));
}

void append_ready(Bytes& out, const ReplyHead& head) {
  EnvelopeWriter(out, head, Opcode::kReady).finish();
}

void append_authenticate(Bytes& out, const ReplyHead& head, std::string_view authenticator) {
  append_message(out, head, Opcode::kAuthenticate, authenticator);
}

void append_auth_challenge(Bytes& out, const ReplyHead& head, BytesView token) {
  EnvelopeWriter envelope(out, head, Opcode::kAuthChallenge);
  append_bytes(out, token);
  envelope.finish();
}

void append_auth_success(Bytes& out, const ReplyHead& head, std::optional<BytesView> token) {
  EnvelopeWriter envelope(out, head, Opcode::kAuthSuccess);
  append_bytes(out, token);
  envelope.finish();
}

// [string multimap].
void append_supported(Bytes& out, const ReplyHead& head, std::span<const SupportedOption> options) {
  EnvelopeWriter envelope(out, head, Opcode::kSupported);
  append_int(out, static_cast<uint16_t>(options.size()));
  for (const auto& [name, values] : options) {
    append_string(out, name);
    append_string_list(out, values);
  }
  envelope.finish();
}

void append_void(Bytes& out, const ReplyHead& head) {
  EnvelopeWriter envelope(out, head, Opcode::kResult);
  append_int(out, result_kind::kVoid);
  envelope.finish();
}

void append_set_keyspace(Bytes& out, const ReplyHead& head, std::string_view keyspace) {
  EnvelopeWriter envelope(out, head, Opcode::kResult);
  append_int(out, result_kind::kSetKeyspace);
  append_string(out, keyspace);
  envelope.finish();
}

void append_schema_change(Bytes& out, const ReplyHead& head, const SchemaChange& change) {
  EnvelopeWriter envelope(out, head, Opcode::kResult);
  append_int(out, result_kind::kSchemaChange);
  append_schema_change_body(out, head.version, change);
  envelope.finish();
}

void append_prepared(Bytes& out, const ReplyHead& head, const PreparedReply& prepared) {
  EnvelopeWriter envelope(out, head, Opcode::kResult);
  append_int(out, result_kind::kPrepared);
  append_short_bytes(out, prepared.id);
  if (head.version >= 5) {
    // Not a SELECT: an id of nothing, which never changes.
    append_short_bytes(out,
                       view_of(prepared.result != nullptr ? prepared.result->id() : MetadataId{}));
  }
  append_marker_metadata(out, head.version, prepared);
  append_result_metadata(out, head.version, prepared.result);
  envelope.finish();
}

void append_topology_event(Bytes& out, int version, TopologyChange change, const Inet& node) {
  constexpr std::string_view names[] = {"NEW_NODE", "REMOVED_NODE", "MOVED_NODE"};
  EnvelopeWriter envelope(out, {.version = version, .stream = kEventStream}, Opcode::kEvent);
  append_string(out, "TOPOLOGY_CHANGE");
  append_string(out, names[static_cast<size_t>(change)]);
  append_inet(out, node);
  envelope.finish();
}

// Type, change and address as [string], [string] and [inet], as for topology.
void append_status_event(Bytes& out, int version, StatusChange change, const Inet& node) {
  EnvelopeWriter envelope(out, {.version = version, .stream = kEventStream}, Opcode::kEvent);
  append_string(out, "STATUS_CHANGE");
  append_string(out, change == StatusChange::kUp ? "UP" : "DOWN");
  append_inet(out, node);
  envelope.finish();
}

void append_schema_event(Bytes& out, int version, const SchemaChange& change) {
  EnvelopeWriter envelope(out, {.version = version, .stream = kEventStream}, Opcode::kEvent);
  append_string(out, "SCHEMA_CHANGE");
  append_schema_change_body(out, version, change);
  envelope.finish();
}

}  // namespace tetrad::cql
