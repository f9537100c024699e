// SPDX-License-Identifier: Apache-2.0
// One seed of the simulation of conditional statements: a cluster of real nodes, clients on a few
// rows, faults, and the check of what came of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/conditional/linearizability.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

class ConditionalCluster {
 public:
  static constexpr int64_t kOperationUs = 2'000'000;
  static constexpr size_t kNodesMax = 5;  // of them four are members of a tablet
  static std::string key_text(int key) { return "row" + std::to_string(key); }

  explicit ConditionalCluster(uint64_t seed);

  /// "" or what went wrong.
  std::string run();
  /// The same for the same seed.
  uint64_t trace();
  /// Of all operations: applied, not applied or read, and unknown.
  struct Counts {
    size_t certain = 0, unknown = 0, nothing = 0;
  };
  Counts counts() const;
  /// All operations of a row, for who looks for a mistake.
  std::string history_text() const;

 private:
  /// What a seed is about.
  struct Profile {
    bool grows = false;       // one node at first, others join under load
    bool moves = false;       // members of tablets are exchanged, taken in and left out
    bool turns = false;       // coordinators of one partition take turns
    bool pauses = false;      // clients, when a coordinator ended: what it began stays as it is
    bool power_cuts = false;  // with the sync mode "group"
    bool periodic = false;    // or "periodic"
    bool splits = false;
    bool stalls = false;  // stores stand still for a while
    bool plain = false;   // plain writes, too, while no conditional statement is under way
    bool future = false;  // the first of them with a timestamp of the future
    bool truncates = false;
    bool purges = false;    // repair and purge every second
    bool clocks = false;    // of one node at a time step
    bool together = false;  // all rows are of one partition
    bool far = false;       // all of them so, far ahead, and on one row only
    uint64_t shards = 1;    // of each node
    int keys = 1;
    size_t clients = 3;
  };

  std::string make_table();
  SimNode& add_node();
  void fault();
  void step_clock();
  void arm_strike();
  void run_for(int64_t us);
  void watch(BytesView message);
  void set_clock_right(size_t node);
  void split();
  void move();
  void truncate();
  /// Plain writes that a power cut takes are to be found again.
  bool keeps_plain() const { return profile_.plain && profile_.periodic; }
  bool all_have_all();
  void end_life(size_t node, bool power);
  void heal();
  void start_operations();
  RowOperation& new_operation(size_t node);
  void spawn(SimNode& via, RowOperation& operation);
  bool has_open(int key) const;
  bool may_begin(const RowOperation::Kind kind, int key) const;
  bool operation_room() const;
  size_t unknown_count(int key) const;
  SimNode* random_ready_node(size_t* index);
  std::string check_end();
  std::string check_history() const;
  uint64_t next_place() { return ++place_; }

  const Profile profile_;
  base::Random random_;
  SimCluster cluster_;
  std::vector<std::unique_ptr<RowOperation>> operations_;
  std::vector<RowOperation*> clients_;  // what each waits for
  base::MonotonicUs quiet_until_us_ = 0;
  size_t stepped_ = 0;  // whose clock
  replication::Verb strike_verb_ = replication::Verb::kPaxosAccept;
  uint64_t strike_at_ = 0;        // the message from now; 0: none
  std::optional<size_t> struck_;  // the node
  std::vector<bool> may_lack_;    // by node: what it acknowledged before a power cut
  int64_t last_value_ = 0;
  uint64_t place_ = 0;
};

}  // namespace tetrad::simulation
