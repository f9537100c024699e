// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/conditional/conditional_scenarios.h"

#include <optional>

#include "replication/coordinator/conditional.h"
#include "replication/rpc/envelope.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

using replication::Verb;

constexpr int64_t kSecondUs = 1'000'000;

/// One row of a partition.
struct RowName {
  TableIncarnation incarnation;
  Bytes partition, clustering;
};

storage::ReadCommand command_of(const RowName& row) {
  storage::ReadCommand command;
  command.incarnation = row.incarnation;
  command.partition_key = row.partition;
  command.position = partitioner::position_of(row.partition);
  command.rows = {row.clustering};
  return command;
}

bool has_row(const storage::ReadResult& rows) {
  return !rows.partitions.empty() && !rows.partitions[0].rows.empty();
}

/// INSERT IF NOT EXISTS.
class InsertRow final : public replication::ConditionalStatement {
 public:
  explicit InsertRow(RowName row) : row_(std::move(row)) {}
  storage::ReadCommand read_command() const override { return command_of(row_); }
  Task<Result<std::optional<storage::Mutation>>> decide(
      const storage::ReadResult& rows, replication::ConditionalMoment moment) override {
    if (has_row(rows)) co_return std::optional<storage::Mutation>();
    storage::RowRecord record;
    record.liveness.timestamp_us = moment.timestamp_us;
    storage::Mutation mutation = row_of(row_.incarnation, row_.partition);
    storage::RowChange& change = mutation.rows.front();
    change.clustering_key = row_.clustering;
    change.record.clear();
    storage::encode_row_record(record, change.record);
    co_return std::optional<storage::Mutation>(std::move(mutation));
  }

 private:
  const RowName row_;
};

/// Whether it was applied, or is there.
using Answer = std::optional<Result<bool>>;

Task<void> insert(SimNode* node, RowName row, int64_t timeout_us, Answer* answer) {
  InsertRow statement(std::move(row));
  replication::ConditionalOptions options;
  options.deadline = options.contention_deadline = {node->reactor().now_us() + timeout_us};
  auto applied = co_await node->data().coordinator().write_if(statement, options);
  answer->emplace(std::move(applied));
}

Task<void> read(SimNode* node, RowName row, ConsistencyLevel level, Answer* answer) {
  replication::ReadOptions options;
  options.level = level;
  options.deadline = {node->reactor().now_us() + 2 * kSecondUs};
  storage::ReadCommand command = command_of(row);
  auto& coordinator = node->data().coordinator();
  command.now_s = coordinator.now_us() / kSecondUs;
  auto rows = co_await coordinator.read(std::move(command), options);
  if (!rows) {
    answer->emplace(std::unexpected(rows.error()));
  } else {
    answer->emplace(has_row(*rows));
  }
}

