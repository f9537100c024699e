// SPDX-License-Identifier: Apache-2.0
// Messages of refusals are Cassandra's where it has one: drivers' own tests compare them.
// Requests from the bodies of envelopes. Views point into the body. A WireReader remembers the
// first read beyond the end and gives zeros from then on, so fields are read in a row and ok() is
// asked once; what must not be believed before (counts, sizes) is checked at once.
#include "cql/protocol/request.h"

#include <limits>

#include "base/assert.h"
#include "cql/protocol/compression.h"
#include "cql/protocol/notation.h"

namespace tetrad::cql {
namespace {

namespace query_flag {
constexpr uint32_t kValues = 0x01;
constexpr uint32_t kSkipMetadata = 0x02;
constexpr uint32_t kPageSize = 0x04;
constexpr uint32_t kPagingState = 0x08;
constexpr uint32_t kSerialConsistency = 0x10;
constexpr uint32_t kTimestamp = 0x20;
constexpr uint32_t kNames = 0x40;
constexpr uint32_t kKeyspace = 0x80;
constexpr uint32_t kNowInSeconds = 0x100;
}  // namespace query_flag
// Of PREPARE, from v5 on.
constexpr uint32_t kPrepareKeyspaceFlag = 0x01;
constexpr size_t kValueBytesMin = 4;

std::unexpected<Error> protocol_error(const WireReader& reader) {
  return std::unexpected<Error>(reader.error());
}

// Levels have their wire numbers in the enumeration; 11 is Cassandra's NODE_LOCAL.
Result<ConsistencyLevel> read_consistency(WireReader& reader) {
  constexpr uint16_t kNodeLocal = 11;
  const uint16_t code = reader.u16("consistency level");
  if (code <= static_cast<uint16_t>(ConsistencyLevel::kLocalOne)) [[likely]]
    return static_cast<ConsistencyLevel>(code);
  if (code == kNodeLocal) {
    return fail(ErrorCode::kInvalid, "not supported yet: consistency level NODE_LOCAL");
  }
  return fail(ErrorCode::kProtocol, "Unknown code {} for a consistency level", code);
}

/// Appends `count` values, each preceded by its name if `names` is given.
Result<void> read_values(WireReader& reader, int version, size_t count, WireValues& values,
                         WireNames* names) {
  // A count is believed only if the body is long enough for it.
  const size_t bytes_min = kValueBytesMin + (names != nullptr ? sizeof(uint16_t) : 0);
  if (!reader.can_hold(count, bytes_min, "values")) return protocol_error(reader);
  values.reserve(values.size() + count);
  if (names != nullptr) names->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (names != nullptr) names->push_back(reader.string("name of a value"));
    const int32_t size = reader.i32("value");
    if (size >= 0) [[likely]] {
      values.push_back(WireValue::of(reader.raw(static_cast<size_t>(size), "value")));
      // Before v4 every negative length is null; v4 gave -2 to UNSET.
    } else if (size == -1 || version < 4) {
      values.push_back(WireValue::null());
    } else if (size == -2) {
      values.push_back(WireValue::unset());
    } else {
      return fail(ErrorCode::kProtocol, "Invalid ByteBuf length {}", size);
    }
  }
  return {};
}

// ok() first: after a short body the level read is a zero and means nothing.
Result<void> read_serial_consistency(WireReader& reader, QueryParameters& out) {
  TETRAD_TRY(const ConsistencyLevel level, read_consistency(reader));
  if (reader.ok() && level != ConsistencyLevel::kSerial &&
      level != ConsistencyLevel::kLocalSerial) {
    return fail(ErrorCode::kInvalid,
                "Invalid consistency for conditional update. Must be one of SERIAL or "
                "LOCAL_SERIAL");
  }
  out.serial_consistency = level;
  return {};
}

Result<void> read_timestamp(WireReader& reader, QueryParameters& out) {
  constexpr int64_t kNotATimestamp = std::numeric_limits<int64_t>::min();
  const int64_t timestamp = reader.i64("timestamp");
  if (timestamp == kNotATimestamp) {
    return fail(ErrorCode::kProtocol, "Out of bound timestamp, must be in [{}, {}] (got {})",
                kNotATimestamp + 1, std::numeric_limits<int64_t>::max(), timestamp);
  }
  out.timestamp_us = timestamp;
  return {};
}

Result<void> read_paging(WireReader& reader, uint32_t flags, QueryParameters& out) {
  if ((flags & query_flag::kPageSize) != 0) {
    const int32_t page_size = reader.i32("page size");
    if (reader.ok() && page_size == 0) {
      return fail(ErrorCode::kProtocol, "Invalid page size: 0");
    }
    // As Cassandra: a negative page size switches paging off.
    if (page_size > 0) out.page_size = page_size;
  }
  if ((flags & query_flag::kPagingState) != 0) out.paging_state = reader.bytes("paging state");
  return {};
}

/// Everything from the consistency level on. Flags nobody knows are ignored, as Cassandra does.
Result<void> read_parameters(WireReader& reader, int version, bool of_batch, QueryParameters& out) {
  TETRAD_TRY(out.consistency, read_consistency(reader));
  const uint32_t flags =
      version >= 5 ? static_cast<uint32_t>(reader.i32("flags")) : reader.u8("flags");
  if (of_batch) {
    if ((flags & (query_flag::kNames | query_flag::kValues)) != 0) {
      return fail(ErrorCode::kProtocol,
                  "A BATCH cannot have named values or values of its own (flags {:#x})", flags);
    }
  } else if ((flags & query_flag::kValues) != 0) {
    const bool named = (flags & query_flag::kNames) != 0;
    const uint16_t count = reader.u16("number of values");
    TETRAD_TRY_VOID(read_values(reader, version, count, out.values, named ? &out.names : nullptr));
  }
  out.skip_metadata = (flags & query_flag::kSkipMetadata) != 0;
  // EXECUTE in a hot loop has none of these: one test instead of five.
  constexpr uint32_t kRarer =
      ~(query_flag::kValues | query_flag::kNames | query_flag::kSkipMetadata);
  if ((flags & kRarer) != 0) {
    TETRAD_TRY_VOID(read_paging(reader, flags, out));
    if ((flags & query_flag::kSerialConsistency) != 0) {
      TETRAD_TRY_VOID(read_serial_consistency(reader, out));
    }
    if ((flags & query_flag::kTimestamp) != 0) TETRAD_TRY_VOID(read_timestamp(reader, out));
    if (version >= 5 && (flags & query_flag::kKeyspace) != 0) {
      out.keyspace = reader.string("keyspace");
    }
    if (version >= 5 && (flags & query_flag::kNowInSeconds) != 0) {
      // Seconds as an unsigned 32-bit number, as Cassandra 5.0 reads them, so the range does not
      // end in 2038.
      out.now_in_seconds = static_cast<uint32_t>(reader.i32("now in seconds"));
    }
  }
  if (!reader.ok()) return protocol_error(reader);
  return {};
}

Result<void> read_compression(const StartupRequest& startup, int version, Compression& out) {
  const auto name = startup.option("COMPRESSION");
  if (!name || name->empty()) return {};
  const auto compression = parse_compression(*name);
  if (!compression) return fail(ErrorCode::kProtocol, "Unknown compression algorithm: {}", *name);
  if (version >= 5 && *compression == Compression::kSnappy) {
    return fail(ErrorCode::kProtocol, "Snappy compression is not supported in protocol V5");
  }
  out = *compression;
  return {};
}

Result<void> read_startup(WireReader& reader, int version, StartupRequest& out) {
  const uint16_t count = reader.u16("options");
  if (!reader.can_hold(count, 2 * sizeof(uint16_t), "options")) return protocol_error(reader);
  out.options.reserve(count);
  for (uint16_t i = 0; i < count; ++i) {
    const BytesView key = reader.string("name of an option");
    out.options.emplace_back(key, reader.string("value of an option"));
  }
  if (!reader.ok()) return protocol_error(reader);
  const auto cql_version = out.option("CQL_VERSION");
  if (!cql_version) {
    return fail(ErrorCode::kProtocol, "Missing value CQL_VERSION in STARTUP message");
  }
  // As Cassandra: anything from 3.0.0 up; the Rust driver says 4.0.0.
  const bool is_old = cql_version->size() < 2 || (*cql_version)[0] < '3' || (*cql_version)[0] > '9';
  if (is_old || (*cql_version)[1] != '.') {
    return fail(ErrorCode::kProtocol,
                "CQL version {} is not supported by the binary protocol (supported version are >= "
                "3.0.0)",
                *cql_version);
  }
  out.cql_version = *cql_version;
  out.throw_on_overload = out.option("THROW_ON_OVERLOAD") == BytesView("1");
  return read_compression(out, version, out.compression);
}

// Flags came with v5; only 0x01, a keyspace, is known.
Result<void> read_prepare(WireReader& reader, int version, PrepareRequest& out) {
  out.text = reader.long_string("statement");
  if (version >= 5) {
    const auto flags = static_cast<uint32_t>(reader.i32("flags"));
    if ((flags & kPrepareKeyspaceFlag) != 0) out.keyspace = reader.string("keyspace");
  }
  if (!reader.ok()) return protocol_error(reader);
  return {};
}

// The id of the metadata is compared by whoever answers: a client of v5 may have an old one.
Result<void> read_execute(WireReader& reader, int version, ExecuteRequest& out) {
  out.id = reader.short_bytes("statement id");
  if (version >= 5) out.result_metadata_id = reader.short_bytes("result metadata id");
  return read_parameters(reader, version, false, out.parameters);
}

// Each statement brings its own values; they go into one list, and the statement notes its part of
// it.
Result<void> read_batch(WireReader& reader, int version, BatchRequest& out) {
  const uint8_t type = reader.u8("batch type");
  if (type > static_cast<uint8_t>(BatchType::kCounter)) {
    return fail(ErrorCode::kProtocol, "Invalid BATCH message type {}", type);
  }
  out.type = static_cast<BatchType>(type);
  constexpr size_t kStatementBytesMin = 5;  // kind, empty id, number of values
  const uint16_t count = reader.u16("number of statements");
  if (!reader.can_hold(count, kStatementBytesMin, "statements")) return protocol_error(reader);
  out.statements.reserve(count);
  for (uint16_t i = 0; i < count; ++i) {
    BatchRequest::Statement statement{};
    const uint8_t kind = reader.u8("kind of a statement");
    if (kind > 1) {
      return fail(ErrorCode::kProtocol,
                  "Invalid query kind in BATCH messages. Must be 0 or 1 but got {}", kind);
    }
    statement.prepared = kind == 1;
    statement.text_or_id =
        statement.prepared ? reader.short_bytes("statement id") : reader.long_string("statement");
    statement.first_value = static_cast<uint32_t>(out.values.size());
    statement.value_count = reader.u16("number of values");
    if (!reader.ok()) return protocol_error(reader);
    TETRAD_TRY_VOID(read_values(reader, version, statement.value_count, out.values, nullptr));
    out.statements.push_back(statement);
  }
  return read_parameters(reader, version, true, out.parameters);
}

// Names in any case, as Java's valueOf of an upper-cased word in Cassandra.
Result<void> read_register(WireReader& reader, RegisterRequest& out) {
  const uint16_t count = reader.u16("event types");
  for (uint16_t i = 0; i < count && reader.ok(); ++i) {
    const BytesView name = reader.string("event type");
    if (!reader.ok()) break;
    if (equal_ignoring_case(name, "TOPOLOGY_CHANGE")) {
      out.topology_change = true;
    } else if (equal_ignoring_case(name, "STATUS_CHANGE")) {
      out.status_change = true;
    } else if (equal_ignoring_case(name, "SCHEMA_CHANGE")) {
      out.schema_change = true;
    } else {
      return fail(ErrorCode::kProtocol, "Invalid value '{}' for Type", name);
    }
  }
  if (!reader.ok()) return protocol_error(reader);
  return {};
}

// Where a request has one, it stands before the message.
Result<void> read_custom_payload(WireReader& reader, int version, PayloadEntries& out) {
  if (version < 4) {
    return fail(ErrorCode::kProtocol,
                "Must not send frame with CUSTOM_PAYLOAD flag for native protocol version < 4");
  }
  const uint16_t count = reader.u16("custom payload");
  constexpr size_t kEntryBytesMin = 6;
  if (!reader.can_hold(count, kEntryBytesMin, "custom payload")) return protocol_error(reader);
  out.reserve(count);
  for (uint16_t i = 0; i < count; ++i) {
    const BytesView key = reader.string("key of the custom payload");
    out.emplace_back(key, reader.bytes("value of the custom payload"));
  }
  if (!reader.ok()) return protocol_error(reader);
  return {};
}

// The most frequent ones first.
Result<void> read_message(WireReader& reader, Opcode opcode, int version, RequestMessage& out) {
  switch (opcode) {
    case Opcode::kExecute:
      return read_execute(reader, version, out.emplace<ExecuteRequest>());
    case Opcode::kQuery: {
      auto& query = out.emplace<QueryRequest>();
      query.text = reader.long_string("statement");
      return read_parameters(reader, version, false, query.parameters);
    }
    case Opcode::kBatch:
      return read_batch(reader, version, out.emplace<BatchRequest>());
    case Opcode::kPrepare:
      return read_prepare(reader, version, out.emplace<PrepareRequest>());
    case Opcode::kOptions:
      out.emplace<OptionsRequest>();
      return {};
    case Opcode::kStartup:
      return read_startup(reader, version, out.emplace<StartupRequest>());
    case Opcode::kRegister:
      return read_register(reader, out.emplace<RegisterRequest>());
    case Opcode::kAuthResponse:
      out.emplace<AuthResponseRequest>().token = reader.bytes("token");
      if (!reader.ok()) return protocol_error(reader);
      return {};
    default:
      return fail(ErrorCode::kProtocol, "Wrong protocol direction (expected REQUEST) for opcode {}",
                  name_of(opcode));
  }
}

}  // namespace

