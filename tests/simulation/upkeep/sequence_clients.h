// SPDX-License-Identifier: Apache-2.0
// Clients that write rows of their own one after another, with the coordinators' timestamps, and
// read them: a quorum read sees the last acknowledged write, or one whose outcome its client does
// not know.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {

struct SequenceClient {
  std::string key;
  int number = 0;         // of the last write; every fifth deletes
  int acknowledged = 0;   // the last one
  std::set<int> unknown;  // outcome not known: it may show at any time
  bool busy = false;
  base::MonotonicUs since_us = 0;
  std::string wrong;
};

class SequenceClients {
 public:
  SequenceClients(SimCluster& cluster, TableIncarnation incarnation, size_t count);
  /// Those that have nothing under way begin something, each through any node that is ready and not
  /// standing still. "" or what one of them has seen that is wrong.
  std::string step(base::Random& random);
  /// Reads of all clients; false when one is not answered.
  bool read_all(SimNode* node);
  std::string wrong() const;
  int acknowledged() const { return acknowledged_; }

 private:
  static Task<void> write_next(SequenceClients* self, SimNode* node, SequenceClient* client);
  static Task<void> read_last(SequenceClients* self, SimNode* node, SequenceClient* client);

  SimCluster& cluster_;
  const TableIncarnation incarnation_;
  std::vector<SequenceClient> clients_;
  int acknowledged_ = 0, answered_ = 0;
};

}  // namespace tetrad::simulation
