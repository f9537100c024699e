// SPDX-License-Identifier: Apache-2.0
// One seed of the simulation of counters: a cluster of real nodes, clients that add, take away and
// read, faults, and the check of what came of it.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

/// An increment or a read of one counter, as its client saw it.
struct CounterOperation {
  enum class Outcome : uint8_t { kPending, kCertain, kUnknown, kNothing };
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  bool is_read = false;
  int key = 0;
  int64_t delta = 0, seen = 0;
  Outcome outcome = Outcome::kPending;
  uint64_t begun = 0, ended = kNever;  // places in one sequence
  size_t node = 0;
  std::string error;  // its words
  std::string text() const;
};

/// Of one counter. Every read lies between the sum of what was certain before it and that sum with
/// all that may be there; and of two reads, one after the other, the second has all that the first
/// has seen and all that was certain between them. "" or what is wrong.
std::string check_counter(const std::vector<CounterOperation>& operations);

class CounterCluster {
 public:
  explicit CounterCluster(uint64_t seed);

  /// "" or what went wrong.
  std::string run();
  /// The same for the same seed.
  uint64_t trace();
  struct Counts {
    size_t certain = 0, unknown = 0, nothing = 0, reads = 0;
  };
  Counts counts() const;
  std::string history_text() const;

 private:
  /// What a seed is about.
  struct Profile {
    bool grows = false;       // one node at first, others join under load
    bool power_cuts = false;  // one node at a time, or several with the sync mode "group"
    bool group = false;
    bool splits = false;
    bool stalls = false;    // stores stand still for a while, or fail
    bool replaces = false;  // tablets leave a store that hangs, and may come back to it
    bool only_adds = false;
    uint64_t shards = 1;  // of each node
    int keys = 1;
    size_t clients = 4;
  };

  std::string make_table();
  SimNode& add_node();
  void fault();
  void end_node(size_t victim);
  void disk_fault(size_t victim);
  void split();
  void end_life(size_t node, bool power);
  bool may_cut_power();
  void heal();
  void start_operations();
  CounterOperation& new_operation(size_t node, int key);
  std::string check_end();
  std::string check_members(int key);
  std::string check_history() const;
  uint64_t next_place() { return ++place_; }

  const Profile profile_;
  base::Random random_;
  SimCluster cluster_;
  std::vector<std::unique_ptr<CounterOperation>> operations_;
  std::vector<CounterOperation*> clients_;  // what each waits for
  TableIncarnation incarnation_;
  uint64_t place_ = 0;
};

}  // namespace tetrad::simulation
