// SPDX-License-Identifier: Apache-2.0
#include "cql/protocol/frame_decoder.h"

#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "cql/protocol/compression.h"
#include "tests/unit/cql_protocol/wire.h"

using namespace tetrad;
using namespace tetrad::cql;

namespace {

Incoming only(FrameDecoder& decoder, BytesView bytes) {
  decoder.feed(bytes);
  auto all = drain(decoder);
  REQUIRE(all.size() == 1);
  return all[0];
}

Bytes options(uint8_t version, int16_t stream) {
  return envelope(version, 0, stream, Opcode::kOptions, "");
}

/// A header alone, that declares a body.
Bytes header_of(uint8_t version, int16_t stream, Opcode opcode, int32_t body_bytes) {
  Bytes bytes = envelope(version, 0, stream, opcode, "");
  base::store_big_endian(bytes.data() + 5, body_bytes);
  return bytes;
}

}  // namespace

TEST_CASE("whole envelopes in the buffer are views of it") {
  auto decoder = server_decoder(4, Compression::kNone);
  const std::span<char> room = decoder.writable();
  const Bytes bytes = envelope(4, 0, 5, Opcode::kQuery, "abc") + options(4, 6);
  std::copy(bytes.begin(), bytes.end(), room.begin());
  decoder.commit(bytes.size());
  const auto all = drain(decoder);
  REQUIRE(all.size() == 2);
  CHECK(all[0].envelope.body.data() == room.data() + kEnvelopeHeaderBytes);
  CHECK(all[0].envelope.body == "abc");
  CHECK(all[0].envelope.stream() == 5);
  CHECK(all[1].envelope.opcode() == Opcode::kOptions);
  CHECK(all[1].envelope.stream() == 6);
}

TEST_CASE("views live as long as their pin, whatever is read later") {
  auto decoder = server_decoder(4, Compression::kNone);
  Envelope kept;
  for (int i = 0; i < 5000; ++i) {
    const Incoming incoming =
        only(decoder, envelope(4, 0, 1, Opcode::kQuery, Bytes(100, static_cast<char>(i))));
    if (i == 3) kept = incoming.envelope;
  }
  CHECK(kept.body == Bytes(100, '\3'));
}

TEST_CASE("a connection that keeps nothing reads into one buffer for ever") {
  auto decoder = server_decoder(4, Compression::kNone);
  for (int i = 0; i < 1000; ++i) only(decoder, envelope(4, 0, 1, Opcode::kQuery, Bytes(300, 'q')));
  const size_t held = decoder.held_bytes();
  const char* where = decoder.writable().data();
  for (int i = 0; i < 1000; ++i) only(decoder, envelope(4, 0, 1, Opcode::kQuery, Bytes(300, 'q')));
  CHECK(decoder.writable().data() == where);
  CHECK(decoder.held_bytes() == held);
  CHECK(held <= 64u << 10);
  decoder.release_idle();
  CHECK(decoder.held_bytes() == 0);
  only(decoder, options(4, 1));
}

TEST_CASE("versions that are not served are refused before nine bytes are there") {
  struct Case {
    const char* bytes;
    int version, stream;
    const char* text;
  };
  const Case cases[] = {
      {"01 00 07", 1, 7, "(1)"},          {"02 00 00", 2, 0, "(2)"},
      {"42 00 01 02", 66, 258, "(66)"},   {"06 00 00 00", 6, 0, "(6)"},
      {"41 00 00 00", 65, 0, "(65)"},     {"00 00 00 00", 0, 0, "(0)"},
      {"47 45 54 20", 71, 21536, "(71)"},
  };
  for (const Case& c : cases) {
    auto decoder = server_decoder(0, Compression::kNone, {}, false);
    const Incoming incoming = only(decoder, from_hex(c.bytes));
    CHECK(incoming.kind == Kind::kFatal);
    CHECK(incoming.version_refused);
    CHECK(incoming.envelope.version() == c.version);
    CHECK(incoming.envelope.stream() == c.stream);
    CHECK(incoming.error.code == ErrorCode::kProtocol);
    CHECK(incoming.error.message == "Invalid or unsupported protocol version " +
                                        std::string(c.text) +
                                        "; supported versions are (3/v3, 4/v4, 5/v5)");
    decoder.feed(Bytes(100000, 'x'));  // what comes later is dropped
    CHECK(drain(decoder).empty());
    CHECK(decoder.held_bytes() <= 200000);
  }
}

