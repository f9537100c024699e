// SPDX-License-Identifier: Apache-2.0
// When writes of Paxos registers are told, and what becomes of those that have to wait.
#include "base/data_mutants.h"
#include "storage/engine/write_guard.h"
#include "storage/row/paxos_registers.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

struct Gate final : WriteGate {};
struct GateOwner {
  Gate& gate = *new Gate;
  ~GateOwner() { gate.let_go(); }
  WriteGuard guard() { return {WritePass(gate), WriteGuard::kNever}; }
};

struct Answer {
  std::optional<Result<void>> result;
  Store::ApplyCallback take() {
    return [this](Result<void> r) { result = std::move(r); };
  }
  bool is(ErrorCode code) const { return result && !*result && result->error().code == code; }
  bool is_ok() const { return result && result->has_value(); }
};

PaxosRegisters promised(int64_t us) {
  PaxosRegisters registers;
  registers.promised = {us, {}, 1, 0};
  return registers;
}
PartitionName partition(int64_t token) { return {kTable, position_of(token), "p"}; }

PaxosRegisters read(StoreRig& rig, int64_t token) {
  std::optional<Result<PaxosRegisters>> answer;
  rig.store->read_registers(partition(token), base::kNoDeadline,
                            [&](auto r) { answer = std::move(r); });
  REQUIRE(rig.comes([&] { return answer.has_value(); }));
  REQUIRE(answer->has_value());
  return **answer;
}

}  // namespace

TEST_CASE("registers are told when they are on the disk, and those of a turn share a sync") {
  StoreRig rig(rocks_factory());
  std::vector<Answer> answers(10);
  Answer unsynced;
  const auto write_all = [&](int64_t us) {
    for (size_t i = 0; i < answers.size(); ++i) {
      answers[i].result.reset();
      rig.store->write_registers({partition(static_cast<int64_t>(i)), promised(us)}, {},
                                 answers[i].take());
    }
  };
  const auto told = [&] {
    return std::ranges::count_if(answers, [](const Answer& a) { return a.is_ok(); });
  };
  const uint64_t before = rig.pool.run_count();
  write_all(5);
  REQUIRE(rig.comes([&] { return told() == 10; }));
  CHECK(rig.pool.run_count() == before + 1);
  CHECK(rig.store->sync_numbers().durable == rig.store->sync_numbers().written);

  rig.pool.hold();  // the disk does not sync
  write_all(6);
  const PaxosRegisters settled = promised(7);
  rig.store->write_registers({partition(20), settled, nullptr, false}, {}, unsynced.take());
  rig.reactor.run_until_idle();
  CHECK(told() == 0);
  CHECK(unsynced.is_ok());
  CHECK(read(rig, 20) == settled);
  // Written but not synced: nobody is told of it.
  std::optional<Result<PaxosRegisters>> known;
  rig.store->read_registers(partition(3), base::kNoDeadline, [&](auto r) { known = std::move(r); });
  Answer second;
  rig.store->write_registers({partition(3), promised(8)}, {}, second.take());
  CHECK(second.is(ErrorCode::kOverloaded));
  rig.reactor.run_until_idle();
  CHECK(!known);
  rig.pool.release();
  REQUIRE(rig.comes([&] { return told() == 10 && known; }));
  CHECK(*known == promised(6));
}

TEST_CASE(
    "the next write of registers may come when the one before is seen, and is synced after it") {
  for (const auto& factory : {memory_factory(), rocks_factory()}) {
    StoreRig rig(factory);
    rig.pool.hold();  // the disk does not sync
    Answer first, second, early;
    bool seen = false;
    const Mutation rows = row_mutation(1, "p", "a", inserted(5, "v"), true);
    PaxosRegisters commit = promised(5);
    commit.committed = Proposal{commit.promised, commit.promised, {}, "v"};
    rig.store->write_registers(
        {partition(1), commit, &rows}, {}, [&] { seen = true; }, first.take());
    CHECK(!seen);
    rig.store->write_registers({partition(1), promised(6)}, {}, early.take());
    CHECK(early.is(ErrorCode::kOverloaded));
    rig.reactor.run_until_idle();
    CHECK(seen);
    CHECK(!first.result);
    CHECK(rig.read_keys(range_read()) == "p/a");
    rig.store->write_registers({partition(1), promised(7)}, {}, second.take());
    CHECK(!second.result);
    Answer third;
    rig.store->write_registers({partition(1), promised(8)}, {}, third.take());
    CHECK(third.is(ErrorCode::kOverloaded));  // the second bars it: it does not say when it is seen
    std::optional<Result<PaxosRegisters>> known;
    rig.store->read_registers(partition(1), base::kNoDeadline,
                              [&](auto r) { known = std::move(r); });
    rig.reactor.run_until_idle();
    CHECK(!second.result);
    CHECK(!known);
    rig.pool.release();
    REQUIRE(rig.comes([&] { return second.result && known; }));
    CHECK(first.is_ok());
    CHECK(second.is_ok());
    CHECK(*known == promised(7));
    Answer last;
    rig.store->write_registers({partition(1), promised(9)}, {}, last.take());
    REQUIRE(rig.comes([&] { return last.result.has_value(); }));
    CHECK(last.is_ok());
  }
}

