// SPDX-License-Identifier: Apache-2.0
// Quorum writes and reads on a simulated cluster under faults: crashes and restarts, cut and slow
// and lossy networks, splits, nodes that join. Every history is checked:
//   - a quorum read sees every write that was acknowledged before it began, and what any earlier
//   quorum read saw
//     (so it never goes back), and nothing that nobody wrote;
//   - a deleted row does not come back;
//   - after the faults everything works again, every acknowledged write is there, and replicas that
//   were read at ALL
//     are equal.
// usage: data_simulation [--seeds A..B] [--verbose]; every hundredth seed runs twice and must take
// the same steps.
#include <algorithm>
#include <cstring>
#include <string>

#include "partitioner/token.h"
#include "replication/data_mutants.h"
#include "storage/row/row_record.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {
namespace {

constexpr int kKeys = 12;

/// One write or read as its client saw it. Timestamps are the test's own and rise in real time.
struct Operation {
  bool is_write = false, is_delete = false;
  int key = 0;
  int64_t timestamp = 0;  // written; or of what a read saw (0: nothing)
  bool saw_row = false;   // of a read: a live row
  base::MonotonicUs begun_us = 0, ended_us = 0;
  enum class State { kPending, kOk, kFailed } state = State::kPending;
};

std::string key_text(int key) { return "key" + std::to_string(key); }

storage::Mutation mutation_of(TableIncarnation incarnation, const Operation& operation) {
  storage::Mutation mutation;
  mutation.incarnation = incarnation;
  mutation.partition_key = key_text(operation.key);
  mutation.position = partitioner::position_of(mutation.partition_key);
  storage::RowRecord record;
  const std::string value = std::to_string(operation.timestamp);
  storage::RowChange row;
  if (operation.is_delete) {
    record.deletion = {operation.timestamp, operation.timestamp};
  } else {
    record.liveness.timestamp_us = operation.timestamp;
    storage::Cell cell;
    cell.column_id = 1;
    cell.timestamp_us = operation.timestamp;
    cell.value = value;
    record.cells.push_back(cell);
    row.complete = true;
  }
  storage::encode_row_record(record, row.record);
  mutation.rows.push_back(std::move(row));
  return mutation;
}

storage::ReadCommand read_of(TableIncarnation incarnation, int key) {
  storage::ReadCommand command;
  command.incarnation = incarnation;
  command.partition_key = key_text(key);
  command.position = partitioner::position_of(command.partition_key);
  command.rows = {""};
  command.now_s = 1'700'000'000;
  return command;
}

/// Takes the value a read gave: a row's cell holds the timestamp it was written with.
bool take_answer(const storage::ReadResult& result, Operation& operation) {
  for (const auto& partition : result.partitions) {
    for (const auto& row : partition.rows) {
      storage::RowRecordReader reader;
      if (!reader.open(row.record)) return false;
      storage::Cell cell;
      while (reader.next(cell)) {
        operation.saw_row = true;
        operation.timestamp = std::stoll(std::string(cell.value));
        if (operation.timestamp != cell.timestamp_us) return false;
      }
    }
  }
  return true;
}

Task<void> run_operation(SimNode* node, TableIncarnation incarnation, Operation* operation,
                         ConsistencyLevel level) {
  const base::Deadline deadline{node->reactor().now_us() + 2'000'000};
  World* const world = &node->world();
  // Through any of its shards.
  const auto shard = static_cast<uint32_t>(operation->begun_us % node->shard_count());
  replication::Coordinator* const coordinator = &node->data(shard).coordinator();
  if (operation->is_write) {
    std::vector<storage::Mutation> mutations;
    mutations.push_back(mutation_of(incarnation, *operation));
    replication::WriteOptions options;
    options.level = level;
    options.deadline = deadline;
    auto result = co_await coordinator->write(std::move(mutations), options);
    operation->state = result ? Operation::State::kOk : Operation::State::kFailed;
  } else {
    replication::ReadOptions options;
    options.level = level;
    options.deadline = deadline;
    auto result = co_await coordinator->read(read_of(incarnation, operation->key), options);
    const bool ok = result && take_answer(*result, *operation);
    operation->state = ok ? Operation::State::kOk : Operation::State::kFailed;
  }
  operation->ended_us = world->now_us();
}

Task<void> create_table(SimNode* node, bool* created) {
  replication::SchemaChange change;
  change.expected = node->state()->schema_version;
  replication::SchemaChange::NewTable table;
  table.id.value.octets[0] = 1;
  table.keyspace = "ks";
  table.name = "t";
  table.max_partition_mb = 1;
  change.new_tables.push_back(table);
  const base::Deadline deadline{node->reactor().now_us() + 5'000'000};
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  *created = result.has_value();
}

class Simulation {
 public:
  /// Half of the seeds have nodes of two shards.
  explicit Simulation(uint64_t seed)
      : random_(seed * 7919 + 1),
        shards_(1 + seed / 4 % 2),
        cluster_(seed, 3 + seed % 4, shards_, shards_) {}

