// SPDX-License-Identifier: Apache-2.0
// Conditional statements, batches of them over two rows, and SERIAL reads on a simulated cluster
// under faults: messages lost, late and held back, nodes killed, isolated and paused, coordinators
// that end in the midst of a round, power cuts in both modes of sync, stores that stand still,
// clocks that step, splits, tablets that grow from one member to four and move to any other
// members, TRUNCATE, repair and purge every second. Rows are of one partition or of several. Every
// history of a row must be linearizable, with its QUORUM reads and plain writes; what was answered
// as unknown must have happened, or never happen, when a later SERIAL or conditional operation
// takes effect (linearizability.h). What was answered as not applied must not be seen.
//
// usage: conditional_simulation [--seeds A..B] [--mutant NAME] [--verbose]
//        conditional_simulation --scenarios   courses of events that seeds hardly ever make
//        conditional_simulation --mutants [SEEDS [NAME]]   each known mistake until a seed catches
//        it
// Every fiftieth seed runs twice and must take the same steps.
#include <cstring>
#include <string>

#include "base/data_mutants.h"
#include "tests/simulation/conditional/conditional_cluster.h"
#include "tests/simulation/conditional/conditional_scenarios.h"

namespace tetrad::simulation {
namespace {

struct Mutant {
  const char* name;
  bool base::DataMutants::*flag;
};

#define TETRAD_MUTANT_ROW(name) \
  { #name, &base::DataMutants::name }
constexpr Mutant kMutants[] = {
    TETRAD_MUTANT_ROW(lwt_read_not_accepted),   TETRAD_MUTANT_ROW(lwt_failure_not_accepted),
    TETRAD_MUTANT_ROW(lwt_promises_few),        TETRAD_MUTANT_ROW(lwt_accepts_few),
    TETRAD_MUTANT_ROW(lwt_one_tally),           TETRAD_MUTANT_ROW(lwt_new_set_late),
    TETRAD_MUTANT_ROW(lwt_state_not_streamed),  TETRAD_MUTANT_ROW(lwt_promise_unsynced),
    TETRAD_MUTANT_ROW(lwt_accept_unsynced),     TETRAD_MUTANT_ROW(lwt_rows_before_promise),
    TETRAD_MUTANT_ROW(lwt_commit_below_w),      TETRAD_MUTANT_ROW(lwt_open_committed),
    TETRAD_MUTANT_ROW(lwt_ballots_pruned),      TETRAD_MUTANT_ROW(lwt_evaluated_twice),
    TETRAD_MUTANT_ROW(lwt_unavailable_late),    TETRAD_MUTANT_ROW(lwt_applied_at_decision),
    TETRAD_MUTANT_ROW(lwt_follows_wrong),       TETRAD_MUTANT_ROW(lwt_accept_other_epoch),
    TETRAD_MUTANT_ROW(lwt_not_decided_final),   TETRAD_MUTANT_ROW(lwt_merge_not_written),
    TETRAD_MUTANT_ROW(lwt_ballot_low),          TETRAD_MUTANT_ROW(lwt_completion_restamped),
    TETRAD_MUTANT_ROW(lwt_commit_unsynced),     TETRAD_MUTANT_ROW(lwt_rows_too_early),
    TETRAD_MUTANT_ROW(lwt_followed_forgotten),  TETRAD_MUTANT_ROW(behind_reads),
    TETRAD_MUTANT_ROW(lwt_late_commit_ignored), TETRAD_MUTANT_ROW(lwt_refused_by_some),
    TETRAD_MUTANT_ROW(lwt_seen_unsynced),       TETRAD_MUTANT_ROW(lwt_floor_off),
    TETRAD_MUTANT_ROW(lwt_alone_promise_open),
};
#undef TETRAD_MUTANT_ROW

int run_all(uint64_t first, uint64_t last, bool verbose) {
  uint64_t passed = 0, failed = 0;
  ConditionalCluster::Counts all;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string wrong, history;
    uint64_t trace = 0;
    {
      ConditionalCluster simulation(seed);
      wrong = simulation.run();
      trace = simulation.trace();
      const auto counts = simulation.counts();
      all.certain += counts.certain;
      all.unknown += counts.unknown;
      all.nothing += counts.nothing;
      if (verbose) history = simulation.history_text();
    }
    if (wrong.empty() && seed % 50 == 0) {
      ConditionalCluster again(seed);
      wrong = again.run();
      if (wrong.empty() && again.trace() != trace) wrong = "the same seed took other steps";
    }
    (wrong.empty() ? passed : failed)++;
    if (!wrong.empty() || verbose) {
      std::printf("%sseed %llu: %s\n", history.c_str(), static_cast<unsigned long long>(seed),
                  wrong.empty() ? "ok" : wrong.c_str());
      std::fflush(stdout);
    }
  }
  std::printf("%zu operations certain, %zu unknown, %zu without effect\n", all.certain, all.unknown,
              all.nothing);
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

int run_scenarios() {
  int passed = 0, failed = 0;
  for (const ConditionalScenario& scenario : conditional_scenarios()) {
    const std::string wrong = scenario.run();
    (wrong.empty() ? passed : failed)++;
    std::printf("%-26s %s\n", scenario.name, wrong.empty() ? "ok" : wrong.c_str());
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

/// The scenario that catches the mistake that is on; "": none.
std::string caught_by_scenario() {
  for (const ConditionalScenario& scenario : conditional_scenarios())
    if (const auto wrong = scenario.run(); !wrong.empty())
      return fmt::format("scenario {}: {}", scenario.name, wrong);
  return "";
}

int run_mutants(uint64_t seeds_most, const char* only) {
  int passed = 0, failed = 0;
  for (const Mutant& mutant : kMutants) {
    if (only != nullptr && std::strcmp(only, mutant.name) != 0) continue;
    base::data_mutants = {};
    base::data_mutants.*mutant.flag = true;
    if (const auto caught = caught_by_scenario(); !caught.empty()) {
      std::printf("%-26s %s\n", mutant.name, caught.c_str());
      std::fflush(stdout);
      ++passed;
      continue;
    }
    uint64_t seed = 1;
    std::string wrong;
    for (; seed <= seeds_most && wrong.empty(); ++seed) wrong = ConditionalCluster(seed).run();
    std::printf("%-26s %s\n", mutant.name,
                wrong.empty() ? "NOT FOUND" : fmt::format("seed {}: {}", seed - 1, wrong).c_str());
    std::fflush(stdout);
    (wrong.empty() ? failed : passed)++;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

bool switch_on(const char* name) {
  for (const Mutant& mutant : kMutants) {
    if (std::strcmp(mutant.name, name) != 0) continue;
    base::data_mutants.*mutant.flag = true;
    return true;
  }
  return false;
}

}  // namespace
}  // namespace tetrad::simulation

int main(int argc, char** argv) {
  using namespace tetrad::simulation;
  unsigned long long first = 1, last = 100;
  bool verbose = false, good = true;
  for (int i = 1; i < argc && good; ++i) {
    if (std::strcmp(argv[i], "--mutants") == 0)
      return run_mutants(i + 1 < argc ? std::strtoull(argv[i + 1], nullptr, 10) : 1000,
                         i + 2 < argc ? argv[i + 2] : nullptr);
    if (std::strcmp(argv[i], "--scenarios") == 0) return run_scenarios();
    if (std::strcmp(argv[i], "--verbose") == 0) {
      verbose = true;
    } else if (std::strcmp(argv[i], "--mutant") == 0 && i + 1 < argc) {
      good = switch_on(argv[++i]);
    } else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
      const int fields = std::sscanf(argv[++i], "%llu..%llu", &first, &last);
      if (fields == 1) last = first;
      good = fields >= 1;
    } else {
      good = false;
    }
  }
  if (!good) {
    std::fprintf(stderr,
                 "usage: conditional_simulation [--seeds A..B] [--mutant NAME] [--verbose]\n"
                 "       conditional_simulation --scenarios\n"
                 "       conditional_simulation --mutants [SEEDS [NAME]]\n");
    return 2;
  }
  return run_all(first, last, verbose);
}
