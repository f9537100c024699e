// SPDX-License-Identifier: Apache-2.0
#include "cql/protocol/paging_state.h"

#include <catch2/catch.hpp>

using namespace tetrad;
using namespace tetrad::cql;

namespace {

PagingState sample() {
  PagingState state;
  state.statement.fill(7);
  state.rows_left = 1234567890123;
  state.partition_rows_left = 3;
  state.position = Bytes("pos\0ition", 9);
  return state;
}

}  // namespace

TEST_CASE("a paging state is read back") {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{200}, size_t{70000}}) {
    PagingState state = sample();
    state.position = Bytes(size, 'p');
    if (size == 1) state.rows_left = state.partition_rows_left = kNoRowLimit;
    const auto back =
        decode_paging_state(encode_paging_state(state, "key"), state.statement, "key");
    REQUIRE(back);
    CHECK(back->rows_left == state.rows_left);
    CHECK(back->partition_rows_left == state.partition_rows_left);
    CHECK(back->position == state.position);
    CHECK_FALSE(back->is_hidden);
  }
}

TEST_CASE("a hidden paging state shows nothing of itself and is read back") {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{40}, size_t{70000}}) {
    PagingState state = sample();
    state.position = Bytes(size, 'p');
    state.is_hidden = true;
    const Bytes encoded = encode_paging_state(state, "key");
    CHECK(encoded.find("ppp") == Bytes::npos);
    CHECK(encoded.find(Bytes(8, 7)) == Bytes::npos);
    const auto back = decode_paging_state(encoded, state.statement, "key");
    REQUIRE(back);
    CHECK(back->rows_left == state.rows_left);
    CHECK(back->position == state.position);
    CHECK(back->is_hidden);
    CHECK_FALSE(decode_paging_state(encoded, state.statement, "other key"));
  }
}

TEST_CASE("any change of a paging state is refused") {
  PagingState state = sample();
  state.is_hidden = GENERATE(false, true);
  const Bytes encoded = encode_paging_state(state, "key");
  for (size_t bit = 0; bit < encoded.size() * 8; ++bit) {
    Bytes changed = encoded;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    const auto back = decode_paging_state(changed, state.statement, "key");
    REQUIRE_FALSE(back);
    REQUIRE(back.error().code == ErrorCode::kProtocol);
    REQUIRE(back.error().message == kForeignPagingState);
  }
  for (size_t size = 0; size < encoded.size(); ++size) {
    const auto back = decode_paging_state(encoded.substr(0, size), state.statement, "key");
    REQUIRE_FALSE(back);
    REQUIRE(back.error().message == kForeignPagingState);
  }
  CHECK_FALSE(decode_paging_state(encoded + "x", state.statement, "key"));
  CHECK_FALSE(decode_paging_state(encoded, state.statement, "other key"));
}

TEST_CASE("a paging state of another statement is refused as invalid") {
  const PagingState state = sample();
  StatementHash other = state.statement;
  other[15] = 8;
  const auto back = decode_paging_state(encode_paging_state(state, "key"), other, "key");
  REQUIRE_FALSE(back);
  CHECK(back.error().code == ErrorCode::kInvalid);
}