/// Three nodes with a table; what is not synced on purpose stays unsynced.
class Three {
 public:
  explicit Three(uint64_t seed = 1) : cluster_(seed, 3) {
    for (size_t i = 0; i < 3; ++i) {
      cluster_[i].sync_period_us = 3'600 * kSecondUs;
      cluster_[i].clock_skew_max_us = 0;
    }
  }
  /// "" or what is not ready.
  std::string form() {
    if (!cluster_.form(30 * kSecondUs)) return "the cluster does not form";
    bool created = false;
    cluster_[0].spawn(create_table(&cluster_[0], 0, &created));
    if (!world().run_until([&] { return created; }, 10 * kSecondUs)) return "the table is not made";
    world().run_for(5 * kSecondUs);
    return tablet().replicas.size() == 3 ? "" : "the tablet has not three members";
  }
  /// The tablet's only member from then on.
  std::string leave_to(size_t node) {
    const auto table = cluster_[0].state()->tables.begin()->second;
    const auto is_alone = [&] {
      return tablet().stage == partitioner::TabletStage::kNormal && tablet().replicas.size() == 1;
    };
    cluster_[0].spawn(propose(
        &cluster_[0],
        replication::ChangeTabletStage{table->incarnation,
                                       tablet().id,
                                       tablet().epoch,
                                       partitioner::TabletStage::kWriteBoth,
                                       {StoreAddress{cluster_[node].node().meta().self(), 0}}}));
    if (!world().run_until(is_alone, 20 * kSecondUs)) return "the tablet is not left to one member";
    return "";
  }
  const partitioner::Tablet& tablet() {
    return cluster_[0].state()->tables.begin()->second->tablets.tablets().front();
  }
  SimCluster& cluster() { return cluster_; }
  World& world() { return cluster_.world(); }
  RowName row(Bytes partition, Bytes clustering = "a") {
    return {cluster_[0].state()->tables.begin()->second->incarnation, std::move(partition),
            std::move(clustering)};
  }
  Answer insert_at(size_t node, const RowName& row, int64_t timeout_us = 2 * kSecondUs) {
    Answer answer;
    cluster_[node].spawn(insert(&cluster_[node], row, timeout_us, &answer));
    world().run_until([&] { return answer.has_value(); }, timeout_us + kSecondUs);
    return answer;
  }
  Answer read_at(size_t node, const RowName& row, ConsistencyLevel level) {
    Answer answer;
    cluster_[node].spawn(read(&cluster_[node], row, level, &answer));
    world().run_until([&] { return answer.has_value(); }, 3 * kSecondUs);
    return answer;
  }
  /// No message passes between it and the others.
  void isolate(size_t node) {
    for (size_t other = 0; other < 3; ++other) {
      if (other == node) continue;
      cluster_.network().cut(cluster_[node].endpoint(), cluster_[other].endpoint());
      cluster_.network().cut(cluster_[other].endpoint(), cluster_[node].endpoint());
    }
  }
  /// As soon as a message of the verb would leave it, which does not either.
  void isolate_at(Verb verb, size_t node) {
    cluster_.network().watch([this, verb, node](const replication::Endpoint&, BytesView message) {
      const auto decoded = replication::decode_envelope(message);
      if (decoded && decoded->envelope.verb == verb) isolate(node);
    });
  }
  void mend() {
    cluster_.network().watch({});
    cluster_.network().mend_all();
  }
  /// Nodes that lost power come back, and have fetched what they may have lost.
  bool come_back() {
    for (size_t i = 0; i < 3; ++i)
      if (!cluster_[i].is_up()) cluster_[i].start();
    const auto is_back = [&] {
      for (size_t i = 0; i < 3; ++i)
        if (!cluster_[i].is_ready() || cluster_[i].is_behind()) return false;
      return true;
    };
    const bool all = world().run_until(is_back, 60 * kSecondUs);
    world().run_for(5 * kSecondUs);
    return all;
  }

 private:
  SimCluster cluster_;
};

bool is_yes(const Answer& answer) { return answer && *answer && **answer; }
bool is_no(const Answer& answer) { return answer && *answer && !**answer; }

/// One member has accepted a value, the two others answer a read that there is none and lose power:
/// what they have answered stays true. The client of the value does not know what became of it.
std::string accepts_are_synced(uint64_t seed) {
  Three three(seed);
  if (auto wrong = three.form(); !wrong.empty()) return wrong;
  const RowName row = three.row("p");
  three.isolate_at(Verb::kPaxosAccept, 0);
  const Answer inserted = three.insert_at(0, row, 20 * kSecondUs);
  if (!inserted) return "no answer to the insert";
  if (*inserted) return "the insert ends without a quorum";
  if (inserted->error().code != ErrorCode::kCasWriteUnknown)
    return "what may yet be decided is not unknown: " + inserted->error().message;
  if (!is_no(three.read_at(1, row, ConsistencyLevel::kSerial))) return "the first read finds it";
  three.cluster()[1].power_cut();
  three.cluster()[2].power_cut();
  three.mend();
  if (!three.come_back()) return "the nodes do not come back";
  const Answer again = three.read_at(1, row, ConsistencyLevel::kSerial);
  if (is_yes(again)) return "what a SERIAL read has answered has not stayed so";
  return is_no(again) ? "" : "no success of the second read";
}

/// All members lose power when a statement has been answered as applied.
std::string commits_are_synced(uint64_t seed) {
  Three three(seed);
  if (auto wrong = three.form(); !wrong.empty()) return wrong;
  const RowName row = three.row("p");
  if (!is_yes(three.insert_at(0, row))) return "the insert is not applied";
  for (size_t i = 0; i < 3; ++i) three.cluster()[i].power_cut();
  if (!three.come_back()) return "the nodes do not come back";
  const Answer found = three.read_at(1, row, ConsistencyLevel::kQuorum);
  if (is_no(found)) return "a QUORUM read does not find what was applied before the power cut";
  return is_yes(found) ? "" : "no success of the read";
}

