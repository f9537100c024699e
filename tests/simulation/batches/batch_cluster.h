// SPDX-License-Identifier: Apache-2.0
// One seed of the simulation of logged batches: a cluster of real nodes, clients, faults, and the
// check of what came of each batch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

/// A batch writes two rows to each partition of its group: one of its own, and one that all batches
/// of the group write.
struct LoggedBatch {
  enum class Outcome {
    kPending,
    kAcknowledged,
    kTold,     // it will be written: BATCH, or a failure
    kUnknown,  // BATCH_LOG, or whom the client asked has died
    kNothing,  // refused before anything was sent
  };
  uint64_t number = 0;
  int group = 0;
  size_t node = 0;
  Outcome outcome = Outcome::kPending;
  base::MonotonicUs begun_us = 0, ended_us = 0;
  std::vector<TableIncarnation> incarnations;  // of its partitions
  std::string error;
  /// Its own rows were deleted later.
  bool is_delete_begun = false, is_deleted = false;
};

class BatchCluster {
 public:
  explicit BatchCluster(uint64_t seed);

  /// "" or what went wrong.
  std::string run();
  /// The same for the same seed.
  uint64_t trace();
  struct Counts {
    size_t acknowledged = 0, told = 0, unknown = 0, nothing = 0, replayed = 0, restored = 0;
  };
  Counts counts();

 private:
  /// What a seed is about.
  struct Profile {
    bool grows = false;       // others join under load
    bool power_cuts = false;  // of one node at a time, with the sync mode "group"
    bool splits = false;
    bool truncates = false;  // one of the two tables
    bool clocks = false;     // wall clocks step, within the bound
    bool purges = false;     // own rows are deleted, and what is deleted goes soon
    bool loses_one = false;  // a node dies and never comes back
    uint64_t shards = 1;
    size_t nodes = 3;
  };
  std::string make_tables();
  SimNode& add_node();
  void fault();
  void end_life(size_t node, bool power);
  void lose_one();
  void end_newest_coordinator();
  void end_a_coordinator();
  void split();
  void truncate();
  void heal();
  void start_batch();
  void start_delete();
  SimNode* random_ready_node(size_t* index);
  std::vector<TableIncarnation> incarnations(SimNode& node);
  std::string wait_for_entries();
  std::string check_group(int group);
  void note_life(SimNode& node);

  const Profile profile_;
  base::Random random_;
  SimCluster cluster_;
  std::vector<std::unique_ptr<LoggedBatch>> batches_;
  std::optional<size_t> lost_;
  bool truncated_ = false;
  std::optional<base::MonotonicUs> truncated_us_;  // when it was answered
  uint64_t replayed_ = 0, restored_ = 0;           // of lives that have ended
};

}  // namespace tetrad::simulation