TEST_CASE("the refusal of a version is in the header of that version") {
  Bytes out;
  append_version_refusal(out, 1, 3);
  CHECK(base::to_hex(out.substr(0, 4)) == "81000300");
  CHECK(base::load_big_endian<uint32_t>(out.data() + 4) == out.size() - 8);
  out.clear();
  append_version_refusal(out, 66, 0);
  CHECK(base::to_hex(out.substr(0, 5)) == "8500000000");
  const auto error = reply_of<client::ErrorReply>(out);
  CHECK(error.wire_code == 0x000A);
  CHECK(error.error.message ==
        "Invalid or unsupported protocol version (66); supported versions are (3/v3, 4/v4, 5/v5)");
}

TEST_CASE("before STARTUP each served version is taken, after it only its own") {
  auto decoder = server_decoder(0, Compression::kNone, {}, false);
  for (const uint8_t version : {3, 4, 5})
    CHECK(only(decoder, options(version, 1)).envelope.version() == version);
  decoder.start(4, Compression::kNone);
  const Incoming other = only(decoder, options(3, 9));
  CHECK(other.kind == Kind::kRefused);
  CHECK(other.envelope.stream() == 9);
  CHECK(other.error.message ==
        "Invalid message version. Got 3/v3 but previous messages on this connection had version "
        "4/v4");
  CHECK(only(decoder, options(4, 1)).kind == Kind::kEnvelope);
}

TEST_CASE("responses and unknown opcodes are refused and skipped") {
  auto decoder = server_decoder(4, Compression::kNone);
  const Incoming response = only(decoder, envelope(0x84, 0, 3, Opcode::kReady, "junk"));
  CHECK(response.kind == Kind::kRefused);
  CHECK(response.error.code == ErrorCode::kProtocol);
  const Incoming wrong = only(decoder, envelope(4, 0, 4, Opcode::kReady, "junk"));
  CHECK(wrong.error.message == "Wrong protocol direction (expected REQUEST) for opcode READY");
  const Incoming unknown = only(decoder, envelope(4, 0, 5, static_cast<Opcode>(0x55), "junk"));
  CHECK(unknown.error.message == "Unknown opcode 85");
  CHECK(unknown.envelope.stream() == 5);
  CHECK(only(decoder, options(4, 6)).kind == Kind::kEnvelope);
}

TEST_CASE("a negative length is fatal") {
  for (const int32_t length : {-1, INT32_MIN}) {
    auto bare = server_decoder(4, Compression::kNone);
    CHECK(only(bare, header_of(4, 2, Opcode::kQuery, length)).kind == Kind::kFatal);
    for (const bool self_contained : {false, true}) {
      auto framed = server_decoder(5, Compression::kNone);
      Bytes wire;
      append_segment(wire, header_of(5, 2, Opcode::kQuery, length), self_contained, false);
      CHECK(only(framed, wire).kind == Kind::kFatal);
    }
  }
}

