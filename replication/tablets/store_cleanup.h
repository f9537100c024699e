// SPDX-License-Identifier: Apache-2.0
// Rule 11 of the design: a store that becomes a member of a tablet holds nothing of an earlier
// stay, whose deletions it may have missed. What it holds of a range is erased before the first row
// of the new stay is taken; that this was done is kept in the local log. And what a store holds of
// tablets that are not its own, after a change of members that was given up or that it left by, is
// erased in the background, to give the room back.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "base/log.h"
#include "base/metrics.h"
#include "base/reactor.h"
#include "base/task_group.h"
#include "replication/meta/meta_service.h"
#include "storage/engine/local_log.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// Erases from a shard's stores what is of tablets that are not theirs. Owned by the shard, on its
/// thread. Always: before a stay's first row is taken, what the store held of the range is gone,
/// and the local log says so.
class StoreCleanup {
 public:
  /// Counters of this shard's stores.
  struct Metrics {
    base::Counter keys_erased;
  };

  /// `stores` by number; null: another shard's. Everything outlives it.
  StoreCleanup(base::Reactor& reactor, storage::LocalLog& log, MetaService& meta,
               std::vector<storage::Store*> stores, Logger logger);
  StoreCleanup(const StoreCleanup&) = delete;
  StoreCleanup& operator=(const StoreCleanup&) = delete;

  /// Whether rows of the tablet may be taken by the store. False: it is about to become a member,
  /// and what it had of the tablet is being erased; ask again.
  bool may_take(TableIncarnation incarnation, const partitioner::Tablet& tablet, uint32_t store);

  /// This life's map is older than the marks in the local log, which an earlier life wrote: a range
  /// that seems to have no owner here may be a member's.
  bool is_behind(const MetaState& state, uint32_t store) const;

  const Metrics& metrics() const { return metrics_; }

 private:
  /// A store's membership of a tablet, from its change of members on.
  struct Stay {
    TabletId tablet;
    uint32_t store;
    friend auto operator<=>(const Stay&, const Stay&) = default;
  };
  /// A table of which a store may hold more than its own tablets.
  struct Work {
    TableIncarnation incarnation;
    uint32_t store;
    friend auto operator<=>(const Work&, const Work&) = default;
  };

  void on_state(const MetaSnapshot& before, const MetaSnapshot& now);
  /// Of a table that is new (`before` null) or has changed; or of any, in the first state.
  void look_at(const TableInfo* before, const TableInfo& now, bool first);
  bool holds(const partitioner::Tablet& tablet, uint32_t store) const;
  Task<void> make_clean(TableIncarnation incarnation, partitioner::Tablet tablet, uint32_t store);
  Task<void> erase_foreign();
  Task<bool> erase_foreign_of(Work work);
  /// Erases a page; the rest begins at `place`. True: nothing is left.
  Task<Result<bool>> erase_page(TableIncarnation incarnation, RingRange range, uint32_t store,
                                storage::SweepPlace* place);

  base::Reactor& reactor_;
  storage::LocalLog& log_;
  MetaService& meta_;
  const std::vector<storage::Store*> stores_;
  const Logger logger_;
  Metrics metrics_;
  std::map<Stay, SetEpoch> clean_;  // the epoch the stay began with
  std::set<Stay> under_way_;
  std::set<Work> foreign_;  // tables of which a store may hold what is not its own
  bool erasing_ = false;
  std::shared_ptr<void> subscription_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
