// SPDX-License-Identifier: Apache-2.0
// Writes that had to wait: their guard is asked again before they go to RocksDB.
#include "storage/engine/write_guard.h"

#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kLongUs = 60'000'000;

struct Gate final : WriteGate {
  int emptied = 0;
  void on_empty() override { ++emptied; }
};
/// The owner of a gate.
struct GateOwner {
  Gate& gate = *new Gate;
  ~GateOwner() { gate.let_go(); }
  WriteGuard guard(base::MonotonicUs deadline_us = WriteGuard::kNever) {
    return {WritePass(gate), deadline_us};
  }
};

struct Answer {
  std::optional<Result<void>> result;
  Store::ApplyCallback take() {
    return [this](Result<void> r) { result = std::move(r); };
  }
  bool is(ErrorCode code) const { return result && !*result && result->error().code == code; }
  bool is_ok() const { return result && result->has_value(); }
};

Mutation row(BytesView clustering_key) {
  return row_mutation(1, "p", clustering_key, inserted(5, "v"));
}

}  // namespace

TEST_CASE("a store does not take a write that its guard forbids, and gives the pass back") {
  for (const auto& factory : {memory_factory(), rocks_factory()}) {
    StoreRig rig(factory);
    GateOwner owner;
    Answer fine, late, stale;
    rig.store->apply(row("a"), owner.guard(rig.reactor.now_us() + 1), fine.take());
    rig.store->apply(row("b"), owner.guard(rig.reactor.now_us()), late.take());
    WriteGuard closed_meanwhile = owner.guard();
    CHECK(owner.gate.out() == 2);
    owner.gate.close();
    rig.store->apply_merged(row("c"), std::move(closed_meanwhile), stale.take());
    CHECK(late.is(ErrorCode::kTimedOut));
    CHECK(stale.is(ErrorCode::kStaleEpoch));
    rig.reactor.run_until_idle();
    CHECK(fine.is_ok());  // it was let in, and did not have to wait
    CHECK(owner.gate.out() == 0);
    CHECK(owner.gate.emptied == 1);
    CHECK(rig.read_keys(partition_read(1, "p")) == "p/a");
  }
}

TEST_CASE("writes that waited for the disk are cut out of their batch") {
  StoreOptions options = small_options();
  options.sync = CommitLogSync::kGroup;
  StoreRig rig(rocks_factory(options));
  GateOwner owner, closing;
  const base::MonotonicUs soon_us = rig.reactor.now_us() + 50'000;
  std::vector<Answer> answers(7);
  rig.pool.hold();
  rig.store->apply(row("in flight"), owner.guard(soon_us), answers[0].take());
  rig.reactor.run_turn();
  Mutation newer_schema = row("stale");
  newer_schema.schema_version = {2};
  newer_schema.rows.push_back({"stale too", inserted(5, "v"), false});
  rig.store->apply(newer_schema, closing.guard(), answers[1].take());
  rig.store->apply(row("kept"), owner.guard(), answers[2].take());
  rig.store->apply(row("late"), owner.guard(soon_us), answers[3].take());
  rig.store->apply(row("kept too"), owner.guard(kLongUs), answers[4].take());
  rig.store->apply(row("both"), closing.guard(soon_us), answers[5].take());
  rig.reactor.run_turn();
  rig.store->apply(row("without"), answers[6].take());
  closing.gate.close();

  rig.reactor.advance_us(100'000);
  // Told at the deadline; but what is on its way to the disk keeps its pass.
  CHECK(answers[0].is(ErrorCode::kTimedOut));
  CHECK(answers[3].is(ErrorCode::kTimedOut));
  CHECK(answers[5].is(ErrorCode::kTimedOut));
  CHECK_FALSE(answers[1].result.has_value());
  CHECK(owner.gate.out() == 4);

  rig.pool.release();
  rig.reactor.run_until_idle();
  CHECK(answers[1].is(ErrorCode::kStaleEpoch));
  CHECK(answers[2].is_ok());
  CHECK(answers[4].is_ok());
  CHECK(answers[6].is_ok());
  CHECK(owner.gate.out() == 0);
  CHECK(closing.gate.out() == 0);
  CHECK(rig.read_keys(partition_read(1, "p")) == "p/in flight p/kept p/kept too p/without");
  rig.close();
  rig.open();
  CHECK(rig.read_keys(partition_read(1, "p")) == "p/in flight p/kept p/kept too p/without");
}

TEST_CASE("what waits when a store is closed is asked for its guard, too") {
  StoreOptions options = small_options();
  options.sync = CommitLogSync::kGroup;
  StoreRig rig(rocks_factory(options));
  GateOwner owner;
  Answer first, second;
  rig.pool.hold();
  rig.store->apply(row("a"), owner.guard(), first.take());
  rig.reactor.run_turn();
  rig.store->apply(row("b"), owner.guard(), second.take());
  rig.reactor.run_turn();
  owner.gate.close();
  rig.close();
  CHECK(first.is(ErrorCode::kStaleEpoch));  // the commit thread had not begun with it
  CHECK(second.is(ErrorCode::kStaleEpoch));
  CHECK(owner.gate.out() == 0);
  rig.open();
  CHECK(rig.read_keys(partition_read(1, "p")) == "");
}

}  // namespace tetrad::storage
