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
// usage: index_simulation [--seeds A..B] [--mutant NAME] [--verbose]
//        index_simulation --mutants [SEEDS [NAME]]   each known mistake until a seed catches
//        it
// Every fiftieth seed runs twice and must take the same steps.
#include <cstring>
#include <string>

#include "base/data_mutants.h"
#include "tests/simulation/indexes/index_cluster.h"

namespace tetrad::simulation {
namespace {

struct Mutant {
  const char* name;
  bool base::DataMutants::*flag;
};

#define TETRAD_MUTANT_ROW(name) \
  { #name, &base::DataMutants::name }
constexpr Mutant kMutants[] = {
    TETRAD_MUTANT_ROW(claims_of_puts_only),    TETRAD_MUTANT_ROW(claims_not_of_merged),
    TETRAD_MUTANT_ROW(claims_not_kept),        TETRAD_MUTANT_ROW(claim_gone_unwatched),
    TETRAD_MUTANT_ROW(claim_expires_by_clock), TETRAD_MUTANT_ROW(claim_gone_early),
    TETRAD_MUTANT_ROW(disproved_not_named),    TETRAD_MUTANT_ROW(index_from_one),
    TETRAD_MUTANT_ROW(index_rows_from_one),    TETRAD_MUTANT_ROW(index_pages_by_value),
    TETRAD_MUTANT_ROW(unbuilt_answers),
};
#undef TETRAD_MUTANT_ROW

int run_all(uint64_t first, uint64_t last, bool verbose) {
  uint64_t passed = 0, failed = 0, pages = 0, shown = 0, mismatches = 0, dropped = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string wrong;
    uint64_t trace = 0;
    {
      IndexCluster simulation(seed);
      wrong = simulation.run();
      trace = simulation.trace();
      pages += simulation.history().pages();
      shown += simulation.history().shown();
      mismatches += simulation.mismatches();
      dropped += simulation.dropped();
    }
    if (wrong.empty() && seed % 50 == 0) {
      IndexCluster again(seed);
      wrong = again.run();
      if (wrong.empty() && again.trace() != trace) wrong = "the same seed took other steps";
    }
    (wrong.empty() ? passed : failed)++;
    if (!wrong.empty() || verbose) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
                  wrong.empty() ? "ok" : wrong.c_str());
      std::fflush(stdout);
    }
  }
  std::printf("%llu pages, %llu places shown, %llu mismatches and %llu claims dropped at the end\n",
              static_cast<unsigned long long>(pages), static_cast<unsigned long long>(shown),
              static_cast<unsigned long long>(mismatches),
              static_cast<unsigned long long>(dropped));
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
    for (; seed <= seeds_most && wrong.empty(); ++seed) wrong = IndexCluster(seed).run();
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
                 "usage: index_simulation [--seeds A..B] [--mutant NAME] [--verbose]\n"
                 "       index_simulation --mutants [SEEDS [NAME]]\n");
    return 2;
  }
  return run_all(first, last, verbose);
}
