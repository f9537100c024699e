// SPDX-License-Identifier: Apache-2.0
// The door to the metadata group and to what is known about the other nodes. One per node; each
// shard has its own front that hands out the newest snapshot without a lock.
#pragma once

#include <functional>
#include <string>

#include "base/reactor.h"
#include "base/result.h"
#include "base/task.h"
#include "replication/membership/disk_usage.h"
#include "replication/membership/store_troubles.h"
#include "replication/meta/meta_state.h"
#include "replication/tablets/heat.h"
#include "replication/throughput/used_throughput.h"

namespace tetrad::replication {

/// The cluster's metadata as one shard sees it: snapshots of what is applied, and proposals. Each
/// shard has its own and uses it on its thread.
class MetaService {
 public:
  virtual ~MetaService() = default;

  virtual HostId self() const = 0;
  /// The newest applied state. Cheap: a copy of a shared pointer.
  virtual MetaSnapshot snapshot() const = 0;

  /// `listener` runs on this shard after each applied change, in order, once per new snapshot; also
  /// with a change of liveness, filling_disks(), store_troubles() or takes_clients() (both snapshots
  /// are then the same).
  /// Unsubscribing is by destroying the returned token.
  using Listener = std::function<void(const MetaSnapshot& before, const MetaSnapshot& now)>;
  virtual std::shared_ptr<void> subscribe(Listener listener) = 0;

  /// Proposes a schema change. Answers when every live node has applied it (a courtesy to drivers,
  /// limited to 10 s; then `warnings` gets a sentence); a DROP or TRUNCATE when W members of every
  /// tablet refuse the old incarnation, R while fewer are live (a DROP that lacks them has a warning
  /// after those 10 s). Errors: kConflict if the schema is no longer at
  /// `change.expected`: look again and retry; kUnavailable / kTimedOut if the group has no quorum.
  virtual Task<Result<void>> change_schema(SchemaChange change, base::Deadline deadline,
                                           std::vector<std::string>* warnings) = 0;

  /// By heartbeats; advisory only. Self is live.
  virtual bool is_live(HostId host) const = 0;
  /// By heartbeats; advisory only. Not: an operator has ordered it (drain, disablebinary).
  virtual bool takes_clients(HostId host) const = 0;
  /// By heartbeats; advisory only.
  virtual const FillingDisks& filling_disks() const = 0;
  /// By heartbeats, with self; advisory only.
  virtual const StoreTroubles& store_troubles() const = 0;
  storage::StoreState state_of(const StoreAddress& replica) const {
    const StoreTroubles& troubles = store_troubles();
    if (troubles.empty()) return storage::StoreState::kServing;
    const auto found = troubles.find(replica);
    return found == troubles.end() ? storage::StoreState::kServing : found->second;
  }
  /// Whether its node is live and its store is.
  bool is_replica_live(const StoreAddress& replica) const;
  /// Bytes of a tablet as its preferred replica last reported; 0 if never.
  virtual uint64_t tablet_bytes(TabletId tablet) const = 0;
  /// Of all its members together, as they last reported; nothing if they have not.
  virtual TabletHeat tablet_heat(TabletId) const { return {}; }
  /// As its holder last reported; nothing if it has not.
  virtual UsedThroughput used_throughput(ThroughputKey) const { return {}; }
};

}  // namespace tetrad::replication
