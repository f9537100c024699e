// SPDX-License-Identifier: Apache-2.0
// Writes and reads on a simulated cluster under faults: crashes and restarts, power cuts of all
// machines at once (where every write is synced), disks and clocks of one node at a time
// (disk_nemesis.h, clock_nemesis.h), cut, slow and lossy networks, nodes whose metadata falls
// behind, splits, truncation, nodes that join while a tablet grows from one member to four. Every
// history is checked (history.h), and besides:
//   - every acknowledged write is, at any moment, on W members of its tablet;
//   - after the faults everything works again, full tablets answer reads, tablets have their
//   members, the metadata group an odd number of voters;
//   - what was read at ALL is equal on all replicas, digests too;
//   - readers of the change feed miss nothing (feed_reader.h);
//   - where it is purged, nothing stays in the end of what was deleted.
//
// usage: data_simulation [--seeds A..B] [--mutant NAME] [--verbose]
//        data_simulation --mutants [SEEDS]   each known mistake until a seed catches it
// Every hundredth seed runs twice and must take the same steps.
#include <cstring>
#include <string>

#include "base/data_mutants.h"
#include "tests/simulation/cluster/data_cluster.h"

namespace tetrad::simulation {
namespace {

struct Mutant {
  const char* name;
  bool base::DataMutants::*flag;
};

#define TETRAD_MUTANT_ROW(name) \
  { #name, &base::DataMutants::name }
constexpr Mutant kMutants[] = {
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
    TETRAD_MUTANT_ROW(deletion_of_one),
    TETRAD_MUTANT_ROW(row_of_one),
    TETRAD_MUTANT_ROW(header_of_one),
    TETRAD_MUTANT_ROW(digest_keeps_hidden),
    TETRAD_MUTANT_ROW(replica_takes_own_now),
    TETRAD_MUTANT_ROW(change_sequence_restarts),
    TETRAD_MUTANT_ROW(stage_skipped),
    TETRAD_MUTANT_ROW(fill_not_awaited),
    TETRAD_MUTANT_ROW(pending_writes_old),
    TETRAD_MUTANT_ROW(pending_writes_new),
    TETRAD_MUTANT_ROW(tallies_mixed),
    TETRAD_MUTANT_ROW(split_edge_lost),
    TETRAD_MUTANT_ROW(split_edge_twice),
    TETRAD_MUTANT_ROW(expired_forgotten),
    TETRAD_MUTANT_ROW(tombstone_start_unique),
    TETRAD_MUTANT_ROW(replicas_stamp),
    TETRAD_MUTANT_ROW(old_incarnation_accepted),
    TETRAD_MUTANT_ROW(voters_even),
    TETRAD_MUTANT_ROW(batch_torn),
    TETRAD_MUTANT_ROW(horizon_not_cut),
    TETRAD_MUTANT_ROW(purge_over_horizon),
    TETRAD_MUTANT_ROW(purge_hides_nothing),
    TETRAD_MUTANT_ROW(streams_not_logged),
    TETRAD_MUTANT_ROW(merged_not_logged),
    TETRAD_MUTANT_ROW(changes_ask_one),
    TETRAD_MUTANT_ROW(change_places_ahead),
};
#undef TETRAD_MUTANT_ROW

int run_all(uint64_t first, uint64_t last, bool verbose) {
  uint64_t passed = 0, failed = 0, acknowledged = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string wrong;
    uint64_t trace = 0;
    {
      DataCluster simulation(seed);
      wrong = simulation.run();
      trace = simulation.trace();
      acknowledged += simulation.acknowledged();
    }
    if (wrong.empty() && seed % 100 == 0) {
      DataCluster again(seed);
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
  std::printf("%llu writes acknowledged in all\n", static_cast<unsigned long long>(acknowledged));
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

int run_mutants(uint64_t seeds_most) {
  int passed = 0, failed = 0;
  for (const Mutant& mutant : kMutants) {
    base::data_mutants = {};
    base::data_mutants.*mutant.flag = true;
    uint64_t seed = 1;
    std::string wrong;
    for (; seed <= seeds_most && wrong.empty(); ++seed) wrong = DataCluster(seed).run();
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
  unsigned long long first = 1, last = 200;
  bool verbose = false, good = true;
  for (int i = 1; i < argc && good; ++i) {
    if (std::strcmp(argv[i], "--mutants") == 0)
      return run_mutants(i + 1 < argc ? std::strtoull(argv[i + 1], nullptr, 10) : 1000);
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
                 "usage: data_simulation [--seeds A..B] [--mutant NAME] [--verbose]\n"
                 "       data_simulation --mutants [SEEDS]\n");
    return 2;
  }
  return run_all(first, last, verbose);
}
