// SPDX-License-Identifier: Apache-2.0
// Any body as any request. What is understood is written again by the client's side and must be
// understood in the same way.
//
//   input := version u8 | opcode u8 | flags u8 | body
#include "base/assert.h"
#include "cql/protocol/client.h"
#include "cql/protocol/request.h"
#include "tests/fuzz/seeds.h"

using namespace tetrad;
using namespace tetrad::cql;

namespace {

constexpr Opcode kOpcodes[] = {Opcode::kQuery,   Opcode::kExecute,      Opcode::kBatch,
                               Opcode::kPrepare, Opcode::kStartup,      Opcode::kRegister,
                               Opcode::kOptions, Opcode::kAuthResponse, Opcode::kResult};

/// Reads every byte of a view, so that a view that points outside is seen.
unsigned touch(BytesView view) {
  unsigned sum = 0;
  for (const char c : view) sum += static_cast<uint8_t>(c);
  return sum;
}

unsigned touch(std::span<const WireValue> values) {
  unsigned sum = 0;
  for (const WireValue& value : values) sum += touch(value.bytes);
  return sum;
}

bool equal(const QueryParameters& a, const QueryParameters& b) {
  return a.consistency == b.consistency && a.serial_consistency == b.serial_consistency &&
         a.skip_metadata == b.skip_metadata &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end()) &&
         std::equal(a.names.begin(), a.names.end(), b.names.begin(), b.names.end()) &&
         a.page_size == b.page_size && a.paging_state == b.paging_state &&
         a.timestamp_us == b.timestamp_us && a.keyspace == b.keyspace &&
         a.now_in_seconds == b.now_in_seconds;
}

client::Parameters again(const QueryParameters& p) {
  return {.consistency = p.consistency,
          .values = p.values,
          .names = p.names,
          .skip_metadata = p.skip_metadata,
          .page_size = p.page_size,
          .paging_state = p.paging_state,
          .serial_consistency = p.serial_consistency,
          .timestamp_us = p.timestamp_us,
          .keyspace = p.keyspace,
          .now_in_seconds = p.now_in_seconds};
}

Envelope envelope_of(BytesView bytes) {
  Envelope envelope;
  envelope.header = decode_envelope_header(bytes.data());
  envelope.body = bytes.substr(kEnvelopeHeaderBytes);
  return envelope;
}

void check_query(const QueryRequest& query, int version) {
  touch(query.text);
  touch(query.parameters.values);
  TETRAD_ASSERT(query.parameters.names.empty() ||
                query.parameters.names.size() == query.parameters.values.size());
  Bytes out;
  client::append_query(out, {.version = version}, query.text, again(query.parameters));
  const auto back = decode_request(envelope_of(out));
  TETRAD_ASSERT(back.has_value());
  const auto& same = std::get<QueryRequest>(back->message);
  TETRAD_ASSERT(same.text == query.text);
  TETRAD_ASSERT(equal(same.parameters, query.parameters));
}

void check_execute(const ExecuteRequest& execute, int version) {
  touch(execute.parameters.values);
  Bytes out;
  client::append_execute(out, {.version = version}, execute.id,
                         execute.result_metadata_id.value_or(BytesView()),
                         again(execute.parameters));
  const auto back = decode_request(envelope_of(out));
  TETRAD_ASSERT(back.has_value());
  const auto& same = std::get<ExecuteRequest>(back->message);
  TETRAD_ASSERT(same.id == execute.id);
  TETRAD_ASSERT(same.result_metadata_id == execute.result_metadata_id);
  TETRAD_ASSERT(equal(same.parameters, execute.parameters));
}

void check_batch(const BatchRequest& batch) {
  size_t values = 0;
  for (const auto& statement : batch.statements) {
    touch(statement.text_or_id);
    TETRAD_ASSERT(statement.first_value == values);
    values += batch.values_of(statement).size();
    touch(batch.values_of(statement));
  }
  TETRAD_ASSERT(values == batch.values.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  Envelope envelope;
  envelope.header.version = static_cast<uint8_t>(3 + data[0] % 3);
  envelope.header.opcode = kOpcodes[data[1] % std::size(kOpcodes)];
  envelope.header.flags = data[2];
  envelope.body = {reinterpret_cast<const char*>(data) + 3, size - 3};
  const auto request = decode_request(envelope);
  if (!request) {
    TETRAD_ASSERT(!request.error().message.empty());
    return 0;
  }
  const int version = envelope.version();
  for (const auto& [key, value] : request->custom_payload) {
    touch(key);
    if (value) touch(*value);
  }
  if (const auto* query = std::get_if<QueryRequest>(&request->message))
    check_query(*query, version);
  if (const auto* execute = std::get_if<ExecuteRequest>(&request->message)) {
    check_execute(*execute, version);
  }
  if (const auto* batch = std::get_if<BatchRequest>(&request->message)) check_batch(*batch);
  if (const auto* auth = std::get_if<AuthResponseRequest>(&request->message)) {
    (void)decode_plain_token(auth->token);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  const WireValue values[] = {WireValue::of("abc"), WireValue::null(), WireValue::of("12345678")};
  const std::string_view names[] = {"a", "b", "c"};
  const client::Parameters full = {.values = values,
                                   .names = names,
                                   .page_size = 7,
                                   .paging_state = "state",
                                   .serial_consistency = ConsistencyLevel::kSerial,
                                   .timestamp_us = 1,
                                   .keyspace = "ks",
                                   .now_in_seconds = 3};
  const client::BatchStatement statements[] = {{false, "INSERT", values}, {true, "id", values}};
  const client::StartupOption options[] = {{"CQL_VERSION", "3.4.7"}, {"COMPRESSION", "lz4"}};
  const std::string_view events[] = {"TOPOLOGY_CHANGE", "SCHEMA_CHANGE"};
  for (int version = 3; version <= 5; ++version) {
    const client::RequestHead head{.version = version};
    Bytes bytes[8];
    client::append_query(bytes[0], head, "SELECT", full);
    client::append_execute(bytes[1], head, "id", "result id", full);
    client::append_batch(bytes[2], head, BatchType::kLogged, statements, {.timestamp_us = 9});
    client::append_prepare(bytes[3], head, "SELECT", "ks");
    client::append_startup(bytes[4], head, options);
    client::append_register(bytes[5], head, events);
    client::append_options(bytes[6], head);
    client::append_auth_response(bytes[7], head, client::plain_token("user", "password"));
    for (char i = 0; i < 8; ++i) {
      const std::string prefix{static_cast<char>(version - 3), i, '\0'};
      seeds.push_back(prefix + bytes[static_cast<size_t>(i)].substr(kEnvelopeHeaderBytes));
    }
  }
  return seeds;
}
