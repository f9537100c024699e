// SPDX-License-Identifier: Apache-2.0
// Queues: rows that are dead are read past once. What is done on the loop has a bound of steps, so
// that read_here() answers at all is the count of steps in these tests.
#include "storage/engine/dead_runs.h"

#include <catch2/catch.hpp>

#include "base/random.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

constexpr int kRows = 20'000;
constexpr Deletion kGone{20, kNow_s - 100};

Bytes at(int row) { return fmt::format("{:06}", row); }
Bytes dead_record() { return encoded(record_of({}, {}, kGone)); }

void fill_queue(StoreRig& rig, int first, int end, const Bytes& record) {
  Mutation m = mutation_of(1, "p");
  for (int row = first; row < end; ++row) m.rows.push_back({at(row), record, false});
  REQUIRE(rig.apply(m).has_value());
}
ReadCommand first_row(bool reversed = false) {
  ReadCommand command = partition_read(1, "p");
  command.row_limit = 1;
  command.reversed = reversed;
  return command;
}
/// "" when it takes too many steps for the loop.
std::string here(StoreRig& rig, const ReadCommand& command) {
  CollectingSink sink;
  const auto end = rig.store->read_here(command, sink);
  if (!end) return "";
  REQUIRE(end->has_value());
  const std::string keys = keys_of(sink.result);
  return keys.empty() ? "nothing" : keys;
}

/// As here(), when files that RocksDB has just written may have to be read first.
std::string here_at_last(StoreRig& rig, const ReadCommand& command) {
  std::string keys = here(rig, command);
  for (int i = 0; i < 1000 && keys.empty(); ++i) {
    (void)rig.read_keys(command);
    keys = here(rig, command);
  }
  return keys;
}

}  // namespace

TEST_CASE("the front of a queue is read past once") {
  for (const bool reversed : {false, true}) {
    StoreRig rig(rocks_factory());
    fill_queue(rig, 0, kRows, dead_record());
    fill_queue(rig, reversed ? 0 : kRows, reversed ? 1 : kRows + 1, inserted(30, "v"));
    const ReadCommand command = first_row(reversed);
    const std::string wanted = "p/" + at(reversed ? 0 : kRows);
    CHECK(here(rig, command).empty());
    CHECK(rig.read_keys(command) == wanted);
    CHECK(here_at_last(rig, command) == wanted);
    // Also where more is deleted and written behind it.
    for (int row = 1; row < 100; ++row) {
      fill_queue(rig, kRows + row, kRows + row + 1, inserted(30, "v"));
      if (!reversed) {
        fill_queue(rig, kRows + row - 1, kRows + row, encoded(record_of({}, {}, {40, kNow_s})));
        CHECK(here_at_last(rig, command) == "p/" + at(kRows + row));
      }
    }
  }
}

TEST_CASE("a queue of which nothing is left is no longer read for each answer") {
  StoreRig rig(rocks_factory());
  fill_queue(rig, 0, kRows, dead_record());
  CHECK(rig.read_keys(first_row()).empty());
  CHECK(here_at_last(rig, first_row()) == "nothing");
  CHECK(here_at_last(rig, first_row(true)) == "nothing");
  CHECK(here_at_last(rig, partition_read(1, "p")) == "nothing");
}

