// SPDX-License-Identifier: Apache-2.0
// The disk under a store does not answer for seconds. Every write ends at its deadline all the
// same, also where the store is the coordinator's own, and one that was told to have failed where
// no other node has it is not done later.
#include <map>

#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kWithinUs = 500'000;
/// A coordinator looks for late answers every so often.
constexpr int64_t kGraceUs = 200'000;

struct Attempt {
  base::MonotonicUs begun_us = 0, ended_us = 0;  // ended 0: not yet
  bool succeeded = false;
};

Task<void> attempt_write(SimNode* node, TableIncarnation incarnation, RowWrite write,
                         Attempt* attempt) {
  World* const world = &node->world();
  attempt->begun_us = world->now_us();
  auto written = co_await try_write(node, incarnation, std::move(write));
  attempt->ended_us = world->now_us();
  attempt->succeeded = written.has_value();
}

}  // namespace

ScenarioResult run_stall(uint64_t seed) {
  base::Random random(seed * 9176 + 3);
  SimCluster cluster(seed, 1 + seed % 4, 1, 1 + seed / 4 % 2);
  for (size_t i = 0; i < cluster.size(); ++i)
    if (seed % 5 == 0) cluster[i].sync = storage::CommitLogSync::kGroup;
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    cluster.world().run_for(5'000'000);
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    const size_t victim = random.below(cluster.size());
    StoreFaults& faults = cluster[victim].faults(0);
    (random.one_in(2) ? faults.parks_writes : faults.hangs) = true;
    const int64_t stall_us = 1'000'000 + static_cast<int64_t>(random.below(3'000'000));
    const base::MonotonicUs over_us = cluster.world().now_us() + stall_us;

    std::map<std::string, Attempt> attempts;
    const auto look = [&](bool at_end) -> std::string {
      for (const auto& [key, attempt] : attempts) {
        const auto until_us = attempt.ended_us != 0 ? attempt.ended_us : cluster.world().now_us();
        const bool late = until_us > attempt.begun_us + kWithinUs + kGraceUs;
        if (late || (at_end && attempt.ended_us == 0))
          return fmt::format("a write of {} has no answer {} ms after its deadline", key,
                             (until_us - attempt.begun_us - kWithinUs) / 1000);
      }
      return "";
    };
    while (cluster.world().now_us() < over_us - kWithinUs - kGraceUs) {
      // Its own writes, and those that must have it.
      SimNode& via = cluster[random.one_in(2) ? victim : random.below(cluster.size())];
      const std::string key = "key" + std::to_string(attempts.size());
      RowWrite write{.key = key, .value = key, .within_us = kWithinUs};
      if (random.one_in(2)) write.level = ConsistencyLevel::kAll;
      via.spawn(attempt_write(&via, incarnation, std::move(write), &attempts[key]));
      cluster.world().run_for(static_cast<int64_t>(random.below(40'000)));
      if (auto wrong = look(false); !wrong.empty()) return wrong;
    }
    cluster.world().run_for(over_us - cluster.world().now_us());
    if (auto wrong = look(true); !wrong.empty()) return wrong;
    if (faults.figures.parked == 0) return "";  // shards: the tablet is another store's
    faults.heal();
    cluster.world().run_for(2'000'000);
    if (cluster.size() > 1) return "";  // others had it, and may bring it
    for (const auto& [key, attempt] : attempts) {
      if (attempt.succeeded) continue;
      auto held = cluster[0].peek(0, row_read(incarnation, key, 1));
      if (!held) return "the store does not answer";
      if (value_of(*held)) return fmt::format("{} was done after its deadline", key);
    }
    return "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
