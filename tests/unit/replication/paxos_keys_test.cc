// SPDX-License-Identifier: Apache-2.0
// Who waits for Paxos messages of a partition to be answered, and for a place in the line of a
// coordinator's conditional statements.
#include "replication/paxos/paxos_keys.h"

#include <catch2/catch.hpp>

#include "base/task_group.h"
#include "replication/coordinator/conditional_line.h"
#include "storage/engine/memory_disk.h"
#include "storage/engine/memory_store.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::replication {
namespace {

constexpr TableIncarnation kTable{7};

struct KeysRig {
  tests::ManualReactor reactor;
  tests::InlineIoPool pool;
  std::unique_ptr<storage::StoreFactory> factory =
      storage::make_memory_store_factory(std::make_shared<storage::MemoryDisk>(), {});
  std::unique_ptr<storage::Store> store = *factory->open("/store0", reactor, pool);
  PaxosKeys keys{reactor, {store.get()}};

  struct Answer {
    std::optional<PaxosKeys::Turn> turn;
    std::optional<ErrorCode> error;
  };
  std::shared_ptr<Answer> enter(int64_t within_us, BytesView key = "key") {
    const auto answer = std::make_shared<Answer>();
    keys.enter(0, {kTable, {}, key}, {reactor.now_us() + within_us},
               [answer](Result<PaxosKeys::Turn> turn) {
                 if (turn)
                   answer->turn.emplace(std::move(*turn));
                 else
                   answer->error = turn.error().code;
               });
    reactor.run_until_idle();
    return answer;
  }
};

}  // namespace

TEST_CASE("who waits for a turn is answered at its deadline, whatever who has it waits for") {
  KeysRig rig;
  const auto first = rig.enter(100'000), second = rig.enter(300'000), third = rig.enter(200'000),
             fourth = rig.enter(60'000'000);
  REQUIRE(first->turn);
  CHECK(rig.keys.waiting_count() == 4);
  rig.reactor.advance_us(150'000);
  CHECK(rig.keys.waiting_count() == 4);
  rig.reactor.advance_us(100'000);
  CHECK(third->error == ErrorCode::kTimedOut);
  CHECK_FALSE(second->error);
  CHECK(rig.keys.waiting_count() == 3);
  rig.reactor.advance_us(100'000);
  CHECK(second->error == ErrorCode::kTimedOut);
  CHECK(rig.keys.waiting_count() == 2);
  first->turn.reset();
  rig.reactor.run_until_idle();
  CHECK(fourth->turn);
}

TEST_CASE(
    "a turn that is passed on leaves its registers, and who waits for the disk waits for it") {
  KeysRig rig;
  const auto first = rig.enter(100'000), second = rig.enter(100'000);
  REQUIRE(first->turn);
  storage::PaxosRegisters changed;
  changed.promised = {5, {}, 1, 0};
  first->turn->registers() = changed;
  PaxosKeys::Unsynced one = first->turn->pass_on();
  rig.reactor.run_until_idle();
  REQUIRE(second->turn);
  CHECK(second->turn->registers() == changed);
  std::vector<std::string> told;
  const auto tell = [&](const char* who) {
    return [&told, who](const Result<void>& synced) {
      told.push_back(std::string(who) + (synced ? "" : " failed"));
    };
  };
  second->turn->when_synced(tell("second"));
  changed.promised.us = 6;
  second->turn->registers() = changed;
  PaxosKeys::Unsynced two = second->turn->pass_on();
  const auto third = rig.enter(100'000);
  REQUIRE(third->turn);
  third->turn->when_synced(tell("third"));
  CHECK(third->turn->registers() == changed);
  third->turn->end();
  CHECK(told.empty());
  one.end({});
  CHECK(told == std::vector<std::string>{"second"});
  CHECK(rig.enter(100'000)->turn->registers() == changed);  // nobody has to read them
  two.end({});
  CHECK(told == std::vector<std::string>{"second", "third"});
  const auto last = rig.enter(100'000);
  REQUIRE(last->turn);
  CHECK(last->turn->registers().empty());  // nobody has written them here
  last->turn->when_synced(tell("last"));
  CHECK(told.back() == "last");
}

TEST_CASE("after a write that failed registers are read anew, and who has seen it is told") {
  KeysRig rig;
  const auto first = rig.enter(100'000), second = rig.enter(100'000);
  storage::PaxosRegisters changed;
  changed.promised = {5, {}, 1, 0};
  first->turn->registers() = changed;
  std::optional<PaxosKeys::Unsynced> one = first->turn->pass_on();
  rig.reactor.run_until_idle();
  REQUIRE(second->turn);
  std::optional<Result<void>> told;
  second->turn->when_synced([&](Result<void> synced) { told = std::move(synced); });
  one.reset();  // as where the store is closed
  REQUIRE(told.has_value());
  CHECK_FALSE(told->has_value());
  CHECK(second->turn->registers() == changed);  // its turn goes on with what it has
  const auto third = rig.enter(100'000);
  second->turn->end();
  rig.reactor.run_until_idle();
  REQUIRE(third->turn);
  CHECK(third->turn->registers().empty());
}

TEST_CASE("a disk that hangs uses up the room for waiting no longer than until the deadlines") {
  KeysRig rig;
  const auto first = rig.enter(100'000);
  REQUIRE(first->turn);
  size_t refused = 0;
  const auto fill = [&] {
    for (int i = 0; i < 10'000; ++i)
      rig.keys.enter(0, {kTable, {}, "key"}, {rig.reactor.now_us() + 1'000'000},
                     [&](Result<PaxosKeys::Turn> turn) {
                       if (!turn && turn.error().code == ErrorCode::kOverloaded) ++refused;
                     });
  };
  fill();
  CHECK(refused == 1);
  rig.reactor.advance_us(2'000'000);
  CHECK(rig.keys.waiting_count() == 1);
  CHECK(rig.enter(60'000'000, "another")->turn);
  fill();
  CHECK(refused == 2);
}

TEST_CASE("those in line leave at their deadlines, and the rest keep their order") {
  tests::ManualReactor reactor;
  ConditionalLine line(reactor);
  std::vector<int> came, late;
  base::TaskGroup tasks;
  const auto wait = [&](int number, int64_t within_us) -> Task<void> {
    return [](ConditionalLine* at, tests::ManualReactor* clock, int self, int64_t until_us,
              std::vector<int>* in, std::vector<int>* out) -> Task<void> {
      Result<ConditionalLine::Place> place = co_await at->enter("key", {until_us});
      (place ? in : out)->push_back(self);
      if (!place) co_return;
      base::OneShot<bool> held;
      clock->call_at(clock->now_us() + 100'000, [setter = held.setter()] { setter.set(true); });
      const bool ended = co_await held;
      (void)ended;
    }(&line, &reactor, number, reactor.now_us() + within_us, &came, &late);
  };
  for (int i = 0; i < 8; ++i) tasks.spawn(wait(i, i % 2 == 0 ? 60'000'000 : 150'000 + i));
  reactor.advance_us(10'000'000);
  CHECK(came == std::vector<int>{0, 1, 2, 4, 6});
  CHECK(late == std::vector<int>{3, 5, 7});
}

}  // namespace tetrad::replication
