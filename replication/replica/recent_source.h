// SPDX-License-Identifier: Apache-2.0
// Gives another member, which is behind, what this shard's stores hold now of the rows that were
// written to them lately (Verb::kRecent; design, rule 20). As they are now, never as they were
// logged: what a tombstone hid that is purged since must not come back.
#pragma once

#include <memory>
#include <vector>

#include "base/log.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/repair/purge_horizon.h"
#include "replication/replica/behind.h"
#include "replication/replica/fence.h"
#include "replication/replica/recent_messages.h"
#include "replication/rpc/rpc.h"
#include "replication/tablets/store_cleanup.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// Answers kRecent for the stores of one shard. Belongs to the shard and its thread.
class RecentSource {
 public:
  /// `stores` by number; null: another shard's. `longest_us`: the longest that any write may go on.
  /// Everything outlives it.
  RecentSource(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, const HybridClock& clock,
               std::vector<storage::Store*> stores, const Fences& fences, StoreCleanup& cleanup,
               const BehindStores& behind, int64_t longest_us);
  ~RecentSource();
  RecentSource(const RecentSource&) = delete;
  RecentSource& operator=(const RecentSource&) = delete;

 private:
  using Answer = std::move_only_function<void(Result<RecentAnswer>)>;
  /// Sorts the tablets: refused, of which something is lost here too, and what may be read.
  std::vector<size_t> judge(uint32_t store, const RecentRequest& request, RecentAnswer& out) const;
  void answer(uint32_t store, RecentRequest request, base::Deadline deadline, Answer done);
  /// Runs `then(true)` when all writes that the store has let into these tablets have ended.
  void drain(uint32_t store, const RecentRequest& request, const std::vector<size_t>& tablets,
             base::Deadline deadline, Fence::Then then);
  void answer_recent(uint32_t store, const RecentRequest& request,
                     const std::vector<size_t>& readable, RecentAnswer out, Answer done);
  void answer_everything(uint32_t store, const RecentRequest& request,
                         const std::vector<size_t>& readable, RecentAnswer out, Answer done);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  const HybridClock& clock_;
  const std::vector<storage::Store*> stores_;
  const Fences& fences_;
  StoreCleanup& cleanup_;
  const BehindStores& behind_;
  const int64_t longest_us_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace tetrad::replication
