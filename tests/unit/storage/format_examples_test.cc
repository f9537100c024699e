// SPDX-License-Identifier: Apache-2.0
// Each example in bytes that a format's comment gives means what the comment says, and is written
// so. A rule of tests/style looks that no example is without such a test.
#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "storage/engine/recent_keys.h"
#include "storage/engine/scrub.h"
#include "storage/engine/sync_records.h"
#include "storage/engine/table_summary.h"
#include "storage/engine/value_merge.h"
#include "storage/engine/write_turn.h"
#include "storage/row/range_tombstones.h"
#include "tests/support/hex.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

using tests::from_hex;

template <class Value>
Bytes written(void (*encode)(const Value&, Bytes&), const Value& value) {
  Bytes out;
  encode(value, out);
  return out;
}

}  // namespace

TEST_CASE("the examples of row records are what they say") {
  const Bytes insert = from_hex("01 d00f 00 01 10 03 02 6869");
  auto record = decode_row_record(insert);
  REQUIRE(record);
  CHECK(*record == record_of({value_cell(3, 1000, "hi")}, {1000, 0, 0}));
  CHECK(encoded(*record) == insert);

  const Bytes deletion = from_hex("04 c801 63 ac02 01 10 00 01 4b");
  record = decode_row_record(deletion);
  REQUIRE(record);
  CHECK(*record == record_of({value_cell(0, 100, "K")}, {}, {50, 300}));
  CHECK(encoded(*record) == deletion);
}

TEST_CASE("the examples of keys are what they say") {
  const Bytes key = from_hex("00000007 7ffffffffffffffe 0000000000000003 0002 706b 02 636b");
  const auto view = decode_storage_key(key);
  REQUIRE(view);
  CHECK(view->incarnation.value == 7);
  CHECK(view->position == RingPosition{-2, 3});
  CHECK(view->partition_key == "pk");
  CHECK(view->kind == KeyKind::kRow);
  CHECK(view->clustering_key == "ck");

  const Bytes own = from_hex("ffffffff 72657469726564 00000007");
  CHECK(own == retired_key({7}));
  CHECK_FALSE(decode_storage_key(own));
}

TEST_CASE("the examples of mutations are what they say") {
  const Bytes bytes = from_hex(
      "01 00000007 0000000000000001 0000000000000005 000000000000000f 01 6b 00"
      "01 01 61 01 62 14 06 01 01 63 01 08 01 14 00 01 10 01 01 76");
  const auto mutation = decode_mutation(bytes);
  REQUIRE(mutation);
  CHECK(mutation->incarnation.value == 7);
  CHECK(mutation->schema_version.value == 1);
  CHECK(mutation->position == RingPosition{5, 15});
  CHECK(mutation->partition_key == "k");
  CHECK(mutation->header.empty());
  CHECK(mutation->range_tombstones == std::vector<RangeTombstone>{{{"a", "b"}, {10, 3}}});
  REQUIRE(mutation->rows.size() == 1);
  CHECK(mutation->rows[0].clustering_key == "c");
  CHECK(mutation->rows[0].complete);
  CHECK(mutation->rows[0].record == inserted(10, "v"));
  CHECK(written(encode_mutation, *mutation) == bytes);
}

TEST_CASE("the examples of Paxos registers are what they say") {
  const Bytes bytes = from_hex("01 01 c801 00000000000000000000000000000001 03 02");
  const auto registers = decode_registers(bytes);
  REQUIRE(registers);
  CHECK(registers->promised.us == 100);
  CHECK(registers->promised.host.value.octets[15] == 1);
  CHECK(registers->promised.start_number == 3);
  CHECK(registers->promised.shard == 2);
  CHECK_FALSE(registers->accepted);
  CHECK_FALSE(registers->committed);
  CHECK(written(encode_registers, *registers) == bytes);
}

TEST_CASE("the examples of range tombstones are what they say") {
  const Bytes bytes = from_hex("01 02 01 62 0e 04 01 64 08 12");
  std::vector<TombstoneEnd> set;
  REQUIRE(decode_tombstone_set(bytes, set));
  CHECK(set == std::vector<TombstoneEnd>{{"b", {7, 2}}, {"d", {4, 9}}});
  CHECK(written(encode_tombstone_set, set) == bytes);

  Bytes of_prefix, straddling;
  append_tombstone_place("ab", "ab\xFF", of_prefix);
  append_tombstone_place("ab", "ac", straddling);
  CHECK(of_prefix == from_hex("6162"));
  CHECK(straddling == from_hex("ff 01 6162"));
  CHECK(start_at_place(of_prefix).value() == "ab");
  CHECK(start_at_place(straddling).value() == "ab");
}