/// Of two inserts at the only member the second finds what the first has not synced yet. Power goes
/// when it is answered: what it was told stays true. Statements of a line share syncs.
std::string what_was_seen_is_synced(uint64_t seed) {
  SimCluster cluster(seed, 1);
  cluster[0].sync_period_us = 3'600 * kSecondUs;
  SimNode& node = cluster[0];
  World& world = cluster.world();
  if (!cluster.form(30 * kSecondUs)) return "the node does not form a cluster";
  bool created = false;
  node.spawn(create_table(&node, 0, &created));
  if (!world.run_until([&] { return created; }, 10 * kSecondUs)) return "the table is not made";
  world.run_for(5 * kSecondUs);
  const RowName row{node.state()->tables.begin()->second->incarnation, "p", "a"};
  Answer first, second, found;
  node.spawn(insert(&node, row, 2 * kSecondUs, &first));
  node.spawn(insert(&node, row, 2 * kSecondUs, &second));
  world.run_until([&] { return second.has_value(); }, 3 * kSecondUs);
  if (!is_no(second)) return "the second insert does not find the first one";
  node.power_cut();
  node.start();
  if (!world.run_until([&] { return node.is_ready() && !node.is_behind(); }, 60 * kSecondUs))
    return "the node does not come back";
  node.spawn(read(&node, row, ConsistencyLevel::kSerial, &found));
  world.run_until([&] { return found.has_value(); }, 3 * kSecondUs);
  if (is_no(found)) return "what a failed condition has shown is gone";
  return is_yes(found) ? "" : "no success of the read";
}

