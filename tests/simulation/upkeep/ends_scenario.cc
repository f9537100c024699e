// SPDX-License-Identifier: Apache-2.0
// Members hold different numbers of dead rows, long dead and purged by some, and a page of a read
// looks at few keys only: pages without anything to compare end at different places. No
// acknowledged row is left out, at a quorum or at ALL (rule 5).
#include <map>

#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr int kRows = 10;

struct Seen {
  bool answered = false;
  std::map<Bytes, int64_t> timestamps;  // of live rows, by partition and row
};

Task<void> read_all(SimNode* node, storage::ReadCommand command, ConsistencyLevel level,
                    Seen* seen) {
  for (int page = 0; page < 1000; ++page) {
    replication::ReadOptions options;
    options.level = level;
    options.deadline = {node->reactor().now_us() + 2'000'000};
    auto read = co_await node->data().coordinator().read(command, options);
    if (!read) co_return;
    for (const auto& partition : read->partitions) {
      for (const auto& row : partition.rows) {
        storage::RowRecordReader reader;
        if (reader.open(row.record))
          seen->timestamps[Bytes(partition.partition_key) + "/" + Bytes(row.clustering_key)] =
              reader.liveness().timestamp_us;
      }
    }
    if (read->exhausted) {
      seen->answered = true;
      co_return;
    }
    command.resume_after = read->complete_up_to;
  }
}

Task<void> note_repaired(SimNode* node, replication::SetTabletRepaired repaired, bool* done) {
  const base::Deadline deadline{node->reactor().now_us() + 5'000'000};
  auto noted = co_await node->node().meta_group().propose(std::move(repaired), deadline);
  *done = noted.has_value();
}

class Ends {
 public:
  explicit Ends(uint64_t seed) : random_(seed * 6121 + 7), cluster_(seed, 4) {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      cluster_[i].data_options.repair.period_us = 3'600'000'000;
      cluster_[i].data_options.purge.look_every_us = 3'600'000'000;
      cluster_[i].read_keys_max = 1 + seed % 4;
    }
  }

  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    cluster_.world().run_for(5'000'000);
    const auto table = cluster_[0].state()->tables.begin()->second;
    incarnation_ = table->incarnation;
    const partitioner::Tablet& tablet = table->tablets.find(partitioner::position_of("key"));
    members_ = tablet.replicas;
    if (members_.size() != cluster_.size()) return "the tablet has not four members";
    // As after a repair: what was deleted long ago is purged by each member in its own time.
    bool noted = false;
    cluster_[0].spawn(note_repaired(
        &cluster_[0],
        {incarnation_, tablet.id, tablet.epoch, tablet.range, cluster_[0].reactor().wall_time_us()},
        &noted));
    if (!cluster_.world().run_until([&] { return noted; }, 10'000'000))
      return "the repair is not noted";
    cluster_.world().run_for(2'000'000);
    for (int round = 0; round < 12; ++round)
      if (auto wrong = read_one("key" + std::to_string(round)); !wrong.empty()) return wrong;
    return "";
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  std::string read_one(const std::string& key) {
    int64_t timestamp_us = 1'000'000;
    for (int row = 0; row < kRows; ++row) {
      const Bytes name(1, static_cast<char>('a' + row));
      const uint64_t kind = random_.below(4);
      if (kind < 2) {  // dead, and purged by a part of the members
        for (const StoreAddress& member : members_)
          if (random_.one_in(2)) put(member, key, name, ++timestamp_us, false);
      } else if (kind == 2) {  // acknowledged; one may not have it
        ++timestamp_us;
        const size_t without = random_.below(members_.size() + 1);
        for (size_t i = 0; i < members_.size(); ++i)
          if (i != without) put(members_[i], key, name, timestamp_us, true);
        live_[key + "/" + name] = timestamp_us;
      }
    }
    cluster_.world().run_for(10'000);
    storage::ReadCommand command;
    command.incarnation = incarnation_;
    command.partition_key = key;
    command.position = partitioner::position_of(key);
    command.now_s = cluster_[0].reactor().wall_time_us() / 1'000'000;
    command.reversed = random_.one_in(3);
    command.row_limit = 1 + static_cast<uint32_t>(random_.below(4));
    command.is_range = !command.reversed && random_.one_in(3);
    Seen seen;
    SimNode& via = cluster_[random_.below(cluster_.size())];
    const auto level = random_.one_in(4) ? ConsistencyLevel::kAll : ConsistencyLevel::kQuorum;
    via.spawn(read_all(&via, command, level, &seen));
    if (!cluster_.world().run_until([&] { return seen.answered; }, 20'000'000))
      return "a read does not come to its end";
    for (const auto& [name, written_us] : live_) {
      if (!command.is_range && !name.starts_with(key + "/")) continue;
      if (!seen.timestamps.contains(name) || seen.timestamps[name] != written_us)
        return fmt::format("row {} was acknowledged and is left out", name);
    }
    return "";
  }
  void put(const StoreAddress& member, const std::string& key, const Bytes& name,
           int64_t timestamp_us, bool is_live) {
    auto mutation = row_change(incarnation_, key, timestamp_us,
                               is_live ? std::optional<std::string>("v") : std::nullopt, 1);
    mutation.rows.front().clustering_key = name;
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (cluster_[i].node().self() == member.host)
        cluster_[i].store(member.store).apply(mutation, [](Result<void>) {});
  }

  base::Random random_;
  SimCluster cluster_;
  TableIncarnation incarnation_;
  std::vector<StoreAddress> members_;
  std::map<Bytes, int64_t> live_;  // timestamps, by partition and row
};

}  // namespace

ScenarioResult run_ends(uint64_t seed) {
  Ends scenario(seed);
  std::string wrong = scenario.run();
  return {std::move(wrong), scenario.trace()};
}

}  // namespace tetrad::simulation
