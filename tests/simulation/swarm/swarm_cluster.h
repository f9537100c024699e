// SPDX-License-Identifier: Apache-2.0
// One seed of the swarm: a cluster of real nodes, several tables, clients, and any troubles at once.
// swarm_simulation.cc says what is checked.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/cluster/clock_nemesis.h"
#include "tests/simulation/cluster/disk_nemesis.h"
#include "tests/simulation/cluster/history.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/swarm/topology_nemesis.h"

namespace tetrad::simulation {

class SwarmCluster {
 public:
  /// What the clients of a seed have done, and what it did to them.
  struct Figures {
    uint64_t acknowledged = 0, failed = 0, reads = 0;
    int64_t simulated_us = 0;
    TopologyNemesis::Figures topology;
    void add(const Figures& other);
  };

  SwarmCluster(uint64_t seed, SwarmProfile profile);

  /// "" or what went wrong.
  std::string run();
  /// The same for the same seed.
  uint64_t trace();
  Figures figures();
  /// The cluster, its tables and the constants that were drawn.
  std::string shape() const { return shape_; }

 private:
  struct Table {
    TableId id;
    size_t center = 0;  // that it is in, where not in all
    bool is_in_all = false;
    std::unique_ptr<History> history = std::make_unique<History>();
    std::optional<base::MonotonicUs> truncate_begun_us, truncated_us;
  };
  /// Constants that a program would have larger; of a whole seed.
  struct Tiny {
    uint64_t read_keys_max, repair_page_bytes, fetch_page_bytes, sweep_keys_max, hint_bytes_max,
        stream_page_bytes;
    size_t hints_at_once, changes_at_once, waiting_max;
    int64_t speculative_us;
    uint64_t snapshot_every;
  };

  void draw_shape(uint64_t seed);
  void set_up(SimNode& node);
  void set_tiny(SimNode& node);
  void set_purging(SimNode& node);
  std::string make_tables();
  std::string make_table(size_t number, uint32_t tablets);
  std::string storm(int steps);
  void trouble_network();
  void truncate();
  void calm();
  void start_operation();
  std::unique_ptr<Operation> new_operation(SimNode& via, Table& table, ConsistencyLevel level);
  ConsistencyLevel level_of(const Table& table, bool writes);
  std::optional<TableIncarnation> incarnation_of(SimNode& node, const Table& table);

  std::string check_histories() const;
  std::string check_members();
  std::string check_members_of(Table& table, const replication::TableInfo& info);
  std::string check_bounds();
  std::string check_hints(size_t node);
  /// All that a store holds of a partition, also of a node that is down.
  PartitionOf<int64_t> held_by(SimNode& node, uint32_t store, storage::ReadCommand command) const;
  std::string check_live();
  std::string check_settled();
  std::string check_equal();
  std::string check_idle();
  /// Waits for a request; of a read for its first page.
  std::string finish(Table& table, SimNode& via, std::unique_ptr<Operation> operation);
  static bool is_deletion(const Table& table, int key, size_t row, size_t column,
                          int64_t timestamp);
  bool may_be_purged(const Table& table, const Operation& write, size_t row, size_t column) const;
  std::string describe();

  const SwarmProfile profile_;
  std::vector<Table> tables_;  // their histories outlive the nodes' tasks
  base::Random random_, network_random_;
  SimCluster cluster_;
  TopologyNemesis topology_;
  ClockNemesis clocks_;
  DiskNemesis disks_;
  std::vector<size_t> centers_;  // nodes of each at first
  uint32_t shards_ = 1, stores_ = 1;
  Tiny tiny_{};
  int64_t operation_us_ = kOperationUs;
  int64_t last_timestamp_ = 0;
  /// Bytes of hints that each node has found at its start, or fewer when some have gone since.
  struct HintBytes {
    uint64_t life = 0;
    std::map<std::pair<uint32_t, StoreAddress>, uint64_t> most;
  };
  std::vector<HintBytes> hint_bytes_;
  const Operation* finished_ = nullptr;  // by finish()
  std::string shape_;
};

}  // namespace tetrad::simulation
