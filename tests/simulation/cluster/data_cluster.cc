// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/cluster/data_cluster.h"

#include "partitioner/token.h"
#include "replication/coordinator/replica_sets.h"
#include "tests/simulation/cluster/data_clients.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
DataCluster::DataCluster(uint64_t seed)
    : profile_{.grows = seed % 4 == 0,
               .whole_reads = seed % 3 == 0,
               .truncates = seed % 5 == 1,
               .power_cuts = seed % 7 == 3,
               .cuts_one = seed % 7 == 0 && seed % 4 != 0 && seed % 10 != 5 && seed % 11 != 2 &&
                           seed % 11 != 5 && seed % 11 != 7 && seed % 11 != 9,
               .fills_up = seed % 3 == 1,
               .purges = seed % 7 > 3,
               .one_keeps = seed % 7 == 5,
               .feeds = seed % 2 == 0 || seed % 7 == 1,
               .feeds_late = seed % 5 == 4,
               .on_rocks = seed % 10 == 5 && seed % 7 != 3,
               .clocks = (seed % 11 == 7 || seed % 11 == 9) && seed % 7 != 3,
               .disks = (seed % 11 == 2 || seed % 11 == 5) && seed % 7 != 3 && seed % 10 != 5,
               .balances = seed % 6 == 1 || seed % 5 == 2},
      clocks_(seed * 6661 + 1),
      disks_(seed * 4447 + 1, profile_.feeds),
      random_(seed * 7919 + 1),
      shards_(1 + seed / 4 % 2),
      cluster_(seed) {
  const uint64_t nodes = seed % 4 == 0 ? 1 : 2 + seed % 5;
  for (uint64_t i = 0; i < nodes; ++i) add_node();
  if (profile_.feeds) {
    feeds_.emplace_back(seed, std::nullopt);
    feeds_.emplace_back(seed + 1, static_cast<int>(random_.below(kKeys)));
  }
  constexpr int64_t kNeverUs = int64_t{1} << 50;
  if (profile_.one_keeps) cluster_[0].data_options.purge.look_every_us = kNeverUs;
}

/// Operations take up to two seconds; clocks differ by less than half of one.
void DataCluster::set_purging(SimNode& node) {
  if (!profile_.purges) return;
  node.clock_skew_max_us = 200'000;
  if (profile_.clocks) node.options().clock_skew_max_us = 400'000;
  replication::DataPlaneOptions& options = node.data_options;
  options.horizon = {400'000, kOperationUs + 200'000};
  options.repair.look_every_us = 200'000;
  options.repair.period_us = 1'000'000;
  options.repair.retry_us = 300'000;
  options.repair.pause_us = 2'000;
  options.purge.look_every_us = 100'000;
  options.purge.period_us = 500'000;
  options.purge.pause_us = 5'000;
  options.purge.keys_max = 4;
}

