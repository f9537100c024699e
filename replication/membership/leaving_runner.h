// SPDX-License-Identifier: Apache-2.0
// Takes nodes out, on the node that leads the metadata group: begins it for one that stays away too
// long, and ends it for one whose last replica is elsewhere. MoveRunner moves the replicas.
#pragma once

#include <functional>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/membership/leaving.h"
#include "replication/meta/meta_service_impl.h"

namespace tetrad::replication {

/// How often nodes on their way out are looked at, and when one that is away is replaced.
struct LeavingOptions {
  int64_t period_us = 500'000;
  /// 0: nodes are never replaced by themselves.
  int64_t replace_after_us = int64_t{3600} * 1'000'000;
};

/// Brings nodes out of the cluster once they hold nothing any more, and begins to replace those
/// that stay away. Runs on every node's first shard, acts where the metadata group's leader is.
class LeavingRunner {
 public:
  /// `is_drained`: whether a node that leaves holds no logged batches any more.
  LeavingRunner(base::Reactor& reactor, MetaServiceImpl& meta, LeavingOptions options,
                std::function<bool(HostId)> is_drained, Logger logger);
  ~LeavingRunner();
  LeavingRunner(const LeavingRunner&) = delete;
  LeavingRunner& operator=(const LeavingRunner&) = delete;
  void start();

 private:
  void look();
  Task<void> set_state(HostId host, NodeState state);

  base::Reactor& reactor_;
  MetaServiceImpl& meta_;
  const LeavingOptions options_;
  const std::function<bool(HostId)> is_drained_;
  const Logger logger_;
  bool proposing_ = false;
  base::Reactor::TimerId timer_ = 0;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
