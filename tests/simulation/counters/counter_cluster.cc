// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/counters/counter_cluster.h"

#include <algorithm>

#include "partitioner/token.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

using Outcome = CounterOperation::Outcome;

constexpr int64_t kOperationUs = 1'500'000;
constexpr size_t kOperationsMax = 400;  // of a key

std::string key_text(int key) { return "counter" + std::to_string(key); }

storage::ReadCommand read_of(TableIncarnation incarnation, int key) {
  storage::ReadCommand command;
  command.incarnation = incarnation;
  command.partition_key = key_text(key);
  command.position = partitioner::position_of(command.partition_key);
  command.rows = {""};
  return command;
}

int64_t sum_of(const storage::ReadResult& result) {
  int64_t sum = 0;
  for (const auto& partition : result.partitions) {
    for (const auto& row : partition.rows) {
      storage::RowRecordReader reader;
      storage::Cell cell;
      if (!reader.open(row.record)) continue;
      while (reader.next(cell)) sum += replication::decode_total(cell.value).value_or(1'000'000);
    }
  }
  return sum;
}

Task<void> run_increment(SimNode* node, uint32_t shard, TableIncarnation incarnation,
                         CounterOperation* operation, uint64_t* place) {
  replication::CounterIncrement increment;
  increment.incarnation = incarnation;
  increment.partition_key = key_text(operation->key);
  increment.position = partitioner::position_of(increment.partition_key);
  increment.rows.push_back({"", "", {{1, operation->delta}}});
  replication::WriteOptions options;
  options.level = operation->begun % 3 == 0 ? ConsistencyLevel::kQuorum : ConsistencyLevel::kOne;
  options.deadline = {node->reactor(shard).now_us() + kOperationUs};
  std::vector<replication::CounterIncrement> increments;
  increments.push_back(std::move(increment));
  auto result = co_await node->data(shard).coordinator().increment(std::move(increments), options);
  if (result) {
    operation->outcome = Outcome::kCertain;
  } else {
    operation->error = result.error().message;
    operation->outcome =
        result.error().code == ErrorCode::kWriteTimeout ? Outcome::kUnknown : Outcome::kNothing;
  }
  operation->ended = ++*place;
}

Task<void> run_read(SimNode* node, uint32_t shard, TableIncarnation incarnation,
                    CounterOperation* operation, uint64_t* place, ConsistencyLevel level) {
  replication::ReadOptions options;
  options.level = level;
  options.deadline = {node->reactor(shard).now_us() + kOperationUs};
  storage::ReadCommand command = read_of(incarnation, operation->key);
  auto& coordinator = node->data(shard).coordinator();
  command.now_s = coordinator.now_us() / 1'000'000;
  auto result = co_await coordinator.read(std::move(command), options);
  if (result) operation->seen = sum_of(*result);
  if (!result) operation->error = result.error().message;
  operation->outcome = result ? Outcome::kCertain : Outcome::kNothing;
  operation->ended = ++*place;
}

/// How much a sum may be.
struct Bounds {
  int64_t low = 0, high = 0;
  void add(int64_t delta) { low += delta, high += delta; }
  void add_maybe(int64_t delta) { (delta < 0 ? low : high) += delta; }
  bool contains(int64_t sum) const { return low <= sum && sum <= high; }
  std::string text() const { return fmt::format("{} to {}", low, high); }
};

}  // namespace

std::string CounterOperation::text() const {
  static constexpr const char* kOutcomes[] = {"pending", "certain", "unknown", "nothing"};
  const std::string end = ended == kNever ? "..." : std::to_string(ended);
  return fmt::format("{} at node {}, {} to {}: {}{}",
                     is_read ? "read" : fmt::format("add {}", delta), node + 1, begun, end,
                     kOutcomes[static_cast<int>(outcome)],
                     is_read && error.empty() ? fmt::format(" {}", seen) : " " + error);
}

