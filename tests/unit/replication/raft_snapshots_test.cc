// SPDX-License-Identifier: Apache-2.0
// Snapshots in place of a log: taken, sent to who lags behind, installed or not.
#include <catch2/catch.hpp>

#include "tests/unit/replication/raft_bench.h"

namespace tetrad::replication::test {
namespace {

using Strings = std::vector<std::string>;

/// An image of what a server has applied, taken and told to its core.
RaftIndex snapshot_of(Bench& bench, uint8_t number) {
  RaftCore& core = bench.core(number);
  const RaftSnapshotMeta meta = core.snapshot_meta(core.applied_index()).value();
  bench[number].disk.snapshot = meta;
  core.snapshot_taken(meta).value();
  bench.collect(number);
  return meta.index;
}

}  // namespace

TEST_CASE("a follower that lags behind the log gets a snapshot") {
  Bench bench(members({1, 2, 3}), [](RaftOptions& options) { options.trailing_entries = 2; });
  bench.elect(1);
  for (int i = 0; i < 10; ++i) {
    bench.propose(1, "a");
    bench.settle({3});
  }
  const RaftIndex at = snapshot_of(bench, 1);
  CHECK(bench.core(1).log().base_index() == at - 2);
  CHECK(bench[1].disk.entries.size() == 2);
  bench.propose(1, "b");
  for (int i = 0; i < 4; ++i) {
    bench.tick(1, 2);
    bench.settle();
  }
  CHECK(bench[3].disk.snapshot.index == at);
  CHECK(bench[3].commands() == Strings{"b"});
  CHECK(bench.core(3).applied_index() == bench.core(1).commit_index());
  CHECK(bench.core(1).peers().at(1).state == RaftProgress::State::kReplicate);
  // Restarted it continues from there.
  bench.start(3);
  CHECK(bench.core(3).commit_index() >= at);
  CHECK(bench.core(3).configuration() == members({1, 2, 3}));
}

TEST_CASE("an image under way stops appends, a failed one is sent again") {
  Bench bench(members({1, 2, 3}), [](RaftOptions& options) {
    options.trailing_entries = 0;
    options.snapshot_timeout_ticks = 15;
  });
  bench.elect(1);
  for (int i = 0; i < 10; ++i) {
    bench.propose(1, "a");
    bench.settle({3});
  }
  snapshot_of(bench, 1);
  const auto wait_for_image = [&] {
    for (int i = 0; i < 60; ++i) {
      bench.tick(1);
      bool sent = false;
      while (!bench.wire().empty()) {
        RaftMessage message = std::move(bench.wire().front());
        bench.wire().pop_front();
        if (std::holds_alternative<RaftInstallSnapshot>(message.body)) {
          sent = true;  // and lost
        } else {
          static_cast<void>(bench.give(std::move(message)));
        }
      }
      if (sent) return i;
    }
    return -1;
  };
  REQUIRE(wait_for_image() >= 0);
  CHECK(bench.core(1).peers().at(1).state == RaftProgress::State::kSnapshot);
  CHECK(wait_for_image() >= 10);  // not before its time is up
  bench.core(1).snapshot_sent(id(3), false);
  const int again = wait_for_image();
  CHECK(again >= 0);
  CHECK(again < 5);
}

TEST_CASE("a snapshot that is old, or whose end is in the log, is not installed") {
  Bench bench(members({1, 2, 3}));
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 2, {command(2, 2), command(2, 3)}}))
      .value();
  bench.lose_all();
  bench.give(bench.message(2, 1, 2, RaftInstallSnapshot{{2, 2, members({1, 2, 3})}})).value();
  CHECK(bench.on_wire<RaftAppendReply>()[0].second == RaftAppendReply{true, 2, 0, 0});
  CHECK(bench.core(1).last_index() == 3);
  bench.lose_all();
  bench.give(bench.message(2, 1, 2, RaftInstallSnapshot{{3, 2, members({1, 2, 3})}})).value();
  CHECK(bench.on_wire<RaftAppendReply>()[0].second == RaftAppendReply{true, 3, 0, 0});
  CHECK(bench.core(1).commit_index() == 3);
  CHECK(bench[1].disk.snapshot.index == 1);
}

TEST_CASE("an installed snapshot replaces a log that contradicts it, and its members") {
  Bench bench(members({1, 2, 3}));
  bench.give(bench.message(2, 1, 2, RaftAppendRequest{1, 1, 1, {command(2, 2), command(2, 3)}}))
      .value();
  bench.lose_all();
  bench[1].slow_disk = true;
  bench.give(bench.message(3, 1, 5, RaftInstallSnapshot{{2, 4, members({1, 3, 4})}})).value();
  CHECK(bench.core(1).configuration() == members({1, 3, 4}));
  CHECK(bench.core(1).last_index() == 2);
  CHECK(bench.wire().empty());  // not on disk yet
  REQUIRE(bench[1].writes.size() == 1);
  CHECK(bench[1].writes[0].snapshot.value().index == 2);
  // Entries that follow wait for the image; a new term meanwhile does no harm.
  bench.give(bench.message(3, 1, 5, RaftAppendRequest{2, 4, 3, {command(5, 3, "a")}})).value();
  bench.give(bench.message(4, 1, 6, RaftHeartbeat{3, 0})).value();
  CHECK(bench[1].applied.empty());
  bench.finish_writes(1);
  CHECK(bench[1].commands() == Strings{"a"});
  CHECK(bench[1].disk.snapshot.index == 2);
  CHECK(bench[1].disk.hard_state.term == 6);
  CHECK(bench[1].disk.entries.size() == 1);
}

TEST_CASE("snapshots are of what was applied, and never go back") {
  Bench bench(members({1}));
  bench.elect(1);
  for (int i = 0; i < 5; ++i) bench.propose(1, "a");
  const RaftIndex applied = bench.core(1).applied_index();
  CHECK_FALSE(bench.core(1).snapshot_meta(applied + 1));
  const RaftSnapshotMeta early = bench.core(1).snapshot_meta(applied - 2).value();
  snapshot_of(bench, 1);
  CHECK(bench.core(1).snapshot_taken(early).error().code == ErrorCode::kConflict);
  CHECK_FALSE(bench.core(1).snapshot_meta(applied - 2));
}

}  // namespace tetrad::replication::test
