// SPDX-License-Identifier: Apache-2.0
// The header of an envelope, nine bytes in v3 to v5: version with the direction in its top bit,
// flags, stream (i16), opcode, length of the body (i32), all big-endian.
#include "cql/protocol/frame.h"

#include <fmt/format.h>

#include "base/byte_io.h"

namespace tetrad::cql {

// By number; 4 was CREDENTIALS, which ended with v1.
std::string_view name_of(Opcode opcode) {
  constexpr std::string_view names[] = {
      "ERROR",         "STARTUP",     "READY", "AUTHENTICATE", "",
      "OPTIONS",       "SUPPORTED",   "QUERY", "RESULT",       "PREPARE",
      "EXECUTE",       "REGISTER",    "EVENT", "BATCH",        "AUTH_CHALLENGE",
      "AUTH_RESPONSE", "AUTH_SUCCESS"};
  const auto index = static_cast<uint8_t>(opcode);
  return index < std::size(names) && !names[index].empty() ? names[index] : "UNKNOWN";
}

// Two lists, so that a number that is no opcode is neither.
bool is_request(Opcode opcode) {
  switch (opcode) {
    case Opcode::kStartup:
    case Opcode::kOptions:
    case Opcode::kQuery:
    case Opcode::kPrepare:
    case Opcode::kExecute:
    case Opcode::kRegister:
    case Opcode::kBatch:
    case Opcode::kAuthResponse:
      return true;
    default:
      return false;
  }
}

bool is_response(Opcode opcode) {
  switch (opcode) {
    case Opcode::kError:
    case Opcode::kReady:
    case Opcode::kAuthenticate:
    case Opcode::kSupported:
    case Opcode::kResult:
    case Opcode::kEvent:
    case Opcode::kAuthChallenge:
    case Opcode::kAuthSuccess:
      return true;
    default:
      return false;
  }
}

EnvelopeHeader decode_envelope_header(const char* bytes) {
  EnvelopeHeader header;
  const auto first = static_cast<uint8_t>(bytes[0]);
  header.version = first & 0x7F;
  header.response = (first & kResponseBit) != 0;
  header.flags = static_cast<uint8_t>(bytes[1]);
  header.stream = base::load_big_endian<int16_t>(bytes + 2);
  // Any byte: who uses it asks is_request() first.
  header.opcode = static_cast<Opcode>(static_cast<uint8_t>(bytes[4]));
  header.body_bytes = base::load_big_endian<int32_t>(bytes + 5);
  return header;
}

void encode_envelope_header(char* to, const EnvelopeHeader& header) {
  to[0] = static_cast<char>(header.version | (header.response ? kResponseBit : 0));
  to[1] = static_cast<char>(header.flags);
  base::store_big_endian(to + 2, header.stream);
  to[4] = static_cast<char>(header.opcode);
  base::store_big_endian(to + 5, header.body_bytes);
}

// The text is Cassandra's, since drivers look for "supported versions".
std::string version_refusal_text(int version) {
  return fmt::format(
      "Invalid or unsupported protocol version ({}); supported versions are (3/v3, 4/v4, 5/v5)",
      version);
}

}  // namespace tetrad::cql
