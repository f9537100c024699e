// SPDX-License-Identifier: Apache-2.0
// What requests weigh in the heat of their tablet, how that survives changes of the map, and what
// comes of what members tell.
#include "replication/tablets/heat_meters.h"

#include <catch2/catch.hpp>

#include "replication/tablets/heat_board.h"
#include "storage/row/row_weight.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr RingPosition kMiddle{0, 0}, kLeft{-5, 1}, kRight{5, 1};

std::shared_ptr<TableInfo> table_of_two() {
  auto table = std::make_shared<TableInfo>();
  table->id = TableId{3};
  table->incarnation = TableIncarnation{7};
  partitioner::Tablet left, right;
  left.id = TabletId{1};
  left.range = {RingPosition::lowest(), kMiddle};
  right.id = TabletId{2};
  right.range = {kMiddle, RingPosition::highest()};
  left.replicas = right.replicas = {StoreAddress{}};
  table->tablets = partitioner::TabletMap({left, right});
  return table;
}

MetaState state_of(const std::shared_ptr<const TableInfo>& table) {
  MetaState state;
  state.put_table(table);
  return state;
}

storage::Mutation row_at(RingPosition position, size_t bytes) {
  storage::Mutation mutation;
  mutation.position = position;
  mutation.partition_key = "key";
  mutation.rows.resize(1);
  mutation.rows[0].record = Bytes(bytes, 'x');
  return mutation;
}

/// Heat of a tablet over the second that ends at `now_us`.
TabletHeat heat_at(HeatMeters& meters, const MetaState& state, TabletId id, int64_t now_us) {
  meters.follow(state, now_us);
  for (const auto& [table, tablet] : meters.tablets(state))
    if (tablet->id == id) return tablet->heat();
  return {};
}

void read(HeatMeters& meters, const TableInfo& table, const storage::ReadCommand& command,
          int64_t now_us, storage::ReadResult result) {
  const RingPosition at = command.is_range ? command.range.end : command.position;
  bool answered = false;
  auto done =
      meters.note_read(table, table.tablets.find(at), command, now_us,
                       [&](Result<storage::ReadResult> answer) { answered = answer.has_value(); });
  done(std::move(result));
  CHECK(answered);
}

storage::ReadResult rows_found(size_t rows, size_t bytes) {
  static const Bytes record(1 << 20, 'r');
  storage::ReadResult result;
  result.partitions.resize(1);
  for (size_t i = 0; i < rows; ++i)
    result.partitions[0].rows.push_back({"", BytesView(record).substr(0, bytes)});
  return result;
}

}  // namespace

