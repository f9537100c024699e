// SPDX-License-Identifier: Apache-2.0
// While a tablet grows from one member to four, writes that failed come late, as hints do, to its
// first member alone. What a quorum read has seen of them, every later one sees.
#include <array>

#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kKeys = 6;

struct Reader {
  bool busy = false;
  int64_t seen = 0;  // the newest
  std::string wrong;
};

Task<void> read_number(SimNode* node, TableIncarnation incarnation, std::string key,
                       Reader* reader) {
  RowSeen row;
  co_await read_row(node, incarnation, key, ConsistencyLevel::kQuorum, &row);
  reader->busy = false;
  if (!row.answered) co_return;
  const int64_t number = row.value ? std::stoll(*row.value) : 0;
  if (number < reader->seen)
    reader->wrong = fmt::format("a quorum read of {} saw {} although {} was read before", key,
                                number, reader->seen);
  reader->seen = number;
}

}  // namespace

ScenarioResult run_late(uint64_t seed) {
  base::Random random(seed * 4211 + 7);
  SimCluster cluster(seed, 1);
  std::array<Reader, kKeys> readers;
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const auto first = cluster[0].state()->tables.begin()->second;
    const TableIncarnation incarnation = first->incarnation;
    const StoreAddress home = first->tablets.tablets().front().replicas.front();
    for (int i = 0; i < 3; ++i) cluster.add().start();
    cluster.network().options.slow_one_in = static_cast<uint32_t>(2 + random.below(10));

    int64_t number = 0;
    const auto grown = [&] {
      const auto state = cluster[0].state();
      for (const auto& tablet : state->table(incarnation)->tablets.tablets())
        if (tablet.stage != partitioner::TabletStage::kNormal || tablet.replicas.size() != 4)
          return false;
      return true;
    };
    const auto step = [&](bool writes) {
      const size_t i = random.below(kKeys);
      const std::string key = "key" + std::to_string(i);
      if (writes && random.one_in(3)) {
        ++number;
        cluster[0]
            .store(home.store)
            .apply(row_change(incarnation, key, number, std::to_string(number), 1),
                   [](Result<void>) {});
      }
      SimNode* via = ready_node(cluster, random.below(cluster.size()));
      if (!readers[i].busy && via->state()->table(incarnation) != nullptr) {
        readers[i].busy = true;
        via->spawn(read_number(via, incarnation, key, &readers[i]));
      }
      cluster.world().run_for(static_cast<int64_t>(random.below(20'000)));
    };
    for (int n = 0; n < 4'000 && !grown(); ++n) step(true);
    if (!grown()) return "the tablets do not grow";
    for (int n = 0; n < 60; ++n) step(false);
    for (const Reader& reader : readers)
      if (!reader.wrong.empty()) return reader.wrong;
    return "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