  /// "" or what went wrong.
  std::string run() {
    if (!cluster_.form(30'000'000)) return "the cluster does not form";
    bool created = false;
    cluster_[0].spawn(create_table(&cluster_[0], &created));
    if (!cluster_.world().run_until([&] { return created; }, 10'000'000))
      return "the table is not made";
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;

    const int steps = 60 + static_cast<int>(random_.below(60));
    for (int i = 0; i < steps; ++i) {
      fault();
      for (int n = 0; n < 3; ++n) start_operation();
      cluster_.world().run_for(static_cast<int64_t>(random_.below(150'000)));
    }
    heal();
    if (auto wrong = check_history(); !wrong.empty()) return wrong;
    return check_end();
  }
  uint64_t trace() { return cluster_.world().event_count() * 31 + cluster_.network().delivered(); }
  size_t acknowledged() const {
    return static_cast<size_t>(
        std::count_if(operations_.begin(), operations_.end(), [](const auto& operation) {
          return operation->is_write && operation->state == Operation::State::kOk;
        }));
  }

 private:
  size_t up_count() {
    size_t up = 0;
    for (size_t i = 0; i < cluster_.size(); ++i) up += cluster_[i].is_up() ? 1 : 0;
    return up;
  }

  void fault() {
    NetworkOptions& network = cluster_.network().options;
    const size_t victim = random_.below(cluster_.size());
    switch (random_.below(14)) {
      case 0:
        if (cluster_[victim].is_up() && up_count() == cluster_.size()) cluster_[victim].kill();
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
          cluster_.network().cut(cluster_[victim].endpoint(), cluster_[other].endpoint());
        }
        break;
      }
      case 5:
      case 6:
        cluster_.network().mend_all();
        break;
      case 7:
        network.lost_in_million = static_cast<uint32_t>(random_.below(100'000));
        break;
      case 8:
        network.lost_in_million = 0;
        break;
      case 9:
        network.slow_one_in = static_cast<uint32_t>(2 + random_.below(30));
        break;
      case 10:
        network.slow_one_in = 0;
        break;
      case 11:
        if (cluster_.size() < 6 && random_.one_in(10)) cluster_.add(shards_, shards_).start();
        break;
      default:
        break;
    }
  }

  void start_operation() {
    const size_t via = random_.below(cluster_.size());
    if (!cluster_[via].is_ready()) return;
    auto operation = std::make_unique<Operation>();
    operation->is_write = random_.below(5) < 3;
    operation->is_delete = operation->is_write && random_.one_in(6);
    operation->key = static_cast<int>(random_.below(kKeys));
    if (operation->is_write) operation->timestamp = ++last_timestamp_;
    operation->begun_us = cluster_.world().now_us();
    operations_.push_back(std::move(operation));
    cluster_[via].spawn(run_operation(&cluster_[via], incarnation_, operations_.back().get(),
                                      ConsistencyLevel::kQuorum));
  }

  void heal() {
    cluster_.network().mend_all();
    cluster_.network().options = NetworkOptions();
    for (size_t i = 0; i < cluster_.size(); ++i) {
      if (!cluster_[i].is_up()) cluster_[i].start();
    }
    cluster_.world().run_for(15'000'000);
  }

  /// What a read at `begun_us` must see at least: the newest write acknowledged, or seen by a read
  /// that ended, before.
  int64_t floor_of(const Operation& read) const {
    int64_t floor = 0;
    for (const auto& other : operations_) {
      if (other.get() == &read || other->key != read.key || other->state != Operation::State::kOk)
        continue;
      if (other->ended_us < read.begun_us) floor = std::max(floor, other->timestamp);
    }
    return floor;
  }

  std::string check_read(const Operation& read, const char* when) const {
    const int64_t floor = floor_of(read);
    if (read.saw_row) {
      if (read.timestamp < floor) {
        return fmt::format(
            "{}: a quorum read of {} saw {} although {} was acknowledged or read before", when,
            key_text(read.key), read.timestamp, floor);
      }
      for (const auto& other : operations_) {
        if (other->is_write && other->timestamp == read.timestamp) {
          if (other->key != read.key || other->is_delete)
            return fmt::format("{}: a read saw what nobody wrote", when);
          return "";
        }
      }
      return fmt::format("{}: a read saw what nobody wrote", when);
    }
    // No row: right if nothing must be seen, or some delete at or above the floor hides it.
    if (floor == 0) return "";
    for (const auto& other : operations_) {
      if (other->is_delete && other->key == read.key && other->timestamp >= floor &&
          other->begun_us < read.ended_us)
        return "";
    }
    return fmt::format(
        "{}: a quorum read of {} saw nothing although {} was acknowledged or read before", when,
        key_text(read.key), floor);
  }

  std::string check_history() const {
    for (const auto& operation : operations_) {
      if (operation->is_write || operation->state != Operation::State::kOk) continue;
      if (auto wrong = check_read(*operation, "under faults"); !wrong.empty()) return wrong;
    }
    return "";
  }

  std::string check_end() {
    // Everything works again, through any node; and what ALL has read, every replica holds.
    for (int key = 0; key < kKeys; ++key) {
      int64_t seen[2] = {};
      bool row[2] = {};
      for (int round = 0; round < 2; ++round) {
        auto read = std::make_unique<Operation>();
        read->key = key;
        read->begun_us = cluster_.world().now_us();
        Operation* const operation = read.get();
        operations_.push_back(std::move(read));
        SimNode& via = cluster_[random_.below(cluster_.size())];
        if (!via.is_ready()) return "a node is not ready after the faults";
        via.spawn(run_operation(&via, incarnation_, operation,
                                round == 0 ? ConsistencyLevel::kAll : ConsistencyLevel::kOne));
        const bool ended = cluster_.world().run_until(
            [&] { return operation->state != Operation::State::kPending; }, 5'000'000);
        if (!ended || operation->state != Operation::State::kOk) {
          return fmt::format("after the faults a read of {} at {} fails", key_text(key),
                             round == 0 ? "ALL" : "ONE");
        }
        if (round == 0) {
          if (auto wrong = check_read(*operation, "at the end"); !wrong.empty()) return wrong;
        }
        seen[round] = operation->timestamp;
        row[round] = operation->saw_row;
      }
      if (seen[0] != seen[1] || row[0] != row[1]) {
        return fmt::format("{} differs between replicas after a read at ALL", key_text(key));
      }
    }
    for (size_t i = 0; i < cluster_.size(); ++i) {
      auto write = std::make_unique<Operation>();
      write->is_write = true;
      write->key = static_cast<int>(i);
      write->timestamp = ++last_timestamp_;
      write->begun_us = cluster_.world().now_us();
      Operation* const operation = write.get();
      operations_.push_back(std::move(write));
      cluster_[i].spawn(
          run_operation(&cluster_[i], incarnation_, operation, ConsistencyLevel::kQuorum));
      cluster_.world().run_until([&] { return operation->state != Operation::State::kPending; },
                                 5'000'000);
      if (operation->state != Operation::State::kOk) return "after the faults a quorum write fails";
    }
    return "";
  }

  base::Random random_;
  const uint32_t shards_;  // of each node
  SimCluster cluster_;
  TableIncarnation incarnation_;
  int64_t last_timestamp_ = 0;
  std::vector<std::unique_ptr<Operation>> operations_;
};

int run_all(uint64_t first, uint64_t last, bool verbose) {
  uint64_t passed = 0, failed = 0, acknowledged = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string wrong;
    uint64_t trace = 0;
    {
      Simulation simulation(seed);
      wrong = simulation.run();
      trace = simulation.trace();
      acknowledged += simulation.acknowledged();
    }
    if (wrong.empty() && seed % 100 == 0) {
      Simulation again(seed);
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

int run_mutants() {
  struct Mutant {
    const char* name;
    bool replication::DataMutants::*flag;
  };
  const Mutant mutants[] = {{"write_acks_one", &replication::DataMutants::write_acks_one},
                            {"hints_count", &replication::DataMutants::hints_count},
                            {"quorum_asks_one", &replication::DataMutants::quorum_asks_one},
                            {"digests_ignored", &replication::DataMutants::digests_ignored},
                            {"merge_not_written", &replication::DataMutants::merge_not_written}};
  int passed = 0, failed = 0;
  for (const Mutant& mutant : mutants) {
    replication::data_mutants = {};
    replication::data_mutants.*mutant.flag = true;
    uint64_t seed = 1;
    std::string wrong;
    for (; seed <= 300 && wrong.empty(); ++seed) wrong = Simulation(seed).run();
    std::printf("%-20s %s\n", mutant.name,
                wrong.empty() ? "NOT CAUGHT"
                              : fmt::format("caught at seed {}: {}", seed - 1, wrong).c_str());
    std::fflush(stdout);
    (wrong.empty() ? failed : passed)++;
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tetrad::simulation

int main(int argc, char** argv) {
  uint64_t first = 1, last = 300;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--mutants") == 0) return tetrad::simulation::run_mutants();
    if (std::strcmp(argv[i], "--verbose") == 0) {
      verbose = true;
    } else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
      unsigned long long a = 0, b = 0;
      if (std::sscanf(argv[++i], "%llu..%llu", &a, &b) != 2) return 2;
      first = a;
      last = b;
    } else {
      std::fprintf(stderr, "usage: data_simulation [--seeds A..B] [--verbose] | --mutants\n");
      return 2;
    }
  }
  return tetrad::simulation::run_all(first, last, verbose);
}
