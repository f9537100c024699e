// SPDX-License-Identifier: Apache-2.0
// What is checked of a seed of the swarm.
#include <algorithm>
#include <map>

#include "partitioner/token.h"
#include "tests/simulation/cluster/data_clients.h"
#include "tests/simulation/swarm/swarm_cluster.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
/// Events that wait in the world for each node: timers, messages, work for the disk.
constexpr size_t kEventsMost = 5'000;
/// The same when nothing goes on: timers of its runners.
constexpr size_t kEventsMostIdle = 150;

/// Of one partition, as far as both pages go.
bool show_the_same(const Operation& a, const Operation& b) {
  const auto key = static_cast<size_t>(a.key);
  for (size_t row = 0; row <= kRows; ++row)
    for (size_t column = 0; column < kColumns; ++column)
      if (a.covered[key][row][column] && b.covered[key][row][column] &&
          a.seen[key][row][column] != b.seen[key][row][column])
        return false;
  return true;
}

/// Whose W members have what was acknowledged. In the stage "read new" that are those of the old set:
/// what the new one lacks comes to it by the settling, and both are read until then.
const std::vector<StoreAddress>& holding_set(const partitioner::Tablet& tablet) {
  return tablet.stage == partitioner::TabletStage::kWriteNew ? tablet.new_replicas
                                                             : tablet.replicas;
}

}  // namespace

std::string SwarmCluster::check_histories() const {
  for (const Table& table : tables_) {
    for (const auto& operation : table.history->operations()) {
      if (operation->is_write || operation->state != Operation::State::kOk) continue;
      if (auto wrong = table.history->check(*operation, false); !wrong.empty()) {
        return fmt::format("table {}: {} ({} through dc{}, begun {}, ended {})",
                           table.id.value.octets[0], wrong, base::name_of(operation->level),
                           operation->center + 1, operation->begun_us, operation->ended_us);
      }
    }
  }
  return "";
}

/// Every acknowledged write is on W members of its tablet, in each data centre that its level names,
/// but for what is lost with a disk, or what a machine without power may have lost and not yet
/// fetched.
std::string SwarmCluster::check_members() {
  const replication::MetaSnapshot state = topology_.newest_state();
  if (!state) return "";
  for (Table& table : tables_) {
    const auto found = state->tables.find(table.id);
    if (found == state->tables.end()) continue;
    if (auto wrong = check_members_of(table, *found->second); !wrong.empty()) return wrong;
  }
  return "";
}

std::string SwarmCluster::check_members_of(Table& table, const replication::TableInfo& info) {
  for (int key = 0; key < kKeys; ++key) {
    const auto lasting = table.history->lasting(key);
    if (lasting.empty()) continue;
    storage::ReadCommand command;
    command.incarnation = info.incarnation;
    command.partition_key = key_text(key);
    command.position = partitioner::position_of(command.partition_key);
    command.live_only = false;
    struct Set {
      size_t members = 0, lacking = 0;
      std::vector<PartitionOf<int64_t>> held;
    };
    std::map<size_t, Set> sets;  // by data centre
    for (const StoreAddress& member : holding_set(info.tablets.find(command.position))) {
      const bool is_lost = topology_.is_lost(member.host);
      const auto index = topology_.machine_of(member.host);
      if (!index && !is_lost) return "";  // not up yet since it became a member
      const size_t center =
          is_lost ? topology_.center_of_lost(member.host) : topology_.machine(*index).center;
      Set& set = sets[table.is_in_all ? center : 0];
      ++set.members;
      if (is_lost || topology_.may_lack(member, info.incarnation, command.position)) {
        ++set.lacking;
        continue;
      }
      if (cluster_[*index].clock().is_frozen()) return "";  // it answers nothing now
      set.held.push_back(held_by(cluster_[*index], member.store, command));
    }
    for (const Operation* write : lasting) {
      const auto own = sets.find(table.is_in_all ? write->center : 0);
      if (own == sets.end()) continue;
      const Set& set = own->second;
      const size_t quorum = set.members / 2 + 1;
      if (quorum <= set.lacking) continue;
      for (size_t row = 0; row <= kRows; ++row) {
        for (size_t column = 0; column < kColumns; ++column) {
          if (write->effects[row][column] == Operation::Effect::kNone) continue;
          if (row == kStatic && column != 1) continue;
          size_t copies = 0;
          for (const auto& one : set.held) {
            const int64_t held = one[row][column];
            const bool gone = may_be_purged(table, *write, row, column) &&
                              (held == 0 || is_deletion(table, write->key, row, column, held));
            copies += gone || held >= write->timestamp ? 1 : 0;
          }
          if (copies < quorum - set.lacking)
            return fmt::format(
                "the write {} of table {} {} row {}, begun {}, acknowledged {} at {}, is on {} of "
                "{} "
                "members, {} of which may lack it{}",
                write->timestamp, table.id.value.octets[0], key_text(key), row, write->begun_us,
                write->ended_us, base::name_of(write->level), copies, set.members, set.lacking,
                write->expiry_s != 0 ? " (it expires)" : "");
        }
      }
    }
  }
  return "";
}

