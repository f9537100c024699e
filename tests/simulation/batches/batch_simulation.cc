// SPDX-License-Identifier: Apache-2.0
// Logged batches on a simulated cluster under faults: messages lost and late, nodes killed,
// isolated and paused, one lost for ever with a coordinator at the same moment, power cuts, clocks
// that step, splits, tablets that grow, a truncated table, and deletions that are purged. In the
// end each batch must be on all of its partitions or on none; on all when it was acknowledged or
// told to be written later, also on a table that was truncated before it began; on none when it was refused, or deleted. Of what all batches of a group
// write, the same one's must be the newest everywhere.
//
// usage: batch_simulation [--seeds A..B] [--mutant NAME] [--verbose]
//        batch_simulation --mutants [SEEDS [NAME]]   each known mistake until a seed catches
//        it
// Every fiftieth seed runs twice and must take the same steps.
#include "tests/simulation/batches/batch_cluster.h"
#include "tests/simulation/support/seed_program.h"

namespace tetrad::simulation {
namespace {

constexpr NamedMutant kMutants[] = {
    TETRAD_MUTANT_ROW(batch_parts_first),
    {"batch_one_holder", &base::DataMutants::batch_one_holder, 0, 733},
    TETRAD_MUTANT_ROW(batch_done_at_hints),
    {"batch_restamp_unlogged", &base::DataMutants::batch_restamp_unlogged, 0, 265},
    TETRAD_MUTANT_ROW(batch_horizon_past),
    TETRAD_MUTANT_ROW(batch_truncated_part),
};

struct Totals {
  void add(BatchCluster& simulation) {
    const auto counts = simulation.counts();
    all.acknowledged += counts.acknowledged;
    all.told += counts.told;
    all.unknown += counts.unknown;
    all.nothing += counts.nothing;
    all.replayed += counts.replayed;
    all.restored += counts.restored;
  }
  void print() const {
    std::printf(
        "%zu batches acknowledged, %zu told to come, %zu unknown, %zu refused; %zu replays, "
        "%zu later versions\n",
        all.acknowledged, all.told, all.unknown, all.nothing, all.replayed, all.restored);
  }
  BatchCluster::Counts all;
};

}  // namespace
}  // namespace tetrad::simulation

int main(int argc, char** argv) {
  using namespace tetrad::simulation;
  return SeedProgram<BatchCluster, Totals>("batch_simulation", kMutants, 300).main(argc, argv);
}
