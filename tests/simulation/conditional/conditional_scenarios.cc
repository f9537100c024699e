// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/conditional/conditional_scenarios.h"

#include <algorithm>
#include <optional>

#include "replication/coordinator/conditional.h"
#include "replication/rpc/envelope.h"
#include "tests/simulation/conditional/linearizability.h"
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

/// Nodes with a table; what is not synced on purpose stays unsynced.
class Nodes {
 public:
  Nodes(uint64_t seed, size_t count) : cluster_(seed, count) {
    for (size_t i = 0; i < count; ++i) {
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
    const size_t members = std::min<size_t>(cluster_.size(), 4);
    return tablet().replicas.size() == members ? "" : "the tablet does not have all its members";
  }
  const partitioner::Tablet& tablet() {
    return cluster_[0].state()->tables.begin()->second->tablets.tablets().front();
  }
  bool is_member(size_t node) {
    const auto& members = tablet().replicas;
    return std::ranges::find(members, StoreAddress{cluster_[node].node().self(), 0}) !=
           members.end();
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
  void begin_insert(size_t node, const RowName& row, int64_t timeout_us, Answer* answer) {
    cluster_[node].spawn(insert(&cluster_[node], row, timeout_us, answer));
  }
  /// No message passes between it and the others.
  void isolate(size_t node) { cluster_.isolate(node); }
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
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (!cluster_[i].is_up()) cluster_[i].start();
    const auto is_back = [&] {
      for (size_t i = 0; i < cluster_.size(); ++i)
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

struct Three : Nodes {
  explicit Three(uint64_t seed = 1) : Nodes(seed, 3) {}
};

/// Five nodes: four members of the tablet, and one that only coordinates.
struct Five : Nodes {
  explicit Five(uint64_t seed = 1) : Nodes(seed, 5) {}
  std::string form() {
    if (auto wrong = Nodes::form(); !wrong.empty()) return wrong;
    for (size_t i = 0; i < 5; ++i) is_member(i) ? members.push_back(i) : others.push_back(i);
    return others.size() == 1 ? "" : "not one node is without a member";
  }
  size_t other() const { return others.front(); }
  /// What is to be accepted by members, but by one that has asked itself, stays on its way.
  void hold_accepts() {
    for (const size_t member : members)
      cluster().network().hold_also(Verb::kPaxosAccept, cluster()[member].endpoint());
  }
  std::vector<size_t> members, others;
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

/// Three of four members promise a second insert not to accept the first one, which is on its way,
/// and lose power: what they have promised stays so.
std::string promises_are_synced(uint64_t seed) {
  constexpr int64_t kLongUs = 600 * kSecondUs;
  Five five(seed);
  if (auto wrong = five.form(); !wrong.empty()) return wrong;
  const RowName row = five.row("p");
  SimCluster& cluster = five.cluster();
  const size_t first = five.members[0];
  Answer first_answer, second_answer;
  five.hold_accepts();
  five.begin_insert(first, row, kLongUs, &first_answer);
  five.world().run_for(20'000);
  if (cluster.network().held() != 3) return "the first insert is not on its way";
  cluster.cut(first, five.other());
  five.begin_insert(five.other(), row, kLongUs, &second_answer);
  five.world().run_for(20'000);
  if (cluster.network().held() != 6) return "the second insert is not on its way";
  for (const size_t member : five.members)
    if (member != first) cluster[member].power_cut();
  if (!five.come_back()) return "the nodes do not come back";
  for (size_t i = 0; i < 2; ++i) {
    cluster.network().release_first(3);
    five.world().run_for(20'000);
  }
  five.mend();
  cluster.network().hold_no_more();
  cluster.network().release_held();
  const auto both = [&] { return first_answer && second_answer; };
  if (!five.world().run_until(both, kLongUs)) return "no answer to an insert";
  if (is_yes(first_answer) && is_yes(second_answer)) return "both inserts are applied";
  return is_yes(first_answer) || is_yes(second_answer) ? "" : "no insert is applied";
}

Task<void> erase(SimNode* node, RowName row, Answer* answer) {
  auto& coordinator = node->data().coordinator();
  const int64_t now_us = coordinator.next_timestamp_us();
  storage::RowRecord record;
  record.deletion = {now_us, now_us / kSecondUs};
  storage::Mutation mutation = row_of(row.incarnation, row.partition);
  storage::RowChange& change = mutation.rows.front();
  change.clustering_key = row.clustering;
  change.record.clear();
  storage::encode_row_record(record, change.record);
  std::vector<storage::Mutation> mutations;
  mutations.push_back(std::move(mutation));
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + 2 * kSecondUs};
  options.server_timestamp_us = now_us;
  const auto written = co_await coordinator.write(std::move(mutations), options);
  answer->emplace(written.has_value());
}

/// What is to be accepted comes when the row that it would write has been deleted, and repair has
/// gone past the deletion, which is purged: it comes too late.
std::string late_accepts_stay_below_the_floor() {
  Five five;
  SimCluster& cluster = five.cluster();
  for (size_t i = 0; i < cluster.size(); ++i) {
    replication::DataPlaneOptions& options = cluster[i].data_options;
    options.horizon = {400'000, 2 * kSecondUs};
    options.repair.look_every_us = 200'000;
    options.repair.period_us = kSecondUs;
    options.purge.look_every_us = 100'000;
    options.purge.period_us = 500'000;
  }
  if (auto wrong = five.form(); !wrong.empty()) return wrong;
  const RowName row = five.row("p");
  Answer inserted, erased;
  five.hold_accepts();
  five.begin_insert(five.other(), row, 600 * kSecondUs, &inserted);
  five.world().run_for(20'000);
  if (cluster.network().held() != 4) return "the insert is not on its way";
  cluster[five.other()].kill();
  SimNode& member = cluster[five.members[0]];
  member.spawn(erase(&member, row, &erased));
  five.world().run_until([&] { return erased.has_value(); }, 3 * kSecondUs);
  if (!is_yes(erased)) return "the row is not deleted";
  const auto is_purged = [&] {
    for (const size_t i : five.members) {
      const auto held = cluster[i].peek(0, command_of(row));
      if (!held || !held->partitions.empty()) return false;
    }
    return true;
  };
  five.world().run_for(kSecondUs);
  if (!five.world().run_until(is_purged, 60 * kSecondUs)) return "the deletion is not purged";
  cluster.network().hold_no_more();
  cluster.network().release_held();
  five.world().run_for(100'000);
  const Answer found = five.read_at(five.members[0], row, ConsistencyLevel::kSerial);
  if (is_yes(found)) return "a row comes back below the horizon";
  return is_no(found) ? "" : "no success of the read";
}

/// What was unknown and is not there for a SERIAL read never happens: the check sees it.
std::string unknown_is_settled() {
  using Outcome = RowOperation::Outcome;
  const auto operation = [](RowOperation::Kind kind, uint64_t begun, Outcome outcome,
                            RowState seen) {
    RowOperation made;
    made.kind = kind;
    made.begun = begun;
    made.ended = begun + 1;
    made.value = 1;
    made.outcome = outcome;
    made.seen = seen;
    return made;
  };
  std::vector<RowOperation> history{
      operation(RowOperation::Kind::kInsert, 1, Outcome::kUnknown, {}),
      operation(RowOperation::Kind::kSerialRead, 3, Outcome::kRead, {}),
      operation(RowOperation::Kind::kSerialRead, 5, Outcome::kRead, 1)};
  if (!check_linearizable(history, false).empty()) return "an unknown one may be late";
  if (check_linearizable(history, true).empty()) return "an unknown one is not settled";
  history[1].kind = RowOperation::Kind::kQuorumRead;
  return check_linearizable(history, true).empty() ? "" : "a QUORUM read settles an unknown one";
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
    {"promises-are-synced", several_cuts<promises_are_synced>},
    {"late-accepts", late_accepts_stay_below_the_floor},
    {"unknown-is-settled", unknown_is_settled},
};

}  // namespace

std::span<const ConditionalScenario> conditional_scenarios() { return kScenarios; }

}  // namespace tetrad::simulation
