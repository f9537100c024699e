// SPDX-License-Identifier: Apache-2.0
// Tells now and then how far each store of this shard has written and synced, and what it lacks:
// for the node's heartbeats.
#pragma once

#include <functional>
#include <vector>

#include "base/reactor.h"
#include "replication/membership/store_facts.h"
#include "replication/replica/behind.h"
#include "replication/replica/recent_fetch.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// Watches the stores of one shard, and reports what other nodes must know of each. Belongs to the
/// shard and its thread.
class StoreTeller {
 public:
  using Tell = std::function<void(uint32_t store, StoreFacts facts)>;
  /// `stores` by number; null: another shard's. Null `tell`: nobody hears of it. Everything
  /// outlives it.
  StoreTeller(base::Reactor& reactor, std::vector<storage::Store*> stores,
              const BehindStores& behind, const RecentFetch& fetch, Tell tell);
  ~StoreTeller();
  StoreTeller(const StoreTeller&) = delete;
  StoreTeller& operator=(const StoreTeller&) = delete;
  void start();

 private:
  StoreFacts facts_of(uint32_t store) const;

  base::Reactor& reactor_;
  const std::vector<storage::Store*> stores_;
  const BehindStores& behind_;
  const RecentFetch& fetch_;
  const Tell tell_;
  base::Reactor::TimerId timer_ = 0;
};

}  // namespace tetrad::replication
