// SPDX-License-Identifier: Apache-2.0
// Whole requests through QueryProcessor: what a library throws becomes an answer, and paging states
// belong to one statement.
#include <new>
#include <stdexcept>

#include <catch2/catch.hpp>

#include "base/task_group.h"
#include "cql/execute/query_processor.h"
#include "tests/support/local_cluster.h"
#include "tests/unit/cql_protocol/wire.h"

namespace tetrad::tests {
namespace {

using cql::client::Parameters;

class Fixture : public LocalCluster {
 public:
  Fixture() : tables_(cql::make_system_tables(meta, {})) {
    processor = std::make_unique<cql::QueryProcessor>(reactor, random, *coordinator, meta, *tables_,
                                                      cql::QueryProcessorOptions(), Logger());
    for (const char* statement :
         {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
          "1}",
          "CREATE TABLE ks.t (k int, c int, PRIMARY KEY (k, c)) WITH cdc = true"})
      REQUIRE(cql(statement) == "ok");
    for (int c = 0; c < 9; ++c)
      REQUIRE(cql(fmt::format("INSERT INTO ks.t (k, c) VALUES (1, {})", c)) == "ok");
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

  std::unique_ptr<cql::QueryProcessor> processor;

 private:
  std::unique_ptr<cql::VirtualTables> tables_;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "what a library throws is answered with a server error") {
  const auto thrown = [&](auto exception) {
    coordinator->on_read = [exception](storage::ReadResult&) { throw exception; };
    std::string text;  // every other read is answered where it stands, without on_read
    while (text.empty()) text = error_of(query("SELECT * FROM ks.t WHERE k = 1"));
    coordinator->on_read = nullptr;
    return text;
  };
  CHECK(thrown(std::bad_alloc())
            .starts_with("0 The request failed inside the server: it takes "
                         "more memory than there is"));
  CHECK(thrown(std::length_error("too long")) ==
        "0 The request failed inside the server: it takes more memory than there is (too long)");
  CHECK(thrown(std::runtime_error("no")) ==
        "0 The request failed inside the server: an unexpected error (no)");
  const Bytes id = prepare("SELECT * FROM ks.t WHERE k = 1");
  coordinator->on_read = [](storage::ReadResult&) { throw std::runtime_error("no"); };
  std::string text;
  while (text.empty()) text = error_of(run(id));
  CHECK(text.starts_with("0 The request failed inside"));
  coordinator->on_read = nullptr;
  CHECK(error_of(run(id)).empty());
  CHECK(error_of(query("SELECT * FROM ks.t WHERE k = 1")).empty());
  CHECK(processor->metrics().query.errors.value() == 3);
}

TEST_CASE_METHOD(Fixture, "a paging state is good for its statement only") {
  const Bytes one = prepare("SELECT c FROM ks.t WHERE k = 1"),
              other = prepare("SELECT k FROM ks.t WHERE k = 1");
  const Bytes state = state_of(run(one, {.page_size = 3})).value();
  CHECK(error_of(run(one, {.page_size = 3, .paging_state = state})).empty());
  CHECK(error_of(run(one, {.paging_state = state})).empty());  // the rest at once
  CHECK_FALSE(error_of(run(other, {.page_size = 3, .paging_state = state})).empty());
  CHECK_FALSE(error_of(run(other, {.paging_state = state})).empty());
}

TEST_CASE_METHOD(Fixture, "a change feed without a page size goes on where its own state says") {
  const char* const kFeed =
      "SELECT {} FROM ks.t WHERE COSMOS_CHANGEFEED_START_TIME() = '2000-01-01'";
  const Bytes one = prepare(fmt::format(fmt::runtime(kFeed), "c")),
              other = prepare(fmt::format(fmt::runtime(kFeed), "k"));
  const auto state = state_of(run(one, {.page_size = 2}));
  REQUIRE(state);
  CHECK(error_of(run(one, {.paging_state = *state})).empty());
  CHECK_FALSE(error_of(run(other, {.paging_state = *state})).empty());
}

}  // namespace tetrad::tests
