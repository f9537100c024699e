// SPDX-License-Identifier: Apache-2.0
#include "replication/throughput/held_table.h"

#include <catch2/catch.hpp>

#include "replication/throughput/throughput_board.h"
#include "replication/throughput/throughput_messages.h"
#include "storage/row/row_weight.h"

namespace tetrad::replication {

namespace {

using partitioner::Tablet;
using partitioner::TabletMap;

constexpr base::MonotonicUs kNow = 50'000'000;

/// `cuts` + 1 tablets from number 1 on.
TabletMap map_of(const std::vector<int64_t>& cuts) {
  std::vector<Tablet> tablets;
  RingPosition start = RingPosition::lowest();
  for (size_t i = 0; i <= cuts.size(); ++i) {
    Tablet tablet;
    tablet.id = TabletId{i + 1};
    tablet.epoch = SetEpoch{1};
    tablet.replicas.resize(1);
    tablet.range = {start, i < cuts.size() ? RingPosition{cuts[i], 0} : RingPosition::highest()};
    start = tablet.range.end;
    tablets.push_back(tablet);
  }
  return TabletMap(std::move(tablets));
}

int64_t level_at(HeldTable& table, const TabletMap& map, int64_t token) {
  HeldBucket* held = table.find(map.find({token, 0}));
  return held == nullptr ? -77 : held->bucket.level(kNow);
}

HeldTable held_of(const TabletMap& map, const std::vector<int64_t>& levels) {
  HeldTable table;
  table.follow(map, 1000, kNow);
  for (size_t i = 0; i < levels.size(); ++i)
    table.add(map.tablets()[i], HeldBucket(1000, levels[i], kNow));
  return table;
}

}  // namespace

TEST_CASE("a split divides what is in a bucket, or owed, between its parts") {
  const TabletMap map = map_of({0});
  for (const int64_t level : {301, -4'001}) {
    HeldTable table = held_of(map, {level, 70});
    table.find(map.tablets()[0])->table = TableIncarnation{7};
    const auto split = map.with_split(TabletId{1}, {-5, 0}, TabletId{9});
    REQUIRE(split);
    table.follow(*split, 800, kNow);
    CHECK(table.all().size() == 3);
    CHECK(level_at(table, *split, -9) + level_at(table, *split, -2) == level);
    CHECK(std::abs(level_at(table, *split, -9) - level / 2) <= 1);
    CHECK(level_at(table, *split, 4) == 70);
    CHECK(table.find(split->find({-2, 0}))->tablet == TabletId{9});
    CHECK(table.find(split->find({-2, 0}))->table == TableIncarnation{7});
  }
}

TEST_CASE("a merge adds what is in both buckets, or owed") {
  const TabletMap map = map_of({-5, 0});
  HeldTable table = held_of(map, {400, -3'000, 70});
  const auto merged = map.with_merge(TabletId{1}, TabletId{2}, TabletId{9});
  REQUIRE(merged);
  table.follow(*merged, 1500, kNow);
  CHECK(table.all().size() == 2);
  CHECK(level_at(table, *merged, -9) == -2'600);
  CHECK(level_at(table, *merged, -2) == -2'600);
  CHECK(level_at(table, *merged, 4) == 70);
}

TEST_CASE("of several changes of the map that are seen at once nothing is lost") {
  TabletMap map = map_of({-5, 0, 5});
  HeldTable table = held_of(map, {100, 200, 300, 400});
  for (const auto& [left, right] : {std::pair(1, 2), std::pair(3, 4)})
    map = *map.with_merge(TabletId(static_cast<uint64_t>(left)),
                          TabletId(static_cast<uint64_t>(right)),
                          TabletId(static_cast<uint64_t>(left + 10)));
  map = *map.with_split(TabletId{11}, {-2, 0}, TabletId{20});
  table.follow(map, 1000, kNow);
  CHECK(table.all().size() == 3);
  CHECK(level_at(table, map, -9) + level_at(table, map, -1) == 300);
  CHECK(level_at(table, map, 9) == 700);
}

TEST_CASE("a tablet that nobody asked for has no bucket after a split either") {
  const TabletMap map = map_of({0});
  HeldTable table = held_of(map, {});
  const auto split = map.with_split(TabletId{1}, {-5, 0}, TabletId{9});
  table.follow(*split, 800, kNow);
  CHECK(table.all().empty());
}

TEST_CASE(
    "what is banked is divided and added as the levels are, and the use stays with the number") {
  const TabletMap map = map_of({0});
  HeldTable table;
  table.follow(map, 1000, kNow);
  HeldBucket idle = HeldBucket::idle(1000, 101'000'000, kNow);
  CHECK(idle.banked() == 101'000);
  idle.use.add(7 * storage::kWeightOfUnit, 5'000'000);
  table.add(map.tablets()[0], std::move(idle));
  const auto split = map.with_split(TabletId{1}, {-5, 0}, TabletId{9});
  table.follow(*split, 800, kNow);
  CHECK(table.find(split->find({-9, 0}))->banked() == 50'500);
  CHECK(table.find(split->find({-2, 0}))->banked() == 50'500);
  CHECK(table.find(split->find({-9, 0}))->use.used(6'000'000).used_ru_per_s == 7);
  CHECK(table.find(split->find({-2, 0}))->use.used(6'000'000).used_ru_per_s == 0);
  const auto merged = split->with_merge(TabletId{1}, TabletId{9}, TabletId{10});
  table.follow(*merged, 1000, kNow);
  CHECK(table.find(merged->find({-9, 0}))->banked() == 101'000);
}

TEST_CASE("what is not used for five minutes is banked, and fills the bucket when it is not full") {
  HeldBucket idle(100, 100, 0);
  idle.burst(3000, 0);
  idle.burst(3000, 10'250'000);
  CHECK(idle.banked() == 1'000);  // the rest is spare
  idle.burst(3000, 1'000'000'000);
  CHECK(idle.banked() == 30'000);
  idle.bucket.take(100, 1'000'000'000);
  idle.burst(3000, 1'000'010'000);
  CHECK(idle.bucket.level(1'000'010'000) == 31);  // 1 by its own rate, 30 of the bank
  idle.burst(3000, 1'000'100'000);
  CHECK(idle.bucket.level(1'000'100'000) == 100);
  CHECK(idle.banked() == 30'000 - 30 - 60);
  idle.burst(0, 1'000'100'000);
  CHECK(idle.banked() == 0);
}

TEST_CASE("what is used is counted by seconds and hours") {
  constexpr int64_t kSecondUs = 1'000'000, kHourUs = 3600 * kSecondUs;
  UseMeter meter;
  const auto add = [&](uint64_t units, int64_t at_us) {
    meter.add(units * storage::kWeightOfUnit, at_us);
  };
  add(10, 5 * kHourUs);
  add(5, 5 * kHourUs + 999'999);
  CHECK(meter.used(5 * kHourUs + 999'999).used_ru_per_s == 0);
  add(8, 5 * kHourUs + kSecondUs);
  CHECK(meter.used(5 * kHourUs + kSecondUs).used_ru_per_s == 15);
  meter.give_back(3 * storage::kWeightOfUnit, 5 * kHourUs + kSecondUs);
  UsedThroughput used = meter.used(5 * kHourUs + 2 * kSecondUs);
  CHECK(used.used_ru_per_s == 5);
  CHECK(used.busiest_ru_per_s == 15);
  CHECK(used.hour == 5);
  used = meter.used(5 * kHourUs + 9 * kSecondUs);
  CHECK(used.used_ru_per_s == 0);
  used = meter.used(6 * kHourUs + kSecondUs);
  CHECK(used.busiest_ru_per_s == 0);
  CHECK(used.busiest_before_ru_per_s == 15);
  CHECK(used.hour == 6);
  add(2, 6 * kHourUs - kSecondUs);  // the clock has gone back
  CHECK(meter.used(6 * kHourUs + 2 * kSecondUs).busiest_ru_per_s == 2);

  UseMeter next;
  next.go_on(meter.used(6 * kHourUs + 2 * kSecondUs), 6 * kHourUs + 3 * kSecondUs);
  CHECK(next.used(6 * kHourUs + 3 * kSecondUs).busiest_ru_per_s == 2);
  CHECK(next.used(6 * kHourUs + 3 * kSecondUs).busiest_before_ru_per_s == 15);
  UseMeter later;
  later.go_on(used, 9 * kHourUs);
  CHECK(later.used(9 * kHourUs).busiest_before_ru_per_s == 0);
}

TEST_CASE("what is used while a clock that went back catches up is not that of one second") {
  constexpr int64_t kSecondUs = 1'000'000, kHourUs = 3600 * kSecondUs;
  UseMeter meter;
  const auto add = [&](uint64_t units, int64_t at_us) {
    meter.add(units * storage::kWeightOfUnit, at_us);
  };
  add(1, 9 * kHourUs + kSecondUs);
  for (int i = 0; i < 60; ++i) add(1'000, 9 * kHourUs - 60 * kSecondUs + i * kSecondUs);
  UsedThroughput used = meter.used(9 * kHourUs + 2 * kSecondUs);
  CHECK(used.busiest_ru_per_s == 1'000);
  CHECK(used.hour == 9);
  add(3, 90 * kHourUs);  // it was days ahead for a moment
  add(7, 9 * kHourUs + 3 * kSecondUs);
  used = meter.used(9 * kHourUs + 4 * kSecondUs);
  CHECK(used.busiest_ru_per_s == 7);
  CHECK(used.hour == 9);
}

TEST_CASE("what holders tell of uses is read as it was written, and forgotten in the end") {
  ThroughputReport report;
  report.emplace_back(7, UsedThroughput{1, 2, 3, 4, uint64_t{5} << 40, 6});
  report.emplace_back(uint64_t{1} << 63, UsedThroughput{});
  const auto read = decode_throughput_report(encode_throughput_report(report));
  REQUIRE(read);
  CHECK(*read == report);
  CHECK(!decode_throughput_report(""));
  CHECK(!decode_throughput_report("\x02"));
  Bytes bytes = encode_throughput_report(report);
  CHECK(!decode_throughput_report(BytesView(bytes).substr(0, bytes.size() - 1)));
  report.resize(kThroughputReportEntriesMax + 1);
  CHECK(!decode_throughput_report(encode_throughput_report(report)));
  ThroughputBoard board;
  board.take(*read, 100'000'000);
  CHECK(board.of(7).refused == uint64_t{5} << 40);
  CHECK(board.of(8) == UsedThroughput{});
  const uint64_t version = board.version();
  board.take(*read, 150'000'000);  // as before: nobody copies it
  CHECK(board.version() == version);
  board.take({{8, UsedThroughput{9}}}, 7'400'000'000);
  CHECK(board.version() > version);
  CHECK(board.of(8).used_ru_per_s == 9);
  CHECK(board.of(7) == UsedThroughput{});
}

TEST_CASE("a bucket lends slices, and nothing rather than crumbs") {
  TokenBucket bucket(1000, 0);
  for (int i = 0; i < 9; ++i) CHECK(lend(bucket, 1000, 1, 0).granted == 100);
  CHECK(lend(bucket, 1000, 1, 0).granted == 50);
  CHECK(lend(bucket, 1000, 1, 0).granted == 25);
  CHECK(lend(bucket, 1000, 1, 0).granted == 25);
  Slice slice = lend(bucket, 1000, 1, 0);
  CHECK(slice.granted == 0);
  CHECK(slice.retry_us == 25'000);
  slice = lend(bucket, 1000, 1, 24'999);
  CHECK(slice.granted == 0);
  slice = lend(bucket, 1000, 1, 25'000);
  CHECK(slice.granted == 25);
  CHECK(slice.retry_us == 0);
  bucket.take(1000, 25'000);
  CHECK(lend(bucket, 1000, 1, 25'000).retry_us == 1'025'000);
}

TEST_CASE("who borrows at once with others gets less, so that each gets some") {
  Borrowers borrowers;
  CHECK(borrowers.count(0) == 1);
  for (uint64_t who = 0; who < 10; ++who) borrowers.note(who, 1000);
  borrowers.note(3, 900'000);
  CHECK(borrowers.count(1'000'000) == 10);
  CHECK(borrowers.count(1'500'000) == 1);
  TokenBucket bucket(1000, 0);
  CHECK(lend(bucket, 1000, 10, 0).granted == 50);
  for (uint64_t who = 0; who < 2 * Borrowers::kMost; ++who) borrowers.note(who, 1'500'000);
  CHECK(borrowers.count(1'500'000) == Borrowers::kMost);
}

TEST_CASE("a rate is that of the last second") {
  RateMeter meter(0);
  for (int64_t now_us = 0; now_us < 5'000'000; now_us += 10'000) meter.add(10, now_us);
  CHECK(std::abs(static_cast<int64_t>(meter.per_s(5'000'000)) - 1'000) <= 20);
  CHECK(meter.per_s(5'400'000) < 700);
  CHECK(meter.per_s(7'000'000) == 0);
  meter.add(UINT64_MAX, 7'000'000);
  CHECK(meter.per_s(7'000'000) == 2 * TokenBucket::kPerSecondMax);
}

TEST_CASE("a bucket gives of what it does not use, and nothing else") {
  HeldBucket idle(1000, 0, 0);
  CHECK(idle.give(500, 1'000'000) == 0);  // it has just become full
  CHECK(idle.give(500, 1'100'000) == 50);
  CHECK(idle.give(500, 1'100'000) == 25);
  CHECK(idle.bucket.level(1'100'000) == 1000);
  CHECK(idle.give(10, 60'000'000) == 10);
  CHECK(idle.spare(60'000'000) == 240);  // a quarter of a second
}

TEST_CASE("a bucket that is asked for more than its part lacks what it needs for a moment") {
  HeldBucket busy(1000, 1000, 0);
  const auto ask = [&](uint64_t per_s, int64_t from_us, int64_t to_us) {
    for (int64_t now_us = from_us; now_us < to_us; now_us += 10'000)
      busy.asked.add(per_s / 100, now_us);
  };
  ask(800, 0, 2'000'000);
  CHECK(busy.lacks(10'000, 2'000'000) == 0);
  busy.bucket.take(1000, 2'000'000);
  CHECK(busy.lacks(10'000, 2'000'000) == 0);  // its own part will do
  ask(3000, 2'000'000, 4'000'000);
  busy.bucket.take(1000, 4'000'000);
  const uint64_t lacks = busy.lacks(10'000, 4'000'000);
  CHECK(lacks > 850);
  CHECK(lacks < 950);
  CHECK(busy.lacks(1000, 4'000'000) == 0);  // it may have no more than it has
  // In a tenth of a second as much as that lets it have beyond its part.
  busy.asks_for(2000, 4'000'000);
  CHECK(busy.asks_for(2000, 4'100'000) == 100);
}

TEST_CASE("a bucket that owes lacks that, whoever asks") {
  HeldBucket owing(1000, -4'000, 0);
  CHECK(owing.lacks(10'000, 0) == 4'000);
  CHECK(owing.lacks(10'000, 4'000'000) == 0);
}

TEST_CASE("what a bank gives is not asked for of others as well") {
  HeldBucket busy = HeldBucket::idle(1000, 300'000'000, 0);
  busy.burst(600, 0);
  busy.bucket.take(3'000, 0);
  CHECK(busy.lacks(1'600, 0) == 0);
  CHECK(busy.lacks(2'000, 0) == 2'000);
  busy.asks_for(2'000, 0);
  busy.bucket.take(1'000, 100'000);
  CHECK(busy.asks_for(2'000, 100'000) ==
        40);  // of 1000 a second beside its part 600 are its bank's
  busy.burst(0, 100'000);
  CHECK(busy.asks_for(2'000, 200'000) == 100);
}

TEST_CASE("what tablets are given goes to each in the proportion of what it lacks") {
  const TabletMap map = map_of({-5, 0, 5});
  HeldTable table = held_of(map, {-3'000, 1'000, -1'000, 500});
  CHECK(table.asks_for(20'000, kNow) == 4'000);
  table.spread(400, 20'000, kNow);
  CHECK(level_at(table, map, -9) == -2'700);
  CHECK(level_at(table, map, 1) == -900);
  table.spread(3, 20'000, kNow);  // no part of it is lost
  CHECK(level_at(table, map, -9) + level_at(table, map, 1) == -3'597);
  table.spread(4'000, 20'000, kNow);
  CHECK(level_at(table, map, 1) == 0);
  CHECK(level_at(table, map, -9) == 403);
  CHECK(level_at(table, map, -1) == 1'000);
  CHECK(level_at(table, map, 9) == 500);
  HeldTable none;
  none.spread(5, 20'000, kNow);
  CHECK(none.asks_for(20'000, kNow) == 0);
}

TEST_CASE("what holders of throughputs are asked and answer is read as it was written") {
  BorrowRequest request{TableIncarnation{7}, TabletId{1u << 20}, uint64_t{1} << 60};
  auto read = decode_borrow_request(encode_borrow_request(request));
  REQUIRE(read);
  CHECK(read->table.value == 7);
  CHECK(read->tablet.value == 1u << 20);
  CHECK(read->debt == uint64_t{1} << 60);
  CHECK(!read->place);
  request.place = RingPosition{-4, 99};
  request.shard = 15;
  request.refused = 3;
  request.refused_weight = 33'000;
  read = decode_borrow_request(encode_borrow_request(request));
  REQUIRE(read);
  CHECK(read->place == RingPosition{-4, 99});
  CHECK(read->shard == 15);
  CHECK(read->refused == 3);
  CHECK(read->refused_weight == 33'000);
  CHECK(!decode_borrow_request(""));
  CHECK(!decode_borrow_request(Bytes(10, '\xff')));
  CHECK(!decode_borrow_request(encode_borrow_request(request).substr(0, 14)));

  const auto loan = decode_loan(encode_loan({12, 34, 56}));
  REQUIRE(loan);
  CHECK(loan->granted == 12);
  CHECK(loan->retry_us == 34);
  CHECK(loan->per_s == 56);
  CHECK(decode_loan(Bytes("\x0c\x22", 2))->granted == 12);  // of an older program
  CHECK(!decode_loan("\x01"));
  CHECK(!decode_loan(encode_loan({UINT64_MAX, 0})));
  CHECK(!decode_loan(encode_loan({0, int64_t{1} << 40})));

  const ReturnRequest given{TableIncarnation{7}, TabletId{8}, {5, 6}, 100, 200};
  const auto back = decode_return_request(encode_return_request(given));
  REQUIRE(back);
  CHECK(back->place == RingPosition{5, 6});
  CHECK(back->returned == 100);
  CHECK(back->debt == 200);
  CHECK(!decode_return_request(encode_return_request({{}, {}, {}, UINT64_MAX, 0})));
  CHECK(!decode_return_request(""));

  const auto share = decode_share_request(encode_share_request({TableIncarnation{7}, 9}));
  REQUIRE(share);
  CHECK(share->wanted == 9);
  CHECK(!decode_share_request(encode_share_request({TableIncarnation{7}, UINT64_MAX})));
  CHECK(decode_share(encode_share(5)).value_or(0) == 5);
  CHECK(!decode_share(encode_share(UINT64_MAX)));
}

}  // namespace tetrad::replication
