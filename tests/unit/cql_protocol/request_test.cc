// SPDX-License-Identifier: Apache-2.0
#include "cql/protocol/request.h"

#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "base/random.h"
#include "tests/unit/cql_protocol/wire.h"

using namespace tetrad;
using namespace tetrad::cql;
using client::RequestHead;

namespace {

constexpr int kVersions[] = {3, 4, 5};

RequestHead head_of(int version) { return {.version = version, .stream = 12}; }

/// The refusal of a request whose body is given in hex.
Error refusal(int version, Opcode opcode, std::string_view hex, uint8_t flags = 0) {
  const auto request =
      request_of(envelope(static_cast<uint8_t>(version), flags, 1, opcode, from_hex(hex)));
  return request ? Error() : request.error();
}

std::vector<WireValue> list(std::span<const WireValue> values) {
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("STARTUP keeps all options and reads the known ones without regard to case") {
  Bytes out;
  const client::StartupOption options[] = {{"cql_version", "3.4.7"},
                                           {"Compression", "LZ4"},
                                           {"DRIVER_NAME", "test"},
                                           {"THROW_ON_OVERLOAD", "1"}};
  client::append_startup(out, head_of(5), options);
  const auto startup = message_of<StartupRequest>(out);
  CHECK(startup.cql_version == "3.4.7");
  CHECK(startup.compression == Compression::kLz4);
  CHECK(startup.throw_on_overload);
  CHECK(startup.option("driver_name") == BytesView("test"));
  CHECK_FALSE(startup.option("CLIENT_ID"));
  CHECK(startup.options.size() == 4);
}

TEST_CASE("STARTUP is refused without a version of CQL and with a strange compression") {
  const auto startup = [](int version, std::vector<client::StartupOption> options) {
    Bytes out;
    client::append_startup(out, head_of(version), options);
    const auto request = request_of(out);
    return request ? std::string() : request.error().message;
  };
  CHECK(startup(4, {{"COMPRESSION", "lz4"}}) == "Missing value CQL_VERSION in STARTUP message");
  CHECK(startup(4, {{"CQL_VERSION", "2.0.0"}}) ==
        "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= "
        "3.0.0)");
  CHECK(startup(4, {{"CQL_VERSION", "3.0.0"}, {"COMPRESSION", "deflate"}}) ==
        "Unknown compression algorithm: deflate");
  CHECK(startup(5, {{"CQL_VERSION", "3.0.0"}, {"COMPRESSION", "snappy"}}) ==
        "Snappy compression is not supported in protocol V5");
  CHECK(startup(4, {{"CQL_VERSION", "3.0.0"}, {"COMPRESSION", "snappy"}}).empty());
  CHECK(startup(4, {{"CQL_VERSION", "3.0.0"}, {"COMPRESSION", ""}}).empty());
}

TEST_CASE("QUERY with everything is read back in every version") {
  const WireValue values[] = {WireValue::of("abc"), WireValue::null(), WireValue::of("")};
  const std::string_view names[] = {"a", "b", "\"C\""};
  for (const int version : kVersions) {
    Bytes out;
    client::append_query(out, head_of(version), "SELECT 'é'",
                         {.consistency = ConsistencyLevel::kLocalQuorum,
                          .values = values,
                          .names = names,
                          .skip_metadata = true,
                          .page_size = 100,
                          .paging_state = "state",
                          .serial_consistency = ConsistencyLevel::kLocalSerial,
                          .timestamp_us = -5,
                          .keyspace = "ks",
                          .now_in_seconds = 4'000'000'000u});
    const auto query = message_of<QueryRequest>(out);
    CHECK(query.text == "SELECT 'é'");
    const QueryParameters& p = query.parameters;
    CHECK(p.consistency == ConsistencyLevel::kLocalQuorum);
    CHECK(list(p.values) == std::vector<WireValue>(values, values + 3));
    REQUIRE(p.names.size() == 3);
    CHECK(p.names[2] == "\"C\"");
    CHECK(p.skip_metadata);
    CHECK(p.page_size == 100);
    CHECK(p.paging_state == BytesView("state"));
    CHECK(p.serial_consistency == ConsistencyLevel::kLocalSerial);
    CHECK(p.timestamp_us == -5);
    CHECK(p.keyspace.has_value() == (version == 5));
    CHECK(p.now_in_seconds.has_value() == (version == 5));
    if (version == 5) {
      CHECK(p.keyspace == BytesView("ks"));
      CHECK(p.now_in_seconds == 4'000'000'000u);
    }
  }
}

TEST_CASE("unset is null in v3 and unset from v4; smaller is refused") {
  const char* body = "00000001 71 0001 01 0001 fffffffe";
  const auto v3 = message_of<QueryRequest>(envelope(3, 0, 1, Opcode::kQuery, from_hex(body)));
  CHECK(v3.parameters.values[0].is_null());
  const auto v4 = message_of<QueryRequest>(envelope(4, 0, 1, Opcode::kQuery, from_hex(body)));
  CHECK(v4.parameters.values[0].is_unset());
  CHECK(refusal(4, Opcode::kQuery, "00000001 71 0001 01 0001 fffffffd").message ==
        "Invalid ByteBuf length -3");
  CHECK(refusal(3, Opcode::kQuery, "00000001 71 0001 01 0001 fffffffd").message.empty());
}

TEST_CASE("EXECUTE has a second id in v5") {
  const WireValue values[] = {WireValue::of("12345678"), WireValue::unset(), WireValue::of("x")};
  for (const int version : kVersions) {
    Bytes out;
    client::append_execute(out, head_of(version), "0123456789abcdef", "fedcba9876543210",
                           {.values = values});
    const auto execute = message_of<ExecuteRequest>(out);
    CHECK(execute.id == "0123456789abcdef");
    CHECK(execute.result_metadata_id.has_value() == (version == 5));
    REQUIRE(execute.parameters.values.size() == 3);
    CHECK(execute.parameters.values[0].bytes == "12345678");
    CHECK(execute.parameters.values[1].kind ==
          (version == 3 ? WireValue::Kind::kNull : WireValue::Kind::kUnset));
    CHECK(execute.parameters.names.empty());
  }
}

TEST_CASE("many values go beyond the inline ones") {
  const std::vector<Bytes> texts(1000, "v");
  std::vector<WireValue> values;
  for (const auto& text : texts) values.push_back(WireValue::of(text));
  Bytes out;
  client::append_execute(out, head_of(4), "id", "", {.values = values});
  auto execute = message_of<ExecuteRequest>(out);
  REQUIRE(execute.parameters.values.size() == 1000);
  const QueryParameters copy = execute.parameters;
  const QueryParameters moved = std::move(execute.parameters);
  CHECK(copy.values.size() == 1000);
  CHECK(moved.values[999].bytes == "v");
  CHECK(copy.values[999].bytes.data() == moved.values[999].bytes.data());
}

TEST_CASE("PREPARE has a keyspace in v5") {
  for (const int version : kVersions) {
    Bytes out;
    client::append_prepare(out, head_of(version), "SELECT 1", "ks");
    const auto prepare = message_of<PrepareRequest>(out);
    CHECK(prepare.text == "SELECT 1");
    CHECK(prepare.keyspace.has_value() == (version == 5));
  }
}

TEST_CASE("BATCH keeps the values of each statement apart") {
  const WireValue first[] = {WireValue::of("1"), WireValue::null()};
  const WireValue third[] = {WireValue::of("3")};
  const client::BatchStatement statements[] = {
      {false, "INSERT", first}, {true, "id", {}}, {true, "id2", third}};
  for (const int version : kVersions) {
    Bytes out;
    client::append_batch(out, head_of(version), BatchType::kUnlogged, statements,
                         {.consistency = ConsistencyLevel::kQuorum,
                          .serial_consistency = ConsistencyLevel::kSerial,
                          .timestamp_us = 77,
                          .keyspace = "ks"});
    const auto batch = message_of<BatchRequest>(out);
    CHECK(batch.type == BatchType::kUnlogged);
    REQUIRE(batch.statements.size() == 3);
    CHECK_FALSE(batch.statements[0].prepared);
    CHECK(batch.statements[0].text_or_id == "INSERT");
    CHECK(list(batch.values_of(batch.statements[0])) == std::vector<WireValue>(first, first + 2));
    CHECK(batch.values_of(batch.statements[1]).empty());
    CHECK(batch.statements[2].text_or_id == "id2");
    CHECK(batch.values_of(batch.statements[2])[0].bytes == "3");
    CHECK(batch.parameters.timestamp_us == 77);
    CHECK(batch.parameters.serial_consistency == ConsistencyLevel::kSerial);
    CHECK(batch.parameters.keyspace.has_value() == (version == 5));
  }
}

TEST_CASE("REGISTER, AUTH_RESPONSE and OPTIONS are read") {
  Bytes out;
  const std::string_view events[] = {"STATUS_CHANGE", "schema_change"};
  client::append_register(out, head_of(4), events);
  const auto wanted = message_of<RegisterRequest>(out);
  CHECK(wanted.status_change);
  CHECK(wanted.schema_change);
  CHECK_FALSE(wanted.topology_change);
  out.clear();
  client::append_auth_response(out, head_of(4), client::plain_token("ann", "secret"));
  const auto auth = message_of<AuthResponseRequest>(out);
  const auto credentials = decode_plain_token(auth.token);
  REQUIRE(credentials);
  CHECK(credentials->user == "ann");
  CHECK(credentials->password == "secret");
  out.clear();
  client::append_options(out, head_of(4));
  message_of<OptionsRequest>(out);
}

TEST_CASE("tokens of other shapes are bad credentials") {
  const auto code = [](std::optional<BytesView> token) {
    const auto credentials = decode_plain_token(token);
    return credentials ? ErrorCode::kServerError : credentials.error().code;
  };
  using namespace std::literals;
  CHECK(code(std::nullopt) == ErrorCode::kBadCredentials);
  for (const auto token : {""sv, "ann"sv, "\0ann"sv, "\0\0secret"sv, "\0ann\0"sv, "\0a\0b\0c"sv})
    CHECK(code(token) == ErrorCode::kBadCredentials);
  CHECK(decode_plain_token("id\0ann\0secret"sv)->user == "ann");
}

TEST_CASE("a custom payload is read from v4 and refused in v3") {
  const std::pair<std::string_view, BytesView> payload[] = {{"key", "value"}, {"other", ""}};
  Bytes out;
  client::append_query(out, {.version = 4, .stream = 1, .tracing = true, .custom_payload = payload},
                       "q", {});
  const auto request = request_of(out);
  REQUIRE(request);
  REQUIRE(request->custom_payload.size() == 2);
  CHECK(request->custom_payload[0].first == "key");
  CHECK(request->custom_payload[0].second == BytesView("value"));
  CHECK(only_envelope(out, FrameDecoder::Role::kServer).tracing());
  out[0] = 3;
  CHECK(request_of(out).error().message ==
        "Must not send frame with CUSTOM_PAYLOAD flag for native protocol version < 4");
}

TEST_CASE("what breaks the protocol is refused with Cassandra's words") {
  const auto protocol = [](int version, Opcode opcode, std::string_view hex) {
    const Error error = refusal(version, opcode, hex);
    CHECK(error.code == ErrorCode::kProtocol);
    return error.message;
  };
  CHECK(protocol(4, Opcode::kQuery, "00000001 71 00ff 00") ==
        "Unknown code 255 for a consistency level");
  CHECK(protocol(4, Opcode::kQuery, "00000001 71 0001 04 00000000") == "Invalid page size: 0");
  CHECK(protocol(4, Opcode::kQuery, "00000001 71 0001 20 8000000000000000") ==
        "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807] (got "
        "-9223372036854775808)");
  CHECK(protocol(4, Opcode::kBatch, "03 0000 0001 00") == "Invalid BATCH message type 3");
  CHECK(protocol(4, Opcode::kBatch, "00 0001 02 0000 0000 0001 00") ==
        "Invalid query kind in BATCH messages. Must be 0 or 1 but got 2");
  CHECK_FALSE(protocol(4, Opcode::kBatch, "00 0000 0001 40").empty());
  CHECK(protocol(4, Opcode::kRegister, "0001 0003 414243") == "Invalid value 'ABC' for Type");
  CHECK(protocol(4, Opcode::kQuery, "00000002 c328 0001 00") ==
        "Cannot decode string as UTF8: statement");
  // As Java: no character 0 in two bytes, no surrogates, nothing past U+10FFFF.
  for (const char* text : {"c080", "eda080", "edb3bf", "f4908080", "f7bfbfbf"}) {
    const std::string size = fmt::format("{:08x}", std::string_view(text).size() / 2);
    for (const Opcode opcode : {Opcode::kQuery, Opcode::kPrepare})
      CHECK(protocol(4, opcode, size + text + "0001 00") ==
            "Cannot decode string as UTF8: statement");
    CHECK(protocol(4, Opcode::kBatch, "00 0001 00" + size + text + "0000 0001 00") ==
          "Cannot decode string as UTF8: statement");
  }
  CHECK(protocol(4, Opcode::kQuery, "ffffffff") ==
        "Malformed message: it ends before the end of its statement");
  CHECK(refusal(4, Opcode::kQuery, "00000001 71 0001 10 0001").code == ErrorCode::kInvalid);
  CHECK(refusal(4, Opcode::kQuery, "00000001 71 000b 00").message ==
        "not supported yet: consistency level NODE_LOCAL");
}

TEST_CASE("negative page sizes and null paging states mean none") {
  const auto query = message_of<QueryRequest>(
      envelope(4, 0, 1, Opcode::kQuery, from_hex("00000001 71 0001 0c ffffffff ffffffff")));
  CHECK_FALSE(query.parameters.page_size);
  CHECK_FALSE(query.parameters.paging_state);
}

TEST_CASE("flags nobody knows are ignored") {
  const auto v5 = message_of<QueryRequest>(
      envelope(5, 0, 1, Opcode::kQuery, from_hex("00000001 71 0001 40000002")));
  CHECK(v5.parameters.skip_metadata);
  const auto v4 =
      message_of<QueryRequest>(envelope(4, 0, 1, Opcode::kQuery, from_hex("00000001 71 0001 80")));
  CHECK_FALSE(v4.parameters.keyspace);
}

TEST_CASE("counts larger than the body take no memory") {
  CHECK(refusal(4, Opcode::kQuery, "00000001 71 0001 01 ffff 00000000").code ==
        ErrorCode::kProtocol);
  CHECK(refusal(4, Opcode::kBatch, "00 ffff 01").code == ErrorCode::kProtocol);
  CHECK(refusal(4, Opcode::kStartup, "ffff 0001").code == ErrorCode::kProtocol);
  CHECK(refusal(4, Opcode::kRegister, "ffff").code == ErrorCode::kProtocol);
  CHECK(refusal(4, Opcode::kQuery, "ffff 0001 61", 4).code == ErrorCode::kProtocol);
}

TEST_CASE("every truncation of a request is refused") {
  const WireValue values[] = {WireValue::of("abc"), WireValue::null()};
  const std::string_view names[] = {"a", "b"};
  const client::BatchStatement statements[] = {{false, "INSERT", values}, {true, "id", values}};
  const client::Parameters full = {.values = values,
                                   .names = names,
                                   .page_size = 7,
                                   .paging_state = "s",
                                   .timestamp_us = 1,
                                   .keyspace = "k",
                                   .now_in_seconds = 3};
  for (const int version : kVersions) {
    std::vector<Bytes> all(5);
    client::append_query(all[0], head_of(version), "SELECT", full);
    client::append_execute(all[1], head_of(version), "id", "rid", full);
    client::append_batch(all[2], head_of(version), BatchType::kLogged, statements,
                         {.timestamp_us = 5});
    client::append_prepare(all[3], head_of(version), "SELECT");
    const client::StartupOption options[] = {{"CQL_VERSION", "3.0.0"}};
    client::append_startup(all[4], head_of(version), options);
    for (const Bytes& whole : all) {
      REQUIRE(request_of(whole));
      for (size_t size = kEnvelopeHeaderBytes; size < whole.size(); ++size) {
        Bytes cut = whole.substr(0, size);
        base::store_big_endian(cut.data() + 5, static_cast<int32_t>(size - kEnvelopeHeaderBytes));
        const auto request = request_of(cut);
        REQUIRE_FALSE(request);
        REQUIRE(request.error().code == ErrorCode::kProtocol);
      }
    }
  }
}

TEST_CASE("requests survive both ends of a connection in every version and compression") {
  const Bytes large(3000, 'v');
  const WireValue values[] = {WireValue::of(large), WireValue::of("2"), WireValue::null()};
  for (const int version : kVersions) {
    for (const auto compression : {Compression::kNone, Compression::kLz4, Compression::kSnappy}) {
      if (version == 5 && compression == Compression::kSnappy) continue;
      FrameEncoder encoder;
      encoder.start(version, compression);
      client::append_execute(encoder.out(), head_of(version), "id", "rid", {.values = values});
      client::append_options(encoder.out(), head_of(version));
      Bytes wire;
      encoder.finish_turn(wire);
      if (compression != Compression::kNone) CHECK(wire.size() < 400);
      auto decoder = server_decoder(version, compression);
      decoder.feed(wire);
      const auto all = drain(decoder);
      REQUIRE(all.size() == 2);
      const auto request = decode_request(all[0].envelope);
      REQUIRE(request);
      const auto& execute = std::get<ExecuteRequest>(request->message);
      CHECK(list(execute.parameters.values) == std::vector<WireValue>(values, values + 3));
    }
  }
}
