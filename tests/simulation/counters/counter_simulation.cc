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
#include <cstring>
#include <string>

#include "base/data_mutants.h"
#include "tests/simulation/counters/counter_cluster.h"

namespace tetrad::simulation {
namespace {

struct Mutant {
  const char* name;
  bool base::DataMutants::*flag;
};

#define TETRAD_MUTANT_ROW(name) \
  { #name, &base::DataMutants::name }
constexpr Mutant kMutants[] = {
    TETRAD_MUTANT_ROW(counter_second_leader),
    TETRAD_MUTANT_ROW(counter_group_overlaps),
    TETRAD_MUTANT_ROW(counter_acked_early),
};
#undef TETRAD_MUTANT_ROW

int run_all(uint64_t first, uint64_t last, bool verbose) {
  uint64_t passed = 0, failed = 0;
  CounterCluster::Counts all;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string wrong, history;
    uint64_t trace = 0;
    {
      CounterCluster simulation(seed);
      wrong = simulation.run();
      trace = simulation.trace();
      const auto counts = simulation.counts();
      all.certain += counts.certain;
      all.unknown += counts.unknown;
      all.nothing += counts.nothing;
      all.reads += counts.reads;
      if (verbose) history = simulation.history_text();
    }
    if (wrong.empty() && seed % 50 == 0) {
      CounterCluster again(seed);
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
  std::printf("%zu increments certain, %zu unknown, %zu without effect; %zu reads\n", all.certain,
              all.unknown, all.nothing, all.reads);
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

int run_mutants(uint64_t seeds_most, const char* only) {
  int passed = 0, failed = 0;
  for (const Mutant& mutant : kMutants) {
    if (only != nullptr && std::strcmp(only, mutant.name) != 0) continue;
    base::data_mutants = {};
    base::data_mutants.*mutant.flag = true;
    uint64_t seed = 1;
    std::string wrong;
    for (; seed <= seeds_most && wrong.empty(); ++seed) wrong = CounterCluster(seed).run();
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
                 "usage: counter_simulation [--seeds A..B] [--mutant NAME] [--verbose]\n"
                 "       counter_simulation --mutants [SEEDS [NAME]]\n");
    return 2;
  }
  return run_all(first, last, verbose);
}
