// SPDX-License-Identifier: Apache-2.0
// One seed of the index simulation: a cluster of real nodes, clients that write and read by an index,
// faults, and the checks of what came of it. index_simulation.cc says what is checked.
#pragma once

#include <map>
#include <string>

#include "tests/simulation/indexes/index_history.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

/// What a run is about. kThreeMembers: a member of three names what it disproves, and its writes are
/// on two; few rows are changed often.
enum class IndexScenario : uint8_t { kMixed, kThreeMembers };

class IndexCluster {
 public:
  using Scenario = IndexScenario;
  static constexpr const char* kScenarios[] = {"mixed", "three"};

  IndexCluster(uint64_t seed, Scenario scenario);
  /// "" or what went wrong.
  std::string run();
  /// The same for the same seed.
  uint64_t trace();
  const IndexHistory& history() const { return history_; }
  uint64_t mismatches();
  uint64_t dropped();

 private:
  /// What a seed is about.
  struct Profile {
    bool grows = false;  // one node at first, others join
    bool late = false;   // CREATE INDEX while it is written
    bool truncates = false;
    bool power_cuts = false;  // with the sync mode "group"
    bool purges = false;      // repairs and sweeps every second
    bool merges = false;      // tablets are split and merged, otherwise split
    bool on_rocks = false;
    bool short_pages = false;  // stores look at a few claims a page
    int keys = kIndexKeys;     // that are written
    bool is_of_three = false;  // three nodes all the time
  };

  static Profile profile_of(uint64_t seed, IndexScenario scenario);
  SimNode& add_node();
  std::string make_table();
  void create_indexes();
  void fault();
  void split();
  void truncate();
  void heal();
  SimNode* random_ready_node();
  std::optional<TableIncarnation> incarnation(SimNode& node);
  /// A write to two of three, one that fails and is on one of those two alone, reads of it.
  void write_to_some();
  void start_write(SimNode* via);
  void start_read();
  /// In each store the index answers what a filter over its own rows answers.
  std::string check_stores(bool only_named);
  std::string check_store(SimNode& node, uint32_t store, bool only_named);
  std::string check_end();
  std::string read_all(SimNode& via, IndexedPage page);
  bool all_built();

  const Profile profile_;
  base::Random random_;
  const uint32_t shards_;
  SimCluster cluster_;
  IndexHistory history_;
  int64_t last_timestamp_ = 0;
  bool indexed_ = false;
};

}  // namespace tetrad::simulation
