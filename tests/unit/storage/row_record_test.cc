// SPDX-License-Identifier: Apache-2.0
// Formats: row records, keys, mutations, commands, results. Golden bytes hold the disk format
// still.
#include "storage/row/row_record.h"

#include <catch2/catch.hpp>

#include "base/byte_io.h"
#include "storage/row/range_tombstones.h"
#include "tests/unit/storage/random_rows.h"

namespace tetrad::storage {
namespace {

TEST_CASE("a row record has exactly these bytes on disk") {
  CHECK(base::to_hex(encoded({})) == "000000");
  CHECK(base::to_hex(encoded(record_of({value_cell(3, 1000, "hi")}, {1000, 0, 0}))) ==
        "01d00f0001100302"
        "6869");
  CHECK(base::to_hex(encoded(record_of({value_cell(1, 10, "v", 60, 70)}, {10, 60, 70}))) ==
        "0314"
        "003c46"
        "01"
        "1801"
        "3c46"
        "0176");
  RowRecord full = record_of({value_cell(0, 100, "K"), tombstone_cell(2, 99, 300),
                              column_deletion(300, 101, 7), element_cell(300, 102, "p", "v")},
                             {}, {50, 300});
  CHECK(base::to_hex(encoded(full)) ==
        "04c801"
        "63ac02"
        "04"
        "1000014b"
        "010201ac02"
        "02aa02"
        "0207"
        "0400040170"
        "0176");
  CHECK(base::to_hex(encoded(record_of({value_cell(1, -5, "")}))) ==
        "0009"
        "01"
        "100100");
}

TEST_CASE("row records survive encoding and decoding") {
  RandomRows rows(1);
  for (int i = 0; i < 20000; ++i) {
    const RowRecord record = rows.record();
    const Bytes bytes = encoded(record);
    const auto decoded = decode_row_record(bytes);
    REQUIRE(decoded.has_value());
    REQUIRE(*decoded == record);
    REQUIRE(encoded(*decoded) == bytes);
    REQUIRE(check_row_record(bytes).has_value());
  }
}

TEST_CASE("extreme numbers survive encoding and decoding") {
  const int64_t max = std::numeric_limits<int64_t>::max(), min = kNoTimestamp + 1;
  const Bytes large(100000, 'z');
  const RowRecord record = record_of({value_cell(1, min, large, 1, max), value_cell(2, max, ""),
                                      tombstone_cell(0xffffffff, 0, max)},
                                     {max, std::numeric_limits<int32_t>::max(), max}, {min, min});
  const Bytes bytes = encoded(record);
  const auto decoded = decode_row_record(bytes);
  REQUIRE(decoded.has_value());
  CHECK(*decoded == record);
}

TEST_CASE("every cut and many flips of a row record are refused or decode to something else") {
  RandomRows rows(2);
  for (int i = 0; i < 300; ++i) {
    const RowRecord record = rows.record();
    const Bytes bytes = encoded(record);
    for (size_t size = 0; size < bytes.size(); ++size)
      REQUIRE_FALSE(decode_row_record(BytesView(bytes).substr(0, size)).has_value());
    REQUIRE_FALSE(decode_row_record(bytes + '\0').has_value());
    for (size_t at = 0; at < bytes.size(); ++at) {
      Bytes flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << rows.below(8)));
      const auto decoded = decode_row_record(flipped);
      if (decoded) {
        Bytes again;
        encode_row_record(*decoded, again);  // whatever it is, it is a record
        REQUIRE(decode_row_record(again) == *decoded);
      }
    }
  }
}

TEST_CASE("hostile row records are refused with a sentence") {
  const auto refuses = [](BytesView bytes, const std::string& sentence) {
    const auto decoded = decode_row_record(bytes);
    REQUIRE_FALSE(decoded.has_value());
    CHECK(decoded.error().code == ErrorCode::kCorruption);
    CHECK(decoded.error().message == sentence);
  };
  refuses("", "row record of 0 bytes");
  refuses(BytesView("\x80\x00\x00", 3), "row record with unknown flags 0x80");
  refuses(BytesView("\x02\x00\x00", 3), "row record with the TTL of no row marker");
  refuses(BytesView("\x00\x00\xff\xff\xff\xff\x0f", 7),
          "row of 4294967295 cells, at most 16777216");
  refuses(BytesView("\x00\x00\x64", 3), "row record says 100 cells and has 0 bytes for them");
  refuses(BytesView("\x00\x00\x01\x13\x01\x00", 6), "row record with a bad cell");  // kind 3
  refuses(BytesView("\x00\x00\x02\x10\x02\x00\x10\x00\x00", 9),
          "row record with a bad cell");  // one place twice
}

