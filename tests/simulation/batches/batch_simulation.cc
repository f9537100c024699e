// SPDX-License-Identifier: Apache-2.0
// Logged batches on a simulated cluster under faults: messages lost and late, nodes killed,
// isolated and paused, one lost for ever with a coordinator at the same moment, power cuts, clocks
// that step, splits, tablets that grow, a truncated table, and deletions that are purged. In the
// end each batch must be on all of its partitions or on none; on all when it was acknowledged or
// told to be written later; on none when it was refused, or deleted. Of what all batches of a group
// write, the same one's must be the newest everywhere.
//
// usage: batch_simulation [--seeds A..B] [--mutant NAME] [--verbose]
//        batch_simulation --mutants [SEEDS [NAME]]   each known mistake until a seed catches
//        it
// Every fiftieth seed runs twice and must take the same steps.
#include <cstring>
#include <string>

#include "base/data_mutants.h"
#include "tests/simulation/batches/batch_cluster.h"

namespace tetrad::simulation {
namespace {

struct Mutant {
  const char* name;
  bool base::DataMutants::*flag;
};

#define TETRAD_MUTANT_ROW(name) \
  { #name, &base::DataMutants::name }
constexpr Mutant kMutants[] = {
    TETRAD_MUTANT_ROW(batch_parts_first),   TETRAD_MUTANT_ROW(batch_one_holder),
    TETRAD_MUTANT_ROW(batch_done_at_hints), TETRAD_MUTANT_ROW(batch_restamp_unlogged),
    TETRAD_MUTANT_ROW(batch_horizon_past),
};
#undef TETRAD_MUTANT_ROW

int run_all(uint64_t first, uint64_t last, bool verbose) {
  uint64_t passed = 0, failed = 0;
  BatchCluster::Counts all;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string wrong;
    uint64_t trace = 0;
    {
      BatchCluster simulation(seed);
      wrong = simulation.run();
      trace = simulation.trace();
      const auto counts = simulation.counts();
      all.acknowledged += counts.acknowledged;
      all.told += counts.told;
      all.unknown += counts.unknown;
      all.nothing += counts.nothing;
      all.replayed += counts.replayed;
      all.restored += counts.restored;
    }
    if (wrong.empty() && seed % 50 == 0) {
      BatchCluster again(seed);
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
  std::printf(
      "%zu batches acknowledged, %zu told to come, %zu unknown, %zu refused; %zu replays, "
      "%zu later versions\n",
      all.acknowledged, all.told, all.unknown, all.nothing, all.replayed, all.restored);
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
    for (; seed <= seeds_most && wrong.empty(); ++seed) wrong = BatchCluster(seed).run();
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
  unsigned long long first = 1, last = 300;
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
                 "usage: batch_simulation [--seeds A..B] [--mutant NAME] [--verbose]\n"
                 "       batch_simulation --mutants [SEEDS [NAME]]\n");
    return 2;
  }
  return run_all(first, last, verbose);
}