TEST_CASE("where a write is seen when it is synced nobody is told earlier") {
  StoreOptions options = small_options();
  options.sync = CommitLogSync::kGroup;
  StoreRig rig(rocks_factory(options));
  Answer answer;
  bool seen = false;
  rig.store->write_registers(
      {partition(1), promised(5)}, {}, [&] { seen = true; }, answer.take());
  REQUIRE(rig.comes([&] { return answer.result.has_value(); }));
  CHECK(answer.is_ok());
  CHECK(!seen);
}

TEST_CASE("a promise that is told before it is synced is found out") {
  base::data_mutants.registers_unsynced = true;
  StoreRig rig(rocks_factory());
  rig.pool.hold();
  Answer answer;
  rig.store->write_registers({partition(1), promised(5)}, {}, answer.take());
  rig.reactor.run_until_idle();
  base::data_mutants = {};
  CHECK(answer.is_ok());
}

TEST_CASE("registers that waited are cut out with their rows, and can be written again") {
  StoreOptions options = small_options();
  options.sync = CommitLogSync::kGroup;
  StoreRig rig(rocks_factory(options));
  GateOwner open, closing;
  std::vector<Answer> answers(5);
  rig.pool.hold();
  rig.store->apply(row_mutation(9, "p", "in flight", inserted(5, "v")), open.guard(),
                   answers[0].take());
  rig.reactor.run_turn();
  PaxosRegisters commit = promised(50);
  const Mutation rows = row_mutation(1, "p", "a", inserted(50, "v"), true);
  commit.committed = Proposal{commit.promised, commit.promised, {}, "v"};
  rig.store->write_registers({partition(1), commit, &rows}, closing.guard(), answers[1].take());
  rig.store->write_registers({partition(2), promised(60)}, open.guard(), answers[2].take());
  Mutation import = row_mutation(3, "p", "a", inserted(70, "v"));
  encode_registers(promised(70), import.registers);
  rig.store->apply_merged(import, closing.guard(), answers[3].take());
  std::optional<Result<PaxosRegisters>> waits;
  rig.store->read_registers(partition(1), base::kNoDeadline, [&](auto r) { waits = std::move(r); });
  rig.store->write_registers({partition(3), promised(80)}, open.guard(), answers[4].take());
  CHECK(answers[4].is(ErrorCode::kOverloaded));  // the import is under way
  rig.reactor.run_turn();
  closing.gate.close();
  rig.pool.release();
  REQUIRE(rig.comes([&] { return waits && answers[2].result; }));
  CHECK(answers[0].is_ok());
  CHECK(answers[1].is(ErrorCode::kStaleEpoch));
  CHECK(answers[2].is_ok());
  CHECK(answers[3].is(ErrorCode::kStaleEpoch));
  CHECK(*waits == PaxosRegisters());
  CHECK(closing.gate.out() == 0);
  CHECK(rig.read_keys(range_read()) == "p/in flight");
  CHECK(read(rig, 2) == promised(60));
  CHECK(read(rig, 3).empty());
  for (const int64_t token : {1, 3}) {
    Answer again;
    rig.store->write_registers({partition(token), promised(90)}, open.guard(), again.take());
    REQUIRE(rig.comes([&] { return again.result.has_value(); }));
    CHECK(again.is_ok());
    CHECK(read(rig, token) == promised(90));
  }
  CHECK(open.gate.out() == 0);
}

TEST_CASE("registers are refused by a guard, and of a store that is closed or refuses writes") {
  for (const auto& factory : {memory_factory(), rocks_factory()}) {
    StoreRig rig(factory);
    GateOwner owner;
    WriteGuard closed = owner.guard();
    owner.gate.close();
    Answer stale, late, after;
    rig.store->write_registers({partition(1), promised(5)}, std::move(closed), stale.take());
    rig.store->write_registers({partition(1), promised(5)}, {{}, rig.reactor.now_us()},
                               late.take());
    CHECK(stale.is(ErrorCode::kStaleEpoch));
    CHECK(late.is(ErrorCode::kTimedOut));
    CHECK(read(rig, 1).empty());
    REQUIRE(rig.store->close());
    rig.store->write_registers({partition(1), promised(5)}, {}, after.take());
    CHECK(after.is(ErrorCode::kCancelled));
    rig.crash();
    rig.open();
    CHECK(read(rig, 1).empty());
  }
}

}  // namespace tetrad::storage