TEST_CASE("keys sort by table, position, partition, kind and clustering key") {
  const auto key = [](uint32_t table, int64_t token, uint64_t hash, BytesView pk, KeyKind kind,
                      BytesView ck) {
    Bytes out;
    append_storage_key(out, {table}, {token, hash}, pk, kind, ck);
    return out;
  };
  const int64_t min = std::numeric_limits<int64_t>::min(),
                max = std::numeric_limits<int64_t>::max();
  const std::vector<Bytes> ascending = {key(1, min, 0, "", KeyKind::kHeader, ""),
                                        key(1, -1, 9, "k", KeyKind::kRow, "z"),
                                        key(1, 0, 0, "k", KeyKind::kHeader, ""),
                                        key(1, 0, 0, "k", KeyKind::kRangeTombstone, ""),
                                        key(1, 0, 0, "k", KeyKind::kRangeTombstone, "b"),
                                        key(1, 0, 0, "k", KeyKind::kRow, ""),
                                        key(1, 0, 0, "k", KeyKind::kRow, "a"),
                                        key(1, 0, 0, "aa", KeyKind::kHeader, ""),
                                        key(1, 0, 1, "a", KeyKind::kHeader, ""),
                                        key(1, max, ~uint64_t{0}, "a", KeyKind::kRow, ""),
                                        key(2, min, 0, "", KeyKind::kHeader, "")};
  for (size_t i = 1; i < ascending.size(); ++i) CHECK(ascending[i - 1] < ascending[i]);
  CHECK(base::to_hex(key(7, -2, 3, "pk", KeyKind::kRow, "ck")) ==
        "00000007"
        "7ffffffffffffffe"
        "0000000000000003"
        "0002"
        "706b"
        "02"
        "636b");
  for (const Bytes& k : ascending) {
    const auto view = decode_storage_key(k);
    REQUIRE(view.has_value());
    Bytes again;
    append_storage_key(again, view->incarnation, view->position, view->partition_key, view->kind,
                       view->clustering_key);
    CHECK(again == k);
    for (size_t size = 0; size + view->clustering_key.size() < k.size(); ++size)
      CHECK_FALSE(decode_storage_key(BytesView(k).substr(0, size)).has_value());
  }
  const KeyRange range = keys_of_range({1}, {{-1, 9}, {0, 0}});
  CHECK(range.start > ascending[1]);
  CHECK(range.start < ascending[2]);
  CHECK(range.end > ascending[7]);
  CHECK(range.end <= ascending[8]);
  CHECK(keys_of_range({1}, {}).end == keys_of_incarnation({2}).start);
}

Mutation random_mutation(RandomRows& rows) {
  Mutation m = mutation_of(static_cast<int64_t>(rows.below(100)) - 50, rows.value());
  m.schema_version = {rows.below(3)};
  if (rows.one_in(2)) m.header = encoded(rows.record());
  for (uint64_t i = rows.below(3); i > 0; --i)
    m.range_tombstones.push_back(
        {{Bytes(rows.value()), Bytes(rows.path())}, {rows.timestamp(), 3}});
  for (uint64_t i = rows.below(4); i > 0; --i)
    m.rows.push_back({Bytes(rows.value()), encoded(rows.record()), rows.one_in(2)});
  return m;
}

bool equal(const Mutation& a, const Mutation& b) {
  const auto row = [](const RowChange& x, const RowChange& y) {
    return x.clustering_key == y.clustering_key && x.record == y.record && x.complete == y.complete;
  };
  return a.incarnation == b.incarnation && a.schema_version == b.schema_version &&
         a.position == b.position && a.partition_key == b.partition_key && a.header == b.header &&
         a.range_tombstones == b.range_tombstones &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), row);
}

TEST_CASE("mutations survive the way between nodes, and no cut of them is taken for whole") {
  RandomRows rows(3);
  for (int i = 0; i < 500; ++i) {
    const Mutation m = random_mutation(rows);
    Bytes bytes;
    encode_mutation(m, bytes);
    const auto decoded = decode_mutation(bytes);
    REQUIRE(decoded.has_value());
    REQUIRE(equal(*decoded, m));
    for (size_t size = 0; size < bytes.size(); ++size)
      REQUIRE_FALSE(decode_mutation(BytesView(bytes).substr(0, size)).has_value());
  }
  Bytes bytes;
  Mutation broken = row_mutation(1, "k", "c", "not a record");
  encode_mutation(broken, bytes);
  CHECK_FALSE(decode_mutation(bytes).has_value());
}

