// SPDX-License-Identifier: Apache-2.0
// While tablets grow from three members to four, members are asked for what they hold, in the name
// of the newest stage that any node knows. Who gives it has heard of that stage: it takes no more
// writes of the one before (rule 10).
#include <algorithm>

#include "base/byte_io.h"
#include "replication/tablets/move_runner.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using replication::TabletEpoch;

struct Asked {
  bool busy = false;
  uint64_t given = 0;
  std::string wrong;
};

SetEpoch epoch_at(SimNode& node, const TabletEpoch& what) {
  const auto state = node.state();
  const auto* table = state->table(what.incarnation);
  if (table == nullptr) return {};
  for (const auto& tablet : table->tablets.tablets())
    if (tablet.id == what.tablet) return tablet.epoch;
  return {};
}

Task<void> ask_source(SimNode* via, SimNode* source, uint32_t store, TabletEpoch what,
                      Asked* asked) {
  Bytes request = replication::encode_tablet_epoch(what);
  base::ByteWriter writer(request);
  writer.bytes("");
  writer.varint(1000);
  const base::Deadline deadline{via->reactor().now_us() + 1'000'000};
  auto page = co_await via->node().rpc().ask(
      source->node().self(), store, replication::Verb::kStreamRange, std::move(request), deadline);
  asked->busy = false;
  if (!page) co_return;
  ++asked->given;
  const SetEpoch known = epoch_at(*source, what);
  if (known < what.epoch)
    asked->wrong = fmt::format("a member at epoch {} gave what it holds in the name of epoch {}",
                               known.value, what.epoch.value);
}

}  // namespace

ScenarioResult run_source(uint64_t seed) {
  base::Random random(seed * 7127 + 3);
  SimCluster cluster(seed, 3);
  Asked asked;
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    const TableIncarnation incarnation = cluster[0].state()->tables.begin()->second->incarnation;
    cluster.add().start();
    cluster.network().options.slow_one_in = static_cast<uint32_t>(2 + random.below(4));
    const auto grown = [&] {
      const auto& tablets = cluster[0].state()->table(incarnation)->tablets.tablets();
      return std::all_of(tablets.begin(), tablets.end(), [](const auto& tablet) {
        return tablet.stage == partitioner::TabletStage::kNormal && tablet.replicas.size() == 4;
      });
    };
    for (int n = 0; n < 20'000 && !grown(); ++n) {
      cluster.world().run_for(static_cast<int64_t>(random.below(5'000)));
      if (!asked.wrong.empty()) return asked.wrong;
      if (asked.busy) continue;
      const auto& tablets = cluster[0].state()->table(incarnation)->tablets.tablets();
      const auto& tablet = tablets[random.below(tablets.size())];
      TabletEpoch what{incarnation, tablet.id, tablet.epoch};
      for (size_t i = 0; i < 3; ++i) what.epoch = std::max(what.epoch, epoch_at(cluster[i], what));
      const StoreAddress member = tablet.replicas[random.below(tablet.replicas.size())];
      for (size_t i = 0; i < 3; ++i) {
        if (cluster[i].node().self() != member.host) continue;
        asked.busy = true;
        SimNode* via = &cluster[random.below(3)];
        via->spawn(ask_source(via, &cluster[i], member.store, what, &asked));
        break;
      }
    }
    if (!grown()) return "the tablets do not grow";
    return asked.given != 0 ? "" : "no member gave anything";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
