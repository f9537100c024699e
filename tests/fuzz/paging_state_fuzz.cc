// SPDX-License-Identifier: Apache-2.0
// Paging states that clients made up are refused; those we make come back as they were, and not
// when a byte of them has changed.
#include "base/assert.h"
#include "cql/protocol/paging_state.h"

using namespace tetrad;
using namespace tetrad::cql;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const BytesView input(reinterpret_cast<const char*>(data), size);
  const BytesView key = "a secret that no input knows";
  PagingState state;
  TETRAD_ASSERT(!decode_paging_state(input, state.statement, key).has_value());

  if (size < 3) return 0;
  state.statement.fill(data[0]);
  state.rows_left = static_cast<int64_t>(data[1]) << (data[2] % 56);
  state.partition_rows_left = -static_cast<int64_t>(data[2]);
  state.position = input.substr(3);
  Bytes encoded = encode_paging_state(state, key);
  const auto back = decode_paging_state(encoded, state.statement, key);
  TETRAD_ASSERT(back.has_value());
  TETRAD_ASSERT(back->rows_left == state.rows_left);
  TETRAD_ASSERT(back->partition_rows_left == state.partition_rows_left);
  TETRAD_ASSERT(back->position == state.position);
  const size_t at = data[1] * size_t{257} % encoded.size();
  encoded[at] = static_cast<char>(encoded[at] ^ (1 << (data[2] % 8)));
  TETRAD_ASSERT(!decode_paging_state(encoded, state.statement, key).has_value());
  return 0;
}