SimNode& DataCluster::add_node() {
  SimNode& node = cluster_.add(shards_, shards_);
  if (profile_.power_cuts) node.sync = storage::CommitLogSync::kGroup;
  node.data_options.recent_fetch.write_us = kOperationUs + 200'000;
  node.data_options.recent_fetch.longest_us = kOperationUs + 200'000;
  node.data_options.recent_fetch.page_timeout_us = 500'000;  // messages are lost
  node.on_rocks = profile_.on_rocks;
  if (profile_.balances) node.options().moves.balance_period_us = 300'000;
  set_purging(node);
  if (profile_.clocks) {
    node.clock_skew_max_us = 0;
    node.clock().set_offset_us(static_cast<int64_t>(random_.below(80'000)) - 40'000);
  }
  return node;
}

uint64_t DataCluster::trace() {
  return cluster_.world().event_count() * 31 + cluster_.network().delivered();
}

std::string DataCluster::run() {
  if (!cluster_.form(30'000'000)) return "the cluster does not form";
  if (auto wrong = make_table(); !wrong.empty()) return wrong;
  newest_state();
  const int steps = (profile_.grows    ? 150
                     : profile_.purges ? 120
                                       : 60) +
                    static_cast<int>(random_.below(60));
  const uint64_t pause_max_us = profile_.purges && !profile_.grows ? 300'000 : 150'000;
  const int truncate_at = profile_.truncates ? static_cast<int>(random_.below(50)) : -1;
  const int feeds_at = profile_.feeds_late ? static_cast<int>(random_.below(30)) : -1;
  for (int step = 0; step < steps; ++step) {
    fault();
    if (profile_.clocks) clocks_.step(cluster_);
    if (profile_.disks) disks_.step(cluster_);
    if (step == feeds_at) turn_on_feeds();
    if (auto wrong = step_feeds(); !wrong.empty()) return "under faults: " + wrong;
    if (random_.one_in(8)) change_tablets();
    if (step == truncate_at) truncate();
    for (int n = 0; n < 3; ++n) start_operation();
    cluster_.world().run_for(static_cast<int64_t>(random_.below(pause_max_us)));
    if (truncate_begun_us_) history_.truncated(*truncate_begun_us_, truncated_us_);
    newest_state();
    if (cut_ && cluster_[*cut_].is_ready() && !cluster_[*cut_].is_behind()) cut_.reset();
    if (step % 8 == 0)
      if (auto wrong = check_members(); !wrong.empty()) return "under faults: " + wrong;
  }
  if (profile_.fills_up) change_tablets();
  heal();
  if (auto wrong = check_history(); !wrong.empty()) return "under faults: " + wrong;
  if (auto wrong = check_end(); !wrong.empty()) return "at the end: " + wrong;
  return "";
}

std::string DataCluster::make_table() {
  replication::SchemaChange change;
  change.expected = cluster_[0].state()->schema_version;
  replication::SchemaChange::NewTable table = table_t();
  table.max_partition_mb = 1;
  table.change_log = profile_.feeds && !profile_.feeds_late;
  change.new_tables.push_back(table);
  std::optional<base::MonotonicUs> done;
  cluster_[0].spawn(change_schema(&cluster_[0], std::move(change), &done));
  if (!cluster_.world().run_until([&] { return done.has_value(); }, 10'000'000))
    return "the table is not made";
  return "";
}

size_t DataCluster::up_count() {
  size_t up = 0;
  for (size_t i = 0; i < cluster_.size(); ++i) up += cluster_[i].is_up() ? 1 : 0;
  return up;
}

SimNode* DataCluster::random_ready_node() {
  SimNode& node = cluster_[random_.below(cluster_.size())];
  return node.is_ready() && !node.clock().is_frozen() ? &node : nullptr;
}

const replication::MetaSnapshot& DataCluster::newest_state() {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!cluster_[i].is_ready()) continue;
    node_of_host_[cluster_[i].node().self()] = i;
    auto state = cluster_[i].state();
    if (!newest_ || newest_->applied < state->applied) newest_ = std::move(state);
  }
  return newest_;
}

std::optional<TableIncarnation> DataCluster::incarnation(SimNode& node) {
  const auto state = node.state();
  if (state->tables.empty()) return std::nullopt;
  return state->tables.begin()->second->incarnation;
}

// ---- faults ----

