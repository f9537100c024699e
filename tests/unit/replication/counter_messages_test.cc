// SPDX-License-Identifier: Apache-2.0
#include "replication/counters/counter_messages.h"

#include <catch2/catch.hpp>

namespace tetrad::replication {
namespace {

CounterRequest example() {
  CounterRequest request;
  request.epoch = SetEpoch{300};
  request.level = ConsistencyLevel::kQuorum;
  CounterIncrement& of = request.increment;
  of.incarnation = TableIncarnation{7};
  of.schema_version = SchemaVersion{9};
  of.position = {-2, 5};
  of.partition_key = "key";
  of.statics = {{4, -1}};
  of.rows.push_back({"row", "", {{2, 1}, {3, 64}}});
  return request;
}

}  // namespace

TEST_CASE("an increment has the bytes of its grammar") {
  const Bytes encoded = encode_counter_request(example());
  const Bytes expected(
      "\x01"                              // version
      "\xac\x02"                          // set epoch 300
      "\x04"                              // QUORUM
      "\x07\x09"                          // incarnation, schema version
      "\xff\xff\xff\xff\xff\xff\xff\xfe"  // token
      "\x00\x00\x00\x00\x00\x00\x00\x05"  // hash
      "\x03key"
      "\x01\x04\x01"     // one delta of a static column: -1
      "\x01\x03row\x00"  // one row, without a key cell
      "\x02\x02\x02\x03\x80\x01",
      3 + 1 + 2 + 16 + 4 + 3 + 6 + 6);
  CHECK(encoded == expected);
  const auto back = decode_counter_request(encoded);
  REQUIRE(back.has_value());
  CHECK(back->epoch == SetEpoch{300});
  CHECK(back->level == ConsistencyLevel::kQuorum);
  CHECK(back->increment == example().increment);
}

TEST_CASE("an increment that is cut, longer or of another version does not decode") {
  const Bytes encoded = encode_counter_request(example());
  for (size_t size = 0; size < encoded.size(); ++size)
    CHECK(!decode_counter_request(BytesView(encoded).substr(0, size)).has_value());
  CHECK(!decode_counter_request(encoded + "x").has_value());
  Bytes other = encoded;
  other[0] = 2;
  CHECK(!decode_counter_request(other).has_value());
  other = encoded;
  other[3] = 11;  // no consistency level
  CHECK(!decode_counter_request(other).has_value());
}

TEST_CASE("an answer to an increment says what is known") {
  const Bytes encoded = encode_counter_answer({false, 2, 3});
  CHECK(encoded == Bytes("\x00\x02\x03", 3));
  const auto back = decode_counter_answer(encoded);
  REQUIRE(back.has_value());
  CHECK(!back->is_applied);
  CHECK(back->acks == 2);
  CHECK(back->required == 3);
  CHECK(!decode_counter_answer("").has_value());
  CHECK(!decode_counter_answer("\x02\x01\x01").has_value());
}

TEST_CASE("the name of a shard tells stores, lives, stays and errors apart") {
  const CounterShardName name{{HostId{}, 1}, 2, SetEpoch{3}, 4};
  CHECK(encode_shard_name(name) ==
        Bytes(16, '\0') + Bytes("\0\0\0\1", 4) + Bytes("\0\0\0\0\0\0\0\2\3\4", 10));
  CounterShardName other = name;
  other.epoch.value = 4;
  CHECK(encode_shard_name(other) != encode_shard_name(name));
  CHECK(decode_total(encode_total(-5)) == -5);
  CHECK(!decode_total("1234567").has_value());
}

}  // namespace tetrad::replication
