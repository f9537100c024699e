// SPDX-License-Identifier: Apache-2.0
// Counters on a simulated cluster under faults: messages lost and late, nodes killed, isolated,
// paused and replaced, power cuts in both sync modes, stores that stand still or fail, splits,
// tablets that grow from one member to four, repairs all the time. Every read must lie between what
// is certain and what may be, and no read goes back behind another (counter_cluster.h); at the end
// all members are equal.
//
// usage: counter_simulation [--seeds A..B] [--mutant NAME] [--verbose]
//        counter_simulation --mutants [SEEDS [NAME]]   each known mistake until a seed catches
//        it
// Every fiftieth seed runs twice and must take the same steps.
#include "tests/simulation/counters/counter_cluster.h"
#include "tests/simulation/support/seed_program.h"

namespace tetrad::simulation {
namespace {

constexpr NamedMutant kMutants[] = {
    TETRAD_MUTANT_ROW(counter_second_leader),
    TETRAD_MUTANT_ROW(counter_group_overlaps),
    TETRAD_MUTANT_ROW(counter_acked_early),
};

struct Totals {
  void add(const CounterCluster& simulation) {
    const auto counts = simulation.counts();
    all.certain += counts.certain;
    all.unknown += counts.unknown;
    all.nothing += counts.nothing;
    all.reads += counts.reads;
  }
  void print() const {
    std::printf("%zu increments certain, %zu unknown, %zu without effect; %zu reads\n", all.certain,
                all.unknown, all.nothing, all.reads);
  }
  CounterCluster::Counts all;
};

}  // namespace
}  // namespace tetrad::simulation

int main(int argc, char** argv) {
  using namespace tetrad::simulation;
  return SeedProgram<CounterCluster, Totals>("counter_simulation", kMutants, 100).main(argc, argv);
}