TEST_CASE("an oversize body is refused on its stream and skipped as it arrives") {
  auto decoder = server_decoder(4, Compression::kNone, {.body_bytes_max = 1000});
  const Incoming refused = only(decoder, header_of(4, 77, Opcode::kQuery, 50'000'000));
  CHECK(refused.kind == Kind::kRefused);
  CHECK(refused.envelope.stream() == 77);
  CHECK(refused.error.code == ErrorCode::kInvalid);
  CHECK(refused.error.message ==
        "Request is too big: length 50000000 exceeds maximum allowed length 1000.");
  const Bytes part(10000, 'x');
  for (int i = 0; i < 5000; ++i) {
    decoder.feed(part);
    REQUIRE(drain(decoder).empty());
  }
  CHECK(decoder.held_bytes() <= 128u << 10);
  CHECK(only(decoder, options(4, 1)).kind == Kind::kEnvelope);
}

TEST_CASE("before authentication bodies are small") {
  auto decoder = server_decoder(0, Compression::kNone, {}, false);
  CHECK(only(decoder, header_of(4, 1, Opcode::kOptions, 1 << 20)).kind == Kind::kRefused);
}

TEST_CASE("a large length alone takes no memory") {
  auto decoder = server_decoder(4, Compression::kNone);
  decoder.feed(header_of(4, 1, Opcode::kQuery, 16 << 20));
  CHECK(drain(decoder).empty());
  (void)decoder.writable();
  CHECK(decoder.held_bytes() <= 8192);
}

TEST_CASE("a large body arrives in doubling buffers and its buffer goes with it") {
  auto decoder = server_decoder(4, Compression::kNone);
  const Bytes body(10 << 20, 'b');
  {
    const Incoming incoming = only(decoder, envelope(4, 0, 1, Opcode::kQuery, body));
    CHECK(incoming.envelope.body == body);
  }
  (void)decoder.writable();
  CHECK(decoder.held_bytes() <= 64u << 10);
}

TEST_CASE("compressed bodies of v3 and v4 are given decompressed") {
  for (const auto compression : {Compression::kLz4, Compression::kSnappy}) {
    Bytes body;
    REQUIRE(append_compressed_body(compression, Bytes(5000, 'c'), body));
    auto decoder = server_decoder(4, compression);
    const Incoming incoming = only(decoder, envelope(4, 1, 8, Opcode::kQuery, body));
    CHECK(incoming.kind == Kind::kEnvelope);
    CHECK(incoming.envelope.body == Bytes(5000, 'c'));
    auto without = server_decoder(4, Compression::kNone);
    CHECK(only(without, envelope(4, 1, 8, Opcode::kQuery, body)).kind == Kind::kRefused);
  }
}

TEST_CASE("bombs and broken compressed bodies are refused, the connection goes on") {
  for (const auto compression : {Compression::kLz4, Compression::kSnappy}) {
    Bytes bomb;
    REQUIRE(append_compressed_body(compression, Bytes(4 << 20, '0'), bomb));
    auto decoder = server_decoder(4, compression, {.body_bytes_max = 1 << 20});
    const Incoming refused = only(decoder, envelope(4, 1, 8, Opcode::kQuery, bomb));
    CHECK(refused.kind == Kind::kRefused);
    CHECK(refused.error.message ==
          "Request is too big: length 4194304 exceeds maximum allowed length 1048576.");
    for (const char* broken : {"", "00", "000000ff00", "7fffffff0000", "00000004ffffffffff"}) {
      const Incoming bad = only(decoder, envelope(4, 1, 9, Opcode::kQuery, from_hex(broken)));
      if (bad.kind == Kind::kEnvelope) {  // "00" is snappy for nothing
        CHECK(bad.envelope.body.empty());
      } else {
        CHECK(bad.kind == Kind::kRefused);
        CHECK(bad.envelope.stream() == 9);
      }
    }
    CHECK(only(decoder, options(4, 1)).kind == Kind::kEnvelope);
  }
}

TEST_CASE("v5 switches to segments with start, not before") {
  auto decoder = server_decoder(0, Compression::kNone, {}, false);
  CHECK(only(decoder, options(5, 1)).kind == Kind::kEnvelope);
  decoder.start(5, Compression::kLz4);
  CHECK(only(decoder, on_wire(5, Compression::kLz4, options(5, 2))).envelope.stream() == 2);
}

