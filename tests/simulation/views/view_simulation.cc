// SPDX-License-Identifier: Apache-2.0
// Materialized views on a simulated cluster under faults: messages lost and late, nodes killed,
// isolated and joined, power cuts (where every write is synced), splits of the base and of views,
// tablets that grow from one member to four, TRUNCATE, CREATE MATERIALIZED VIEW while the base is
// written, repairs and sweeps all the time. What is checked: tasks are over a minute after the last
// fault, and each view shows then what its query over the base shows (where a write that failed has
// left the base's members different, once they were made equal); a node that compares the view
// with its base finds that too, and finds and mends what is spoilt. In three seeds of eight the views
// have a condition. While a cluster has one node its views show each write that is acknowledged.
//
// usage: view_simulation [--seeds A..B] [--mutant NAME] [--verbose]
//        view_simulation --mutants [SEEDS [NAME]]   each known mistake until a seed catches it
// Every fiftieth seed runs twice and must take the same steps.
#include <string_view>

#include "tests/simulation/support/seed_program.h"
#include "tests/simulation/views/view_cluster.h"

namespace tetrad::simulation {
namespace {

constexpr NamedMutant kMutants[] = {
    TETRAD_MUTANT_ROW(view_stamp_unheeded),    TETRAD_MUTANT_ROW(view_names_left_out),
    TETRAD_MUTANT_ROW(view_ranges_forgotten),  TETRAD_MUTANT_ROW(view_tasks_not_of_merged),
    TETRAD_MUTANT_ROW(view_unequal_taken),     TETRAD_MUTANT_ROW(view_read_by_one),
    TETRAD_MUTANT_ROW(view_old_names_left),    TETRAD_MUTANT_ROW(view_own_unawaited),
    TETRAD_MUTANT_ROW(view_cursor_past_notes),
};

struct Totals {
  void add(ViewCluster& simulation) {
    writes += simulation.writes();
    executed += simulation.executed();
    compared += simulation.rows_compared();
    again += simulation.compared_again();
  }
  void print() const {
    std::printf(
        "%llu writes, %llu tasks executed in last lives, %llu rows of views compared; "
        "the base made equal first %llu times\n",
        static_cast<unsigned long long>(writes), static_cast<unsigned long long>(executed),
        static_cast<unsigned long long>(compared), static_cast<unsigned long long>(again));
  }
  uint64_t writes = 0, executed = 0, compared = 0, again = 0;
};

}  // namespace
}  // namespace tetrad::simulation

int main(int argc, char** argv) {
  using namespace tetrad::simulation;
  ViewCluster::compares_once = argc > 1 && std::string_view(argv[1]).starts_with("--mutant");
  return SeedProgram<ViewCluster, Totals>("view_simulation", kMutants, 100).main(argc, argv);
}
