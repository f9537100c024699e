// SPDX-License-Identifier: Apache-2.0
// Clients of clusters that lose power: one for each key, which writes numbers or deletes, one after
// another, and others that read. A read at QUORUM sees what was acknowledged, or something later,
// and never goes back.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {

class PowerClients {
 public:
  PowerClients(SimCluster& cluster, TableIncarnation incarnation, size_t keys)
      : cluster_(cluster), incarnation_(incarnation), keys_(keys) {}

  /// Begins a write of the key unless one is under way, or a read.
  void write(size_t key, SimNode& via, bool deletes);
  void read(size_t key, SimNode& via);
  size_t acknowledged() const { return acknowledged_; }
  size_t reads_answered() const { return reads_answered_; }
  const std::string& wrong() const { return wrong_; }
  /// Every machine lost power, and acknowledged writes with it: what is read from now on counts.
  void forget() {
    for (Key& key : keys_) key.least = 0;
  }
  /// Reads every key through `via` until it is answered. "" or what is wrong.
  std::string read_all(SimNode& via, int64_t at_most_us);

 private:
  struct Key {
    bool writing = false;
    int64_t last = 0;           // the newest number that was given to a write
    int64_t least = 0;          // what reads see is not older
    std::set<int64_t> deletes;  // the numbers of those writes that delete
  };
  Task<void> run_write(SimNode* via, size_t index, int64_t number, bool deletes);
  Task<void> run_read(SimNode* via, size_t index, bool* answered);
  void judge(size_t index, int64_t least, const std::optional<std::string>& seen);

  SimCluster& cluster_;
  const TableIncarnation incarnation_;
  std::vector<Key> keys_;
  size_t acknowledged_ = 0, reads_answered_ = 0;
  std::string wrong_;
};

/// As try_write(), with the stamp of the coordinator: replicas say what they know that is not
/// older.
Task<Result<void>> stamped_write(SimNode* node, TableIncarnation incarnation, RowWrite write);

/// "key3".
std::string power_key(size_t index);

/// Steps with one key, "k". What they say is "", or what is wrong.
class PowerSteps {
 public:
  explicit PowerSteps(SimCluster& cluster) : cluster_(cluster) {}

  /// Until all tablets of the one table have so many members.
  std::string wait_until_grown(size_t members);
  TableIncarnation incarnation() const { return incarnation_; }
  /// Writes at QUORUM until it is acknowledged; `count` is raised when that comes later.
  void write(SimNode& via, RowWrite write, int* count);
  std::string must_acknowledge(SimNode& via, std::string value);
  /// A read at QUORUM, until one is answered, shows it.
  std::string must_see(SimNode& via, const std::string& wanted, const char* when);
  /// Until the nodes lack nothing; meanwhile what reads through `readers` answer is right.
  std::string wait_until_complete(const std::vector<SimNode*>& nodes,
                                  const std::vector<SimNode*>& readers, const std::string& wanted);

 private:
  SimCluster& cluster_;
  TableIncarnation incarnation_;
};

}  // namespace tetrad::simulation