PartitionOf<int64_t> SwarmCluster::held_by(SimNode& node, uint32_t store,
                                           storage::ReadCommand command) const {
  PartitionOf<int64_t> all{};
  while (true) {  // a page may have few rows
    const auto result = node.peek(store, command);
    if (!result) return all;
    const PartitionOf<int64_t> page = newest_held(*result);
    for (size_t row = 0; row <= kRows; ++row)
      for (size_t column = 0; column < kColumns; ++column)
        all[row][column] = std::max(all[row][column], page[row][column]);
    if (result->exhausted) return all;
    command.resume_after = result->complete_up_to;
  }
}

/// A purge takes deletions in no order of time: an older one may be left where a later one is gone.
bool SwarmCluster::is_deletion(const Table& table, int key, size_t row, size_t column,
                               int64_t timestamp) {
  return std::ranges::any_of(table.history->operations(), [&](const auto& other) {
    return other->is_write && other->key == key && other->timestamp == timestamp &&
           other->effects[row][column] == Operation::Effect::kDelete;
  });
}

/// It deletes, or something later has deleted it; or, where time may jump, has expired over it.
bool SwarmCluster::may_be_purged(const Table& table, const Operation& write, size_t row,
                                 size_t column) const {
  if (!profile_.has(Trouble::kPurges)) return false;
  const auto& operations = table.history->operations();
  return std::any_of(operations.begin(), operations.end(), [&](const auto& other) {
    return other->is_write && other->key == write.key && other->timestamp >= write.timestamp &&
           (other->effects[row][column] == Operation::Effect::kDelete ||
            (profile_.has(Trouble::kClocks) && other->expiry_s != 0 &&
             other->effects[row][column] == Operation::Effect::kValue));
  });
}

/// Neither events nor hints pile up.
std::string SwarmCluster::check_bounds() {
  const size_t events_most = kEventsMost * cluster_.size();
  if (cluster_.world().events_waiting() > events_most)
    return fmt::format("{} events wait", cluster_.world().events_waiting());
  if (!profile_.has(Trouble::kTiny)) return "";
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (cluster_[i].is_ready())
      if (auto wrong = check_hints(i); !wrong.empty()) return wrong;
  return "";
}

/// A life begins with all hints that the one before had not noted as sent, each once a second; those
/// may be more than are taken.
std::string SwarmCluster::check_hints(size_t node) {
  hint_bytes_.resize(cluster_.size());
  HintBytes& known = hint_bytes_[node];
  const uint64_t life = topology_.machine(node).starts;
  if (known.life != life) known = {life, {}};
  const bool is_new = known.most.empty();
  for (uint32_t shard = 0; shard < cluster_[node].shard_count(); ++shard) {
    const replication::HintStore& hints = cluster_[node].data(shard).hints();
    for (const StoreAddress& replica : hints.replicas()) {
      const uint64_t bytes = hints.pending_bytes(replica);
      const auto at_first = known.most.try_emplace({shard, replica}, is_new ? bytes : 0).first;
      uint64_t& most = at_first->second;
      if (bytes > std::max(most, tiny_.hint_bytes_max))
        return fmt::format("{} bytes of hints where {} are allowed", bytes, tiny_.hint_bytes_max);
      most = std::min(most, bytes);
    }
  }
  known.most.try_emplace({UINT32_MAX, StoreAddress{}}, 0);  // it has been looked at
  return "";
}

