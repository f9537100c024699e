// SPDX-License-Identifier: Apache-2.0
// The hybrid clock, and writes that are stamped anew.
#include <catch2/catch.hpp>

#include "replication/coordinator/restamp.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/replica/replica_messages.h"
#include "storage/row/row_record.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::replication {

TEST_CASE("the hybrid clock follows others up to its bound and never goes back") {
  tests::ManualReactor reactor;
  HybridClock clock(1'000);
  const auto set_us = [&](int64_t time_us) { clock.begin(time_us, reactor); };
  set_us(5'000);
  CHECK(clock.now_us(reactor) == 5'000);
  CHECK(clock.observe(5'900, reactor));
  CHECK(clock.now_us(reactor) == 5'900);
  set_us(6'500);
  CHECK(clock.now_us(reactor) == 6'500);
  set_us(5'000);
  CHECK_FALSE(clock.observe(6'001, reactor));
  CHECK(clock.now_us(reactor) == 5'900);
  CHECK(clock.observe(100, reactor));
  CHECK(clock.now_us(reactor) == 5'900);
  CHECK_FALSE(clock.observe(std::numeric_limits<int64_t>::max(), reactor));
}

TEST_CASE("a node's time goes forward at once and back by running at half speed") {
  base::NodeClock clock;
  clock.begin(1'000, 100);
  CHECK(clock.at(100) == 1'000);
  CHECK(clock.at(150) == 1'050);
  CHECK(clock.at(50) == 1'000);  // a turn that began before it was set
  clock.correct(5'000, 200);
  CHECK(clock.at(200) == 5'000);
  clock.correct(4'000, 200);
  CHECK(clock.at(200) == 5'000);
  CHECK(clock.at(1'200) == 5'500);
  CHECK(clock.at(2'200) == 6'000);  // what is right
  CHECK(clock.at(3'200) == 7'000);
  int64_t last = 0;
  clock.begin(10'000, 10'000);
  for (int64_t boot_us = 10'000; boot_us < 20'000; boot_us += 7) {
    clock.correct(boot_us % 3 == 0 ? boot_us - 3'000 : boot_us, boot_us);
    CHECK(clock.at(boot_us) >= last);
    last = clock.at(boot_us);
  }
}

TEST_CASE("deletions are dated anew, and values live as long as they should have") {
  storage::RowRecord record;
  record.liveness = {100, 60, 1'060};
  record.deletion = {90, 1'000};
  storage::Cell gone, kept, lasting;
  gone.column_id = 1;
  gone.kind = storage::CellKind::kTombstone;
  gone.timestamp_us = 100;
  gone.expiry_s = 1'000;
  kept.column_id = 2;
  kept.timestamp_us = 100;
  kept.ttl_s = 50;
  kept.expiry_s = 9'000;
  kept.value = "v";
  lasting.column_id = 3;
  lasting.timestamp_us = 100;
  lasting.value = "w";
  record.cells = {gone, kept, lasting};
  storage::Mutation mutation;
  mutation.range_tombstones.push_back({{"a", "b"}, {100, 1'000}});
  storage::encode_row_record(record, mutation.rows.emplace_back().record);
  REQUIRE(redate(mutation, 5'000));
  CHECK(mutation.range_tombstones[0].deletion == storage::Deletion{100, 5'000});
  const auto read = storage::decode_row_record(mutation.rows[0].record);
  REQUIRE(read);
  CHECK(read->liveness == storage::Liveness{100, 60, 5'060});
  CHECK(read->deletion == storage::Deletion{90, 5'000});
  CHECK(read->cells[0].expiry_s == 5'000);
  CHECK(read->cells[1].expiry_s == 9'000);
  CHECK(read->cells[2] == lasting);
}

TEST_CASE("what a read made empty before its time is not written to anybody") {
  storage::RowRecord record;
  storage::Cell stripped, ended, held;
  stripped.column_id = 1;
  stripped.timestamp_us = 100;
  stripped.ttl_s = 50;
  stripped.expiry_s = 2'000;
  ended = stripped;
  ended.column_id = 2;
  ended.expiry_s = 999;
  held = stripped;
  held.column_id = 3;
  held.value = "v";
  record.cells = {stripped, ended, held};
  storage::Mutation mutation;
  storage::encode_row_record(record, mutation.rows.emplace_back().record);
  record.cells = {stripped};
  storage::encode_row_record(record, mutation.rows.emplace_back().record);
  REQUIRE(leave_out_stripped(mutation, 1'000));
  REQUIRE(mutation.rows.size() == 1);
  const auto read = storage::decode_row_record(mutation.rows[0].record);
  REQUIRE(read);
  CHECK(read->cells == std::vector<storage::Cell>{ended, held});
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
  CHECK(older->as_of_us == 5);
  // What a later program appends to the head is passed over.
  Bytes later = encode_mutate(kFormatNewest, SetEpoch{3}, mutation, 77, 5);
  const auto head_size = static_cast<size_t>(later[1]);
  later[1] = static_cast<char>(head_size + 4);
  later.insert(2 + head_size, "more");
  const auto passed_over = decode_mutate(later);
  REQUIRE(passed_over);
  CHECK(passed_over->as_of_us == 5);
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
