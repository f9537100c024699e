// SPDX-License-Identifier: Apache-2.0
// Tokens against those of Cassandra's Murmur3Partitioner, recorded by cql_types/oracle/Oracle.java.
#include "partitioner/token.h"

#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include <catch2/catch.hpp>

#include "base/hash.h"
#include "tests/support/hex.h"

namespace tetrad::partitioner {

using tests::from_hex;

TEST_CASE("tokens are those of Cassandra for keys of all lengths and bytes") {
  const char* const folder = std::getenv("TETRAD_TYPES_ORACLE");
  std::ifstream in(std::string(folder != nullptr ? folder : TETRAD_ORACLE_FOLDER) + "/tokens.txt");
  REQUIRE(in.good());
  size_t count = 0;
  std::string key;
  for (int64_t token = 0; in >> key >> token; ++count) {
    const Bytes bytes = from_hex(key.substr(1));
    if (token_of(bytes) != token) {
      INFO(key);
      CHECK(token_of(bytes) == token);
    }
    CHECK(position_of(bytes) == RingPosition{token, base::xxh3_64(bytes)});
  }
  CHECK(count >= 300);
}

TEST_CASE("the empty key has the minimum token") {
  CHECK(token_of("") == std::numeric_limits<int64_t>::min());
}

TEST_CASE("a composite key has a length before and a zero after each part, a single one nothing") {
  const BytesView one[] = {"ab"}, two[] = {"ab", ""};
  CHECK(*serialize_partition_key(one) == "ab");
  const Bytes seven = from_hex("00000007");
  CHECK(*serialize_partition_key(std::vector<BytesView>{"k"}) == from_hex("6b"));
  CHECK(*serialize_partition_key(std::vector<BytesView>{"k", seven}) ==
        from_hex("0001 6b 00 0004 00000007 00"));
  CHECK(*serialize_partition_key(two) == Bytes("\0\2ab\0\0\0\0", 8));
  const auto parts = split_partition_key(*serialize_partition_key(two), 2);
  REQUIRE(parts);
  CHECK(parts->at(0).size() == 2);
  CHECK(parts->at(1).empty());
  CHECK(split_partition_key("ab", 1)->at(0) == "ab");
}

TEST_CASE("keys that are cut short, too long or followed by more are refused") {
  for (const BytesView key : {BytesView("\0\2a", 3), BytesView("\0\1a\1\0\0\0", 7),
                              BytesView("\0\1a\0\0\0\0x", 8), BytesView("\0", 1), BytesView()}) {
    CHECK_FALSE(split_partition_key(key, 2));
  }
  const Bytes longest(kKeyComponentBytesMax, 'x'), longer(kKeyComponentBytesMax + 1, 'x');
  const BytesView fits[] = {longest}, too_long[] = {longer}, too_long_joined[] = {longest, "y"};
  CHECK(serialize_partition_key(fits));
  CHECK(serialize_partition_key(too_long).error().message ==
        "Key length of 65536 is longer than maximum of 65535");
  CHECK_FALSE(serialize_partition_key(too_long_joined));
}

}  // namespace tetrad::partitioner