void DataCluster::fault() {
  SimNetwork& network = cluster_.network();
  const size_t victim = random_.below(cluster_.size());
  if (profile_.on_rocks && cluster_[victim].is_up() && random_.one_in(2)) {
    storage::Store& store = cluster_[victim].store(static_cast<uint32_t>(random_.below(shards_)));
    random_.one_in(2) ? store.flush([](Result<void>) {}) : store.compact([](Result<void>) {});
    return;
  }
  const uint64_t join_one_in = profile_.grows ? 2 : 10;
  const size_t nodes_most = profile_.grows ? 4 : 8;
  switch (random_.below(18)) {
    case 0:
      if (up_count() != cluster_.size()) break;
      if (profile_.power_cuts) {
        cut_power();
      } else if (profile_.cuts_one && !any_is_behind()) {
        cluster_[victim].power_cut();
        cut_ = victim;
      } else {
        cluster_[victim].kill();
      }
      break;
    case 1:
    case 2:
      for (size_t i = 0; i < cluster_.size(); ++i) {
        if (!cluster_[i].is_up()) cluster_[i].start();
      }
      break;
    case 3:
      cluster_.isolate(victim);
      break;
    case 4: {
      const size_t other = random_.below(cluster_.size());
      if (other != victim) {  // one way only
        network.cut(cluster_[victim].endpoint(), cluster_[other].endpoint());
      }
      break;
    }
    case 5:
    case 6:
      network.mend_all();
      break;
    case 7:
      network.options.lost_in_million = static_cast<uint32_t>(random_.below(100'000));
      break;
    case 8:
      network.options.lost_in_million = 0;
      break;
    case 9:
      network.options.slow_one_in = static_cast<uint32_t>(2 + random_.below(30));
      break;
    case 10:
      network.options.slow_one_in = 0;
      break;
    case 11:
    case 12:
      if (cluster_.size() < nodes_most && random_.one_in(join_one_in)) add_node().start();
      break;
    case 13:
      network.set_deaf(cluster_[victim].endpoint(), true);
      break;
    case 14:
      if (random_.one_in(3)) network.hear_all();
      break;
    default:
      break;
  }
}

/// Another cut could take a write from all that had it.
bool DataCluster::any_is_behind() {
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!cluster_[i].is_ready() || cluster_[i].is_behind()) return true;
  return false;
}

/// A power cut may have taken what it had of that place, and it knows that (rule 20). Once it has
/// been whole again nothing may be missing, whatever ends it afterwards.
bool DataCluster::may_lack(const StoreAddress& member, const storage::ReadCommand& command) {
  const size_t number = node_of_host_.at(member.host);
  if (cut_ != number) return false;
  SimNode& node = cluster_[number];
  if (!node.is_ready()) return true;
  const auto& behind = node.data(member.store % node.shard_count()).behind();
  return behind.is_behind(member.store, command.incarnation, command.position);
}

/// All machines at once; some come back at once.
void DataCluster::cut_power() {
  for (size_t i = 0; i < cluster_.size(); ++i) cluster_[i].power_cut();
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (random_.one_in(2)) cluster_[i].start();
}

/// A split at the place of a key; or tablets marked as full.
void DataCluster::change_tablets() {
  SimNode* const via = random_ready_node();
  if (via == nullptr) return;
  const auto state = via->state();
  if (state->tables.empty()) return;
  const auto& table = *state->tables.begin()->second;
  const RingPosition at =
      partitioner::position_of(key_text(static_cast<int>(random_.below(kKeys))));
  if (profile_.fills_up && random_.one_in(2)) {
    for (const partitioner::Tablet& each : table.tablets.tablets())
      via->spawn(propose(via, replication::SetTabletFull{table.incarnation, each.id, true}));
    return;
  }
  if (merge_instead(*via, table, at)) return;
  split_at(*via, table, at);
}

void DataCluster::truncate() {
  SimNode* const via = random_ready_node();
  if (via == nullptr || via->state()->tables.empty()) return;
  truncate_begun_us_ = cluster_.world().now_us();
  replication::SchemaChange change;
  change.expected = via->state()->schema_version;
  change.truncated_tables.push_back(via->state()->tables.begin()->first);
  via->spawn(change_schema(via, std::move(change), &truncated_us_));
}

void DataCluster::turn_on_feeds() {
  SimNode* const via = random_ready_node();
  if (via == nullptr || via->state()->tables.empty()) return;
  const replication::TableInfo& table = *via->state()->tables.begin()->second;
  replication::SchemaChange change;
  change.expected = via->state()->schema_version;
  change.altered_tables.push_back({table.id, "ks", "t", table.max_partition_mb, true});
  via->spawn(change_schema(via, std::move(change), &feeds_on_us_));
}

void DataCluster::heal() {
  clocks_.set_right(cluster_);
  disks_.heal(cluster_);
  cluster_.network().mend_all();
  cluster_.network().hear_all();
  cluster_.network().options = NetworkOptions();
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!cluster_[i].is_up()) cluster_[i].start();
  }
  cluster_.world().run_for(15'000'000);
  if (profile_.cuts_one) cluster_.world().run_until([&] { return !any_is_behind(); }, 60'000'000);
}

// ---- clients ----

std::unique_ptr<Operation> DataCluster::new_operation(SimNode& via, ConsistencyLevel level) {
  auto operation = std::make_unique<Operation>();
  operation->level = level;
  operation->incarnation = incarnation(via).value_or(TableIncarnation{});
  operation->begun_us = cluster_.world().now_us();
  operation->command.now_s = operation->dated_s = now_s(via);
  return operation;
}

void DataCluster::start_operation() {
  static constexpr ConsistencyLevel kWriteLevels[] = {
      ConsistencyLevel::kQuorum, ConsistencyLevel::kQuorum, ConsistencyLevel::kQuorum,
      ConsistencyLevel::kOne,    ConsistencyLevel::kAny,    ConsistencyLevel::kAll};
  static constexpr ConsistencyLevel kReadLevels[] = {
      ConsistencyLevel::kQuorum, ConsistencyLevel::kQuorum, ConsistencyLevel::kQuorum,
      ConsistencyLevel::kQuorum, ConsistencyLevel::kOne,    ConsistencyLevel::kAll};
  SimNode* const via = random_ready_node();
  if (via == nullptr || !incarnation(*via)) return;
  const bool writes = random_.below(5) < 3;
  auto operation = new_operation(*via, (writes ? kWriteLevels : kReadLevels)[random_.below(6)]);
  if (writes) {
    make_write(random_, static_cast<int>(random_.below(kKeys)), ++last_timestamp_, now_s(*via),
               *operation);
    Operation& added = history_.add(std::move(operation));
    via->spawn(run_write(via, &added));
  } else {
    make_read(random_, profile_.whole_reads, *operation);
    Operation& added = history_.add(std::move(operation));
    via->spawn(run_read(via, &added, &history_));
  }
}

