// SPDX-License-Identifier: Apache-2.0
// The hybrid clock, and writes that are stamped anew.
#include <catch2/catch.hpp>

#include "replication/coordinator/restamp.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/replica/replica_messages.h"
#include "storage/row/row_record.h"

namespace tetrad::replication {

TEST_CASE("the hybrid clock follows others up to its bound and never goes back") {
  HybridClock clock(1'000);
  CHECK(clock.now_us(5'000) == 5'000);
  CHECK(clock.observe(5'900, 5'000));
  CHECK(clock.now_us(5'000) == 5'900);
  CHECK(clock.now_us(6'500) == 6'500);
  CHECK_FALSE(clock.observe(6'001, 5'000));
  CHECK(clock.now_us(5'000) == 5'900);
  CHECK(clock.observe(100, 5'000));
  CHECK(clock.now_us(5'000) == 5'900);
  CHECK_FALSE(clock.observe(std::numeric_limits<int64_t>::max(), 5'000));
}

TEST_CASE("restamping changes what carries the server timestamp and nothing else") {
  storage::RowRecord record;
  record.liveness = {100, 60, 1'000};
  storage::Cell collection;
  collection.column_id = 1;
  collection.kind = storage::CellKind::kColumnDeletion;
  collection.timestamp_us = 99;
  collection.expiry_s = 7;
  storage::Cell element;
  element.column_id = 1;
  element.has_path = true;
  element.path = "a";
  element.value = "b";
  element.timestamp_us = 100;
  storage::Cell own;
  own.column_id = 2;
  own.timestamp_us = 42;
  own.value = "c";
  record.cells = {collection, element, own};
  storage::Mutation mutation;
  storage::RowChange row;
  storage::encode_row_record(record, row.record);
  row.complete = true;
  mutation.rows.push_back(row);
  mutation.range_tombstones.push_back({{"a", "b"}, {100, 5}});
  mutation.range_tombstones.push_back({{"c", "d"}, {41, 5}});
  REQUIRE(restamp(mutation, 100, 500));
  const auto changed = storage::decode_row_record(mutation.rows[0].record);
  REQUIRE(changed);
  CHECK(changed->liveness == storage::Liveness{500, 60, 1'000});
  CHECK(changed->cells[0].timestamp_us == 499);
  CHECK(changed->cells[0].expiry_s == 7);
  CHECK(changed->cells[1].timestamp_us == 500);
  CHECK(changed->cells[2].timestamp_us == 42);
  CHECK(mutation.range_tombstones[0].deletion.timestamp_us == 500);
  CHECK(mutation.range_tombstones[1].deletion.timestamp_us == 41);
  CHECK(mutation.rows[0].complete);
}

TEST_CASE("a mutation's message carries the server timestamp, its answer the mark") {
  storage::Mutation mutation;
  mutation.partition_key = "k";
  const auto older = decode_mutate(encode_mutate(kFormatFirst, SetEpoch{3}, mutation, 77, 5));
  REQUIRE(older);
  CHECK(older->epoch == SetEpoch{3});
  CHECK(older->server_timestamp_us == 77);
  CHECK(older->repaired_us == 5);
  // What a later program appends to the head is passed over.
  Bytes later = encode_mutate(kFormatNewest, SetEpoch{3}, mutation, 77, 5);
  const auto head_size = static_cast<size_t>(later[1]);
  later[1] = static_cast<char>(head_size + 4);
  later.insert(2 + head_size, "more");
  const auto passed_over = decode_mutate(later);
  REQUIRE(passed_over);
  CHECK(passed_over->repaired_us == 5);
  CHECK(passed_over->mutation.partition_key == mutation.partition_key);
  later[0] = 9;
  CHECK_FALSE(decode_mutate(later));
  const auto with = decode_mutate(encode_mutate(kFormatNewest, SetEpoch{3}, mutation, 77));
  REQUIRE(with);
  CHECK(with->server_timestamp_us == 77);
  CHECK(with->epoch == SetEpoch{3});
  const auto without = decode_mutate(encode_mutate(kFormatNewest, SetEpoch{3}, mutation));
  REQUIRE(without);
  CHECK_FALSE(without->server_timestamp_us);
  CHECK(decode_mutate_answer(encode_mutate_answer(99)).value() == 99);
  CHECK_FALSE(decode_mutate_answer(encode_mutate_answer({})).value());
  CHECK_FALSE(decode_mutate_answer("abc"));
}

}  // namespace tetrad::replication
