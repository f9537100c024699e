// SPDX-License-Identifier: Apache-2.0
// One seed of the view simulation: a cluster of real nodes, writers of a base table with views,
// faults, and the check of the views. view_simulation.cc says what is checked.
#pragma once

#include <string>

#include "replication/views/view_verifier.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/views/view_tables.h"

namespace tetrad::simulation {

class ViewCluster {
 public:
  explicit ViewCluster(uint64_t seed);
  /// "" or what went wrong.
  std::string run();
  /// The same for the same seed.
  uint64_t trace();
  uint64_t executed();
  uint64_t writes() const { return writes_; }
  uint64_t rows_compared() const { return rows_compared_; }
  /// How often the members of the base had to be made equal first.
  uint64_t compared_again() const { return compared_again_; }

  /// The first comparison counts: for mistakes that leave too few members with a write, and seeds in
  /// which the right program does not.
  static inline bool compares_once = false;

 private:
  /// What a seed is about.
  struct Profile {
    bool grows = false;  // one node at first, others join
    bool late = false;   // CREATE MATERIALIZED VIEW while the base is written
    bool truncates = false;
    bool power_cuts = false;  // with the sync mode "group"
    bool purges = false;      // repairs and sweeps every second
    bool on_rocks = false;
    bool slow_executors = false;
    bool verifies = false;
    bool has_condition = false;  // which leaves out a third of the rows
  };
  static Profile profile_of(uint64_t seed);

  SimNode& add_node();
  std::string make_tables();
  void create_views();
  void fault();
  void split();
  void truncate();
  void heal();
  SimNode* random_ready_node();
  void start_write(SimNode* via);
  /// Unset: the base is not known there.
  std::optional<storage::Mutation> next_change(SimNode& via);
  storage::Mutation random_change(SimNode& via);
  bool is_quiet();
  std::string verify(SimNode& via, const char* view, bool mends,
                     replication::ViewVerifier::Progress* found);
  std::string check_views();
  std::string check_own_writes();
  std::string compare_views();
  /// Has the views compared with the base by a node: first as they are, then with a row too much and
  /// a row too few, which are to be found and mended.
  std::string check_verifier();
  std::string spoil(SimNode& via);
  /// Writes to the view of rows by itself.
  void change_view(SimNode& via, TableIncarnation view, BytesView row, BytesView key,
                   const storage::RowRecord& record);
  /// A row that the condition leaves out is found, too, which nothing but a wrong program writes.
  std::string check_left_out(SimNode& via);
  const std::string& views_object() const;
  std::string read_all(SimNode& via, uint8_t table, int64_t now_s, ShownRows& out,
                       ConsistencyLevel level = ConsistencyLevel::kQuorum);

  const Profile profile_;
  base::Random random_;
  const uint32_t shards_;
  SimCluster cluster_;
  int64_t last_timestamp_ = 0;
  bool has_views_ = false;
  uint64_t writes_ = 0, rows_compared_ = 0, compared_again_ = 0;
};

}  // namespace tetrad::simulation
