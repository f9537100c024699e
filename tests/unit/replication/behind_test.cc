// SPDX-License-Identifier: Apache-2.0
#include "replication/replica/behind.h"

#include <limits>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "replication/replica/recent_messages.h"
#include "replication/replica/replica_messages.h"
#include "tests/support/manual_reactor.h"
#include "tests/unit/replication/one_table_meta.h"

namespace tetrad::replication {
namespace {

constexpr TableIncarnation kTable{7}, kOther{8};

RingRange range(int64_t start, int64_t end) { return {{start, 0}, {end, 0}}; }

TEST_CASE("ranges that touch become one, whatever their order", "[behind]") {
  RangeSet set;
  set.add(kTable, range(20, 30));
  set.add(kTable, range(0, 10));
  CHECK(set.covers(kTable, range(0, 10)));
  CHECK(set.covers(kTable, range(21, 30)));
  CHECK_FALSE(set.covers(kTable, range(0, 30)));
  CHECK_FALSE(set.covers(kOther, range(0, 10)));
  CHECK(set.contains(kTable, {10, 0}));
  CHECK_FALSE(set.contains(kTable, {10, 1}));
  CHECK_FALSE(set.contains(kTable, {0, 0}));  // a range begins after its start
  set.add(kTable, range(10, 20));
  CHECK(set.covers(kTable, range(0, 30)));
  REQUIRE(set.ranges().at(kTable).size() == 1);
  set.add(kTable, range(5, 12));
  CHECK(set.ranges().at(kTable).size() == 1);
  set.add(kTable, range(40, 40));  // nothing
  CHECK(set.ranges().at(kTable).size() == 1);
}

TEST_CASE("a set of ranges says of each place what a list of places says", "[behind]") {
  base::Random random(1);
  for (int round = 0; round < 200; ++round) {
    RangeSet set;
    std::vector<bool> in(100);  // token i, of the ranges that end at it
    for (int n = 0; n < 20; ++n) {
      const auto start = static_cast<int64_t>(random.below(99));
      const int64_t end = start + static_cast<int64_t>(random.below(8));
      set.add(kTable, range(start, std::min<int64_t>(end, 99)));
      for (int64_t i = start + 1; i <= std::min<int64_t>(end, 99); ++i)
        in[static_cast<size_t>(i)] = true;
    }
    for (int64_t i = 1; i < 100; ++i) {
      CHECK(set.contains(kTable, {i, 0}) == in[static_cast<size_t>(i)]);
      const int64_t end = std::min<int64_t>(99, i + static_cast<int64_t>(random.below(5)));
      bool all = true;
      for (int64_t j = i; j <= end; ++j) all = all && in[static_cast<size_t>(j)];
      CHECK(set.covers(kTable, range(i - 1, end)) == all);
    }
    const auto& known = set.ranges().at(kTable);
    for (size_t i = 1; i < known.size(); ++i) CHECK(known[i - 1].end < known[i].start);
  }
}

/// Reading of some keys fails.
class FailingLog final : public storage::LocalLog {
 public:
  explicit FailingLog(Bytes failing) : failing_(std::move(failing)) {}
  void write(std::vector<Operation>, bool, DoneCallback done) override { done({}); }
  Result<std::optional<Bytes>> get(BytesView key) override {
    if (key.starts_with(failing_)) return fail(ErrorCode::kIo, "the disk does not read");
    return std::nullopt;
  }
  Result<Pairs> scan(BytesView, BytesView, size_t) override { return Pairs(); }
  void scan_later(Bytes, Bytes, size_t, uint64_t, PairsCallback done) override { done(Pairs()); }
  void erase_range(Bytes, Bytes, DoneCallback done) override { done({}); }
  Result<void> close() override { return {}; }

