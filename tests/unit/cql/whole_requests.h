// SPDX-License-Identifier: Apache-2.0
// Whole requests through QueryProcessor, from the bytes of a client's frame to those of the answer.
#pragma once

#include <memory>

#include <catch2/catch.hpp>

#include "base/task_group.h"
#include "cql/execute/query_processor.h"
#include "tests/support/local_cluster.h"
#include "tests/unit/cql_protocol/wire.h"

namespace tetrad::tests {

using cql::client::Parameters;

/// A table ks.t of nine rows, and what a client says and hears.
class WholeRequests : public LocalCluster {
 public:
  explicit WholeRequests(cql::NodeTables of_node = {})
      : tables_(cql::make_system_tables(meta, {}, std::move(of_node))) {
    processor = another_shard();
    for (const char* statement :
         {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
          "1}",
          "CREATE TABLE ks.t (k int, c int, PRIMARY KEY (k, c)) WITH cdc = true"})
      REQUIRE(cql(statement) == "ok");
    for (int c = 0; c < 9; ++c)
      REQUIRE(cql(fmt::format("INSERT INTO ks.t (k, c) VALUES (1, {})", c)) == "ok");
  }

  std::unique_ptr<cql::QueryProcessor> another_shard(cql::QueryProcessorOptions processing = {},
                                                     Logger logger = {}) {
    processing.prepared_texts = texts_;
    return std::make_unique<cql::QueryProcessor>(reactor, random, *coordinator, meta, *tables_,
                                                 std::move(processing), std::move(logger));
  }
  cql::client::Response ask(const Bytes& bytes) {
    const cql::Envelope envelope = cql::only_envelope(bytes, cql::FrameDecoder::Role::kServer);
    auto request = cql::decode_request(envelope);
    REQUIRE(request);
    Bytes out;
    bool done = false;
    base::TaskGroup group;
    const auto body = [](cql::QueryProcessor& to, cql::Envelope e, cql::Request r,
                         cql::ClientState& from, Bytes& into, bool& ended) -> Task<void> {
      co_await to.process(std::move(e), std::move(r), from, into);
      ended = true;
    };
    group.spawn(body(*processor, envelope, std::move(*request), client, out, done));
    reactor.run_until([&] { return done; });
    REQUIRE(done);
    return cql::response_of(out);
  }
  cql::client::Response query(std::string_view text, const Parameters& parameters = {}) {
    Bytes bytes;
    cql::client::append_query(bytes, {.version = 4}, text, parameters);
    return ask(bytes);
  }
  Bytes prepare(std::string_view text) {
    Bytes bytes;
    cql::client::append_prepare(bytes, {.version = 4}, text);
    return Bytes(std::get<cql::client::PreparedReply>(ask(bytes).reply).id);
  }
  cql::client::Response run(BytesView id, const Parameters& parameters = {}) {
    Bytes bytes;
    cql::client::append_execute(bytes, {.version = 4}, id, {}, parameters);
    return ask(bytes);
  }
  static std::string error_of(const cql::client::Response& response) {
    const auto* error = std::get_if<cql::client::ErrorReply>(&response.reply);
    return error == nullptr ? "" : fmt::format("{:x} {}", error->wire_code, error->error.message);
  }
  static std::optional<Bytes> state_of(const cql::client::Response& response) {
    const auto* rows = std::get_if<cql::client::RowsReply>(&response.reply);
    REQUIRE(rows != nullptr);
    if (!rows->metadata.paging_state) return std::nullopt;
    return Bytes(*rows->metadata.paging_state);
  }

  cql::client::PreparedReply prepare_in(int version, std::string_view text) {
    Bytes bytes;
    cql::client::append_prepare(bytes, {.version = version}, text);
    return std::get<cql::client::PreparedReply>(ask(bytes).reply);
  }
  cql::client::Response run_in(int version, BytesView id, BytesView metadata_id,
                               const Parameters& parameters = {}) {
    Bytes bytes;
    cql::client::append_execute(bytes, {.version = version}, id, metadata_id, parameters);
    return ask(bytes);
  }

  std::unique_ptr<cql::QueryProcessor> processor;

 private:
  std::unique_ptr<cql::VirtualTables> tables_;
  std::shared_ptr<cql::PreparedTexts> texts_ = std::make_shared<cql::PreparedTexts>(100, 1u << 20);
};

}  // namespace tetrad::tests