TEST_CASE("the examples of read commands and results are what they say") {
  const Bytes bytes = from_hex(
      "02 28 00000007 0000000000000001 0000000000000005 000000000000000f 01 6b"
      "00 01 01 61 01 62 0000000a ffffffff 80808008 00000000 c801 ffffffffffffffffff01");
  const auto command = decode_read_command(bytes);
  REQUIRE(command);
  CHECK_FALSE(command->is_range);
  CHECK(command->incarnation.value == 7);
  CHECK(command->schema_version.value == 1);
  CHECK(command->position == RingPosition{5, 15});
  CHECK(command->partition_key == "k");
  CHECK(command->rows.empty());
  CHECK(command->clustering_ranges == std::vector<ClusteringRange>{{"a", "b"}});
  CHECK(command->row_limit == 10);
  CHECK(command->now_s == 100);
  CHECK(command->horizon_s == PurgeBound::kNothing);
  CHECK(command->live_only);
  CHECK(written(encode_read_command, *command) == bytes);

  const Bytes answer = from_hex(
      "01 01 00000001 01 0000000000000005 000000000000000f 01 6b 00 00 01 01 61"
      "08 01 14 00 01 10 01 01 76");
  const auto result = decode_read_result(answer);
  REQUIRE(result);
  CHECK(result->exhausted);
  CHECK(result->live_row_count == 1);
  REQUIRE(result->partitions.size() == 1);
  CHECK(result->partitions[0].position == RingPosition{5, 15});
  CHECK(result->partitions[0].partition_key == "k");
  REQUIRE(result->partitions[0].rows.size() == 1);
  CHECK(result->partitions[0].rows[0].clustering_key == "a");
  CHECK(result->partitions[0].rows[0].record == inserted(10, "v"));
  CHECK(written(encode_read_result, *result) == answer);
}

TEST_CASE("the examples of marks and of properties of files are what they say") {
  const Bytes encoded_marks = from_hex("06 01 01 0001 14 01 00 01 00 01 00");
  const uint16_t bucket = 1 << 10;  // of 64 K: the second of 64
  MarkBudget budget;
  TableMarks marks;
  REQUIRE(marks.join(encoded_marks, budget));
  CHECK(marks.bucket_count() == 64);
  CHECK(marks.mark(bucket) == 10);
  CHECK(marks.mark(0) == kNoTimestamp);
  CHECK_FALSE(marks.has(bucket, TableMarks::kRowTombstones));
  Bytes again;
  marks.encode(again);
  CHECK(again == encoded_marks);

  const std::map<std::string, std::string> properties = {
      {"tetrad.tables", from_hex("01 00000007 00 00 02 d804")},
      {"tetrad.dead", from_hex("01 00000007 03")},
      {"tetrad.table_marks", from_hex("01 00000007 00 0c 06 01 01 0001 14 01 00 01 00 01 00")}};
  TablesKnown tables;
  REQUIRE(join_summary(properties, tables));
  const TableKnowledge* const table = tables.find({7});
  REQUIRE(table != nullptr);
  CHECK_FALSE(table->contents.headers);
  CHECK_FALSE(table->contents.scattered_tombstones);
  CHECK(table->dead == 3);
  CHECK(table->marks.mark(bucket) == 10);
}

TEST_CASE("the example of a bundle is what it says") {
  const std::vector<BytesView> values = {"bad", "a"};
  Bytes bundle;
  CHECK(merge_values(KeyKind::kRow, values, bundle) == 2);
  CHECK(bundle == from_hex("ff 00 02 01 61 03 626164"));
  CHECK_FALSE(decode_row_record(bundle));
}

TEST_CASE("the example of a place in what was written lately is what it says") {
  const Bytes bytes =
      from_hex("0000000000000002 0000000000000064 00000000000000c8 000000000000012c 6b");
  const auto place = RecentPlace::decode(bytes, 2);
  REQUIRE(place);
  CHECK(place->from == 100);
  CHECK(place->end == 200);
  CHECK(place->until == 300);
  CHECK(place->after == "k");
  CHECK(place->encode() == bytes);
}

TEST_CASE("the example of a scrub's place is what it says") {
  const Bytes bytes = from_hex("0000000000000011 000000003b9aca00 0000000000001000");
  const ScrubPlace place = ScrubPlace::decode(bytes);
  CHECK(place.file == 17);
  CHECK(place.at_us == 1'000'000'000);
  CHECK(place.bytes == 4096);
  CHECK(place.encode() == bytes);
}

TEST_CASE("the examples of sync records are what they say") {
  const Bytes key = from_hex("ffffffff 73796e63 00000002");
  const Bytes value = from_hex("0000000000000001 0000000000000064 0000000001406f40");
  CHECK(sync_mark_of(key, value) == SyncMark{1, 100, 21'000'000});

  SyncRecords records;
  records.begin_life(100);
  records.set_clock([]() -> std::optional<int64_t> { return 21'000'000; });
  records.end(records.begin(100), 100);
  CHECK(records.take_due() == std::pair(key, value));
}

}  // namespace tetrad::storage
