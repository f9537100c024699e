// SPDX-License-Identifier: Apache-2.0
// Writes that are answered when the views show them, since every copy of their rows is on this node
// (coordinator/awaited_views.cc):
//
//   1. The write is in the store, so its tasks are known here. For each of its rows the last one is
//      noted with the request, and the row is due at once.
//   2. A deletion of rows that are not named waits for its expansion, and for all rows of the
//      partition that have tasks: those that it has made tasks of are among them.
//   3. Where a request waits for few rows, these go before what others have left to be done: a
//      view that is built, a large deletion, a restart. Of four executions one is of the latter.
//   4. The request is answered when none is left: their tasks are gone, or an execution that began
//      after the request is over. A row whose execution fails several times is not waited for: the
//      write stands, and the view follows as it does elsewhere. So it is with tasks that only the
//      store knows.
//
// The coordinator gives up by its own deadline; what is noted for it stays until the next execution
// of the row has ended.
#include <algorithm>

#include "base/assert.h"
#include "replication/views/view_messages.h"
#include "replication/views/view_runner.h"

namespace tetrad::replication {

namespace {

// A client that waits for few rows does not wait for the many of others.
constexpr size_t kFirstRowsMax = 64;

}  // namespace

void ViewRunner::on_await(const RpcContext& context, BytesView body, RpcNode::Reply reply) {
  auto request = decode_view_await(body);
  if (!request) return reply.error(request.error());
  if (own_store(context.store) == nullptr)
    return reply.error(Error(ErrorCode::kNotFound, "the store is not of this shard"));
  const auto awaited = std::make_shared<Awaited>(std::move(reply));
  Key key{context.store, std::move(request->partition)};
  std::vector<WaitingRow*> rows;
  // Its expansion may be over by now.
  if (request->ranges) {
    await_ranges(key, awaited);
    add_rows_from(key, rows);
  }
  for (Bytes& clustering_key : request->clustering_keys) {
    key.row.clustering_key = std::move(clustering_key);
    const auto waiting = waiting_.find(key);
    if (waiting != waiting_.end()) rows.push_back(&*waiting);
  }
  await_rows(rows, awaited);
  release(awaited);
}

void ViewRunner::await_rows(const std::vector<WaitingRow*>& rows, const AwaitedPtr& awaited) {
  for (WaitingRow* row : rows)
    await_row(row->first, row->second, {0, awaited, false, rows.size() <= kFirstRowsMax});
}

void ViewRunner::await_row(const Key& key, Waiting& waiting, AwaitedRow row) {
  if (waiting.tasks.empty() || waiting.tries >= kTriesAwaited || awaited_ >= options_.waiting_max)
    return;
  row.last = waiting.tasks.rbegin()->first;
  ++row.awaited->left;
  waiting.awaited.push_back(std::move(row));
  ++awaited_;
  const base::MonotonicUs now_us = reactor_.now_us();
  if (!waiting.runs && (waiting.due_us > now_us || waiting.is_first != goes_first(waiting)))
    set_due(key, waiting, now_us);
}

bool ViewRunner::is_of_partition(const Key& key, const Key& other) {
  return key.store == other.store && key.row.base == other.row.base &&
         key.row.position == other.row.position && key.row.partition_key == other.row.partition_key;
}

bool ViewRunner::goes_first(const Waiting& waiting) {
  return std::ranges::any_of(waiting.awaited, &AwaitedRow::goes_first);
}

void ViewRunner::add_rows_from(const Key& start, std::vector<WaitingRow*>& rows) {
  for (auto at = waiting_.lower_bound(start);
       at != waiting_.end() && is_of_partition(at->first, start); ++at)
    rows.push_back(&*at);
}

void ViewRunner::await_ranges(const Key& partition, const AwaitedPtr& awaited) {
  TETRAD_ASSERT(partition.row.clustering_key.empty());
  for (auto at = range_of_.lower_bound(partition);
       at != range_of_.end() && is_of_partition(at->first, partition); ++at) {
    if (awaited_ >= options_.waiting_max) return;
    at->second->awaited.push_back(awaited);
    ++awaited->left;
    ++awaited_;
  }
}

void ViewRunner::forget_range(const RangePtr& range) {
  const Key start{range->store, range->task.row};
  const auto [first, last] = range_of_.equal_range(start);
  for (auto at = first; at != last; ++at) {
    if (at->second != range) continue;
    range_of_.erase(at);
    break;
  }
  std::vector<WaitingRow*> rows;
  if (!range->awaited.empty()) add_rows_from(start, rows);
  for (const AwaitedPtr& awaited : range->awaited) {
    TETRAD_ASSERT(awaited_ != 0);
    --awaited_;
    await_rows(rows, awaited);
    release(awaited);
  }
  range->awaited.clear();
}

template <class IsDone>
void ViewRunner::release_if(Waiting& waiting, IsDone is_done) {
  std::erase_if(waiting.awaited, [&](const AwaitedRow& row) {
    if (!is_done(row)) return false;
    TETRAD_ASSERT(awaited_ != 0);
    --awaited_;
    release(row.awaited);
    return true;
  });
}

void ViewRunner::release_awaited(Waiting& waiting) {
  release_if(waiting, [&](const AwaitedRow& row) {
    return waiting.tasks.empty() || waiting.tasks.begin()->first > row.last;
  });
}

// Their writes were in the store before it began: it has read them, or it has failed.
void ViewRunner::release_covered(Waiting& waiting) {
  release_if(waiting, [](const AwaitedRow& row) { return row.is_covered; });
}

void ViewRunner::release(const AwaitedPtr& awaited) {
  TETRAD_ASSERT(awaited->left != 0);
  if (--awaited->left == 0) awaited->reply.ok({});
}

}  // namespace tetrad::replication
