// SPDX-License-Identifier: Apache-2.0
// Requests as a client writes them, for tools and tests: the other side of request.cc. The numbers
// of flags stand there.
#include "base/assert.h"
#include "cql/protocol/client.h"
#include "cql/protocol/notation.h"

namespace tetrad::cql::client {
namespace {

// The header first, its length patched by finish(): the mirror of EnvelopeWriter for requests,
// which have no warnings and no tracing id.
class RequestWriter {
 public:
  RequestWriter(Bytes& out, const RequestHead& head, Opcode opcode)
      : out_(out), start_(out.size()) {
    EnvelopeHeader header;
    header.version = static_cast<uint8_t>(head.version);
    header.stream = head.stream;
    header.opcode = opcode;
    if (head.tracing) header.flags |= envelope_flag::kTracing;
    if (!head.custom_payload.empty()) header.flags |= envelope_flag::kCustomPayload;
    char bytes[kEnvelopeHeaderBytes];
    encode_envelope_header(bytes, header);
    out.append(bytes, sizeof(bytes));
    if (head.custom_payload.empty()) return;
    append_int(out, static_cast<uint16_t>(head.custom_payload.size()));
    for (const auto& [key, value] : head.custom_payload) {
      append_string(out, key);
      append_bytes(out, value);
    }
  }
  void finish() {
    const size_t size = out_.size() - start_ - kEnvelopeHeaderBytes;
    TETRAD_ASSERT(size <= INT32_MAX);
    // The length stands in the last four of the nine bytes.
    base::store_big_endian(out_.data() + start_ + 5, static_cast<int32_t>(size));
  }

 private:
  Bytes& out_;
  const size_t start_;
};

// [value]: -1 is null, -2 is "not set" (v4 and later).
void append_value(Bytes& out, const WireValue& value) {
  if (value.has_bytes()) {
    append_bytes(out, value.bytes);
  } else {
    append_int(out, value.is_unset() ? int32_t{-2} : int32_t{-1});
  }
}

// The numbers are those of request.cc (native protocol v5, 4.1.4).
uint32_t flags_of(const Parameters& p, int version) {
  uint32_t flags = 0;
  // The order of the fields that follow is the order of the flags.
  if (!p.values.empty()) flags |= 0x01;
  if (p.skip_metadata) flags |= 0x02;
  if (p.page_size) flags |= 0x04;
  if (p.paging_state) flags |= 0x08;
  if (p.serial_consistency) flags |= 0x10;
  if (p.timestamp_us) flags |= 0x20;
  if (!p.names.empty()) flags |= 0x40;
  if (version >= 5 && p.keyspace) flags |= 0x80;
  if (version >= 5 && p.now_in_seconds) flags |= 0x100;
  return flags;
}

// <consistency> <flags> [values] [page size] [paging state] [serial level] [timestamp] [keyspace]
// [now].
void append_parameters(Bytes& out, int version, const Parameters& p) {
  TETRAD_ASSERT(p.names.empty() || p.names.size() == p.values.size());
  TETRAD_ASSERT(p.values.size() <= UINT16_MAX);
  append_int(out, static_cast<uint16_t>(p.consistency));
  const uint32_t flags = flags_of(p, version);
  if (version >= 5) {
    append_int(out, flags);
  } else {
    // Flags have one byte before v5; those above 0xFF are of v5 only (flags_of).
    append_int(out, static_cast<uint8_t>(flags));
  }
  if (!p.values.empty()) {
    append_int(out, static_cast<uint16_t>(p.values.size()));
    for (size_t i = 0; i < p.values.size(); ++i) {
      if (!p.names.empty()) append_string(out, p.names[i]);
      append_value(out, p.values[i]);
    }
  }
  if (p.page_size) append_int(out, *p.page_size);
  if (p.paging_state) append_bytes(out, p.paging_state);
  if (p.serial_consistency) append_int(out, static_cast<uint16_t>(*p.serial_consistency));
  if (p.timestamp_us) append_int(out, *p.timestamp_us);
  if (version >= 5 && p.keyspace) append_string(out, *p.keyspace);
  if (version >= 5 && p.now_in_seconds) append_int(out, *p.now_in_seconds);
}

}  // namespace

// [string map]: u16 count, then pairs of [string].
void append_startup(Bytes& out, const RequestHead& head, std::span<const StartupOption> options) {
  RequestWriter request(out, head, Opcode::kStartup);
  append_int(out, static_cast<uint16_t>(options.size()));
  for (const auto& [key, value] : options) {
    append_string(out, key);
    append_string(out, value);
  }
  request.finish();
}

void append_options(Bytes& out, const RequestHead& head) {
  RequestWriter(out, head, Opcode::kOptions).finish();
}

void append_query(Bytes& out, const RequestHead& head, std::string_view text,
                  const Parameters& parameters) {
  RequestWriter request(out, head, Opcode::kQuery);
  append_long_string(out, text);
  append_parameters(out, head.version, parameters);
  request.finish();
}

void append_prepare(Bytes& out, const RequestHead& head, std::string_view text,
                    std::optional<std::string_view> keyspace) {
  RequestWriter request(out, head, Opcode::kPrepare);
  append_long_string(out, text);
  if (head.version >= 5) {
    append_int(out, keyspace ? uint32_t{1} : uint32_t{0});
    if (keyspace) append_string(out, *keyspace);
  }
  request.finish();
}

void append_execute(Bytes& out, const RequestHead& head, BytesView id, BytesView result_metadata_id,
                    const Parameters& parameters) {
  RequestWriter request(out, head, Opcode::kExecute);
  append_short_bytes(out, id);
  // The server compares it with what it would send, and sends metadata only where they differ.
  if (head.version >= 5) append_short_bytes(out, result_metadata_id);
  append_parameters(out, head.version, parameters);
  request.finish();
}

void append_batch(Bytes& out, const RequestHead& head, BatchType type,
                  std::span<const BatchStatement> statements, const Parameters& parameters) {
  RequestWriter request(out, head, Opcode::kBatch);
  append_int(out, static_cast<uint8_t>(type));
  append_int(out, static_cast<uint16_t>(statements.size()));
  // Kind 0: a text, 1: an id. Values of a batch have no names.
  for (const BatchStatement& statement : statements) {
    append_int(out, static_cast<uint8_t>(statement.prepared));
    if (statement.prepared) {
      append_short_bytes(out, statement.text_or_id);
    } else {
      append_long_string(out, statement.text_or_id);
    }
    append_int(out, static_cast<uint16_t>(statement.values.size()));
    for (const WireValue& value : statement.values) append_value(out, value);
  }
  append_parameters(out, head.version, parameters);
  request.finish();
}

void append_register(Bytes& out, const RequestHead& head,
                     std::span<const std::string_view> events) {
  RequestWriter request(out, head, Opcode::kRegister);
  append_string_list(out, events);
  request.finish();
}

void append_auth_response(Bytes& out, const RequestHead& head, std::optional<BytesView> token) {
  RequestWriter request(out, head, Opcode::kAuthResponse);
  append_bytes(out, token);
  request.finish();
}

Bytes plain_token(std::string_view user, std::string_view password) {
  Bytes token(1, '\0');
  token.append(user).append(1, '\0').append(password);
  return token;
}

}  // namespace tetrad::cql::client