/// A commit comes to a member behind a later one of the same partition.
std::string late_commits_leave_their_rows() {
  Three three;
  if (auto wrong = three.form(); !wrong.empty()) return wrong;
  const RowName first = three.row("p", "a"), second = three.row("p", "b");
  SimNetwork& network = three.cluster().network();
  network.hold(Verb::kPaxosCommit, three.cluster()[2].endpoint());
  if (!is_yes(three.insert_at(0, first))) return "the first insert is not applied";
  three.world().run_for(20'000);  // all others know that it is settled
  network.hold_no_more();
  if (network.held() != 1) return "its commit is not on its way";
  if (!is_yes(three.insert_at(0, second))) return "the second insert is not applied";
  three.world().run_for(20'000);
  network.release_held();
  three.world().run_for(100'000);
  three.isolate(2);
  const Answer found = three.read_at(2, first, ConsistencyLevel::kOne);
  if (is_no(found)) return "the member does not have the rows of the commit that came late";
  return is_yes(found) ? "" : "no success of the read";
}

/// Two coordinators insert the same row, the second one a little later, at every moment of the
/// first one's rounds.
std::string one_of_two_inserts() {
  constexpr int64_t kStepUs = 20, kLongestUs = 10'000;
  Three three;
  if (auto wrong = three.form(); !wrong.empty()) return wrong;
  for (size_t i = 0; i < 3; ++i) three.cluster()[i].faults(0).sync_us = 700;
  for (int64_t later_us = 0; later_us < kLongestUs; later_us += kStepUs) {
    const RowName row = three.row(std::to_string(later_us));
    Answer first;
    SimNode& node = three.cluster()[0];
    node.spawn(insert(&node, row, 2 * kSecondUs, &first));
    three.world().run_for(later_us);
    const Answer second = three.insert_at(1, row);
    three.world().run_until([&] { return first.has_value(); }, 3 * kSecondUs);
    if (!first || !*first || !second || !*second) return "an insert has failed";
    if (**first == **second)
      return fmt::format("{} us later: {} of two inserts applied", later_us, **first ? 2 : 0);
  }
  return "";
}

/// A proposal to a tablet's only member is on its way for so long that its client does not know what
/// became of it. Then the member's own node answers that there is no row, without a vote: the
/// proposal must not be taken when it comes.
std::string what_is_over_stays_out() {
  Three three;
  if (auto wrong = three.form(); !wrong.empty()) return wrong;
  if (auto wrong = three.leave_to(0); !wrong.empty()) return wrong;
  const RowName row = three.row("p");
  SimNetwork& network = three.cluster().network();
  network.hold(Verb::kPaxosAccept, three.cluster()[0].endpoint());
  // Soon, before the tablet gets its other members back.
  const Answer inserted = three.insert_at(1, row, 40'000);
  if (!inserted || *inserted) return "the insert is answered without the vote";
  if (inserted->error().code != ErrorCode::kCasWriteUnknown)
    return "what may yet be decided is not unknown: " + inserted->error().message;
  if (!is_no(three.read_at(0, row, ConsistencyLevel::kSerial))) return "the first read finds it";
  network.hold_no_more();
  if (network.held() == 0) return "the proposal is not on its way";
  network.release_held();
  three.world().run_for(5'000);
  const Answer again = three.read_at(0, row, ConsistencyLevel::kSerial);
  if (three.tablet().replicas.size() != 1) return "the tablet has other members meanwhile";
  if (is_yes(again)) return "what a SERIAL read has answered has not stayed so";
  return is_no(again) ? "" : "no success of the second read";
}

/// A member alone has accepted a value, which the two others have passed over with another row of the
/// partition, and it knows nothing of that. Then it becomes the tablet's only member: what was passed
/// over must not be taken for open.
std::string passed_over_stays_out() {
  Three three;
  if (auto wrong = three.form(); !wrong.empty()) return wrong;
  const RowName row = three.row("p", "a"), other = three.row("p", "b");
  three.isolate_at(Verb::kPaxosAccept, 2);
  const Answer inserted = three.insert_at(2, row, 3 * kSecondUs);
  if (!inserted || *inserted) return "the insert is answered without the others' votes";
  if (!is_no(three.read_at(0, row, ConsistencyLevel::kSerial))) return "the first read finds it";
  if (!is_yes(three.insert_at(0, other))) return "the second insert is not applied";
  three.mend();
  three.world().run_for(5 * kSecondUs);
  if (auto wrong = three.leave_to(2); !wrong.empty()) return wrong;
  const Answer again = three.read_at(2, row, ConsistencyLevel::kSerial);
  if (is_yes(again)) return "what a SERIAL read has answered has not stayed so";
  if (!is_no(again)) return "no success of the second read";
  return is_yes(three.read_at(2, other, ConsistencyLevel::kSerial)) ? "" : "the other row is lost";
}

/// Three coordinators have statements for one partition again and again, and nothing fails: no
/// client gets "unknown".
std::string contended_is_certain() {
  constexpr size_t kRounds = 3'000, kAtOnce = 6;
  Three three;
  if (auto wrong = three.form(); !wrong.empty()) return wrong;
  base::Random random(1);
  std::vector<Answer> answers(kRounds * kAtOnce);
  for (size_t round = 0; round < kRounds; ++round) {
    // Now and then nobody comes for so long that coordinators take no turns any more.
    if (round % 50 == 49) three.world().run_for(2 * kSecondUs);
    const RowName partition = three.row(std::to_string(round / 50));
    for (size_t i = 0; i < kAtOnce; ++i) {
      const size_t number = round * kAtOnce + i;
      SimNode& node = three.cluster()[i % 3];
      const RowName row{partition.incarnation, partition.partition, std::to_string(number)};
      node.spawn(insert(&node, row, 2 * kSecondUs, &answers[number]));
      three.world().run_for(static_cast<int64_t>(random.below(3'000)));
    }
  }
  three.world().run_for(3 * kSecondUs);
  size_t unknown = 0;
  for (const Answer& answer : answers) {
    if (!answer) return "a statement without an answer";
    if (!*answer && answer->error().code != ErrorCode::kCasWriteUnknown)
      return "a statement has failed: " + answer->error().message;
    unknown += *answer ? 0 : 1;
  }
  return unknown == 0 ? "" : fmt::format("{} of {} are unknown", unknown, answers.size());
}

/// What a power cut takes of the unsynced is another part each time.
template <std::string (*kCut)(uint64_t)>
std::string several_cuts() {
  constexpr uint64_t kCuts = 16;
  for (uint64_t seed = 1; seed <= kCuts; ++seed)
    if (auto wrong = kCut(seed); !wrong.empty()) return fmt::format("cut {}: {}", seed, wrong);
  return "";
}

constexpr ConditionalScenario kScenarios[] = {
    {"accepts-are-synced", several_cuts<accepts_are_synced>},
    {"commits-are-synced", several_cuts<commits_are_synced>},
    {"seen-is-synced", several_cuts<what_was_seen_is_synced>},
    {"late-commits", late_commits_leave_their_rows},
    {"one-of-two-inserts", one_of_two_inserts},
    {"over-stays-out", what_is_over_stays_out},
    {"passed-over-stays-out", passed_over_stays_out},
    {"contended-is-certain", contended_is_certain},
};

}  // namespace

std::span<const ConditionalScenario> conditional_scenarios() { return kScenarios; }

}  // namespace tetrad::simulation
