// SPDX-License-Identifier: Apache-2.0
// A reader of the change feed of the simulated cluster's table, from one coordinator after another,
// while writes and faults go on. When it was told twice in a row that nothing more is there, it
// must have got every row whose write was acknowledged, or whose value a quorum read saw, before,
// after that write began. A row that was deleted later counts for nothing: deletions are not in the
// feed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "replication/coordinator/changes.h"
#include "tests/simulation/cluster/history.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

class FeedReader {
 public:
  /// `key`: only of this partition.
  FeedReader(uint64_t seed, std::optional<int> key);

  /// Takes a page that came and asks for the next one. "" or what is wrong.
  std::string step(SimCluster& cluster, const History& history);
  /// Reads until it has been told twice that nothing more is there.
  std::string finish(SimCluster& cluster, const History& history);
  uint64_t changes() const { return changes_; }

 private:
  /// A page under way; its task may be gone with its node.
  struct Page {
    base::MonotonicUs begun_us = 0, ended_us = 0;
    TableIncarnation incarnation;
    std::optional<Result<replication::ChangesPage>> result;
  };
  static Task<void> read_page(SimNode* node, uint32_t shard, replication::ChangesCommand command,
                              std::shared_ptr<Page> page);
  void ask(SimCluster& cluster);
  std::string take(const Page& page, const History& history);
  std::string take_change(const replication::Change& change, base::MonotonicUs at_us);
  std::string check(const History& history, base::MonotonicUs known_by_us) const;
  bool must_be_known(const History& history, const Operation& write, int row) const;

  base::Random random_;
  const std::optional<int> key_;
  std::shared_ptr<Page> page_;
  Bytes place_;
  TableIncarnation incarnation_;
  int64_t since_us_ = 0;
  std::optional<base::MonotonicUs> first_us_;  // what was written before counts for nothing
  base::MonotonicUs scanned_us_ = 0;           // what was acknowledged before was found by a scan
  std::array<std::array<base::MonotonicUs, kRows + 1>, kKeys> delivered_us_{};
  std::optional<base::MonotonicUs> exhausted_us_;  // the page before said so, begun then
  bool complete_ = false;
  uint64_t changes_ = 0;
};

}  // namespace tetrad::simulation