// ---- checks ----

std::string DataCluster::check_history() const {
  for (const auto& operation : history_.operations()) {
    if (operation->is_write || operation->state != Operation::State::kOk) continue;
    if (auto wrong = history_.check(*operation, profile_.whole_reads); !wrong.empty()) return wrong;
  }
  return "";
}

std::string DataCluster::check_members() {
  const replication::MetaSnapshot state = newest_state();
  if (!state || state->tables.empty()) return "";
  const auto& table = *state->tables.begin()->second;
  for (int key = 0; key < kKeys; ++key) {
    const auto lasting = history_.lasting(key);
    if (lasting.empty()) continue;
    storage::ReadCommand command;
    command.incarnation = table.incarnation;
    command.partition_key = key_text(key);
    command.position = partitioner::position_of(command.partition_key);
    command.live_only = false;
    const auto& members = replication::read_set(table.tablets.find(command.position));
    std::vector<PartitionOf<int64_t>> held;
    size_t lacking = 0;
    for (const StoreAddress& member : members) {
      const auto node = node_of_host_.find(member.host);
      if (node == node_of_host_.end()) return "";  // not up yet since it became a member
      if (cluster_[node->second].clock().is_frozen()) return "";  // it answers nothing now
      if (may_lack(member, command)) {
        ++lacking;
        continue;
      }
      const auto result = cluster_[node->second].peek(member.store, command);
      held.push_back(result ? newest_held(*result) : PartitionOf<int64_t>{});
    }
    // One that may lack them answers no read, and fetches from R of the others: one copy less is
    // enough until it has.
    const size_t wanted = members.size() / 2 + 1 - lacking;
    for (const Operation* write : lasting) {
      for (size_t row = 0; row <= kRows; ++row) {
        for (size_t column = 0; column < kColumns; ++column) {
          if (write->effects[row][column] == Operation::Effect::kNone) continue;
          if (row == kStatic && column != 1) continue;
          size_t copies = 0;
          for (const auto& one : held) {
            const bool gone = one[row][column] == 0 && may_be_purged(*write, row, column);
            copies += gone || one[row][column] >= write->timestamp ? 1 : 0;
          }
          if (copies < wanted)
            return fmt::format(
                "the write {} of {} row {}, begun {}, acknowledged {}, incarnation {}, is on {} of "
                "{} members{}",
                write->timestamp, key_text(key), row, write->begun_us, write->ended_us,
                write->incarnation.value, copies, members.size(),
                write->expiry_s != 0 ? " (it expires)" : "");
        }
      }
    }
  }
  return "";
}

/// It deletes, or something later has deleted it; or, where time may jump, has expired over it.
bool DataCluster::may_be_purged(const Operation& write, size_t row, size_t column) const {
  if (!profile_.purges) return false;
  return std::any_of(
      history_.operations().begin(), history_.operations().end(), [&](const auto& other) {
        return other->is_write && other->key == write.key && other->timestamp >= write.timestamp &&
               (other->effects[row][column] == Operation::Effect::kDelete ||
                (profile_.clocks && other->expiry_s != 0 &&
                 other->effects[row][column] == Operation::Effect::kValue));
      });
}

std::string DataCluster::finish(Operation& operation, SimNode& via, const char* what) {
  if (operation.is_write) {
    via.spawn(run_write(&via, &operation));
  } else {
    via.spawn(run_read(&via, &operation, &history_));
  }
  cluster_.world().run_until([&] { return operation.state != Operation::State::kPending; },
                             5'000'000);
  if (operation.state != Operation::State::kOk)
    return fmt::format("{} of {} fails", what, key_text(operation.key));
  return operation.is_write ? "" : history_.check(operation, profile_.whole_reads);
}

std::string DataCluster::check_settled_cluster() {
  const size_t members = std::min<size_t>(4, cluster_.size());
  const auto settled = [&] {
    const replication::MetaSnapshot state = newest_state();
    if (!state || state->nodes.size() != cluster_.size() || state->tables.empty()) return false;
    for (const auto& tablet : state->tables.begin()->second->tablets.tablets()) {
      if (tablet.stage != partitioner::TabletStage::kNormal || tablet.replicas.size() != members)
        return false;
    }
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (!cluster_[i].is_ready() || cluster_[i].state()->applied != state->applied) return false;
    }
    return true;
  };
  if (!cluster_.world().run_until(settled, 60'000'000)) return "not settled: " + describe();
  cluster_.world().run_for(3'000'000);
  const auto leader = cluster_.leader();
  if (!leader) return "the metadata group has no leader";
  const auto& raft = cluster_[*leader].node().meta_group().driver()->core();
  if (raft.configuration().voters.size() % 2 == 0)
    return fmt::format("{} voters", raft.configuration().voters.size());
  return "";
}

