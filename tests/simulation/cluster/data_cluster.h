// SPDX-License-Identifier: Apache-2.0
// One seed of the data simulation: a cluster of real nodes, clients, faults, and the checks of what
// came of it. data_simulation.cc says what is checked.
#pragma once

#include <map>
#include <string>

#include "tests/simulation/cluster/clock_nemesis.h"
#include "tests/simulation/cluster/disk_nemesis.h"
#include "tests/simulation/cluster/feed_reader.h"
#include "tests/simulation/cluster/history.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

class DataCluster {
 public:
  explicit DataCluster(uint64_t seed);

  /// "" or what went wrong.
  std::string run();
  /// The same for the same seed.
  uint64_t trace();
  size_t acknowledged() const { return history_.acknowledged(); }

 private:
  /// What a seed is about.
  struct Profile {
    bool grows = false;        // one node at first, others join under load
    bool whole_reads = false;  // whole partitions only: rows of a mutation are seen together
    bool truncates = false;
    bool power_cuts = false;  // of all, with the sync mode "group"
    bool cuts_one = false;    // of one at a time, with the sync mode "periodic"
    bool fills_up = false;    // tablets are marked as full before the end
    bool purges = false;      // repairs and sweeps every second, so that what was deleted goes
    bool one_keeps = false;   // but the first node keeps it: the others must not get it back
    bool feeds = false;       // the table keeps a change log, which is read meanwhile
    bool feeds_late = false;  // but not from the beginning on
    bool on_rocks = false;    // RocksDB below, whose threads no seed rules
    bool clocks = false;      // of one node at a time are wrong
    bool disks = false;       // of one node at a time stall, fail or are full
    bool balances = false;    // tablets are moved as soon as nodes are not equal
  };

  std::string make_table();
  void set_purging(SimNode& node);
  void fault();
  void change_tablets();
  void truncate();
  void turn_on_feeds();
  std::string step_feeds();
  std::string check_feeds_at_end();
  std::string check_feeds_of_few();
  void start_operation();
  void heal();
  std::string check_history() const;
  /// Every acknowledged write is on W members of its tablet, but for what a machine without power
  /// may have lost and not yet fetched.
  std::string check_members();
  std::string check_end();
  std::string check_settled_cluster();
  std::string check_reads_at_end();
  std::string check_writes_at_end();
  /// Nothing is left of what was deleted, and all members hold the same.
  std::string check_purged();
  bool may_be_purged(const Operation& write, size_t row, size_t column) const;
  std::string finish(Operation& operation, SimNode& via, const char* what);

  void cut_power();
  bool any_is_behind();
  bool may_lack(const StoreAddress& member, const storage::ReadCommand& command);
  SimNode& add_node();
  size_t up_count();
  SimNode* random_ready_node();
  /// The newest that any node has had.
  const replication::MetaSnapshot& newest_state();
  std::optional<TableIncarnation> incarnation(SimNode& node);
  std::unique_ptr<Operation> new_operation(SimNode& via, ConsistencyLevel level);
  std::string describe();
  uint64_t digest_mismatches();

  const Profile profile_;
  ClockNemesis clocks_;
  DiskNemesis disks_;
  base::Random random_;
  const uint32_t shards_;  // of each node
  SimCluster cluster_;
  History history_;
  std::vector<FeedReader> feeds_;
  std::map<HostId, size_t> node_of_host_;
  replication::MetaSnapshot newest_;
  std::optional<size_t> cut_;  // the machine that lost power and has not been whole since
  int64_t last_timestamp_ = 0;
  std::optional<base::MonotonicUs> truncate_begun_us_, truncated_us_, feeds_on_us_;
};

}  // namespace tetrad::simulation