TEST_CASE("writes weigh what clients are charged, and only their own tablet gets hot") {
  const auto table = table_of_two();
  const MetaState state = state_of(table);
  HeatMeters meters;
  CHECK(write_weight(row_at(kLeft, 10)) == 5 * storage::kWeightOfUnit);
  CHECK(write_weight(row_at(kLeft, 100 * 1024)) == 50 * storage::kWeightOfUnit);
  int64_t now_us = 100 * kSecondUs;
  for (int i = 0; i < 250; ++i, now_us += 10'000)
    meters.note_write(*table, table->tablets.find(kLeft), row_at(kLeft, 100), now_us);
  const TabletHeat heat = heat_at(meters, state, TabletId{1}, now_us);
  CHECK(heat.write_ru_per_s == 500);
  CHECK(heat.read_ru_per_s == 0);
  CHECK(heat.bytes_per_s == 100 * 103);
  CHECK(heat.ru_per_s_most == 500);
  CHECK(heat_at(meters, state, TabletId{2}, now_us).is_nothing());
  // Idle for minutes: it is forgotten.
  CHECK(meters.tablets(state).size() == 1);
  meters.follow(state, now_us + 130 * kSecondUs);
  CHECK(meters.tablets(state).empty());
}

TEST_CASE("point reads weigh one unit, large ones and scans what they find") {
  const auto table = table_of_two();
  const MetaState state = state_of(table);
  const auto reads_of = [&](const storage::ReadCommand& command, size_t rows, size_t bytes) {
    HeatMeters meters;
    int64_t now_us = 100 * kSecondUs;
    for (int i = 0; i < 320; ++i, now_us += 7'812)
      read(meters, *table, command, now_us, rows_found(rows, bytes));
    return heat_at(meters, state, TabletId{1}, 102'500'000);
  };
  storage::ReadCommand point;
  point.position = kLeft;
  CHECK(reads_of(point, 1, 100).read_ru_per_s == 128);
  CHECK(reads_of(point, 0, 0).read_ru_per_s == 128);
  CHECK(reads_of(point, 1, 100).bytes_per_s == 128 * 100);
  CHECK(reads_of(point, 1, 100 * 1024).read_ru_per_s == 1'280);
  storage::ReadCommand scan;
  scan.is_range = true;
  scan.range = {RingPosition::lowest(), kMiddle};
  CHECK(reads_of(scan, 50, 1'024).read_ru_per_s == 6'400);
  CHECK(reads_of(scan, 0, 0).read_ru_per_s == 128);

  // Those that are answered at once.
  HeatMeters meters;
  int64_t now_us = 100 * kSecondUs;
  for (int i = 0; i < 320; ++i, now_us += 7'812) {
    const bool is_weighed = meters.is_weighed();
    meters.note_read_here(
        *table, table->tablets.find(kLeft), point, now_us,
        is_weighed ? WeighedRead{10 * storage::kWeightOfUnit, 100'000} : WeighedRead{});
  }
  CHECK(heat_at(meters, state, TabletId{1}, 102'500'000).read_ru_per_s == 1'280);
}

TEST_CASE("heat stays with a tablet through changes of others, and begins anew with a cut") {
  auto table = table_of_two();
  HeatMeters meters;
  const int64_t now_us = 100 * kSecondUs;
  for (int i = 0; i < 100; ++i) {
    meters.note_write(*table, table->tablets.find(kLeft), row_at(kLeft, 1), now_us);
    meters.note_write(*table, table->tablets.find(kRight), row_at(kRight, 1), now_us);
  }
  auto after = std::make_shared<TableInfo>(*table);
  after->tablets = *table->tablets.with_split(TabletId{1}, {-100, 0}, TabletId{3});
  const MetaState state = state_of(after);
  CHECK(heat_at(meters, state, TabletId{2}, now_us + kSecondUs).write_ru_per_s == 200);
  CHECK(heat_at(meters, state, TabletId{1}, now_us + kSecondUs).is_nothing());
  meters.note_write(*after, after->tablets.find(kLeft), row_at(kLeft, 1), now_us + kSecondUs);
  for (const auto& [of, tablet] : meters.tablets(state))
    CHECK((tablet->cut_at_us != 0) == (tablet->id != TabletId{2}));
  // A request of who has not heard of it yet, and then of who has.
  meters.note_write(*table, table->tablets.find(kRight), row_at(kRight, 1), now_us + kSecondUs);
  meters.note_write(*after, after->tablets.find(kRight), row_at(kRight, 1), now_us + kSecondUs);
  // The table is gone.
  meters.follow(MetaState(), now_us + kSecondUs);
  CHECK(meters.tablets(state).empty());
}

TEST_CASE(
    "what members tell comes to one heat: reads by W, writes of the busiest, and is forgotten") {
  HeatBoard board;
  const HostId a{Uuid{{1}}}, b{Uuid{{2}}};
  const TabletId tablet{9};
  const auto told = [&](TabletHeat heat) { return HeatReport{{0, tablet, 3, heat}}; };
  board.take(a, told({300, 50, 10, 400, 20}), 0);
  board.take(b, told({600, 70, 5, 700, 30}), 0);
  CHECK(board.of(tablet) == TabletHeat{300, 70, 10, 700, 30});
  const uint64_t version = board.version();
  board.take(b, told({}), 0);
  CHECK(board.version() > version);
  CHECK(board.of(tablet) == TabletHeat{100, 50, 10, 400, 20});
  CHECK(board.of(TabletId{1}).is_nothing());
  board.take(b, {}, 2 * kHeatHeardWithinUs);
  CHECK(board.of(tablet).is_nothing());
  CHECK(board.all().empty());
}

TEST_CASE("a heat report reads back, and a bad one is refused") {
  const HeatReport report = {{2, TabletId{1'000'000}, 3, {1, 2, 3, 4, 5}}, {0, TabletId{7}, 1, {}}};
  const Bytes encoded = encode_heat(report);
  CHECK(*decode_heat(encoded) == report);
  for (size_t size = 0; size < encoded.size(); ++size)
    CHECK_FALSE(decode_heat(BytesView(encoded).substr(0, size)));
  CHECK_FALSE(decode_heat("\x02"));
  HeatReport many(kHeatReportEntriesMax + 1, report[1]);
  CHECK_FALSE(decode_heat(encode_heat(many)));
  HeatReport without = {{0, TabletId{1}, 0, {}}};
  CHECK_FALSE(decode_heat(encode_heat(without)));
}

}  // namespace tetrad::replication