std::string check_counter(const std::vector<CounterOperation>& operations) {
  std::vector<const CounterOperation*> reads;
  for (const auto& operation : operations)
    if (operation.is_read && operation.outcome == Outcome::kCertain) reads.push_back(&operation);
  const auto is_before = [](const CounterOperation& one, uint64_t begun) {
    return one.outcome == Outcome::kCertain && one.ended < begun;
  };
  for (const CounterOperation* read : reads) {
    Bounds bounds;
    for (const auto& one : operations) {
      if (one.is_read || one.outcome == Outcome::kNothing || one.begun > read->ended) continue;
      is_before(one, read->begun) ? bounds.add(one.delta) : bounds.add_maybe(one.delta);
    }
    if (!bounds.contains(read->seen))
      return fmt::format("{}, and may be {}", read->text(), bounds.text());
  }
  for (const CounterOperation* first : reads) {
    for (const CounterOperation* second : reads) {
      if (second->begun < first->ended) continue;
      Bounds change;
      for (const auto& one : operations) {
        if (one.is_read || one.outcome == Outcome::kNothing || one.begun > second->ended) continue;
        if (is_before(one, first->begun)) continue;  // both have it
        const bool is_between = one.begun > first->ended && is_before(one, second->begun);
        is_between ? change.add(one.delta) : change.add_maybe(one.delta);
      }
      if (!change.contains(second->seen - first->seen))
        return fmt::format("{}, after {}: what changed may be {}", second->text(), first->text(),
                           change.text());
    }
  }
  return "";
}

