// SPDX-License-Identifier: Apache-2.0
// The wait for views where this node has all copies of the rows (awaited_views.h):
//
//   1. Before a write: which rows it is about, in which stores, if its table has views.
//   2. After its success: each of these stores is asked to answer when the views show them. One of
//      another shard is asked with a message.
//   3. The client is answered when all have, or when half of its time that is left is over, or a
//      second: the write itself has been done.
#include "replication/coordinator/awaited_views.h"

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/coordinator/coordinator_impl.h"
#include "replication/coordinator/replica_sets.h"
#include "storage/row/partition_header.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kWaitMostUs = 1'000'000;

}  // namespace

std::vector<AwaitedView> CoordinatorImpl::views_to_await(
    std::span<const storage::Mutation> mutations) const {
  std::vector<AwaitedView> awaited;
  if (TETRAD_MUTANT(view_own_unawaited)) return awaited;
  for (const storage::Mutation& mutation : mutations) {
    if (!replicas_.has_views(mutation.incarnation)) continue;
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* const table = state->table(mutation.incarnation);
    if (table == nullptr) continue;
    const partitioner::Tablet& tablet = table->tablets.find(mutation.position);
    const auto is_own = [&](const StoreAddress& store) { return store.host == meta_.self(); };
    if (!std::ranges::all_of(tablet.replicas, is_own) ||
        !std::ranges::all_of(tablet.new_replicas, is_own))
      continue;
    auto [stores, new_stores] = write_sets(tablet);
    for (const StoreAddress& store : new_stores)
      if (std::ranges::find(stores, store) == stores.end()) stores.push_back(store);
    ViewAwaitRequest rows{
        {mutation.incarnation, mutation.position, mutation.partition_key, {}},
        !mutation.range_tombstones.empty() || storage::deletes_partition(mutation.header),
        {}};
    for (const storage::RowChange& row : mutation.rows)
      rows.clustering_keys.push_back(row.clustering_key);
    // Views take no static columns.
    if (!rows.ranges && rows.clustering_keys.empty()) continue;
    for (const StoreAddress& store : stores) awaited.push_back({store, rows});
  }
  return awaited;
}

Task<void> CoordinatorImpl::await_views(std::vector<AwaitedView> awaited, base::Deadline deadline,
                                        TracePtr trace) {
  TETRAD_ASSERT(!awaited.empty());
  if (trace != nullptr) trace->add("Waiting for rows of views");
  const base::MonotonicUs now_us = reactor_.now_us();
  const int64_t wait_us = std::min(kWaitMostUs, (deadline.at_us - now_us) / 2);
  if (wait_us <= 0) co_return;
  base::OneShot<bool> shown;
  const auto left = std::make_shared<size_t>(awaited.size());
  for (const AwaitedView& view : awaited) {
    // An error is of the wait, not of the write.
    rpc_.call(view.store.host, view.store.store, Verb::kViewAwait, encode_view_await(view.rows),
              {now_us + wait_us}, [left, setter = shown.setter()](const Result<Bytes>&) {
                if (--*left == 0) setter.set(true);
              });
  }
  co_await shown;
}

}  // namespace tetrad::replication
