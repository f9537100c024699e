// SPDX-License-Identifier: Apache-2.0
// Compares a materialized view with its base table on live data (design, rule 24), a row at a time:
//
//   1. Every row of the base is read at QUORUM, a page at a time. What its image should show is
//      compared with what the view shows at the image's place.
//   2. Every row of the view is read in the same way. The base row that it is of must give its
//      place.
//
// What differs may be on its way to the view: it is looked at again some times, by itself. What
// still differs counts. Nothing is written to the view. To mend it, the members of the base row are
// given a task that names what was found, and make the row anew as after any change.
#pragma once

#include <string>
#include <vector>

#include "base/reactor.h"
#include "base/task_group.h"
#include "replication/coordinator/coordinator.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/rpc/rpc.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// Compares a view with its base table, and has rows that differ made anew where that is asked for.
/// One comparison at a time, ordered by an operator. Owned by a shard's data plane, on its thread.
class ViewVerifier {
 public:
  /// How far it is, or what the last one came to.
  struct Progress {
    std::string keyspace, view;
    uint64_t base_rows = 0, view_rows = 0;  // compared
    /// How much of the ring that is, of each: from 0 to 1.
    double base_share = 0, view_share = 0;
    uint64_t missing = 0, differing = 0, extra = 0, mended = 0;
    /// For the operator: rows that differ, at most a hundred; what ended it early.
    std::vector<std::string> differences, failed;
    bool running = false;
  };

  /// `store`: any of this shard, for the views that the schema gives. Everything outlives it.
  ViewVerifier(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, const HybridClock& clock,
               Coordinator& coordinator, storage::Store* store);

  /// Of a view that is being compared already: nothing, it goes on. Errors: kNotFound: there is no
  /// such view; kConflict: another one is being compared, or it otherwise.
  Result<void> start(const std::string& keyspace, const std::string& view, bool mends);
  /// The comparison under way ends before its next row, and fails. False: there is none.
  bool stop();
  const Progress& progress() const { return progress_; }

 private:
  /// The view that is compared, by the incarnations it had when that began.
  struct Target {
    TableIncarnation base, view;
    bool mends = false;
  };
  /// What a row of the view is, and should be.
  struct Compared;
  Task<void> run(Target target);
  /// Step 1; then compare_view() does step 2. Errors: those of reads, and kLimit when too much
  /// differs.
  Task<Result<void>> compare_base(Target target);
  Task<Result<void>> compare_view(Target target);
  Task<Result<Compared>> compare_row(Target target, storage::ViewRow row,
                                     std::optional<storage::ViewOrigin> extra);
  /// Compares one row, again after a pause where it differs, and counts it.
  Task<Result<void>> judge(Target target, storage::ViewRow row,
                           std::optional<storage::ViewOrigin> extra);
  Task<Result<void>> mend(Target target, storage::ViewRow row, storage::ViewNames names);
  Task<Result<storage::ReadResult>> read(storage::ReadCommand command);
  Task<Result<Bytes>> read_row(TableIncarnation table, RingPosition position, Bytes partition_key,
                               Bytes clustering_key);
  /// Null: the view or its table is gone.
  storage::ViewMakerPtr maker_of(Target target) const;
  int64_t now_s() const { return clock_.now_us(reactor_) / 1'000'000; }

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  const HybridClock& clock_;
  Coordinator& coordinator_;
  storage::Store* const store_;
  Progress progress_;
  bool mends_ = false, stops_ = false;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
