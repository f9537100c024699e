// SPDX-License-Identifier: Apache-2.0
// raft_simulation: runs the Raft core under faults, seed after seed.
//
//   --seeds A..B      which (B included); 1..500 without
//   --mutant NAME     with a known bug put back: exit 0 when a seed finds it
//   --mutants         all of them, each in a process of its own; prints the seeds each needed
//   --trace           prints what happens, for one seed
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/simulation/raft/raft_cluster.h"

namespace tetrad::replication {
namespace {

struct Mutant {
  RaftMutant mutant;
  const char* name;
  uint64_t first = 1;  // the seed to begin at: those before are known not to find it
};
constexpr uint64_t kSeedsTried = 3'000;  // from there on

constexpr Mutant kMutants[] = {
    {RaftMutant::kCommitEarlierTerm, "commit-earlier-term", 2'001},
    {RaftMutant::kNoNoop, "no-noop"},
    {RaftMutant::kChangeBeforeCommit, "change-before-commit", 19'901},
    {RaftMutant::kOverlappingChanges, "overlapping-changes"},
    {RaftMutant::kVoteBeforePersist, "vote-before-persist"},
    {RaftMutant::kCampaignBeforePersist, "campaign-before-persist"},
    {RaftMutant::kAckBeforePersist, "ack-before-persist"},
    {RaftMutant::kLeaderCountsUnpersisted, "leader-counts-unpersisted"},
    {RaftMutant::kVoteIgnoresLog, "vote-ignores-log", 3'701},
    {RaftMutant::kVoteTwice, "vote-twice"},
    {RaftMutant::kAppendTruncatesAlways, "append-truncates-always"},
    {RaftMutant::kAppendIgnoresPreviousTerm, "append-ignores-previous-term"},
    {RaftMutant::kCommitBeyondMatch, "commit-beyond-match"},
    {RaftMutant::kLearnsAnyTerm, "learns-any-term"},
    {RaftMutant::kFetchUncommitted, "fetch-uncommitted"},
    {RaftMutant::kFetchKeepsOwn, "fetch-keeps-own"},
    {RaftMutant::kPersistedAba, "persisted-aba"},
    {RaftMutant::kReadWithoutRound, "read-without-round"},
    {RaftMutant::kReadBeforeCommit, "read-before-commit"},
    {RaftMutant::kKeepTruncatedMembers, "keep-truncated-members"},
    {RaftMutant::kLearnersCount, "learners-count"},
    {RaftMutant::kPreVoteIgnoresLog, "pre-vote-ignores-log"},
    {RaftMutant::kSnapshotKeepsLog, "snapshot-keeps-log"},
    {RaftMutant::kSnapshotBehindCommit, "snapshot-behind-commit"},
    {RaftMutant::kNoCheckQuorum, "no-check-quorum"},
    {RaftMutant::kRemovedLeaderCounts, "removed-leader-counts"},
    {RaftMutant::kStaleRepliesCount, "stale-replies-count"},
};
static_assert(std::size(kMutants) == static_cast<size_t>(RaftMutant::kCount));

RaftMutants only(RaftMutant mutant) {
  RaftMutants mutants;
  mutants.set(static_cast<size_t>(mutant));
  return mutants;
}

/// Where a process was, readable by the one that started it even after an abort.
struct Progress {
  volatile uint64_t seed;
  volatile bool found;
  char what[200];
};
Progress* progress = nullptr;

void say_seed_on_abort(int) {
  char text[64] = "FAILED: assertion, seed ";
  size_t length = std::strlen(text);
  length = static_cast<size_t>(
      std::to_chars(text + length, text + sizeof(text) - 1, progress->seed).ptr - text);
  text[length++] = '\n';
  if (write(STDERR_FILENO, text, length) < 0) _exit(3);
}

struct Seeds {
  uint64_t first = 1, last = 500;
};

/// Until the first violation; false if there was one.
bool run(Seeds seeds, RaftMutants mutants, bool trace, RaftRunSummary& total) {
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    progress->seed = seed;
    try {
      RaftCluster cluster(seed, mutants, trace);
      const RaftRunSummary summary = cluster.run();
      total.events += summary.events;
      total.committed += summary.committed;
      total.reads += summary.reads;
      total.leaders += summary.leaders;
      total.configurations += summary.configurations;
      total.images_installed += summary.images_installed;
      total.crashes += summary.crashes;
      total.election_timeouts_to_commit =
          std::max(total.election_timeouts_to_commit, summary.election_timeouts_to_commit);
      if (seed % 100 == 0 && mutants.none()) {
        RaftCluster again(seed, mutants, false);
        if (again.run().trace_hash != summary.trace_hash) {
          throw Violation{"the seed does not replay"};
        }
      }
    } catch (const Violation& violation) {
      progress->found = true;
      std::snprintf(progress->what, sizeof(progress->what), "%s", violation.what.c_str());
      return false;
    }
  }
  return true;
}

/// In a child, since a mutant may also end in an assertion.
bool find_mutant(const Mutant& mutant, Seeds seeds) {
  *progress = {};
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    RaftRunSummary total;
    _exit(run(seeds, only(mutant.mutant), false, total) ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    std::printf("%-30s could not be run\n", mutant.name);
    return false;
  }
  const bool aborted = WIFSIGNALED(status);
  if (!aborted && !progress->found) {
    std::printf("%-30s NOT FOUND in %lu seeds\n", mutant.name, seeds.last - seeds.first + 1);
    return false;
  }
  std::printf("%-30s found by seed %lu: %s\n", mutant.name, progress->seed,
              aborted ? "an assertion" : progress->what);
  return true;
}

int usage() {
  std::fprintf(stderr,
               "usage: raft_simulation [--seeds A..B] [--mutant NAME | --mutants] [--trace]\n");
  return 2;
}

int simulate(const std::vector<std::string_view>& arguments) {
  Seeds seeds;
  bool seeds_given = false, all_mutants = false, trace = false;
  const Mutant* mutant = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--mutants") {
      all_mutants = true;
    } else if (argument == "--trace") {
      trace = true;
    } else if (argument == "--seeds" && i + 1 < arguments.size()) {
      const std::string_view range = arguments[++i];
      const size_t dots = range.find("..");
      const std::string_view last = dots == range.npos ? range : range.substr(dots + 2);
      const std::string_view first = range.substr(0, dots);
      const auto a = std::from_chars(first.data(), first.data() + first.size(), seeds.first);
      const auto b = std::from_chars(last.data(), last.data() + last.size(), seeds.last);
      if (a.ec != std::errc() || b.ec != std::errc()) return usage();
      seeds_given = true;
    } else if (argument == "--mutant" && i + 1 < arguments.size()) {
      const std::string_view name = arguments[++i];
      for (const Mutant& known : kMutants) {
        if (name == known.name) mutant = &known;
      }
      if (mutant == nullptr) return usage();
    } else {
      return usage();
    }
  }
  if (all_mutants || (mutant != nullptr && !trace)) {
    size_t found = 0, count = 0;
    for (const Mutant& each : kMutants) {
      if (mutant != nullptr && mutant != &each) continue;
      ++count;
      if (!seeds_given) seeds = {each.first, each.first + kSeedsTried - 1};
      if (find_mutant(each, seeds)) ++found;
    }
    std::printf("%zu passed, %zu failed\n", found, count - found);
    return found == count ? 0 : 1;
  }
  std::signal(SIGABRT, say_seed_on_abort);
  RaftRunSummary total;
  const std::clock_t before = std::clock();
  const RaftMutants mutants = mutant != nullptr ? only(mutant->mutant) : RaftMutants();
  if (!run(seeds, mutants, trace, total)) {
    std::printf("FAILED: seed %lu: %s\n", progress->seed, progress->what);
    return 1;
  }
  const uint64_t count = seeds.last - seeds.first + 1;
  std::printf(
      "%lu seeds passed: %lu events, %lu entries committed, %lu leaders, %lu configurations, "
      "%lu images installed, %lu crashes, %lu reads; at most %.1f election timeouts to a commit; "
      "%.2f ms of CPU a seed\n",
      count, total.events, total.committed, total.leaders, total.configurations,
      total.images_installed, total.crashes, total.reads, total.election_timeouts_to_commit,
      1000.0 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC /
          static_cast<double>(count));
  return 0;
}

}  // namespace
}  // namespace tetrad::replication

int main(int argc, char** argv) {
  using tetrad::replication::Progress;
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 3;
  tetrad::replication::progress = new (shared) Progress();
  return tetrad::replication::simulate({argv + 1, argv + argc});
}
