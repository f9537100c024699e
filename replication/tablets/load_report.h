// SPDX-License-Identifier: Apache-2.0
// How large the tablets are. Each shard measures the tablets whose acting member is one of its
// stores and reports them to shard 0, which reports to the other nodes.
//
//   report := u8 version (1), varint count, (varint tablet id, varint bytes)*
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/reactor.h"
#include "replication/meta/meta_service.h"
#include "replication/rpc/rpc.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// Estimated bytes at the acting member. Each tablet once.
using TabletSizes = std::vector<std::pair<TabletId, uint64_t>>;

Bytes encode_load(const TabletSizes& sizes);
/// Errors: kCorruption.
Result<TabletSizes> decode_load(BytesView body);

/// The first of the tablet's members that is live; nobody: the first.
StoreAddress acting_member(const partitioner::Tablet& tablet, const MetaService& meta);

/// The store of `stores` (by number; null: another shard's) that is the tablet's acting member;
/// null: none of them is.
storage::Store* acting_store(const partitioner::Tablet& tablet, const MetaService& meta,
                             const std::vector<storage::Store*>& stores);

/// A tablet that this shard measures.
struct MeasuredTablet {
  std::shared_ptr<const TableInfo> table;
  partitioner::Tablet tablet;
  storage::Store* store = nullptr;
  uint64_t bytes = 0;
};

/// Measures the tablets that this shard's stores act for, a slice of them at a time, and tells the
/// first shard. Owned by the shard, on its thread.
class LoadReporter {
 public:
  /// After each slice of a round, with what was measured in it.
  using Listener = std::function<void(const std::vector<MeasuredTablet>&)>;

  /// `stores` by number; null: another shard's.
  LoadReporter(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
               std::vector<storage::Store*> stores, int64_t period_us);
  ~LoadReporter();
  LoadReporter(const LoadReporter&) = delete;
  LoadReporter& operator=(const LoadReporter&) = delete;
  void start();
  void on_measured(Listener listener) { listener_ = std::move(listener); }

 private:
  /// The next tables of the round; then a pause, so that the loop is never held up.
  void slice();
  void measure(const std::shared_ptr<const TableInfo>& table, std::vector<MeasuredTablet>& measured,
               TabletSizes& changed);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  const std::vector<storage::Store*> stores_;
  const int64_t period_us_;
  uint64_t rounds_ = 0;
  std::optional<TableId> after_;  // the round goes on past this table; unset: a new one begins
  /// What others have heard last; emptied for a full report.
  std::unordered_map<TabletId, uint64_t> reported_;
  Listener listener_;
  base::Reactor::TimerId timer_ = 0;
};

}  // namespace tetrad::replication
