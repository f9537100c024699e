// SPDX-License-Identifier: Apache-2.0
// Who gets room for an answer and who waits; and that reads which wait, or ask again because their
// answer was larger than expected, answer what they would have.
#include "cql/prepare/answer_budget.h"

#include <catch2/catch.hpp>

#include "base/task_group.h"
#include "tests/support/local_cluster.h"
#include "tests/support/manual_reactor.h"

using namespace tetrad;
using cql::AnswerBudget;
using cql::AnswerRoom;
using cql::ClientAnswers;
using tests::ManualReactor;

namespace {

constexpr uint64_t kMiB = 1u << 20;

struct Rig {
  ManualReactor reactor;
  AnswerBudget budget{reactor, 10 * kMiB};
  base::TaskGroup tasks;  // last: goes first

  static Task<void> body(AnswerRoom* room, uint64_t more, base::Deadline deadline,
                         std::optional<bool>* granted) {
    const bool is_granted = co_await room->wait(more, deadline);
    *granted = is_granted;
  }
  void wait(AnswerRoom& room, uint64_t more, std::optional<bool>& granted) {
    tasks.spawn(body(&room, more, {reactor.now_us() + 5'000'000}, &granted));
  }
  /// A large answer that waits for its turn and then takes this much.
  static Task<void> turn_body(AnswerRoom* room, uint64_t bytes, std::optional<bool>* begun) {
    const bool is_there = co_await room->await_turn(100);
    *begun = is_there;
    if (is_there) room->promise(0, bytes);
  }
  void await_turn(AnswerRoom& room, uint64_t bytes, std::optional<bool>& begun) {
    tasks.spawn(turn_body(&room, bytes, &begun));
  }
};

}  // namespace

TEST_CASE("room is given until there is none, and again when it comes back") {
  Rig rig;
  ClientAnswers first, second;
  AnswerRoom a(rig.budget, first), b(rig.budget, second);
  std::optional<bool> granted;
  {
    AnswerRoom c(rig.budget, first);
    CHECK(c.promise(0, 6 * kMiB));
    CHECK(a.promise(0, 4 * kMiB));
    CHECK(rig.budget.is_full());
    CHECK(first.promised_bytes == 10 * kMiB);
    CHECK_FALSE(b.promise(0, 6 * kMiB));
    rig.wait(b, 6 * kMiB, granted);
    rig.reactor.run_until_idle();
    CHECK_FALSE(granted);
  }
  rig.reactor.run_until_idle();
  CHECK(granted == true);
  CHECK(second.promised_bytes == 6 * kMiB);
  b.settle(1000);
  CHECK(rig.budget.used_bytes() == 4 * kMiB + 1000);
}