std::optional<BytesView> StartupRequest::option(std::string_view key) const {
  for (const auto& [name, value] : options)
    if (equal_ignoring_case(name, key)) return value;
  return std::nullopt;
}

Result<Request> decode_request(const Envelope& envelope) {
  const int version = envelope.version();
  TETRAD_ASSERT(version >= kProtocolVersionMin && version <= kProtocolVersionMax);
  // Built in place: a request is some hundred bytes, worth not moving.
  Result<Request> request(std::in_place);
  WireReader reader(envelope.body);
  Result<void> done;
  if ((envelope.header.flags & envelope_flag::kCustomPayload) != 0) {
    done = read_custom_payload(reader, version, request->custom_payload);
  }
  if (done) done = read_message(reader, envelope.opcode(), version, request->message);
  if (!done) request = std::unexpected<Error>(std::move(done.error()));
  return request;
}

// SASL PLAIN (RFC 4616): authorization id, NUL, user, NUL, password. The authorization id is
// ignored, as in Cassandra.
Result<PlainCredentials> decode_plain_token(std::optional<BytesView> token) {
  const auto refused = [](const char* why) { return fail(ErrorCode::kBadCredentials, "{}", why); };
  if (!token) return refused("Authentication token must not be null");
  const size_t first = token->find('\0');
  const size_t second = first == BytesView::npos ? first : token->find('\0', first + 1);
  if (second == BytesView::npos) {
    return refused("Authentication token must be an authorization id, a user and a password");
  }
  const PlainCredentials credentials{token->substr(first + 1, second - first - 1),
                                     token->substr(second + 1)};
  if (credentials.user.empty()) return refused("Authentication ID must not be null");
  if (credentials.password.empty()) return refused("Password must not be null");
  if (credentials.password.find('\0') != BytesView::npos) {
    return refused(
        "Credential format error: username or password is empty or contains NUL(\\0) character");
  }
  return credentials;
}

}  // namespace tetrad::cql
