// SPDX-License-Identifier: Apache-2.0
// Brings hints to the replicas that missed them, oldest first, at a limited rate, once they are
// live again. What a replica refuses waits at the end of its queue, behind the others; one that
// does not answer in time is sent less at once, and later.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/hints/hint_store.h"
#include "replication/meta/meta_service.h"
#include "replication/repair/purge_horizon.h"
#include "replication/rpc/rpc.h"

namespace tetrad::replication {

/// How fast hints are replayed.
struct HintDispatchOptions {
  int64_t look_every_us = 500'000;
  size_t page_hints = 64;  // sent at once
  int64_t pause_between_pages_us = 2'000;
  int64_t timeout_us = 10'000'000;
  HorizonSlack horizon;
};

/// Replays the hints of one shard. Belongs to the shard and its thread; one replay at a time for
/// each replica.
class HintDispatcher {
 public:
  /// All outlive it.
  HintDispatcher(base::Reactor& reactor, HintStore& store, RpcNode& rpc, MetaService& meta,
                 const HybridClock& clock, HintDispatchOptions options, Logger logger);
  ~HintDispatcher();
  HintDispatcher(const HintDispatcher&) = delete;
  HintDispatcher& operator=(const HintDispatcher&) = delete;
  void start();

 private:
  /// What became of a hint.
  enum class Outcome : uint8_t { kKept, kReplayed, kDropped };
  /// A page that is under way: how many answers are missing, and what became of each hint.
  struct Sending {
    explicit Sending(size_t hints) : left(hints), outcomes(hints, Outcome::kKept) {}
    size_t left, replayed = 0;
    std::vector<Outcome> outcomes;
    bool timed_out = false;
    base::OneShot<bool> done;
  };
  /// How fast one replica is sent to: less after a failure, more again after success.
  struct Pace {
    explicit Pace(size_t hints) : page_hints(hints) {}
    size_t page_hints;
    int64_t back_off_us = 0;
    base::MonotonicUs not_before_us = 0;
  };
  /// From time to time: begins a replay for each replica that is live, has hints, and may be sent
  /// to.
  void look();
  bool may_send(const StoreAddress& replica) const;
  /// Page by page, until nothing waits or the replica fails.
  Task<void> replay(StoreAddress replica);
  std::shared_ptr<Sending> send_page(const StoreAddress& replica, const HintStore::Page& page);
  Pace& pace_of(const StoreAddress& replica) {
    return paces_.try_emplace(replica, options_.page_hints).first->second;
  }
  /// After a failure: later; after a time-out also fewer at once.
  void slow_down(const StoreAddress& replica, bool timed_out);

  base::Reactor& reactor_;
  HintStore& store_;
  RpcNode& rpc_;
  MetaService& meta_;
  const HybridClock& clock_;
  const HintDispatchOptions options_;
  Logger logger_;
  std::set<StoreAddress> under_way_;
  std::map<StoreAddress, Pace> paces_;
  base::Reactor::TimerId timer_ = 0;
  base::TaskGroup tasks_;  // last: goes first
};

}  // namespace tetrad::replication
