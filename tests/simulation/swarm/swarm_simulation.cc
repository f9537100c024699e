// SPDX-License-Identifier: Apache-2.0
// Any troubles at once: each seed draws a random subset of all that can go wrong (swarm_profile.h),
// with one to ten nodes in one or two data centres and tables in one of them or in both, so that sets
// of one to four members are side by side. Storms of trouble, each followed by calm. Checked:
//   - every history (history.h): quorum reads see what was acknowledged or read before, deletions stay,
//   pages lose and repeat nothing and go on;
//   - every acknowledged write is, at any moment, on W members of its tablet, but for what is lost with
//   one disk;
//   - ten seconds after the last fault every node serves writes and reads of every table;
//   - hints stay in their bounds and are gone in the end, and no events, which are timers and
//   messages, pile up;
//   - in the end sets have their members, who left is out, the metadata group has an odd number of
//   voters, and reads at ALL and ONE of every partition are right.
//
// usage: swarm_simulation [--seeds A..B] [--without TROUBLES] [--mutant NAME] [--verbose]
//        swarm_simulation --reduce SEED      takes out troubles as long as the seed fails
//        swarm_simulation --mutants [SEEDS [NAME...]]
// Every hundredth seed runs twice and must take the same steps.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "tests/simulation/support/seed_program.h"
#include "tests/simulation/swarm/swarm_cluster.h"

