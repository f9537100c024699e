// SPDX-License-Identifier: Apache-2.0
// What a library throws becomes an answer, and paging states belong to one table.
#include <new>
#include <stdexcept>

#include "tests/unit/cql/whole_requests.h"

namespace tetrad::tests {

TEST_CASE_METHOD(WholeRequests, "what a library throws is answered with a server error") {
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

TEST_CASE_METHOD(WholeRequests, "a paging state is good for statements of rows of its table") {
  const Bytes one = prepare("SELECT c FROM ks.t WHERE k = 1"),
              other = prepare("SELECT k, c FROM ks.t WHERE k = 1 AND c >= 0"),
              limited = prepare("SELECT c FROM ks.t WHERE k = 1 LIMIT 1"),
              elsewhere = prepare("SELECT c FROM ks.t WHERE k = 2"),
              counted = prepare("SELECT count(*) FROM ks.t WHERE k = 1"),
              distinct = prepare("SELECT DISTINCT k FROM ks.t");
  const Bytes state = state_of(run(one, {.page_size = 3})).value();
  CHECK(error_of(run(one, {.page_size = 3, .paging_state = state})).empty());
  CHECK(error_of(run(one, {.paging_state = state})).empty());  // the rest at once
  const auto rows_of = [&](const Bytes& id) {
    const cql::client::Response response = run(id, {.paging_state = state});
    return std::get<cql::client::RowsReply>(response.reply).row_count;
  };
  const auto rest = rows_of(one);
  CHECK(rest > 1);
  CHECK(rows_of(other) == rest);
  CHECK(rows_of(limited) == 1);
  CHECK(rows_of(elsewhere) == 0);
  CHECK_FALSE(error_of(run(counted, {.paging_state = state})).empty());
  CHECK_FALSE(error_of(run(distinct, {.paging_state = state})).empty());
  const Bytes asked = state_of(query("SELECT c FROM ks.t WHERE k = 1", {.page_size = 3})).value();
  REQUIRE(cql("TRUNCATE ks.t") == "ok");  // as Cassandra: it ends there
  CHECK(error_of(run(one, {.page_size = 3, .paging_state = state})).empty());
  REQUIRE(cql("DROP TABLE ks.t") == "ok");
  REQUIRE(cql("CREATE TABLE ks.t (k int, c int, PRIMARY KEY (k, c)) WITH cdc = true") == "ok");
  const auto is_refused = [&](const cql::client::Response& response) {
    return error_of(response).find("belongs to another statement") != std::string::npos;
  };
  CHECK(is_refused(run(one, {.page_size = 3, .paging_state = state})));
  CHECK(is_refused(run(one, {.paging_state = state})));
  CHECK(
      is_refused(query("SELECT c FROM ks.t WHERE k = 1", {.page_size = 3, .paging_state = asked})));
  CHECK(error_of(run(one, {.page_size = 3})).empty());
}

TEST_CASE_METHOD(WholeRequests,
                 "a change feed without a page size goes on where its own state says") {
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