std::string DataCluster::describe() {
  std::string text;
  for (size_t i = 0; i < cluster_.size(); ++i) {
    text += fmt::format("node {} {}", i + 1, cluster_[i].is_ready() ? "ready" : "not ready");
    if (cluster_[i].is_ready()) text += fmt::format(" at {}", cluster_[i].state()->applied.value);
    if (cluster_[i].fatal()) text += " fatal: " + cluster_[i].fatal()->message;
    text += "; ";
  }
  const replication::MetaSnapshot state = newest_state();
  if (!state || state->tables.empty()) return text;
  text += fmt::format("{} nodes; ", state->nodes.size());
  for (const auto& tablet : state->tables.begin()->second->tablets.tablets())
    text += fmt::format("tablet {} stage {} members {}; ", tablet.id.value,
                        static_cast<int>(tablet.stage), tablet.replicas.size());
  return text;
}

uint64_t DataCluster::digest_mismatches() {
  uint64_t count = 0;
  for (size_t i = 0; i < cluster_.size(); ++i)
    for (uint32_t shard = 0; shard < cluster_[i].shard_count(); ++shard)
      count += cluster_[i].data(shard).coordinator_impl().metrics().digest_mismatches.value();
  return count;
}

/// Reads at ALL give what they must, and make the replicas equal.
std::string DataCluster::check_reads_at_end() {
  for (int key = 0; key < kKeys; ++key) {
    PartitionOf<int64_t> first{};
    uint64_t mismatches = 0;
    int64_t now_s = 0;
    for (const auto level :
         {ConsistencyLevel::kAll, ConsistencyLevel::kAll, ConsistencyLevel::kOne}) {
      SimNode& via = cluster_[random_.below(cluster_.size())];
      auto read = new_operation(via, level);
      make_read(random_, true, *read);
      read->key = key;
      read->command.partition_key = key_text(key);
      read->command.position = partitioner::position_of(read->command.partition_key);
      if (now_s != 0) read->command.now_s = now_s;
      Operation& added = history_.add(std::move(read));
      if (auto wrong = finish(added, via, "a read"); !wrong.empty()) return wrong;
      const auto& seen = added.seen[static_cast<size_t>(key)];
      if (now_s == 0) {
        first = seen;
        now_s = added.command.now_s;
        mismatches = digest_mismatches();
      } else if (seen != first) {
        return fmt::format("{} differs between replicas after a read at ALL", key_text(key));
      }
    }
    if (digest_mismatches() != mismatches)
      return fmt::format("digests of {} differ after a read at ALL", key_text(key));
  }
  return "";
}

std::string DataCluster::check_writes_at_end() {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    SimNode& via = cluster_[i];
    const auto state = via.state();
    for (const auto& tablet : state->tables.begin()->second->tablets.tablets()) {
      if (!tablet.full) continue;
      const auto table = state->tables.begin()->second->incarnation;
      via.spawn(propose(&via, replication::SetTabletFull{table, tablet.id, false}));
    }
    cluster_.world().run_for(1'000'000);
    auto write = new_operation(via, ConsistencyLevel::kQuorum);
    make_write(random_, static_cast<int>(i), ++last_timestamp_, now_s(via), *write);
    Operation& added = history_.add(std::move(write));
    if (auto wrong = finish(added, via, "a quorum write"); !wrong.empty()) return wrong;
  }
  return "";
}

std::string DataCluster::check_end() {
  if (auto wrong = check_settled_cluster(); !wrong.empty()) return wrong;
  if (profile_.cuts_one && any_is_behind()) return "a store stays behind: " + describe();
  if (auto wrong = check_members(); !wrong.empty()) return wrong;
  if (auto wrong = check_reads_at_end(); !wrong.empty()) return wrong;
  if (auto wrong = check_writes_at_end(); !wrong.empty()) return wrong;
  if (auto wrong = check_feeds_at_end(); !wrong.empty()) return wrong;
  if (auto wrong = check_members(); !wrong.empty()) return wrong;
  if (profile_.purges) {
    if (auto wrong = check_purged(); !wrong.empty()) return wrong;
    if (auto wrong = check_reads_at_end(); !wrong.empty()) return wrong;
  }
  return check_feeds_of_few();
}

}  // namespace tetrad::simulation
