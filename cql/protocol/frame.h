// SPDX-License-Identifier: Apache-2.0
// Envelopes of the CQL native protocol, versions 3 to 5 (native protocol v5, section 2).
//
//   envelope := version u8 | flags u8 | stream i16 | opcode u8 | length i32 | body
// The version of a response has bit 0x80 set. EVENT uses stream -1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace tetrad::cql {

inline constexpr int kProtocolVersionMin = 3;
inline constexpr int kProtocolVersionMax = 5;
// All three versions have the same nine bytes.
inline constexpr size_t kEnvelopeHeaderBytes = 9;
inline constexpr uint8_t kResponseBit = 0x80;
// Streams of requests are not negative.
inline constexpr int16_t kEventStream = -1;

/// The messages of native protocol v3 to v5, by their numbers on the wire.
/// Example, a QUERY of v4 on stream 1 with a body of 10 bytes begins 04 00 0001 07 0000000a.
enum class Opcode : uint8_t {
  // 0x04 was CREDENTIALS in v1.
  kError = 0x00,
  kStartup = 0x01,
  kReady = 0x02,
  kAuthenticate = 0x03,
  kOptions = 0x05,
  kSupported = 0x06,
  kQuery = 0x07,
  kResult = 0x08,
  kPrepare = 0x09,
  kExecute = 0x0A,
  kRegister = 0x0B,
  kEvent = 0x0C,
  kBatch = 0x0D,
  kAuthChallenge = 0x0E,
  kAuthResponse = 0x0F,
  kAuthSuccess = 0x10,
};

/// "QUERY"; "UNKNOWN" for a number that is no opcode.
std::string_view name_of(Opcode opcode);
/// Whether a client (or else a server) sends this opcode.
/// A number that is no opcode is neither.
bool is_request(Opcode opcode);
bool is_response(Opcode opcode);

namespace envelope_flag {
// In v5 compression is a matter of segments (segment.h).
inline constexpr uint8_t kCompressed = 0x01;     // v3 and v4 only; ignored in v5
inline constexpr uint8_t kTracing = 0x02;        // request: asks; response: an id comes first
inline constexpr uint8_t kCustomPayload = 0x04;  // v4+
inline constexpr uint8_t kWarnings = 0x08;       // v4+, responses
// A client sets it to speak a version that is still in the making; no version served is.
inline constexpr uint8_t kUseBeta = 0x10;
}  // namespace envelope_flag

/// What STARTUP asked for. Snappy exists in v3 and v4 only.
/// One for a connection, from STARTUP on; of v5 LZ4 only.
enum class Compression : uint8_t { kNone, kLz4, kSnappy };

/// The nine bytes before each body, decoded but not yet checked against what the connection allows.
/// body_bytes may be negative or huge here: FrameDecoder compares it with the limit before it waits
/// for a body.
struct EnvelopeHeader {
  uint8_t version = 0;  // without the response bit
  bool response = false;
  uint8_t flags = 0;
  int16_t stream = 0;
  Opcode opcode = Opcode::kError;  // may hold a number that is no opcode
  int32_t body_bytes = 0;
};

/// `bytes` must hold kEnvelopeHeaderBytes. Checks nothing.
EnvelopeHeader decode_envelope_header(const char* bytes);
/// `to` must have room for kEnvelopeHeaderBytes.
void encode_envelope_header(char* to, const EnvelopeHeader& header);

/// Keeps the memory that an envelope's views point into: usually a read buffer with its neighbours.
using FramePin = std::shared_ptr<const char[]>;

/// One whole message: `body` is decompressed and lives as long as `pin`.
struct Envelope {
  EnvelopeHeader header;
  BytesView body;
  FramePin pin;

  int version() const { return header.version; }
  int16_t stream() const { return header.stream; }
  Opcode opcode() const { return header.opcode; }
  bool tracing() const { return (header.flags & envelope_flag::kTracing) != 0; }
};

/// "Invalid or unsupported protocol version (66); supported versions are (3/v3, 4/v4, 5/v5)".
/// Drivers match this text to fall back to a version we serve.
std::string version_refusal_text(int version);

}  // namespace tetrad::cql