TEST_CASE("bytes behind STARTUP wait for start") {
  auto decoder = server_decoder(0, Compression::kNone, {}, false);
  decoder.feed(envelope(5, 0, 1, Opcode::kStartup, "") +
               on_wire(5, Compression::kNone, options(5, 2)));
  CHECK(decoder.next().envelope.opcode() == Opcode::kStartup);
  decoder.start(5, Compression::kNone);
  CHECK(decoder.next().envelope.stream() == 2);
}

TEST_CASE("damage of a segment is fatal") {
  for (const auto compression : {Compression::kNone, Compression::kLz4}) {
    const Bytes wire =
        on_wire(5, compression, envelope(5, 0, 1, Opcode::kQuery, Bytes(200, 'q')) + options(5, 2));
    for (size_t at = 0; at < wire.size(); ++at) {
      auto decoder = server_decoder(5, compression);
      Bytes damaged = wire;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
      const Incoming incoming = only(decoder, damaged);
      REQUIRE(incoming.kind == Kind::kFatal);
      REQUIRE(incoming.error.code == ErrorCode::kProtocol);
    }
  }
}

TEST_CASE("a block that is no LZ4 is fatal although its CRC is right") {
  // Header: 4 bytes on the wire, 100 uncompressed, self-contained.
  Bytes header = from_hex("0400 c8 00 04");
  uint64_t bits = 4 | uint64_t{100} << 17 | uint64_t{1} << 34;
  for (int i = 0; i < 5; ++i) header[static_cast<size_t>(i)] = static_cast<char>(bits >> (8 * i));
  const uint32_t crc = crc24(header);
  for (int i = 0; i < 3; ++i) header.push_back(static_cast<char>(crc >> (8 * i)));
  const Bytes payload = from_hex("f0ffffff");
  const uint32_t payload_crc = segment_crc32(payload);
  Bytes wire = header + payload;
  for (int i = 0; i < 4; ++i) wire.push_back(static_cast<char>(payload_crc >> (8 * i)));
  auto decoder = server_decoder(5, Compression::kLz4);
  CHECK(only(decoder, wire).kind == Kind::kFatal);
}

TEST_CASE("a message of several segments is joined") {
  for (const auto compression : {Compression::kNone, Compression::kLz4}) {
    Bytes body;
    for (int i = 0; i < 100000; ++i) body += std::to_string(i);
    auto decoder = server_decoder(5, compression);
    decoder.feed(on_wire(5, compression,
                         options(5, 1) + envelope(5, 0, 2, Opcode::kQuery, body) + options(5, 3)));
    const auto all = drain(decoder);
    REQUIRE(all.size() == 3);
    CHECK(all[1].envelope.body == body);
    CHECK(all[2].envelope.stream() == 3);
  }
}

TEST_CASE("an unauthenticated connection sends no message of several segments") {
  auto decoder = server_decoder(5, Compression::kNone, {}, false);
  decoder.feed(
      on_wire(5, Compression::kNone, envelope(5, 0, 2, Opcode::kAuthResponse, Bytes(300000, 'x'))));
  const auto all = drain(decoder);
  REQUIRE(all.size() == 1);
  CHECK(all[0].kind == Kind::kFatal);
}

TEST_CASE("an oversize message of several segments is refused once and dropped") {
  auto decoder = server_decoder(5, Compression::kNone, {.body_bytes_max = 200000});
  decoder.feed(on_wire(5, Compression::kNone,
                       envelope(5, 0, 2, Opcode::kQuery, Bytes(900000, 'x')) + options(5, 3)));
  const auto all = drain(decoder);
  REQUIRE(all.size() == 2);
  CHECK(all[0].kind == Kind::kRefused);
  CHECK(all[0].error.code == ErrorCode::kInvalid);
  CHECK(all[0].error.message ==
        "CQL Message of size 900000 bytes exceeds allowed maximum of 200000 bytes");
  CHECK(all[1].envelope.stream() == 3);
}

