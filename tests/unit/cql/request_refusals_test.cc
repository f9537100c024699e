// SPDX-License-Identifier: Apache-2.0
// Whole requests that are refused: statements with more markers than can be bound, and paging states
// that are none of this cluster or of another statement. Codes are Cassandra 5.0's, and texts where it
// has one.
#include "tests/support/hex.h"
#include "tests/unit/cql/whole_requests.h"

namespace tetrad::tests {
namespace {

std::string with_markers(std::string_view begin, size_t count) {
  std::string out(begin);
  for (size_t i = 0; i < count; ++i) out += i == 0 ? "?" : ",?";
  return out + ")";
}

}  // namespace

TEST_CASE_METHOD(WholeRequests, "more markers than can be bound are invalid, and no syntax error") {
  const auto prepared = [&](const std::string& text) {
    Bytes bytes;
    cql::client::append_prepare(bytes, {.version = 4}, text);
    return error_of(ask(bytes));
  };
  const std::string in = "SELECT c FROM ks.t WHERE k IN (";
  CHECK(prepared(with_markers(in, 65'535)).empty());
  CHECK(prepared(with_markers(in, 65'536)) ==
        "2200 Too many markers(?). 65536 markers exceed the allowed maximum of 65535");
  CHECK(prepared(with_markers(in, 70'000)) ==
        "2200 Too many markers(?). 70000 markers exceed the allowed maximum of 65535");
  CHECK(prepared(with_markers(in, 200'000)) ==
        "2200 Too many markers(?). More than 131072 exceed the allowed maximum of 65535");
  std::string batch = "BEGIN BATCH ";
  for (int i = 0; i < 32'768; ++i) batch += "INSERT INTO ks.t (k, c) VALUES (?, ?); ";
  CHECK(prepared(batch + "APPLY BATCH") ==
        "2200 Too many markers(?). 65536 markers exceed the allowed maximum of 65535");
  // Another mistake comes first.
  CHECK(prepared(with_markers("SELECT c FROM ks.none WHERE k IN (", 70'000)) ==
        "2200 table none does not exist");
  CHECK(prepared(with_markers(in, 70'000) + " nonsense").starts_with("2000 line 1:"));
  CHECK(error_of(query(with_markers(in, 70'000))) == "2200 Invalid amount of bind variables");
}

TEST_CASE_METHOD(WholeRequests, "what is wrong with a paging state is said in one sentence") {
  const std::string kForeign =
      "a Invalid value for the paging state: it is not one that this cluster gave, or was cut or "
      "changed since";
  const auto refusal_of = [&](std::string_view text, const Bytes& state) {
    return error_of(query(text, {.page_size = 3, .paging_state = state}));
  };
  const std::string_view one = "SELECT c FROM ks.t WHERE k = 1";
  const Bytes state = state_of(query(one, {.page_size = 3})).value();
  REQUIRE(refusal_of(one, state).empty());
  for (const size_t size : {size_t{0}, size_t{1}, size_t{16}, size_t{17}, state.size() - 1})
    CHECK(refusal_of(one, state.substr(0, size)) == kForeign);
  for (size_t i = 0; i < state.size(); ++i) {
    Bytes altered = state;
    altered[i] = static_cast<char>(altered[i] ^ 0x55);
    REQUIRE(refusal_of(one, altered) == kForeign);
  }
  CHECK(refusal_of(one, state + "x") == kForeign);
  CHECK(refusal_of(one, "nonsense") == kForeign);
  // As Cassandra gave it to a page of the same statement.
  CHECK(refusal_of(one, from_hex("04000000010600040000000bf07ffffffcf07ffffffc")) == kForeign);

  // Of another statement.
  const std::string kOther =
      "2200 The paging state belongs to another statement, or the schema has changed since: please "
      "start from the first page";
  CHECK(refusal_of("SELECT count(*) FROM ks.t WHERE k = 1", state) == kOther);
  CHECK(refusal_of("DESCRIBE TABLES", state) == kOther);
  CHECK(refusal_of("DESCRIBE TABLES", "x") == kForeign);
  CHECK(refusal_of("SELECT c FROM ks.t WHERE token(k) > 9223372036854775806", state) ==
        "a Invalid value for the paging state: this cluster gave it to another statement");

  // Of another version of the protocol: as good as its own, as in Cassandra.
  for (const int given_by : {3, 4, 5}) {
    Bytes bytes;
    cql::client::append_query(bytes, {.version = given_by}, one, {.page_size = 3});
    const Bytes given = state_of(ask(bytes)).value();
    for (const int used_by : {3, 4, 5}) {
      bytes.clear();
      cql::client::append_query(bytes, {.version = used_by}, one,
                                {.page_size = 3, .paging_state = given});
      const cql::client::Response page = ask(bytes);
      INFO(given_by << " to " << used_by << ": " << error_of(page));
      REQUIRE(error_of(page).empty());
      CHECK(std::get<cql::client::RowsReply>(page.reply).row_count == 3);
    }
  }
}

}  // namespace tetrad::tests