TEST_CASE("a row that is written among the dead is seen") {
  for (const CommitLogSync sync : {CommitLogSync::kPeriodic, CommitLogSync::kGroup}) {
    StoreOptions options = small_options();
    options.sync = sync;
    StoreRig rig(rocks_factory(options));
    fill_queue(rig, 0, kRows, dead_record());
    fill_queue(rig, kRows, kRows + 1, inserted(30, "v"));
    CHECK(rig.read_keys(first_row()) == "p/" + at(kRows));
    fill_queue(rig, 9'000, 9'001, inserted(50, "new"));
    CHECK(rig.read_keys(first_row()) == "p/" + at(9'000));
    fill_queue(rig, 9'000, 9'001, encoded(record_of({}, {}, {60, kNow_s})));
    CHECK(rig.read_keys(first_row()) == "p/" + at(kRows));
    // Written while a read is on its way.
    fill_queue(rig, kRows, kRows + 1, encoded(record_of({}, {}, {60, kNow_s})));
    fill_queue(rig, kRows, 2 * kRows, encoded(record_of({}, {}, {60, kNow_s})));
    std::optional<bool> answered;
    rig.store->read(first_row(), base::kNoDeadline, [&](const auto&) { answered = true; });
    fill_queue(rig, kRows + 5, kRows + 6, inserted(70, "new"));
    REQUIRE(rig.comes([&] { return answered.has_value(); }));
    CHECK(rig.read_keys(first_row()) == "p/" + at(kRows + 5));
    CHECK(rig.read_keys(first_row()) == "p/" + at(kRows + 5));
  }
}

TEST_CASE("what has expired for one reader may live for another with a slower clock") {
  StoreRig rig(rocks_factory());
  Mutation m = mutation_of(1, "p");
  for (int row = 0; row < kRows; ++row)
    m.rows.push_back({at(row), encoded(record_of({value_cell(1, 10, "v", 100, kNow_s)})), false});
  REQUIRE(rig.apply(m).has_value());
  ReadCommand later = first_row(), earlier = first_row();
  later.now_s = kNow_s + 1;
  earlier.now_s = kNow_s - 1;
  CHECK(rig.read_keys(later).empty());
  CHECK(here_at_last(rig, later) == "nothing");
  CHECK(rig.read_keys(earlier) == "p/" + at(0));
}

TEST_CASE("keys that a purge has erased are passed over off the loop, and once") {
  StoreRig rig(rocks_factory());
  fill_queue(rig, 0, kRows, dead_record());
  fill_queue(rig, kRows, kRows + 1, inserted(30, "v"));
  SweepCommand command;
  command.incarnation = kTable;
  command.bound = {kNow_s, kNow_s, PurgeBound::kNothing};
  SweepPlace from;
  while (true) {
    std::optional<Result<SweepPage>> page;
    rig.store->sweep(command, from, [&](auto swept) { page = std::move(swept); });
    REQUIRE(rig.comes([&] { return page.has_value(); }));
    REQUIRE(page->has_value());
    if ((*page)->exhausted) break;
    from = (*page)->next;
  }
  CHECK(rig.read_keys(first_row()) == "p/" + at(kRows));
  CHECK(here_at_last(rig, first_row()) == "p/" + at(kRows));
  REQUIRE(rig.flush().has_value());
  CHECK(rig.read_keys(first_row()) == "p/" + at(kRows));
  CHECK(here_at_last(rig, first_row()) == "p/" + at(kRows));
}

TEST_CASE("runs of dead rows are joined and cut as rows are written") {
  base::Random random(3);
  for (int round = 0; round < 500; ++round) {
    DeadRuns runs;
    std::vector<bool> live(30);
    std::vector<std::pair<uint64_t, size_t>> writes;
    uint64_t number = 0;
    runs.watch(5, "p", 0);
    CHECK(runs.knows(5));
    for (int step = 0; step < 60; ++step) {
      const size_t row = random.below(live.size());
      if (random.one_in(3)) {
        live[row] = true;
        runs.note("p", at(static_cast<int>(row)), ++number);
        writes.emplace_back(number, row);
      } else if (random.one_in(4)) {
        live[row] = false;  // deleted: nothing is told
      } else {
        // A read that saw all but the last few writes.
        const uint64_t seen = number - std::min<uint64_t>(number, random.below(4));
        const auto is_dead = [&](size_t i) {
          for (const auto& [of, written] : writes)
            if (of > seen && written == i) return true;  // the read saw nothing there
          return !live[i];
        };
        size_t end = row;
        while (end < live.size() && is_dead(end)) ++end;
        if (end > row)
          runs.keep("p", {at(static_cast<int>(row)), at(static_cast<int>(end)), 100}, seen);
      }
      const DeadRunList* known = runs.find("p");
      for (size_t i = 0; i < live.size() && known != nullptr; ++i)
        if (dead_run_at(*known, at(static_cast<int>(i)), 100) != nullptr) CHECK_FALSE(live[i]);
    }
  }
  DeadRuns many;
  for (int i = 0; i < 5000; ++i) {
    many.watch(static_cast<uint16_t>(i % 60'000), fmt::format("p{}", i), 0);
    many.keep(fmt::format("p{}", i), {"a", "b", 0}, 0);
  }
  CHECK(many.size() <= 1024);
  CHECK_FALSE(many.knows(17));
  CHECK(many.find("p4999") != nullptr);
}

}  // namespace tetrad::storage
