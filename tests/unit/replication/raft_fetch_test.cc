// SPDX-License-Identifier: Apache-2.0
// What is committed is learned, and fetched, from any server where no leader is heard.
#include <catch2/catch.hpp>

#include "tests/unit/replication/raft_bench.h"

namespace tetrad::replication::test {

TEST_CASE("what another server has applied is committed here where the log holds that very entry") {
  Bench bench(members({}));
  bench.add(1, stored_with(3, {2, 2, 3}, members({1, 2, 3})));  // entries 2, 3 and 4
  bench.core(1).learn_committed(3, 1, id(2));
  bench.core(1).learn_committed(3, 3, id(2));
  bench.core(1).learn_committed(5, 3, id(2));
  CHECK(bench.core(1).commit_index() == 1);
  bench.core(1).learn_committed(3, 2, id(2));
  CHECK(bench.core(1).commit_index() == 3);
  bench.core(1).learn_committed(2, 2, id(2));
  CHECK(bench.core(1).commit_index() == 3);
  bench.collect(1);
  CHECK(bench[1].applied.size() == 2);
}

TEST_CASE("what a server lacks of what is committed it fetches from any other, without a leader") {
  Bench bench(members({}), [](RaftOptions& o) { o.message_bytes_max = 70; });  // two entries
  RaftStored ahead = stored_with(4, {2, 3, 3, 4, 4}, members({1, 2, 3}));      // entries 2 to 6
  ahead.hard_state.commit = 6;
  bench.add(1, stored_with(2, {2, 2, 2}, members({1, 2, 3})));  // its entries 3 and 4 are wrong
  bench.add(2, ahead);
  bench.core(1).learn_committed(6, 4, id(2));
  bench.core(1).learn_committed(6, 4, id(2));  // asked already
  bench.collect(1);
  REQUIRE(bench.on_wire<RaftFetchRequest>().size() == 1);
  CHECK(bench.on_wire<RaftFetchRequest>()[0].second == RaftFetchRequest{1});
  bench.settle();  // page by page
  CHECK(bench.core(1).commit_index() == 6);
  CHECK(bench.core(1).term() == 4);
  CHECK(bench[1].applied.size() == 5);
  CHECK(bench[1].disk.entries == ahead.entries);
  CHECK(bench.core(1).role() == RaftRole::kFollower);

  // Nobody is asked while a leader is heard, nor given what was dropped or is not applied.
  bench.give(bench.message(3, 1, 4, RaftHeartbeat{6, 1})).value();
  bench.lose_all();
  bench.core(1).learn_committed(9, 4, id(2));
  bench.collect(1);
  CHECK(bench.on_wire<RaftFetchRequest>().empty());
  for (const RaftIndex after : {RaftIndex{0}, RaftIndex{6}, RaftIndex{7}}) {
    bench.give(bench.message(1, 2, 1, RaftFetchRequest{after})).value();
    CHECK(bench.on_wire<RaftFetchReply>().empty());
  }
}

TEST_CASE("fetched entries that cannot be are refused, and old ones ignored") {
  Bench bench(members({}));
  RaftStored stored = stored_with(3, {2, 2, 3}, members({1, 2, 3}));
  stored.hard_state.commit = 3;
  bench.add(1, stored);
  const auto reply = [&](RaftIndex after, std::vector<RaftEntry> entries) {
    return bench.give(bench.message(2, 1, 3, RaftFetchReply{after, 9, 3, std::move(entries)}));
  };
  CHECK_FALSE(reply(3, {command(3, 5)}));                 // a gap
  CHECK_FALSE(reply(3, {command(3, 4), command(2, 5)}));  // a falling term
  CHECK_FALSE(reply(3, {command(4, 4)}));                 // of a term after the sender's
  CHECK(reply(4, {command(3, 5)}));  // after what is not known to be committed here
  CHECK(reply(3, {command(1, 4)}));  // of an earlier term than the entry before it, which is here
  CHECK(reply(1, {command(2, 2), command(2, 3)}));
  CHECK(reply(3, {}));
  CHECK(bench.core(1).commit_index() == 3);
  CHECK(reply(2, {command(2, 3), command(3, 4), command(3, 5)}));
  CHECK(bench.core(1).commit_index() == 5);
}

}  // namespace tetrad::replication::test