std::string SwarmCluster::finish(Table& table, SimNode& via, std::unique_ptr<Operation> operation) {
  Operation& added = table.history->add(std::move(operation));
  finished_ = &added;
  if (added.is_write)
    via.spawn(run_write(&via, &added));
  else
    via.spawn(run_read(&via, &added, table.history.get()));
  cluster_.world().run_until([&] { return added.state != Operation::State::kPending; },
                             5 * kSecondUs);
  if (added.state == Operation::State::kOk) return "";
  return fmt::format("a {} of table {} {} at {} through node {} fails",
                     added.is_write ? "write" : "read", table.id.value.octets[0],
                     key_text(added.key), base::name_of(added.level), via.options().address);
}

/// Every node that belongs to the cluster serves writes and reads of all tables.
std::string SwarmCluster::check_live() {
  const auto& state = topology_.newest_state();
  if (!state) return "no node is ready";
  for (size_t i = 0; i < cluster_.size(); ++i) {
    const Machine& machine = topology_.machine(i);
    const auto node = state->nodes.find(machine.host);
    if (machine.is_for_good || machine.is_leaving || node == state->nodes.end() ||
        node->second.state != replication::NodeState::kNormal || topology_.is_lost(machine.host))
      continue;
    if (!cluster_[i].is_ready()) return fmt::format("node {} is not ready: {}", i + 1, describe());
    for (Table& table : tables_) {
      if (!incarnation_of(cluster_[i], table)) return "a node does not know a table";
      auto write = new_operation(cluster_[i], table, ConsistencyLevel::kQuorum);
      write->within_us = kOperationUs;
      make_write(random_, static_cast<int>(random_.below(kKeys)), ++last_timestamp_,
                 now_s(cluster_[i]), *write);
      if (auto wrong = finish(table, cluster_[i], std::move(write)); !wrong.empty())
        return wrong + ": " + describe();
      if (!cluster_[i].is_ready()) break;  // it has just been taken out
      auto read = new_operation(cluster_[i], table, ConsistencyLevel::kQuorum);
      read->within_us = kOperationUs;
      make_read(random_, true, *read);
      if (auto wrong = finish(table, cluster_[i], std::move(read)); !wrong.empty())
        return wrong + ": " + describe();
    }
  }
  return "";
}

/// Sets have their members again, and everyone knows it.
std::string SwarmCluster::check_settled() {
  const auto is_settled = [this] {
    topology_.attend();
    if (!topology_.is_settled()) return false;
    const auto& state = topology_.newest_state();
    for (const Table& table : tables_) {
      size_t wanted = 0;
      for (size_t center = 0; center < centers_.size(); ++center)
        if (table.is_in_all || table.center == center)
          wanted += std::min<size_t>(4, topology_.normal_nodes(center));
      for (const auto& tablet : state->tables.find(table.id)->second->tablets.tablets())
        if (tablet.replicas.size() != wanted) return false;
    }
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (topology_.machine(i).is_for_good) continue;
      if (!cluster_[i].is_ready() || cluster_[i].is_behind()) return false;
      if (cluster_[i].state()->applied != state->applied) return false;
    }
    return true;
  };
  // Balance and merges go on: it is looked at often. Pages of some hundred bytes make moves long.
  const int64_t most_us = (profile_.has(Trouble::kTiny) ? 600 : 180) * kSecondUs;
  for (int64_t waited_us = 0; !is_settled(); waited_us += kSecondUs / 50) {
    if (waited_us >= most_us) return "not settled: " + describe();
    cluster_.world().run_for(kSecondUs / 50);
  }
  cluster_.world().run_for(3 * kSecondUs);
  const auto leader = cluster_.leader();
  if (!leader) return "the metadata group has no leader";
  const auto& raft = cluster_[*leader].node().meta_group().driver()->core();
  if (raft.configuration().voters.size() % 2 == 0)
    return fmt::format("{} voters", raft.configuration().voters.size());
  return "";
}

