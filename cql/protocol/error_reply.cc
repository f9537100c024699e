// SPDX-License-Identifier: Apache-2.0
// ERROR messages and their extras (native protocol v5, section 8; numbers in error_code.cc).
//
// An error of a newer protocol version is downgraded to the nearest code that the client's version
// knows (downgrade_error_code), and its extra fields follow that code: a client parses by the code
// it reads.
#include "base/byte_io.h"
#include "cql/protocol/envelope_writer.h"
#include "cql/protocol/error_code.h"
#include "cql/protocol/notation.h"
#include "cql/protocol/response.h"
#include "cql/types/strict_utf8.h"
#include "cql/types/value.h"

namespace tetrad::cql {
namespace {

/// The detail of an error, or one of nothing if it has none of that kind: a client could not read
/// an ERROR without its extra fields, and another code might present an uncertain outcome as
/// certain.
template <class Detail>
const Detail& detail_of(const Error& error, const Detail& nothing) {
  const auto* detail = error.detail ? std::get_if<Detail>(error.detail.get()) : nullptr;
  return detail != nullptr ? *detail : nothing;
}

/// What read and write timeouts and failures have in common.
struct Outcome {
  ConsistencyLevel level = ConsistencyLevel::kOne;
  int32_t received = 0, required = 0;
  base::WriteType write_type = base::WriteType::kSimple;
  bool data_present = false;
  uint16_t contentions = 0;
  std::span<const std::pair<std::string, uint16_t>> failures;
};

Outcome outcome_of(const Error& error) {
  Outcome out;
  if (!error.detail) return out;
  const auto copy = [&out](const auto& detail) {
    out.level = detail.level;
    out.received = detail.received;
    out.required = detail.required;
    out.write_type = detail.write_type;
    out.data_present = detail.data_present;
  };
  if (const auto* timeout = std::get_if<base::TimeoutDetail>(error.detail.get())) {
    copy(*timeout);
    out.contentions = timeout->contentions;
  }
  if (const auto* failure = std::get_if<base::FailureDetail>(error.detail.get())) {
    copy(*failure);
    out.failures = failure->failures;
  }
  return out;
}

void append_outcome(Bytes& out, const Outcome& outcome) {
  append_int(out, static_cast<uint16_t>(outcome.level));
  append_int(out, outcome.received);
  append_int(out, outcome.required);
}

// Up to v4 only their number; v5 says which nodes and why.
void append_failures(Bytes& out, int version, const Outcome& outcome) {
  append_int(out, static_cast<int32_t>(outcome.failures.size()));
  if (version < 5) return;
  for (const auto& [address, reason] : outcome.failures) {
    const Inet inet = Inet::parse(address, 0).value_or(Inet());
    append_int(out, inet.size);
    out.append(inet.address());
    append_int(out, reason);
  }
}

void append_write_timeout(Bytes& out, int version, const Outcome& outcome) {
  append_outcome(out, outcome);
  append_string(out, name_of(outcome.write_type));
  const bool with_contentions = version >= 5 && outcome.write_type == base::WriteType::kCas;
  if (with_contentions) append_int(out, outcome.contentions);
}

void append_unavailable(Bytes& out, const base::UnavailableDetail& detail) {
  append_int(out, static_cast<uint16_t>(detail.level));
  append_int(out, detail.required);
  append_int(out, detail.alive);
}

/// `code` is the downgraded code of `error`.
void append_extras(Bytes& out, int version, ErrorCode code, const Error& error) {
  Outcome outcome = outcome_of(error);
  switch (code) {
    case ErrorCode::kUnavailable:
      append_unavailable(out,
                         detail_of(error, base::UnavailableDetail{ConsistencyLevel::kOne, 0, 0}));
      return;
    case ErrorCode::kWriteTimeout:
      if (error.code == ErrorCode::kCasWriteUnknown) outcome.write_type = base::WriteType::kCas;
      append_write_timeout(out, version, outcome);
      return;
    case ErrorCode::kReadTimeout:
      append_outcome(out, outcome);
      append_int(out, static_cast<uint8_t>(outcome.data_present));
      return;
    case ErrorCode::kReadFailure:
      append_outcome(out, outcome);
      append_failures(out, version, outcome);
      append_int(out, static_cast<uint8_t>(outcome.data_present));
      return;
    case ErrorCode::kWriteFailure:
      append_outcome(out, outcome);
      append_failures(out, version, outcome);
      append_string(out, name_of(outcome.write_type));
      return;
    // Only from v5 on; older clients get a write timeout of type CAS.
    case ErrorCode::kCasWriteUnknown:
      append_outcome(out, outcome);
      return;
    case ErrorCode::kFunctionFailure: {
      const base::FunctionFailureDetail nothing;
      const auto& detail = detail_of(error, nothing);
      append_string(out, detail.keyspace);
      append_string(out, detail.name);
      append_string_list(out, detail.argument_types);
      return;
    }
    case ErrorCode::kAlreadyExists: {
      const base::AlreadyExistsDetail nothing;
      const auto& detail = detail_of(error, nothing);
      append_string(out, detail.keyspace);
      append_string(out, detail.table);
      return;
    }
    case ErrorCode::kUnprepared: {
      const base::UnpreparedDetail nothing;
      append_short_bytes(out, detail_of(error, nothing).id);
      return;
    }
    default:
      return;
  }
}

/// Drivers throw when a message is no UTF-8, and one may quote what a client sent.
void append_readable(Bytes& out, std::string_view message) {
  const size_t start = out.size();
  append_string(out, message);
  if (is_strict_utf8(BytesView(out).substr(start + sizeof(uint16_t)))) return;
  for (size_t i = start + sizeof(uint16_t); i < out.size(); ++i)
    if (static_cast<uint8_t>(out[i]) >= 0x80) out[i] = '?';
}

}  // namespace

void append_error(Bytes& out, const ReplyHead& head, const Error& error) {
  const ErrorCode code = downgrade_error_code(error.code, head.version);
  EnvelopeWriter envelope(out, head, Opcode::kError);
  append_int(out, wire_error_code(code));
  // As Cassandra: the name of an error that this version does not have goes before its text.
  const bool renamed = code != error.code && error.code == ErrorCode::kFunctionFailure;
  append_readable(out, renamed ? "ERROR FUNCTION_FAILURE: " + error.message : error.message);
  append_extras(out, head.version, code, error);
  envelope.finish();
}

// Headers of v1 and v2 have a stream id of one byte. Others get the header of the highest version
// that this server speaks, in which drivers find the version to fall back to.
void append_version_refusal(Bytes& out, int version, int16_t stream) {
  const std::string text = version_refusal_text(version);
  Bytes body;
  append_int(body, wire_error_code(ErrorCode::kProtocol));
  append_string(body, text);
  if (version == 1 || version == 2) {
    append_int(out, static_cast<uint8_t>(version | kResponseBit));
    append_int(out, uint8_t{0});
    append_int(out, static_cast<uint8_t>(stream));
    append_int(out, static_cast<uint8_t>(Opcode::kError));
    append_int(out, static_cast<int32_t>(body.size()));
  } else {
    EnvelopeHeader header;
    header.version = kProtocolVersionMax;
    header.response = true;
    header.stream = stream;
    header.opcode = Opcode::kError;
    header.body_bytes = static_cast<int32_t>(body.size());
    char bytes[kEnvelopeHeaderBytes];
    encode_envelope_header(bytes, header);
    out.append(bytes, sizeof(bytes));
  }
  out.append(body);
}

}  // namespace tetrad::cql
