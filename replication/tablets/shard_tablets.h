// SPDX-License-Identifier: Apache-2.0
// What every shard does for the tablets of its stores: measures them, splits those that have grown,
// that are hot, or whose table has more throughput now, takes part in changes of members, and has
// its stores clean up what was dropped.
#pragma once

#include <memory>
#include <vector>

#include "replication/changes/change_log.h"
#include "replication/indexes/index_runner.h"
#include "replication/paxos/paxos_keys.h"
#include "replication/replica/behind.h"
#include "replication/replica/fence.h"
#include "replication/tablets/heat_runner.h"
#include "replication/tablets/load_report.h"
#include "replication/tablets/split_runner.h"
#include "replication/tablets/store_cleanup.h"
#include "replication/tablets/store_renewal.h"
#include "replication/tablets/tablet_stream.h"

namespace tetrad::replication {

/// Everything that one shard does for the tablets of its stores. Owned by the shard, on its thread.
/// The order of its members is the order in which they hear of a new map.
class ShardTablets {
 public:
  /// `stores` by number; null: another shard's. `losses`: see BehindStores. `stream_page_bytes`:
  /// see MoveOptions. Everything outlives it.
  ShardTablets(base::Reactor& reactor, base::Random& random, RpcNode& rpc, storage::LocalLog& log,
               MetaService& meta, HybridClock& clock, std::vector<storage::Store*> stores,
               const std::vector<std::optional<PowerLoss>>& losses, int64_t load_period_us,
               uint64_t stream_page_bytes, const ChangeLogOptions& changes,
               ClaimMakers claim_makers, ViewMakersOf view_makers, const IndexOptions& indexes,
               StoreRenewal::Renew renew_store, const HeatOptions& heat, HeatRunner::BusyUs busy_us,
               const Logger& logger);
  /// After the stores are open and the shard has its first map.
  void start() {
    renewal_.start();
    load_.start();
    heat_.start();
    changes_.start();
    indexes_.start();
  }
  /// Parts for the data plane and the admin pages; they live as long as this object.
  const Fences& fences() const { return fences_; }
  HeatRunner& heat() { return heat_; }
  StoreCleanup& cleanup() { return cleanup_; }
  ChangeLogs& changes() { return changes_; }
  BehindStores& behind() { return behind_; }
  PaxosKeys& paxos_keys() { return paxos_keys_; }
  IndexRunner& indexes() { return indexes_; }
  const TabletStream& stream() const { return stream_; }
  /// Gauges and counters of all parts under `labels`, which name the shard.
  void register_in(base::MetricsRegistry& metrics, const std::string& labels) const;

 private:
  /// Tells the stores which incarnations are gone with this state.
  void retire(const MetaSnapshot& before, const MetaSnapshot& now);

  const std::vector<storage::Store*> stores_;
  const Fences fences_;  // they hear of a new map before the others
  IndexRunner indexes_;  // stores know of an index before they are asked by who does
  StoreCleanup cleanup_;
  StoreRenewal renewal_;
  BehindStores behind_;
  ChangeLogs changes_;
  PaxosKeys paxos_keys_;
  LoadReporter load_;
  SplitRunner splits_;
  HeatRunner heat_;
  TabletStream stream_;
  // To new maps. Last: it ends before what it calls.
  std::shared_ptr<void> subscription_;
};

}  // namespace tetrad::replication