CounterCluster::CounterCluster(uint64_t seed)
    : profile_{.grows = seed % 5 == 0,
               .power_cuts = seed % 2 == 1,
               .group = seed % 4 == 1,
               .splits = seed % 3 == 0,
               .stalls = seed % 3 == 1,
               .replaces = seed % 4 == 2,
               .only_adds = seed / 2 % 2 == 0,
               .shards = 1 + seed / 2 % 2,
               .keys = 1 + static_cast<int>(seed % 3),
               .clients = 4 + seed % 9},
      random_(seed * 104'729 + 11),
      cluster_(seed) {
  const uint64_t nodes = profile_.grows ? 1 : profile_.replaces ? 5 : 2 + seed / 3 % 4;
  for (uint64_t i = 0; i < nodes; ++i) add_node();
  clients_.resize(profile_.clients);
}

SimNode& CounterCluster::add_node() {
  const auto shards = static_cast<uint32_t>(profile_.shards);
  SimNode& node = cluster_.add(shards, shards);
  if (profile_.group) node.sync = storage::CommitLogSync::kGroup;
  node.data_options.repair.period_us = 3'000'000;
  node.data_options.repair.retry_us = 500'000;
  if (profile_.replaces) {
    node.options().moves.store_replace_after_us = 1'500'000;
    node.options().moves.settle_us = 200'000;
    node.options().moves.stalled_us = 2'000'000;
  }
  return node;
}

uint64_t CounterCluster::trace() {
  return cluster_.world().event_count() * 31 + cluster_.network().delivered();
}

CounterCluster::Counts CounterCluster::counts() const {
  Counts out;
  for (const auto& operation : operations_) {
    if (operation->is_read) {
      ++out.reads;
    } else if (operation->outcome == Outcome::kCertain) {
      ++out.certain;
    } else {
      (operation->outcome == Outcome::kNothing ? out.nothing : out.unknown)++;
    }
  }
  return out;
}

std::string CounterCluster::history_text() const {
  std::string text;
  for (int key = 0; key < profile_.keys; ++key)
    for (const auto& operation : operations_)
      if (operation->key == key) text += fmt::format("counter {} {}\n", key, operation->text());
  return text;
}

std::string CounterCluster::run() {
  if (!cluster_.form(30'000'000)) return "the cluster does not form";
  if (auto wrong = make_table(); !wrong.empty()) return wrong;
  const int steps =
      (profile_.grows || profile_.replaces ? 140 : 80) + static_cast<int>(random_.below(50));
  for (int step = 0; step < steps; ++step) {
    if (random_.one_in(2)) fault();
    if (profile_.splits && random_.one_in(20)) split();
    for (int i = 0; i < 4; ++i) {
      start_operations();
      cluster_.world().run_for(static_cast<int64_t>(random_.below(20'000)));
    }
    cluster_.world().run_for(static_cast<int64_t>(random_.below(100'000)));
  }
  heal();
  if (auto wrong = check_end(); !wrong.empty()) return "at the end: " + wrong;
  return check_history();
}

std::string CounterCluster::make_table() {
  bool created = false;
  cluster_[0].spawn(create_table(&cluster_[0], 0, &created));
  if (!cluster_.world().run_until([&] { return created; }, 10'000'000))
    return "the table is not made";
  incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
  return "";
}

// ---- faults ----

/// Whoever waits for the node learns no more.
void CounterCluster::end_life(size_t node, bool power) {
  power ? cluster_[node].power_cut() : cluster_[node].kill();
  for (const auto& operation : operations_) {
    if (operation->outcome != Outcome::kPending || operation->node != node) continue;
    operation->outcome = operation->is_read ? Outcome::kNothing : Outcome::kUnknown;
    operation->ended = next_place();
  }
}

/// What others hold must be enough for what it loses.
bool CounterCluster::may_cut_power() {
  if (!profile_.power_cuts) return false;
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!cluster_[i].is_up() || !cluster_[i].is_ready() || cluster_[i].is_behind()) return false;
  if (profile_.group) return true;
  const replication::MetaSnapshot state = cluster_[0].state();
  const replication::TableInfo* const table = state->table(incarnation_);
  // A node that has lost power knows what its log has to say when it hears the leader.
  if (table == nullptr) return false;
  for (const auto& tablet : table->tablets.tablets())
    if (tablet.replicas.size() < 3 || tablet.stage != partitioner::TabletStage::kNormal)
      return false;
  return true;
}

void CounterCluster::end_node(size_t victim) {
  for (size_t i = 0; i < cluster_.size(); ++i)
    if (!cluster_[i].is_up()) return;
  const bool cuts = may_cut_power();
  if (cuts && profile_.group && random_.one_in(2)) {
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (!random_.one_in(3)) end_life(i, true);
  } else {
    end_life(victim, cuts);
  }
}

void CounterCluster::disk_fault(size_t victim) {
  StoreFaults& faults = cluster_[victim].faults(0);
  if (profile_.replaces) {
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].faults(0).hangs) return;
    faults.hangs = true;
    faults.state = storage::StoreState::kHung;
  } else if (random_.one_in(2)) {
    faults.parks_writes = true;
  } else {
    faults.failed_is_done = random_.one_in(2);
    faults.fail_next(StoreCall::kApply, Error(ErrorCode::kIo, "no"));
  }
}

void CounterCluster::fault() {
  SimNetwork& network = cluster_.network();
  const size_t victim = random_.below(cluster_.size());
  switch (random_.below(16)) {
    case 0:
    case 1:
      return end_node(victim);
    case 2:
    case 3:
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (!cluster_[i].is_up()) cluster_[i].start();
      return;
    case 4:
      return cluster_.isolate(victim);
    case 5: {
      const size_t other = random_.below(cluster_.size());
      if (other != victim) network.cut(cluster_[victim].endpoint(), cluster_[other].endpoint());
      return;
    }
    case 6:
    case 7:
      network.mend_all();
      return;
    case 8:
      network.options.lost_in_million = static_cast<uint32_t>(random_.below(150'000));
      return;
    case 9:
      network.options.lost_in_million = 0;
      return;
    case 10:
      network.options.slow_one_in = static_cast<uint32_t>(2 + random_.below(12));
      network.options.slow_us = 1 + static_cast<int64_t>(random_.below(3'000'000));
      return;
    case 11:
      network.options.slow_one_in = 0;
      return;
    case 12:
      if (profile_.grows && cluster_.size() < 4) add_node().start();
      return;
    case 13:
      cluster_[victim].clock().freeze(static_cast<int64_t>(random_.below(1'500'000)));
      return;
    case 14:
      if (profile_.stalls || profile_.replaces) disk_fault(victim);
      return;
    default:
      // Whoever is to be replaced must be away for long.
      if (profile_.replaces && !random_.one_in(3)) return;
      for (size_t i = 0; i < cluster_.size(); ++i) cluster_[i].faults(0).heal();
  }
}

void CounterCluster::split() {
  SimNode& via = cluster_[random_.below(cluster_.size())];
  if (!via.is_ready() || via.state()->table(incarnation_) == nullptr) return;
  const auto& table = *via.state()->table(incarnation_);
  const RingPosition at =
      partitioner::position_of(key_text(static_cast<int>(random_.below(4))) + "x");
  if (merge_instead(via, table, at)) return;
  split_at(via, table, at);
}

void CounterCluster::heal() {
  cluster_.network().mend_all();
  cluster_.network().options = NetworkOptions();
  for (size_t i = 0; i < cluster_.size(); ++i) {
    cluster_[i].faults(0).heal();
    if (!cluster_[i].is_up()) cluster_[i].start();
  }
  cluster_.world().run_for(10'000'000);
  // Clocks that stood still are believed again, and what was lost is fetched, after a while.
  cluster_.world().run_until(
      [this] {
        for (size_t i = 0; i < cluster_.size(); ++i)
          for (size_t j = 0; j < cluster_.size(); ++j)
            if (!cluster_[i].is_ready() || cluster_[i].is_behind() ||
                !cluster_[i].node().meta().is_live(cluster_[j].node().meta().self()))
              return false;
        return true;
      },
      90'000'000);
}

// ---- clients ----

CounterOperation& CounterCluster::new_operation(size_t node, int key) {
  auto operation = std::make_unique<CounterOperation>();
  operation->node = node;
  operation->key = key;
  operation->begun = next_place();
  operations_.push_back(std::move(operation));
  return *operations_.back();
}

void CounterCluster::start_operations() {
  if (operations_.size() >= kOperationsMax * static_cast<size_t>(profile_.keys)) return;
  for (CounterOperation*& waits : clients_) {
    if (waits != nullptr && waits->outcome == Outcome::kPending) continue;
    if (random_.one_in(3)) continue;
    const size_t index = random_.below(cluster_.size());
    SimNode& via = cluster_[index];
    if (!via.is_ready() || via.state()->table(incarnation_) == nullptr || via.clock().is_frozen())
      continue;
    const int key = static_cast<int>(random_.below(static_cast<uint64_t>(profile_.keys)));
    CounterOperation& operation = new_operation(index, key);
    waits = &operation;
    const auto shard = static_cast<uint32_t>(operation.begun % via.shard_count());
    operation.is_read = random_.one_in(4);
    if (operation.is_read) {
      via.spawn(
          run_read(&via, shard, incarnation_, &operation, &place_, ConsistencyLevel::kQuorum));
    } else {
      // Powers of two, so that a sum tells what is in it.
      operation.delta = int64_t{1} << random_.below(30);
      if (!profile_.only_adds && random_.one_in(2)) operation.delta = -operation.delta;
      via.spawn(run_increment(&via, shard, incarnation_, &operation, &place_));
    }
  }
}

// ---- checks ----

/// Everything works again, and all members are equal.
std::string CounterCluster::check_end() {
  for (const auto& operation : operations_)
    if (operation->outcome == Outcome::kPending) return "no answer to " + operation->text();
  for (int key = 0; key < profile_.keys; ++key) {
    for (int step = 0; step < 4; ++step) {
      const size_t index = random_.below(cluster_.size());
      SimNode& via = cluster_[index];
      if (!via.is_ready()) return fmt::format("node {} is not ready", index + 1);
      CounterOperation& operation = new_operation(index, key);
      operation.is_read = step != 1;
      operation.delta = 1;
      if (operation.is_read) {
        via.spawn(run_read(&via, 0, incarnation_, &operation, &place_,
                           step == 2 ? ConsistencyLevel::kAll : ConsistencyLevel::kQuorum));
      } else {
        via.spawn(run_increment(&via, 0, incarnation_, &operation, &place_));
      }
      cluster_.world().run_until([&] { return operation.outcome != Outcome::kPending; }, 5'000'000);
      if (operation.outcome != Outcome::kCertain) return "no success of " + operation.text();
    }
    // A read at ALL waits for W members to have its merge; the others get it a little later.
    std::string wrong = check_members(key);
    for (int i = 0; i < 20 && !wrong.empty(); ++i) {
      cluster_.world().run_for(100'000);
      wrong = check_members(key);
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string CounterCluster::check_members(int key) {
  const storage::ReadCommand command = read_of(incarnation_, key);
  const auto& tablet = cluster_[0].state()->table(incarnation_)->tablets.find(command.position);
  std::optional<int64_t> sum;
  for (const StoreAddress& member : tablet.replicas) {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (cluster_[i].node().meta().self() != member.host) continue;
      std::optional<Result<storage::ReadResult>> held;
      storage::ReadCommand own = command;
      cluster_[i].store(member.store).read(std::move(own), base::kNoDeadline, [&](auto result) {
        held = std::move(result);
      });
      cluster_.world().run_until([&] { return held.has_value(); }, 1'000'000);
      if (!held || !*held) return fmt::format("node {} does not read", i + 1);
      const int64_t its = sum_of(**held);
      if (sum && *sum != its)
        return fmt::format("counter {}: node {} has {}, another {}", key, i + 1, its, *sum);
      sum = its;
    }
  }
  return "";
}

std::string CounterCluster::check_history() const {
  for (int key = 0; key < profile_.keys; ++key) {
    std::vector<CounterOperation> of_key;
    for (const auto& operation : operations_)
      if (operation->key == key) of_key.push_back(*operation);
    if (auto wrong = check_counter(of_key); !wrong.empty())
      return fmt::format("counter {}: {}", key, wrong);
  }
  return "";
}

}  // namespace tetrad::simulation
