// SPDX-License-Identifier: Apache-2.0
// One of four nodes dies for good and is taken out. Meanwhile, between two stages of a tablet's
// move as well, the leader of the metadata group commits an entry and is no longer heard by it,
// until the others have elected another. All else of the three nodes works, so no write and no read
// of theirs may fail.
#include <map>

#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kNodes = 4;

/// What requests came to.
struct Requests {
  int under_way = 0, succeeded = 0;
  std::map<std::string, int> failures;  // by what was said

  void ended(const Result<void>& result) {
    --under_way;
    if (result) {
      ++succeeded;
    } else {
      ++failures[result.error().message];
    }
  }
};

Task<void> write_key(SimNode* node, TableIncarnation incarnation, std::string key,
                     Requests* requests) {
  RowWrite write{.key = key, .value = key};
  auto written = co_await try_write(node, incarnation, std::move(write));
  requests->ended(written);
}

Task<void> read_key(SimNode* node, TableIncarnation incarnation, std::string key,
                    Requests* requests) {
  replication::ReadOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  auto command = row_read(incarnation, key, node->reactor().wall_time_us() / 1'000'000);
  auto read = co_await node->data().coordinator().read(std::move(command), options);
  Result<void> ended;
  if (!read) ended = std::unexpected(read.error());
  requests->ended(ended);
}

class Election {
 public:
  explicit Election(uint64_t seed) : random_(seed * 6131 + 11), cluster_(seed, kNodes) {}

  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    cluster_.world().run_for(3'000'000);
    victim_ = random_.below(kNodes);
    const HostId host = cluster_[victim_].node().self();
    cluster_[victim_].kill();
    if (!cluster_.world().run_until([&] { return is_known_dead(host); }, 30'000'000))
      return "nobody notices that a node is dead";

    bool ordered = false;
    SimNode& first = cluster_[(victim_ + 1) % kNodes];
    first.spawn(order_leaving(&first, host, &ordered));
    for (int step = 0; step < 8'000 && !is_out(host); ++step) {
      requests();
      const auto pause_us = static_cast<int64_t>(random_.below(20'000));
      if (cluster_.world().run_until([this] { return entry_is_coming(); }, pause_us))
        maybe_silence_leader();
      cluster_.world().run_for(static_cast<int64_t>(random_.below(3'000)));
      speak_again();
    }
    if (!is_out(host)) return "the node is not out";
    cluster_.world().run_until([this] { return requests_.under_way == 0; }, 5'000'000);
    if (requests_.succeeded < 20) return "too few requests";
    std::string wrong;
    for (const auto& [said, count] : requests_.failures)
      wrong += fmt::format("{}{} requests of {} ended with: {}", wrong.empty() ? "" : "; ", count,
                           requests_.succeeded, said);
    return wrong;
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  bool is_known_dead(HostId host) {
    for (size_t i = 0; i < kNodes; ++i)
      if (i != victim_ && cluster_[i].node().meta().is_live(host)) return false;
    return cluster_.leader().has_value();
  }

  bool is_out(HostId host) {
    for (size_t i = 0; i < kNodes; ++i)
      if (i != victim_ &&
          cluster_[i].state()->node(host)->state != replication::NodeState::kRemoved)
        return false;
    return true;
  }

  void requests() {
    for (size_t i = 0; i < kNodes; ++i) {
      if (i == victim_) continue;
      SimNode& node = cluster_[i];
      const std::string key = "key" + std::to_string(random_.below(20));
      ++requests_.under_way;
      if (random_.one_in(3)) {
        node.spawn(read_key(&node, incarnation_, key, &requests_));
      } else {
        node.spawn(write_key(&node, incarnation_, key, &requests_));
      }
    }
  }

  /// Whether the followers hold an entry of the leader that the leader has not committed: it will,
  /// and then apply it, as soon as it hears of that. (Who does not hold an entry cannot apply it.)
  bool entry_is_coming() {
    const auto leader = cluster_.leader();
    if (silent_ || !leader) return false;
    const auto& log = core_of(*leader);
    if (log.last_index() <= std::max(log.commit_index(), looked_at_)) return false;
    for (size_t i = 0; i < kNodes; ++i)
      if (i != victim_ && core_of(i).last_index() < log.last_index()) return false;
    return true;
  }
  const replication::RaftCore& core_of(size_t i) {
    return cluster_[i].node().meta_group().driver()->core();
  }

  void maybe_silence_leader() {
    const size_t leader = *cluster_.leader();
    looked_at_ = core_of(leader).last_index();
    if (silences_ == 3 || !random_.one_in(3)) return;
    silent_ = leader;
    ++silences_;
    speaks_at_us_ =
        cluster_.world().now_us() + 1'000'000 + static_cast<int64_t>(random_.below(1'500'000));
    cluster_.network().set_mute(cluster_[leader].endpoint(), true);
  }
  /// Once another leads, or none can without it.
  void speak_again() {
    if (!silent_) return;
    bool elected = cluster_.world().now_us() >= speaks_at_us_;
    for (size_t i = 0; i < kNodes; ++i)
      elected |= i != victim_ && i != *silent_ && cluster_[i].node().meta_group().is_leader();
    if (!elected) return;
    cluster_.network().set_mute(cluster_[*silent_].endpoint(), false);
    silent_.reset();
  }

  base::Random random_;
  SimCluster cluster_;
  size_t victim_ = 0;
  TableIncarnation incarnation_;
  Requests requests_;
  std::optional<size_t> silent_;
  int silences_ = 0;
  base::MonotonicUs speaks_at_us_ = 0;
  replication::RaftIndex looked_at_ = 0;
};

}  // namespace

ScenarioResult run_election(uint64_t seed) {
  Election election(seed);
  return {election.run(), election.trace()};
}

}  // namespace tetrad::simulation