namespace tetrad::simulation {
namespace {

constexpr NamedMutant kMutants[] = {
    TETRAD_MUTANT_ROW(write_acks_one),
    TETRAD_MUTANT_ROW(floor_skipped),
    TETRAD_MUTANT_ROW(hints_count),
    TETRAD_MUTANT_ROW(quorum_asks_one),
    TETRAD_MUTANT_ROW(digests_ignored),
    TETRAD_MUTANT_ROW(merge_not_written),
    TETRAD_MUTANT_ROW(merge_uncut),
    TETRAD_MUTANT_ROW(page_row_lost),
    TETRAD_MUTANT_ROW(page_row_twice),
    TETRAD_MUTANT_ROW(page_ends_all),
    TETRAD_MUTANT_ROW(row_limit_anew),
    TETRAD_MUTANT_ROW(partition_limit_anew),
    TETRAD_MUTANT_ROW(limit_counts_dead),
    TETRAD_MUTANT_ROW(reversed_cut_forward),
    TETRAD_MUTANT_ROW(deletion_of_one),
    TETRAD_MUTANT_ROW(row_of_one),
    TETRAD_MUTANT_ROW(header_of_one),
    TETRAD_MUTANT_ROW(end_not_compared),
    TETRAD_MUTANT_ROW(stage_skipped),
    TETRAD_MUTANT_ROW(fill_not_awaited),
    TETRAD_MUTANT_ROW(pending_writes_old),
    TETRAD_MUTANT_ROW(tallies_mixed),
    TETRAD_MUTANT_ROW(fill_from_one),
    TETRAD_MUTANT_ROW(cleanup_skipped),
    TETRAD_MUTANT_ROW(old_incarnation_accepted),
    TETRAD_MUTANT_ROW(merge_unequal_sets),
    TETRAD_MUTANT_ROW(merge_epoch_of_left),
    TETRAD_MUTANT_ROW(behind_reads),
    TETRAD_MUTANT_ROW(behind_from_one),
    TETRAD_MUTANT_ROW(local_counts_all),
    TETRAD_MUTANT_ROW(quorum_not_local),
    TETRAD_MUTANT_ROW(split_edge_lost),
    TETRAD_MUTANT_ROW(tombstones_uncut),
    TETRAD_MUTANT_ROW(ingest_put),
    TETRAD_MUTANT_ROW(voter_lost_beside_dead),
    {"third_voter_early", &base::DataMutants::third_voter_early, 0, 3343},
    TETRAD_MUTANT_ROW(harmful_change_kept),
    TETRAD_MUTANT_ROW(two_not_settled),
    TETRAD_MUTANT_ROW(truncate_not_local),
    TETRAD_MUTANT_ROW(balance_second_alone),
};

struct Options {
  unsigned long long first = 1, last = 100;
  SwarmProfile without;
  bool is_verbose = false;
};

std::string run_seed(uint64_t seed, SwarmProfile profile, SwarmCluster::Figures* figures,
                     std::string* shape, uint64_t* trace) {
  SwarmCluster simulation(seed, profile);
  std::string wrong = simulation.run();
  if (figures != nullptr) figures->add(simulation.figures());
  if (shape != nullptr) *shape = simulation.shape();
  if (trace != nullptr) *trace = simulation.trace();
  return wrong;
}

int run_all(const Options& options) {
  uint64_t passed = 0, failed = 0;
  SwarmCluster::Figures figures;
  for (uint64_t seed = options.first; seed <= options.last; ++seed) {
    const SwarmProfile profile = SwarmProfile::of_seed(seed).without(options.without);
    std::string shape;
    uint64_t trace = 0, again = 0;
    std::string wrong = run_seed(seed, profile, &figures, &shape, &trace);
    if (wrong.empty() && seed % 100 == 0) {
      wrong = run_seed(seed, profile, nullptr, nullptr, &again);
      if (wrong.empty() && again != trace) wrong = "the same seed took other steps";
    }
    (wrong.empty() ? passed : failed)++;
    if (wrong.empty() && !options.is_verbose) continue;
    std::printf("seed %llu: %s\n    %s\n    %s\n", static_cast<unsigned long long>(seed),
                wrong.empty() ? "ok" : wrong.c_str(), profile.text().c_str(), shape.c_str());
    std::fflush(stdout);
  }
  std::printf("%llu writes and %llu reads answered, %llu failed; %s; %lld s\n",
              static_cast<unsigned long long>(figures.acknowledged),
              static_cast<unsigned long long>(figures.reads),
              static_cast<unsigned long long>(figures.failed), figures.topology.text().c_str(),
              static_cast<long long>(figures.simulated_us / 1'000'000));
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

/// Each trouble that the failure does not need is left out.
int reduce(uint64_t seed, SwarmProfile without) {
  SwarmProfile profile = SwarmProfile::of_seed(seed).without(without);
  std::string shape;
  std::string wrong = run_seed(seed, profile, nullptr, &shape, nullptr);
  for (size_t i = 0; i < kTroubles && !wrong.empty(); ++i) {
    SwarmProfile one;
    one.add(static_cast<Trouble>(i));
    if (!profile.has(static_cast<Trouble>(i))) continue;
    const std::string fewer = run_seed(seed, profile.without(one), nullptr, &shape, nullptr);
    if (fewer.empty()) continue;
    wrong = fewer;
    profile = profile.without(one);
  }
  SwarmProfile all = SwarmProfile::of_seed(seed);
  std::printf("seed %llu: %s\n    %s\n    --without %s\n", static_cast<unsigned long long>(seed),
              wrong.empty() ? "ok" : wrong.c_str(), profile.text().c_str(),
              all.without(profile).text().c_str());
  return wrong.empty() ? 0 : 1;
}

/// `only`: these; none: all.
int run_mutants(uint64_t seeds_most, std::span<char*> only) {
  int passed = 0, failed = 0;
  for (const NamedMutant& mutant : kMutants) {
    const auto is_it = [&](const char* name) { return std::strcmp(name, mutant.name) == 0; };
    if (!only.empty() && std::ranges::none_of(only, is_it)) continue;
    base::data_mutants = {};
    base::data_mutants.*mutant.flag = true;
    const auto run = [](uint64_t seed) {
      return run_seed(seed, SwarmProfile::of_seed(seed), nullptr, nullptr, nullptr);
    };
    uint64_t seed = mutant.known_seed;
    std::string wrong = run(seed);
    for (uint64_t next = 1; wrong.empty() && next <= seeds_most; ++next) wrong = run(seed = next);
    std::printf("%-26s %s\n", mutant.name,
                wrong.empty() ? "NOT FOUND" : fmt::format("seed {}: {}", seed, wrong).c_str());
    std::fflush(stdout);
    (wrong.empty() ? failed : passed)++;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed != 0 ? 0 : 1;
}

bool switch_on(const char* name) {
  for (const NamedMutant& mutant : kMutants) {
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
  Options options;
  bool good = true;
  for (int i = 1; i < argc && good; ++i) {
    const char* const next = i + 1 < argc ? argv[i + 1] : nullptr;
    if (std::strcmp(argv[i], "--mutants") == 0)
      return run_mutants(next != nullptr ? std::strtoull(next, nullptr, 10) : 1000,
                         std::span(argv, static_cast<size_t>(argc))
                             .subspan(static_cast<size_t>(std::min(i + 2, argc))));
    if (std::strcmp(argv[i], "--verbose") == 0) {
      options.is_verbose = true;
      continue;
    }
    good = next != nullptr;
    if (!good) break;
    ++i;
    if (std::strcmp(argv[i - 1], "--reduce") == 0)
      return reduce(std::strtoull(next, nullptr, 10), options.without);
    if (std::strcmp(argv[i - 1], "--mutant") == 0) {
      good = switch_on(next);
    } else if (std::strcmp(argv[i - 1], "--without") == 0) {
      const auto without = SwarmProfile::parse(next);
      good = without.has_value();
      if (good) options.without = *without;
    } else if (std::strcmp(argv[i - 1], "--seeds") == 0) {
      const int fields = std::sscanf(next, "%llu..%llu", &options.first, &options.last);
      if (fields == 1) options.last = options.first;
      good = fields >= 1;
    } else {
      good = false;
    }
  }
  if (!good) {
    std::fprintf(stderr,
                 "usage: swarm_simulation [--seeds A..B] [--without TROUBLES] [--mutant NAME] "
                 "[--verbose]\n"
                 "       swarm_simulation [--without TROUBLES] --reduce SEED\n"
                 "       swarm_simulation --mutants [SEEDS [NAME...]]\n");
    return 2;
  }
  return run_all(options);
}
