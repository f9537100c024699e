// SPDX-License-Identifier: Apache-2.0
// What disks do while the data simulation runs, to one node at a time: under one of its stores, its
// local log or its hints, writes stall, take long, are acknowledged late or fail though they were
// done, the disk is full or answers nothing at all. What was done to a node is taken back before
// another's turn.
#pragma once

#include <optional>

#include "base/random.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

class DiskNemesis {
 public:
  /// `feeds`: a table keeps a change log. A real store has a row and its entry in one batch:
  /// neither fails alone, and what is read is soon acknowledged.
  DiskNemesis(uint64_t seed, bool feeds) : random_(seed), feeds_(feeds) {}

  /// Now and then.
  void step(SimCluster& cluster);
  void heal(SimCluster& cluster);

 private:
  void break_store(StoreFaults& faults);
  void break_log(StoreFaults& faults);

  base::Random random_;
  const bool feeds_;
  std::optional<size_t> victim_;
};

}  // namespace tetrad::simulation
