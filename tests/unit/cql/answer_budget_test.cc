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