TEST_CASE("answers that nobody takes keep no room from other clients") {
  Rig rig;
  ClientAnswers hog, honest;
  rig.budget.set_unsent(hog, 11 * kMiB);
  AnswerRoom of_hog(rig.budget, hog), large(rig.budget, honest), small(rig.budget, honest);
  std::optional<bool> hog_granted;
  CHECK_FALSE(of_hog.promise(0, 1000));
  rig.wait(of_hog, 1000, hog_granted);
  rig.reactor.run_until_idle();
  CHECK_FALSE(hog_granted);
  CHECK(small.promise(0, 40'000));
  CHECK_FALSE(large.promise(0, 8 * kMiB));  // behind one that waits
  std::optional<bool> granted;
  rig.wait(large, 8 * kMiB, granted);
  rig.reactor.run_until_idle();
  CHECK(granted == true);
  CHECK_FALSE(hog_granted);
  SECTION("until there is far too much of them") {
    large.settle(0);
    rig.budget.set_unsent(hog, 30 * kMiB);
    std::optional<bool> late;
    rig.wait(large, kMiB, late);
    rig.reactor.run_until_idle();
    CHECK_FALSE(late);
    small.settle(0);
    CHECK(small.promise(0, 40'000));
    rig.reactor.advance_us(6'000'000);
    CHECK(late == false);
  }
  SECTION("and whoever takes his gets room again") {
    rig.budget.set_unsent(hog, 0);
    rig.reactor.run_until_idle();
    CHECK(hog_granted == true);
  }
}

TEST_CASE("a large answer is not overtaken for ever") {
  Rig rig;
  ClientAnswers one, other;
  AnswerRoom a(rig.budget, one), b(rig.budget, one), large(rig.budget, other),
      late(rig.budget, other);
  CHECK(a.promise(0, 5 * kMiB));
  CHECK(b.promise(0, 5 * kMiB));
  std::optional<bool> large_granted, late_granted;
  rig.wait(large, 9 * kMiB, large_granted);
  rig.wait(late, 2 * kMiB, late_granted);
  a.settle(0);
  rig.reactor.run_until_idle();
  CHECK_FALSE(large_granted);
  CHECK_FALSE(late_granted);
  b.settle(0);
  rig.reactor.run_until_idle();
  CHECK(large_granted == true);
}

TEST_CASE("large answers of a client begin one after another, and small ones pass them") {
  Rig rig;
  ClientAnswers client, other;
  AnswerRoom first(rig.budget, client), second(rig.budget, client), third(rig.budget, client);
  CHECK(first.may_begin(5 * kMiB));
  CHECK(first.promise(0, 5 * kMiB));
  CHECK_FALSE(second.may_begin(3 * kMiB));
  CHECK(AnswerRoom(rig.budget, other).may_begin(3 * kMiB));
  std::optional<bool> second_begun, third_begun;
  rig.await_turn(second, 3 * kMiB, second_begun);
  rig.await_turn(third, 3 * kMiB, third_begun);
  CHECK(client.waiting() == 2);
  CHECK(client.waiting_request_bytes() == 200);
  AnswerRoom small(rig.budget, client);
  CHECK(small.may_begin(1000));
  CHECK(small.promise(0, 1000));
  CHECK(client.turn_bytes == 5 * kMiB);
  rig.reactor.advance_us(100'000'000);  // no deadline
  CHECK_FALSE(second_begun);
  first.settle(4 * kMiB + 1);  // still too much
  rig.reactor.run_until_idle();
  CHECK_FALSE(second_begun);
  SECTION("as the ones before take less") {
    first.settle(100);
    rig.reactor.run_until_idle();
    CHECK(second_begun == true);
    CHECK(third_begun == true);  // 3 MiB are less than 4
    CHECK(client.waiting() == 0);
    CHECK(client.waiting_request_bytes() == 0);
    CHECK(client.promised_bytes == 6 * kMiB + 1100);
    CHECK(client.turn_bytes == 6 * kMiB + 100);
  }
  SECTION("and as the client takes them") {
    first.settle(0);
    rig.budget.set_unsent(client, 4 * kMiB + 1);
    rig.reactor.run_until_idle();
    CHECK_FALSE(second_begun);
    rig.budget.set_unsent(client, 2 * kMiB);
    rig.reactor.run_until_idle();
    CHECK(second_begun == true);
    CHECK_FALSE(third_begun);
    CHECK_FALSE(AnswerRoom(rig.budget, client).may_begin(kMiB));  // behind the one that waits
  }
  SECTION("until the client has gone") {
    rig.budget.let_go(client);
    rig.reactor.run_until_idle();
    CHECK(second_begun == false);
    CHECK(third_begun == false);
    AnswerRoom late(rig.budget, client);
    std::optional<bool> late_begun;
    rig.await_turn(late, 3 * kMiB, late_begun);
    CHECK(late_begun == false);
  }
  SECTION("and leave nothing behind where their task ends") {
    rig.tasks.destroy_all();
    rig.reactor.run_until_idle();
  }
}

TEST_CASE("what is found to be large waits for its turn with the little that it has") {
  Rig rig;
  ClientAnswers client;
  std::vector<std::unique_ptr<AnswerRoom>> rooms;
  std::vector<std::optional<bool>> begun(60);
  for (size_t i = 0; i < begun.size(); ++i) {
    rooms.push_back(std::make_unique<AnswerRoom>(rig.budget, client));
    REQUIRE(rooms.back()->may_begin(30'000));
    REQUIRE(rooms.back()->promise(0, 30'000));
    rooms.back()->settle(i % 2 == 0 ? 40'000 : 120'000);  // rows may be larger than they were read
  }
  CHECK(client.promised_bytes > AnswerBudget::kClientBytesMax);
  CHECK(client.turn_bytes == 0);
  CHECK(rooms[0]->may_begin(5 * kMiB));
  CHECK(rooms[0]->promise(40'000, 5 * kMiB));
  CHECK(rooms[0]->may_begin(9 * kMiB));  // it has its turn
  for (size_t i = 1; i < begun.size(); ++i) {
    REQUIRE_FALSE(rooms[i]->may_begin(5 * kMiB));
    rig.await_turn(*rooms[i], 5 * kMiB, begun[i]);
  }
  for (size_t i = 1; i < begun.size(); ++i) {
    rig.reactor.run_until_idle();
    REQUIRE_FALSE(begun[i]);
    rooms[i - 1].reset();
    rig.reactor.run_until_idle();
    REQUIRE(begun[i] == true);
  }
}

TEST_CASE("who has begun goes before those that have not, in the order of the beginnings") {
  Rig rig;
  ClientAnswers one, two, three, four;
  AnswerRoom a(rig.budget, one), b(rig.budget, two), fresh(rig.budget, three),
      filler(rig.budget, four);
  CHECK(a.promise(0, kMiB));
  CHECK(b.promise(0, kMiB));
  a.settle(kMiB);
  b.settle(kMiB);
  CHECK(filler.promise(0, 8 * kMiB));
  std::optional<bool> a_granted, b_granted, fresh_granted;
  rig.wait(fresh, 2 * kMiB, fresh_granted);
  rig.wait(b, 8 * kMiB, b_granted);
  rig.wait(a, 7 * kMiB, a_granted);
  filler.settle(kMiB);
  rig.reactor.run_until_idle();
  CHECK(a_granted == true);
  CHECK_FALSE(b_granted);
  CHECK_FALSE(fresh_granted);
}

TEST_CASE("answers that hold a part each do not wait for each other") {
  Rig rig;
  std::vector<ClientAnswers> clients(30);
  std::vector<std::unique_ptr<AnswerRoom>> rooms;
  std::vector<std::optional<bool>> granted(clients.size());
  for (ClientAnswers& client : clients) {
    rooms.push_back(std::make_unique<AnswerRoom>(rig.budget, client));
    CHECK(rooms.back()->promise(0, 10'000));
    rooms.back()->settle(kMiB);  // more than it was thought to be
  }
  CHECK(rig.budget.used_bytes() == 30 * kMiB);
  // Small ones are under way all the time.
  ClientAnswers other;
  AnswerRoom small(rig.budget, other);
  CHECK(small.promise(0, 1000));
  for (size_t i = 0; i < rooms.size(); ++i) rig.wait(*rooms[i], 4 * kMiB, granted[i]);
  for (size_t i = 0; i < rooms.size(); ++i) {
    rig.reactor.run_until_idle();
    REQUIRE(granted[i] == true);
    rooms[i]->settle(5 * kMiB);
    rig.reactor.run_until_idle();
    // One at a time, however often it asks for more.
    if (rig.budget.used_bytes() > 30 * kMiB) {
      REQUIRE_FALSE(granted[i + 1]);
      std::optional<bool> more;
      rig.wait(*rooms[i], 4 * kMiB, more);
      rig.reactor.run_until_idle();
      REQUIRE(more == true);
      rooms[i]->settle(9 * kMiB);
    }
    rooms[i].reset();
  }
}

TEST_CASE(
    "what waits for room ends with its client, and keeps the next of its client from beginning") {
  Rig rig;
  ClientAnswers hog, client;
  AnswerRoom all(rig.budget, hog);
  CHECK(all.promise(0, 10 * kMiB));
  AnswerRoom waits(rig.budget, client), next(rig.budget, client);
  CHECK_FALSE(waits.promise(0, kMiB));
  std::optional<bool> granted, begun;
  rig.wait(waits, kMiB, granted);
  CHECK_FALSE(next.may_begin(kMiB));
  rig.await_turn(next, kMiB, begun);
  rig.reactor.run_until_idle();
  CHECK_FALSE(granted);
  CHECK_FALSE(begun);
  SECTION("the client has gone") {
    rig.budget.let_go(client);
    rig.reactor.run_until_idle();
    CHECK(granted == false);
    CHECK(begun == false);
  }
  SECTION("it has waited for too long") {
    rig.reactor.advance_us(6'000'000);
    CHECK(granted == false);
    CHECK(begun == true);
  }
  SECTION("there is room") {
    all.settle(0);
    rig.reactor.run_until_idle();
    CHECK(granted == true);
    CHECK(begun == true);
  }
  CHECK(rig.budget.waiting_turns() == 0);
}

TEST_CASE("one answer larger than everything is made when nothing else is") {
  Rig rig;
  ClientAnswers client;
  AnswerRoom room(rig.budget, client);
  CHECK(room.promise(0, 64 * kMiB));
}

TEST_CASE("a room that goes while it waits leaves nothing behind") {
  Rig rig;
  ClientAnswers client;
  AnswerRoom all(rig.budget, client);
  CHECK(all.promise(0, 10 * kMiB));
  std::optional<bool> granted;
  auto gone = std::make_unique<AnswerRoom>(rig.budget, client);
  rig.wait(*gone, kMiB, granted);
  rig.tasks.destroy_all();
  gone.reset();
  all.settle(0);
  rig.reactor.advance_us(10'000'000);
  CHECK_FALSE(granted);
  CHECK(rig.budget.used_bytes() == 0);
}

TEST_CASE("an estimate rises at once and sinks slowly") {
  cql::AnswerEstimate estimate;
  CHECK_FALSE(estimate.is_known());
  estimate.learn(100);
  CHECK(estimate.bytes() == 100);
  estimate.learn(100'000);
  CHECK(estimate.bytes() == 100'000);
  estimate.learn(20'000);
  CHECK(estimate.bytes() == 95'000);
  for (int i = 0; i < 300; ++i) estimate.learn(20'000);
  CHECK(estimate.bytes() == 20'000);
}

TEST_CASE("reads that do not fit at first answer the same") {
  tests::LocalCluster cluster;
  cluster.cql(
      "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  cluster.cql("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))");
  std::string expected, in_order;
  for (int k = 0; k < 3; ++k) {
    for (int c = 0; c < 40; ++c) {
      // Some rows are larger than a first read may be.
      const std::string value(c % 10 == 3 ? 200'000 : 50 * c, static_cast<char>('a' + c % 26));
      REQUIRE(cluster.cql(fmt::format("INSERT INTO ks.t (k, c, v) VALUES ({}, {}, '{}')", k, c,
                                      value)) == "ok");
      in_order += fmt::format("{}{} | {} | '{}'", in_order.empty() ? "" : "\n", k, c, value);
      if (k == 1) expected += fmt::format("{}{} | '{}'", expected.empty() ? "" : "\n", c, value);
    }
  }
  for (int i = 0; i < 4; ++i) CHECK(cluster.rows("SELECT c, v FROM ks.t WHERE k = 1") == expected);
  CHECK(cluster.rows("SELECT k, c, v FROM ks.t WHERE k IN (0, 1, 2)") == in_order);
  CHECK(cluster.pages("SELECT c, v FROM ks.t WHERE k = 1", 100) == expected);
  const uint64_t reads_before = cluster.coordinator->reads;
  CHECK(cluster.rows("SELECT k, c, v FROM ks.t").size() == in_order.size());
  CHECK(cluster.coordinator->reads > reads_before + 2);
  const auto statement = cluster.prepare("SELECT c, v FROM ks.t WHERE k = 1");
  for (int i = 0; i < 6; ++i)
    CHECK(cluster.print(cluster.execute(statement, {}), false) == expected);
  CHECK(cluster.answers.used_bytes() == 0);
  CHECK(cluster.client.answers.promised_bytes == 0);
}
