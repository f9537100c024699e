// SPDX-License-Identifier: Apache-2.0
// Brings hints to the replicas that missed them, oldest first, at a limited rate, once they are
// live again.
#pragma once

#include <set>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/hints/hint_store.h"
#include "replication/meta/meta_service.h"
#include "replication/repair/purge_horizon.h"
#include "replication/rpc/rpc.h"

namespace tetrad::replication {

struct HintDispatchOptions {
  int64_t look_every_us = 500'000;
  size_t page_hints = 64;  // sent at once
  int64_t pause_between_pages_us = 2'000;
  int64_t timeout_us = 10'000'000;
  HorizonSlack horizon;
};

class HintDispatcher {
 public:
  /// All outlive it.
  HintDispatcher(base::Reactor& reactor, HintStore& store, RpcNode& rpc, MetaService& meta,
                 HintDispatchOptions options, Logger logger);
  ~HintDispatcher();
  HintDispatcher(const HintDispatcher&) = delete;
  HintDispatcher& operator=(const HintDispatcher&) = delete;
  void start();

 private:
  void look();
  Task<void> replay(StoreAddress replica);

  base::Reactor& reactor_;
  HintStore& store_;
  RpcNode& rpc_;
  MetaService& meta_;
  const HintDispatchOptions options_;
  Logger logger_;
  std::set<StoreAddress> under_way_;
  base::Reactor::TimerId timer_ = 0;
  base::TaskGroup tasks_;  // last: goes first
};

}  // namespace tetrad::replication
