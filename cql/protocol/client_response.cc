// SPDX-License-Identifier: Apache-2.0
// Responses as a client reads them, for tools and tests: the other side of response.cc,
// error_reply.cc and rows_writer.cc. Views point into the envelope. Servers are not trusted either:
// counts are followed only while the reader has bytes.
#include "base/byte_io.h"
#include "cql/protocol/client.h"
#include "cql/protocol/error_code.h"
#include "cql/protocol/notation.h"

namespace tetrad::cql::client {
namespace {

// Every read_* below may go on past a failure, with zeros; the caller asks ok() at the end.
std::unexpected<Error> malformed(const WireReader& reader) {
  return std::unexpected<Error>(reader.error());
}

ConsistencyLevel read_level(WireReader& reader) {
  return static_cast<ConsistencyLevel>(reader.u16("consistency level"));
}

std::string read_string(WireReader& reader, const char* what) {
  return std::string(reader.string(what));
}

// Ends at the first string that is not whole.
std::vector<std::string> read_string_list(WireReader& reader, const char* what) {
  std::vector<std::string> strings;
  const uint16_t count = reader.u16(what);
  for (uint16_t i = 0; i < count && reader.ok(); ++i) strings.push_back(read_string(reader, what));
  return strings;
}

// v5 says of each replica why it failed; before, the number alone was sent.
std::vector<std::pair<std::string, uint16_t>> read_failures(WireReader& reader, int version) {
  std::vector<std::pair<std::string, uint16_t>> failures;
  const int32_t count = reader.i32("failures");
  if (version < 5) return failures;
  for (int32_t i = 0; i < count && reader.ok(); ++i) {
    Inet inet;
    inet.size = reader.u8("address of a failure");
    const BytesView address = reader.raw(inet.size == 4 ? 4 : 16, "address of a failure");
    std::copy(address.begin(), address.end(), inet.octets.begin());
    const uint16_t reason = reader.u16("reason of a failure");
    failures.emplace_back(inet.address_text(), reason);
  }
  return failures;
}

// A name that a newer server has and this program does not is taken for SIMPLE.
base::WriteType read_write_type(WireReader& reader) {
  return parse_write_type(reader.string("write type")).value_or(base::WriteType::kSimple);
}

// What timeouts and failures begin with: level, received, required.
template <class Detail>
void read_outcome(WireReader& reader, Detail& detail) {
  detail.level = read_level(reader);
  detail.received = reader.i32("received");
  detail.required = reader.i32("required");
}

// One table: behind code and message each code has its own fields (native protocol v5, section 9).
std::optional<base::ErrorDetail> read_detail(WireReader& reader, int version, ErrorCode code) {
  base::TimeoutDetail timeout{};
  base::FailureDetail failure{};
  switch (code) {
    case ErrorCode::kUnavailable: {
      base::UnavailableDetail detail{};
      detail.level = read_level(reader);
      detail.required = reader.i32("required");
      detail.alive = reader.i32("alive");
      return detail;
    }
    case ErrorCode::kReadTimeout:
      read_outcome(reader, timeout);
      timeout.data_present = reader.u8("data present") != 0;
      return timeout;
    case ErrorCode::kWriteTimeout:
      read_outcome(reader, timeout);
      timeout.write_type = read_write_type(reader);
      if (version >= 5 && timeout.write_type == base::WriteType::kCas) {
        timeout.contentions = reader.u16("contentions");
      }
      return timeout;
    case ErrorCode::kCasWriteUnknown:
      read_outcome(reader, timeout);
      return timeout;
    case ErrorCode::kReadFailure:
      read_outcome(reader, failure);
      failure.failures = read_failures(reader, version);
      failure.data_present = reader.u8("data present") != 0;
      return failure;
    case ErrorCode::kWriteFailure:
      read_outcome(reader, failure);
      failure.failures = read_failures(reader, version);
      failure.write_type = read_write_type(reader);
      return failure;
    case ErrorCode::kFunctionFailure: {
      base::FunctionFailureDetail detail;
      detail.keyspace = read_string(reader, "keyspace");
      detail.name = read_string(reader, "function");
      detail.argument_types = read_string_list(reader, "argument types");
      return detail;
    }
    case ErrorCode::kAlreadyExists: {
      base::AlreadyExistsDetail detail;
      detail.keyspace = read_string(reader, "keyspace");
      detail.table = read_string(reader, "table");
      return detail;
    }
    case ErrorCode::kUnprepared:
      return base::UnpreparedDetail{std::string(reader.short_bytes("statement id"))};
    default:
      return std::nullopt;
  }
}

// An unknown number keeps its text, as a server error.
ErrorReply read_error(WireReader& reader, int version) {
  ErrorReply reply;
  reply.wire_code = static_cast<uint32_t>(reader.i32("error code"));
  reply.error.message = read_string(reader, "message");
  reply.error.code = error_code_of_wire(reply.wire_code).value_or(ErrorCode::kServerError);
  if (auto detail = read_detail(reader, version, reply.error.code)) {
    reply.error.detail = std::make_shared<const base::ErrorDetail>(std::move(*detail));
  }
  return reply;
}

// `global`: keyspace and table stand once in front.
Result<std::vector<Column>> read_columns(WireReader& reader, bool global, int32_t count) {
  std::vector<Column> columns;
  Column column;
  if (global) {
    column.keyspace = read_string(reader, "keyspace");
    column.table = read_string(reader, "table");
  }
  for (int32_t i = 0; i < count && reader.ok(); ++i) {
    if (!global) {
      column.keyspace = read_string(reader, "keyspace");
      column.table = read_string(reader, "table");
    }
    column.name = read_string(reader, "name of a column");
    // Type options are read by the reader of cql/types; how much it took tells where to go on.
    base::ByteReader types(reader.rest());
    TETRAD_TRY(column.type, read_type_option(types));
    reader.raw(reader.remaining() - types.remaining(), "type of a column");
    columns.push_back(column);
  }
  if (!reader.ok()) return malformed(reader);
  return columns;
}

// 0x01 global table, 0x02 more pages, 0x04 no metadata, 0x08 the metadata has changed.
Result<Metadata> read_metadata(WireReader& reader, bool of_markers, int version) {
  Metadata metadata;
  const auto flags = static_cast<uint32_t>(reader.i32("flags"));
  metadata.column_count = reader.i32("number of columns");
  metadata.no_metadata = (flags & 0x04) != 0;
  if (of_markers && version >= 4) {
    const int32_t count = reader.i32("partition key markers");
    for (int32_t i = 0; i < count && reader.ok(); ++i)
      metadata.partition_key_markers.push_back(reader.u16("partition key markers"));
  }
  if ((flags & 0x02) != 0) metadata.paging_state = reader.bytes("paging state");
  if ((flags & 0x08) != 0) metadata.new_id = reader.short_bytes("metadata id");
  if (!reader.ok() || metadata.column_count < 0) {
    return fail(ErrorCode::kProtocol, "Malformed metadata");
  }
  if (metadata.no_metadata) return metadata;
  TETRAD_TRY(metadata.columns, read_columns(reader, (flags & 0x01) != 0, metadata.column_count));
  return metadata;
}

// All cells are walked over once, so that CellReader needs no checks.
Result<Reply> read_rows(WireReader& reader, int version) {
  RowsReply rows;
  TETRAD_TRY(rows.metadata, read_metadata(reader, false, version));
  rows.row_count = reader.i32("number of rows");
  const BytesView all = reader.rest();
  if (rows.row_count < 0) return fail(ErrorCode::kProtocol, "{} rows", rows.row_count);
  for (int32_t row = 0; row < rows.row_count && reader.ok(); ++row) {
    for (int32_t i = 0; i < rows.metadata.column_count && reader.ok(); ++i) reader.bytes("cell");
    // Rows without columns have no bytes, and their number is the server's word alone.
    if (rows.metadata.column_count == 0) break;
  }
  if (!reader.ok()) return malformed(reader);
  rows.cells = all.substr(0, all.size() - reader.remaining());
  return rows;
}

// Of a result and of an event alike.
Result<SchemaChange> read_schema_change(WireReader& reader) {
  SchemaChange change;
  const auto kind = parse_schema_change_kind(reader.string("change"));
  const auto target = parse_schema_change_target(reader.string("target"));
  change.keyspace = read_string(reader, "keyspace");
  if (!kind || !target) return fail(ErrorCode::kProtocol, "Unknown schema change");
  change.kind = *kind;
  change.target = *target;
  using Target = SchemaChange::Target;
  if (change.target != Target::kKeyspace) change.name = read_string(reader, "name");
  if (change.target == Target::kFunction || change.target == Target::kAggregate) {
    change.argument_types = read_string_list(reader, "argument types");
  }
  return change;
}

// Two descriptions, of the markers and of the result; only the first has partition key markers.
Result<Reply> read_prepared(WireReader& reader, int version) {
  PreparedReply prepared;
  prepared.id = reader.short_bytes("statement id");
  if (version >= 5) prepared.result_metadata_id = reader.short_bytes("result metadata id");
  TETRAD_TRY(prepared.markers, read_metadata(reader, true, version));
  TETRAD_TRY(prepared.result, read_metadata(reader, false, version));
  return prepared;
}

// 1 Void, 2 Rows, 3 Set_keyspace, 4 Prepared, 5 Schema_change.
Result<Reply> read_result(WireReader& reader, int version) {
  const int32_t kind = reader.i32("kind of result");
  switch (kind) {
    case 1:
      return VoidReply{};
    case 2:
      return read_rows(reader, version);
    case 3:
      return SetKeyspaceReply{reader.string("keyspace")};
    case 4:
      return read_prepared(reader, version);
    case 5: {
      TETRAD_TRY(auto change, read_schema_change(reader));
      return SchemaChangeReply{std::move(change)};
    }
    default:
      return fail(ErrorCode::kProtocol, "Unknown kind of result {}", kind);
  }
}

// Anything but a schema change is about a node.
Result<Reply> read_event(WireReader& reader) {
  const std::string type = read_string(reader, "event type");
  if (type == "SCHEMA_CHANGE") {
    TETRAD_TRY(auto change, read_schema_change(reader));
    return SchemaEvent{std::move(change)};
  }
  NodeEvent event;
  event.type = type;
  event.change = read_string(reader, "change");
  event.node = reader.inet("address");
  return event;
}

SupportedReply read_supported(WireReader& reader) {
  SupportedReply supported;
  const uint16_t count = reader.u16("options");
  for (uint16_t i = 0; i < count && reader.ok(); ++i) {
    std::string key = read_string(reader, "name of an option");
    supported.options[std::move(key)] = read_string_list(reader, "values of an option");
  }
  return supported;
}

// One table: each opcode of a response.
Result<Reply> read_reply(WireReader& reader, Opcode opcode, int version) {
  switch (opcode) {
    case Opcode::kError:
      return read_error(reader, version);
    case Opcode::kReady:
      return ReadyReply{};
    case Opcode::kAuthenticate:
      return AuthenticateReply{reader.string("authenticator")};
    case Opcode::kAuthChallenge:
      return AuthChallengeReply{reader.bytes("token")};
    case Opcode::kAuthSuccess:
      return AuthSuccessReply{reader.bytes("token")};
    case Opcode::kSupported:
      return read_supported(reader);
    case Opcode::kResult:
      return read_result(reader, version);
    case Opcode::kEvent:
      return read_event(reader);
    default:
      return fail(ErrorCode::kProtocol, "{} is no response", name_of(opcode));
  }
}

// In this order, each only if its flag is set: tracing id, warnings, custom payload.
void read_prefix(WireReader& reader, uint8_t flags, Response& out) {
  if ((flags & envelope_flag::kTracing) != 0) {
    const BytesView id = reader.raw(16, "tracing id");
    if (id.size() == 16) out.tracing_id = Uuid::from_bytes(id);
  }
  if ((flags & envelope_flag::kWarnings) != 0) {
    const uint16_t count = reader.u16("warnings");
    for (uint16_t i = 0; i < count && reader.ok(); ++i)
      out.warnings.push_back(reader.string("warning"));
  }
  if ((flags & envelope_flag::kCustomPayload) != 0) {
    const uint16_t count = reader.u16("custom payload");
    for (uint16_t i = 0; i < count && reader.ok(); ++i) {
      const BytesView key = reader.string("key of the custom payload");
      out.custom_payload.emplace_back(key, reader.bytes("value of the custom payload"));
    }
  }
}

}  // namespace

// No check: read_rows() has walked over all cells.
std::optional<BytesView> CellReader::next() {
  const auto size = base::load_big_endian<int32_t>(rest_.data());
  rest_.remove_prefix(sizeof(size));
  if (size < 0) return std::nullopt;
  const BytesView cell = rest_.substr(0, static_cast<size_t>(size));
  rest_.remove_prefix(cell.size());
  return cell;
}

std::vector<std::optional<BytesView>> RowsReply::all_cells() const {
  std::vector<std::optional<BytesView>> all;
  for (CellReader reader(cells); !reader.at_end();) all.push_back(reader.next());
  return all;
}

Result<Response> decode_response(const Envelope& envelope) {
  Response response;
  WireReader reader(envelope.body);
  read_prefix(reader, envelope.header.flags, response);
  if (!reader.ok()) return malformed(reader);
  TETRAD_TRY(response.reply, read_reply(reader, envelope.opcode(), envelope.version()));
  if (!reader.ok()) return malformed(reader);
  return response;
}

}  // namespace tetrad::cql::client