TEST_CASE("read commands survive the way between nodes") {
  ReadCommand c = partition_read(5, "key");
  c.rows = {"a", "b"};
  c.resume_after = {{5, 15}, "key", "a"};
  c.reversed = true;
  c.row_limit = 10;
  c.per_partition_limit = 3;
  c.partition_rows_done = 2;
  c.bytes_limit = 1 << 30;
  c.wants_static = false;
  c.live_only = false;
  ReadCommand d = range_read({{-5, 1}, {9, 2}});
  d.clustering_ranges = {{"a", "b"}, {"b", "\xFF"}};
  d.distinct_partitions = true;
  d.bytes_max = 3000;
  d.resume_after = ReadPosition{{0, 0}, "k", std::nullopt};
  for (const ReadCommand& command : {c, d}) {
    Bytes bytes;
    encode_read_command(command, bytes);
    const auto decoded = decode_read_command(bytes);
    REQUIRE(decoded.has_value());
    Bytes again;
    encode_read_command(*decoded, again);
    CHECK(again == bytes);
    CHECK(decoded->resume_after == command.resume_after);
    CHECK(decoded->range == command.range);
    CHECK(decoded->rows == command.rows);
    CHECK(decoded->bytes_max == command.bytes_max);
    CHECK(decoded->clustering_ranges == command.clustering_ranges);
    for (size_t size = 0; size < bytes.size(); ++size)
      CHECK_FALSE(decode_read_command(BytesView(bytes).substr(0, size)).has_value());
  }
  c.rows = {"b", "a"};
  Bytes bytes;
  encode_read_command(c, bytes);
  CHECK(decode_read_command(bytes).error().message == "wanted rows are not ascending");
}

TEST_CASE("sets of range tombstones keep what is not covered, in one form") {
  std::vector<TombstoneEnd> set = {{"c", {5, 1}}, {"c", {6, 1}}, {"b", {6, 1}},
                                   {"b", {7, 1}}, {"a", {7, 2}}, {"d", {4, 9}}};
  reduce_tombstone_set(set);
  CHECK(set ==
        std::vector<TombstoneEnd>{{"a", {7, 2}}, {"b", {7, 1}}, {"c", {6, 1}}, {"d", {4, 9}}});
  Bytes bytes;
  encode_tombstone_set(set, bytes);
  std::vector<TombstoneEnd> decoded;
  REQUIRE(decode_tombstone_set(bytes, decoded).has_value());
  CHECK(decoded == set);
  CHECK(base::to_hex(bytes) ==
        "0104"
        "01610e04"
        "01620e02"
        "01630c02"
        "01640812");
  for (size_t size = 0; size < bytes.size(); ++size) {
    decoded.clear();
    CHECK_FALSE(decode_tombstone_set(BytesView(bytes).substr(0, size), decoded).has_value());
  }
}

TEST_CASE("a wrong read result is refused") {
  ReadResult result;
  result.exhausted = false;
  result.complete_up_to = {{1, 2}, "k", "c"};
  result.live_row_count = 1;
  PartitionData p{{1, 2}, "k", "", {{"a", "b", {1, 2}}}, {{"c", "record"}}};
  result.partitions.push_back(p);
  Bytes bytes;
  encode_read_result(result, bytes);
  const auto decoded = decode_read_result(bytes);
  REQUIRE(decoded.has_value());
  CHECK(decoded->complete_up_to == result.complete_up_to);
  CHECK(keys_of(*decoded) == "k/c");
  CHECK(digest_of(*decoded) == digest_of(result));
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(decode_read_result(bytes.substr(0, size)).has_value());
}

TEST_CASE("of an answer that is too large nothing is left but its size") {
  ReadResult result;
  result.exhausted = false;
  result.live_row_count = 1;
  result.partitions.push_back({{1, 2}, "k", "", {}, {{"c", result.arena.copy("record")}}});
  withhold_if_larger(result, 6);
  CHECK(result.withheld_bytes == 0);
  CHECK(keys_of(result) == "k/c");
  withhold_if_larger(result, 5);
  CHECK(result.withheld_bytes == 6);
  CHECK(result.partitions.empty());
  Bytes bytes;
  encode_read_result(result, bytes);
  const auto decoded = decode_read_result(bytes);
  REQUIRE(decoded.has_value());
  CHECK(decoded->withheld_bytes == 6);
}

}  // namespace
}  // namespace tetrad::storage