 private:
  const Bytes failing_;
};

TEST_CASE("what was kept of a store and does not read is not taken for nothing", "[behind]") {
  tests::ManualReactor reactor;
  HybridClock clock;
  clock.begin(reactor.wall_time_us(), reactor);
  OneTableMeta meta;
  for (const bool sequence : {true, false}) {
    FailingLog log(sequence ? "sequence/" : "behind/");
    const BehindStores behind(reactor, log, meta, clock, {true}, {}, Logger());
    if (sequence)
      CHECK(behind.sequence_floor(0) >= static_cast<uint64_t>(reactor.wall_time_us()));
    else
      CHECK(behind.is_behind(0, kTable, range(0, 1)));
    CHECK(behind.is_behind(0) == !sequence);
  }
}

TEST_CASE("what a store lacks is read back, and nothing else is taken for it", "[behind]") {
  RangeSet done;
  done.add(kTable, range(-5, 10));
  done.add(kOther, range(3, 4));
  const Bytes encoded = encode_behind({1234}, done);
  const auto decoded = decode_behind(encoded);
  REQUIRE(decoded);
  CHECK(decoded->first.since_us == 1234);
  CHECK(decoded->second.covers(kTable, range(-5, 10)));
  CHECK(decoded->second.covers(kOther, range(3, 4)));
  const auto unknown = decode_behind(encode_behind({}, {}));
  REQUIRE(unknown);
  CHECK_FALSE(unknown->first.since_us);
  for (size_t size = 0; size < encoded.size(); ++size)
    CHECK_FALSE(decode_behind(BytesView(encoded).substr(0, size)));
  Bytes later = encoded;
  later[0] = 2;
  CHECK_FALSE(decode_behind(later));
}

TEST_CASE("a request for what is recent, and its answer, are read back", "[behind]") {
  RecentRequest request;
  request.since_us = 77;
  request.ended_ago_us = 88;
  request.tablets = {{kTable, SetEpoch{3}, range(1, 2)}, {kOther, SetEpoch{4}, range(-9, 9)}};
  request.after = "place";
  request.bytes_max = 1000;
  const Bytes asked = encode_recent_request(request);
  const auto back = decode_recent_request(asked);
  REQUIRE(back);
  CHECK(back->since_us == 77);
  CHECK_FALSE(back->everything);
  CHECK(back->ended_ago_us == 88);
  REQUIRE(back->tablets.size() == 2);
  CHECK(back->tablets[1].incarnation == kOther);
  CHECK(back->tablets[1].epoch == SetEpoch{4});
  CHECK(back->tablets[1].range == range(-9, 9));
  CHECK(back->after == "place");
  for (size_t size = 0; size < asked.size(); ++size)
    CHECK_FALSE(decode_recent_request(BytesView(asked).substr(0, size)));
  request.ended_ago_us = std::numeric_limits<int64_t>::min();  // no time can be counted from it
  CHECK_FALSE(decode_recent_request(encode_recent_request(request)));

  RecentAnswer answer;
  answer.exhausted = false;
  answer.applied = MetaIndex{12};
  answer.refused = {0};
  answer.behind = {1, 300};
  answer.next = "next";
  storage::Mutation& row = answer.mutations.emplace_back();
  row.incarnation = kTable;
  row.partition_key = "key";
  const Bytes told = encode_recent_answer(answer);
  const auto heard = decode_recent_answer(told);
  REQUIRE(heard);
  CHECK_FALSE(heard->exhausted);
  CHECK(heard->applied == MetaIndex{12});
  CHECK(heard->refused == answer.refused);
  CHECK(heard->behind == answer.behind);
  CHECK(heard->next == "next");
  REQUIRE(heard->mutations.size() == 1);
  CHECK(heard->mutations.front().partition_key == "key");
  for (size_t size = 0; size < told.size(); ++size)
    CHECK_FALSE(decode_recent_answer(BytesView(told).substr(0, size)));
}

TEST_CASE("a mutation says that it must be on disk before it is answered", "[behind]") {
  storage::Mutation row;
  row.incarnation = kTable;
  row.partition_key = "key";
  for (const bool synced : {false, true}) {
    const auto back = decode_mutate(encode_mutate(kFormatNewest, SetEpoch{5}, row, {}, 99, synced));
    REQUIRE(back);
    CHECK(back->synced == synced);
    CHECK(back->as_of_us == 99);
    CHECK(back->mutation.partition_key == "key");
  }
}

}  // namespace
}  // namespace tetrad::replication
