// SPDX-License-Identifier: Apache-2.0
// Whole requests that are refused: statements with more markers than can be bound. Codes and texts
// are Cassandra 5.0's.
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

}  // namespace tetrad::tests
