// SPDX-License-Identifier: Apache-2.0
// Compares what the members of physical partitions hold, page by page by digests as a read does,
// and writes nothing. What differs after a repair says that something is wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/task_group.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/repair/purge_horizon.h"
#include "replication/rpc/rpc.h"
#include "storage/row/read_command.h"

namespace tetrad::replication {

/// One comparison at a time, ordered by an operator. Owned by a shard's data plane, on its thread.
class Comparison {
 public:
  /// How far it is, or what the last one came to. `compared` never exceeds `partitions`.
  struct Progress {
    uint64_t partitions = 0, compared = 0, pages = 0;
    uint64_t differing_pages = 0;
    /// Sentences for the operator: which partitions differ, which could not be compared and why.
    std::vector<std::string> differing, failed;
    bool running = false;
  };

  /// Everything outlives it.
  Comparison(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, const HybridClock& clock,
             HorizonSlack slack);

  /// Of the tables named ("": all). False: one is running.
  bool start(const std::string& keyspace, const std::string& table);
  const Progress& progress() const { return progress_; }

 private:
  /// A tablet as it was when the comparison began; if its epoch changes it is not compared.
  struct Target {
    TableIncarnation incarnation;
    std::string name;
    partitioner::Tablet tablet;
  };
  /// Whether the members agree on a page, and where it ends.
  struct Page {
    bool same = false, exhausted = true;
    storage::ReadPosition end;
  };
  /// One tablet after another; a failed one is noted, and the next begins.
  Task<void> run(std::vector<Target> targets);
  Task<Result<uint64_t>> compare(Target target);
  Task<Result<Page>> compare_page(TableIncarnation incarnation, partitioner::Tablet tablet,
                                  std::optional<storage::ReadPosition> after);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  const HybridClock& clock_;
  const HorizonSlack slack_;
  Progress progress_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