/// Reads at ALL give what they must, and make the members equal.
std::string SwarmCluster::check_equal() {
  for (Table& table : tables_) {
    for (int key = 0; key < kKeys; ++key) {
      const Operation* first = nullptr;
      for (const auto level :
           {ConsistencyLevel::kAll, ConsistencyLevel::kAll, ConsistencyLevel::kOne}) {
        SimNode* via = nullptr;
        for (int tries = 0; via == nullptr && tries < 1000; ++tries)
          via = topology_.random_ready_node();
        if (via == nullptr) return "no node is ready";
        auto read = new_operation(*via, table, level);
        read->within_us = kOperationUs;
        make_read(random_, true, *read);
        read->key = key;
        read->command.partition_key = key_text(key);
        read->command.position = partitioner::position_of(read->command.partition_key);
        if (first != nullptr) read->command.now_s = first->command.now_s;
        if (auto wrong = finish(table, *via, std::move(read)); !wrong.empty())
          return wrong + ": " + describe();
        if (first == nullptr)
          first = finished_;
        else if (!show_the_same(*first, *finished_))
          return fmt::format("table {} {} differs between replicas after a read at ALL",
                             table.id.value.octets[0], key_text(key));
      }
    }
  }
  return "";
}

/// When nothing goes on nothing waits.
std::string SwarmCluster::check_idle() {
  cluster_.world().run_for(15 * kSecondUs);
  const size_t waiting = cluster_.world().events_waiting();
  if (waiting > kEventsMostIdle * cluster_.size() * shards_)
    return fmt::format("{} events wait although nothing goes on", waiting);
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!cluster_[i].is_ready()) continue;
    for (uint32_t shard = 0; shard < cluster_[i].shard_count(); ++shard)
      if (const uint64_t count = cluster_[i].data(shard).hints().pending_count(); count != 0)
        return fmt::format("{} hints wait on node {} although all nodes live", count, i + 1);
  }
  return "";
}

std::string SwarmCluster::describe() {
  std::string text;
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (topology_.machine(i).is_for_good) continue;
    SimNode& node = cluster_[i];
    text += fmt::format("node {} of dc{} {}", i + 1, topology_.machine(i).center + 1,
                        node.is_ready() ? "ready" : "not ready");
    if (node.is_ready()) text += fmt::format(" at {}", node.state()->applied.value);
    if (node.is_up() && node.is_behind()) text += " behind";
    if (node.fatal()) text += " fatal: " + node.fatal()->message;
    text += "; ";
  }
  const auto& state = topology_.newest_state();
  if (!state) return text;
  for (const auto& [host, node] : state->nodes)
    if (node.state != replication::NodeState::kNormal &&
        node.state != replication::NodeState::kRemoved)
      text += fmt::format("{} is {}; ", node.address, static_cast<int>(node.state));
  const auto members = [this](const std::vector<StoreAddress>& set) {
    std::vector<std::string> names;
    for (const StoreAddress& member : set) {
      const auto index = topology_.machine_of(member.host);
      names.push_back(index ? fmt::format("{}/{}", *index + 1, member.store) : "lost");
    }
    return fmt::format("{}", fmt::join(names, " "));
  };
  for (const auto& [id, table] : state->tables) {
    for (const auto& tablet : table->tablets.tablets()) {
      text += fmt::format("table {} tablet {} on {}", id.value.octets[0], tablet.id.value,
                          members(tablet.replicas));
      if (tablet.stage != partitioner::TabletStage::kNormal)
        text += fmt::format(", stage {} to {}", static_cast<int>(tablet.stage),
                            members(tablet.new_replicas));
      text += "; ";
    }
  }
  return text;
}

}  // namespace tetrad::simulation