TEST_CASE("segments that break the rules of large messages are fatal") {
  const Bytes large = envelope(5, 0, 2, Opcode::kQuery, Bytes(1000, 'x'));
  const auto first_error = [](std::initializer_list<std::pair<Bytes, bool>> segments) {
    auto decoder = server_decoder(5, Compression::kNone);
    Bytes wire;
    for (const auto& [payload, self_contained] : segments)
      append_segment(wire, payload, self_contained, false);
    decoder.feed(wire);
    const auto all = drain(decoder);
    return all.empty() ? std::string("nothing")
                       : (all.back().kind == Kind::kFatal ? all.back().error.message : "no error");
  };
  CHECK(first_error({{large.substr(0, 500), false}, {options(5, 1), true}}) ==
        "Self-contained segment inside a large message");
  CHECK(first_error({{large.substr(0, 5), false}}) ==
        "Segment ends inside the header of an envelope");
  CHECK(first_error({{large.substr(0, 500), false}, {large.substr(500) + "x", false}}) ==
        "Segments of a large message hold more than the message");
  CHECK(first_error({{large.substr(0, 500), true}}) ==
        "Envelope with a body of 1000 bytes exceeds its self-contained segment");
  CHECK(first_error({{large + "abc", true}}) == "Segment ends inside the header of an envelope");
  CHECK(first_error({{large.substr(0, 500), false}, {large.substr(500), false}}) == "no error");
  CHECK(first_error({{"", true}, {large, false}}) == "no error");
  CHECK(first_error({{"", true}}) == "nothing");
}

TEST_CASE("one bad envelope in a segment is refused, a second in a row is fatal") {
  const Bytes bad = envelope(5, 0, 7, static_cast<Opcode>(0x44), "xx");
  auto decoder = server_decoder(5, Compression::kNone);
  decoder.feed(on_wire(5, Compression::kNone,
                       bad + options(5, 1) + bad + options(5, 2) + bad + bad + options(5, 3)));
  const auto all = drain(decoder);
  REQUIRE(all.size() == 6);
  CHECK(all[0].kind == Kind::kRefused);
  CHECK(all[0].envelope.stream() == 7);
  CHECK(all[1].kind == Kind::kEnvelope);
  CHECK(all[4].kind == Kind::kRefused);
  CHECK(all[5].kind == Kind::kFatal);
}

TEST_CASE("the compressed flag means nothing in v5") {
  auto decoder = server_decoder(5, Compression::kLz4);
  const Incoming incoming =
      only(decoder, on_wire(5, Compression::kLz4, envelope(5, 1, 1, Opcode::kQuery, "plain")));
  CHECK(incoming.envelope.body == "plain");
}

TEST_CASE("the encoder sends the answer to STARTUP bare and reuses its buffers") {
  FrameEncoder encoder;
  Bytes wire;
  append_ready(encoder.out(), {.version = 5, .stream = 1});
  encoder.start(5, Compression::kNone);
  append_void(encoder.out(), {.version = 5, .stream = 2});
  encoder.finish_turn(wire);
  CHECK(wire.size() == 9 + 6 + 13 + 4);
  CHECK(static_cast<uint8_t>(wire[0]) == 0x85);
  CHECK(wire[4] == 2);
  append_void(encoder.out(), {.version = 5, .stream = 2});
  encoder.finish_turn(wire);
  CHECK(wire.size() == 6 + 13 + 4);
  CHECK(encoder.empty());
  const size_t capacity = wire.capacity();
  for (int i = 0; i < 100; ++i) {
    append_void(encoder.out(), {.version = 5, .stream = 2});
    encoder.finish_turn(wire);
  }
  CHECK(wire.capacity() == capacity);
}
