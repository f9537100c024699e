// SPDX-License-Identifier: Apache-2.0
// The side of a store in a change of members: confirms epochs, gives what it holds of a tablet, and
// fills itself from R members of the old set; one that stays fills its registers (tablet_move.h).
// One per shard.
//
//   kStreamRange request := tablet epoch, bytes after, varint page bytes, [u8 1: registers alone]
//                answer  := u8 exhausted, bytes next, varint count, (bytes mutation)*
#pragma once

#include <map>
#include <vector>

#include "base/log.h"
#include "base/task_group.h"
#include "replication/changes/change_log.h"
#include "replication/meta/meta_service.h"
#include "replication/paxos/paxos_keys.h"
#include "replication/replica/behind.h"
#include "replication/replica/fence.h"
#include "replication/rpc/rpc.h"
#include "replication/tablets/move_runner.h"
#include "replication/tablets/store_cleanup.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// What is known of the filling of a store with a tablet, for one epoch of it.
struct FillFacts {
  TabletId tablet;
  uint32_t store = 0;
  bool is_filled = false;                // it has what R members of the old set had, on its disk
  std::vector<HostId> sources;           // that were asked, in this order
  uint64_t bytes = 0;                    // of their pages
  int64_t began_us = 0, changed_us = 0;  // wall clock; the last page, or the end
};

/// Answers for the stores of a shard in changes of members: as one that leaves, stays or comes. After
/// a loss of members (RemoveLostNodes) each fills its registers from all.
/// Owned by the shard, on its thread. Always: an epoch is confirmed, and a range given, only when
/// no write of an earlier epoch can come any more.
class TabletStream {
 public:
  /// Counters of what this shard's stores have taken.
  struct Metrics {
    base::Counter tablets_filled, mutations_taken, bytes_taken;
  };

  /// `stores` by number; null: another shard's. `page_bytes`: of what is asked for.
  TabletStream(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
               std::vector<storage::Store*> stores, const Fences& fences, StoreCleanup& cleanup,
               const BehindStores& behind, ChangeLogs& changes, PaxosKeys& paxos_keys,
               uint64_t page_bytes, Logger logger);
  ~TabletStream();
  TabletStream(const TabletStream&) = delete;
  TabletStream& operator=(const TabletStream&) = delete;
  const Metrics& metrics() const { return metrics_; }
  /// Of `count_max` at most: those under way first, then those that ended last.
  std::vector<FillFacts> fills(size_t count_max) const;

 private:
  /// A store that is filled for one epoch of a tablet.
  struct Key {
    TabletId tablet;
    uint32_t store;
    SetEpoch epoch;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// A tablet at the epoch that was asked for, and the store of this shard, never null, that was
  /// named.
  struct Found {
    std::shared_ptr<const TableInfo> table;
    partitioner::Tablet tablet;
    storage::Store* store = nullptr;
  };

  /// Errors: kNotFound (no such table, tablet or store here), kBehind (this node does not know the
  /// epoch yet), kStaleEpoch (it is over).
  Result<Found> find(const TabletEpoch& what, uint32_t store) const;
  /// The three verbs. What is asked twice is answered twice: nothing of an answer is remembered but
  /// fills_.
  void on_confirm(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  void on_stream(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  /// A page that is asked for.
  struct Asked {
    Bytes after;  // where the page before ended; "": the first one
    uint64_t bytes_max = 0;
    bool registers_alone = false;
  };
  /// `reply`, with a page of what the store holds.
  void give_page(const TabletEpoch& what, uint32_t store, Asked asked, RpcNode::Reply reply);
  void on_pull(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  /// Whether the store is a member of the old set, too.
  bool stays(const partitioner::Tablet& tablet, uint32_t store) const;
  /// From one source after another, until R of the old set have given all. Ends early with the
  /// epoch.
  Task<void> fill(TabletEpoch what, uint32_t store);
  /// Page by page, from the beginning of the tablet.
  Task<Result<void>> fill_from(TabletEpoch what, uint32_t store, StoreAddress source,
                               bool registers_alone);
  /// Registers come in between the Paxos messages of their partition.
  void apply_with_registers(storage::Store* store, uint32_t number, storage::Mutation mutation,
                            storage::WritePass pass, storage::Store::ApplyCallback done);
  /// One page: decoded, applied as merges (rule 15). Sets where the next one begins.
  Task<Result<void>> take(Found found, uint32_t store, Bytes page, Bytes* next, bool* exhausted);
  /// Of one page, as many as may be under way at once.
  Task<Result<void>> apply_all(Found found, uint32_t store, storage::WritePass pass,
                               std::vector<storage::Mutation> mutations);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  const std::vector<storage::Store*> stores_;
  const Fences& fences_;
  StoreCleanup& cleanup_;
  const BehindStores& behind_;
  ChangeLogs& changes_;
  PaxosKeys& paxos_keys_;
  const uint64_t page_bytes_;
  const Logger logger_;
  Metrics metrics_;
  /// What kPullTablet is answered by: a fill is begun once for an epoch.
  std::map<Key, FillFacts> fills_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
