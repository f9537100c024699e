// SPDX-License-Identifier: Apache-2.0
// Reads by an index on a simulated cluster under faults: messages lost and late, nodes killed,
// isolated and joined, power cuts (where every write is synced), splits, tablets that grow from one
// member to four, TRUNCATE, CREATE INDEX while it is written, repairs and sweeps all the time. What
// is checked:
//   - a page shows what matches and nothing else, as the history of writes allows (index_history.h);
//   - in each store that has built an index it answers what a filter over the store's rows answers,
//     at any moment;
//   - after the faults all stores build it, and no claim stays that no row bears out.
//
// usage: index_simulation [--seeds A..B] [--scenario NAME] [--mutant NAME] [--verbose]
//        index_simulation --mutants [SEEDS [NAME]]   each known mistake until a seed catches
//        it
// Every fiftieth seed runs twice and must take the same steps.
#include "tests/simulation/indexes/index_cluster.h"
#include "tests/simulation/support/seed_program.h"

namespace tetrad::simulation {
namespace {

// Caught where three nodes are.
constexpr auto kThree = static_cast<size_t>(IndexScenario::kThreeMembers);
#define IN_THREE(name) \
  { #name, &base::DataMutants::name, kThree }
constexpr NamedMutant kMutants[] = {
    TETRAD_MUTANT_ROW(claims_of_puts_only),
    TETRAD_MUTANT_ROW(claims_not_of_merged),
    TETRAD_MUTANT_ROW(claims_not_kept),
    TETRAD_MUTANT_ROW(claim_gone_unwatched),
    TETRAD_MUTANT_ROW(claim_expires_by_clock),
    IN_THREE(claim_gone_early),
    IN_THREE(disproved_not_named),
    TETRAD_MUTANT_ROW(index_from_one),
    TETRAD_MUTANT_ROW(index_rows_from_one),
    TETRAD_MUTANT_ROW(index_pages_by_value),
    TETRAD_MUTANT_ROW(unbuilt_answers),
};
#undef IN_THREE

struct Totals {
  void add(IndexCluster& simulation) {
    pages += simulation.history().pages();
    shown += simulation.history().shown();
    mismatches += simulation.mismatches();
    dropped += simulation.dropped();
  }
  void print() const {
    std::printf(
        "%llu pages, %llu places shown, %llu mismatches and %llu claims dropped at the end\n",
        static_cast<unsigned long long>(pages), static_cast<unsigned long long>(shown),
        static_cast<unsigned long long>(mismatches), static_cast<unsigned long long>(dropped));
  }
  uint64_t pages = 0, shown = 0, mismatches = 0, dropped = 0;
};

}  // namespace
}  // namespace tetrad::simulation

int main(int argc, char** argv) {
  using namespace tetrad::simulation;
  return SeedProgram<IndexCluster, Totals>("index_simulation", kMutants, 100).main(argc, argv);
}
