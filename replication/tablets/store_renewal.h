// SPDX-License-Identifier: Apache-2.0
// A damaged store of this node: when its last tablet has left it (vacating.h), it is erased as a
// whole and opened anew, and gets tablets again like any other. Never a file alone: what its
// tombstones hid would come back.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "base/log.h"
#include "base/reactor.h"
#include "replication/tablets/store_cleanup.h"

namespace tetrad::replication {

/// Has damaged stores of a shard erased and opened anew, once no tablet names them any more. Owned
/// by the shard, on its thread; each store at most once in a life.
class StoreRenewal {
 public:
  /// On the thread of the store's shard; at most once for each store. Writes may go on until the
  /// store is erased: nobody counts them.
  using Renew = std::function<void(uint32_t store)>;

  /// `stores` by number; null: another shard's. Everything outlives it.
  StoreRenewal(base::Reactor& reactor, const MetaService& meta, const StoreCleanup& cleanup,
               std::vector<storage::Store*> stores, Renew renew, Logger logger);
  ~StoreRenewal();
  StoreRenewal(const StoreRenewal&) = delete;
  StoreRenewal& operator=(const StoreRenewal&) = delete;
  void start();

 private:
  /// At all stores of the shard, from time to time.
  void look();
  void look_at(uint32_t store);

  base::Reactor& reactor_;
  const MetaService& meta_;
  const StoreCleanup& cleanup_;
  const std::vector<storage::Store*> stores_;
  const Renew renew_;
  const Logger logger_;
  std::set<uint32_t> renewed_, alone_;  // alone_: said so once
  base::Reactor::TimerId timer_ = 0;
};

}  // namespace tetrad::replication
