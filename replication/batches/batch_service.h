// SPDX-License-Identifier: Apache-2.0
// The logged batches that other nodes' coordinators have stored here: taken, removed, and replayed
// when their coordinators do not (design, rule 26). On the first shard of a node.
//
// A replay writes each part as any coordinator does, to where it belongs by now, with the stamp
// that the entry holds, so that repeating what is done does no harm. A part of an incarnation that
// is gone counts as done. Before the first part another node must have the entry: its coordinator
// may have reached this one alone. The entry goes when all its parts are on W, here and on its
// other holder.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "base/task_group.h"
#include "replication/batches/batch_store.h"
#include "replication/coordinator/coordinator.h"
#include "replication/membership/membership.h"
#include "replication/meta/meta_service.h"
#include "replication/repair/purge_horizon.h"
#include "replication/rpc/rpc.h"

namespace tetrad::replication {

/// When entries are replayed, and how much at once. Fixed for the life of the service.
struct BatchOptions {
  BatchStoreOptions store;
  /// From the store of an entry to its replay, by the first holder; twice that by the second.
  int64_t replay_after_us = 4'000'000;
  int64_t replay_timeout_us = 10'000'000;
  int64_t look_every_us = 500'000;
  int64_t pause_us = 2'000;  // between two parts
  size_t replays_max = 4;    // at once
  HorizonSlack horizon;
  /// The log takes nothing any more: the process must end.
  std::function<void(const Error&)> fatal;
};

/// Counters of this node's entries; changed on the first shard's thread.
struct BatchMetrics {
  base::Counter stored, refused, removed, replayed, replays_failed, parts_dropped;
};

/// Keeps logged batches for the coordinators of other nodes, and replays those that their
/// coordinators have not ended. Owned by the node, on the first shard's thread. Always: an entry is
/// replayed by one task at a time, and is removed only when all its parts are on W.
class BatchService {
 public:
  /// Registers its verbs and what heartbeats say; everything outlives it.
  BatchService(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, Membership& membership,
               storage::LocalLog& log, BatchOptions options, Logger logger);
  ~BatchService();
  BatchService(const BatchService&) = delete;
  BatchService& operator=(const BatchService&) = delete;

  /// Errors: those of BatchStore::open().
  Result<void> open();
  /// Begins to replay; `coordinator` stays until stop().
  void start(Coordinator& coordinator);
  void stop();
  void register_in(base::MetricsRegistry& registry) const;

  size_t count() const { return store_.count(); }
  /// Entries that do not decode. They wait for nothing but an operator's word.
  size_t apart_count() const { return store_.apart_count(); }
  /// See BatchStore::drop_apart().
  void drop_apart(std::move_only_function<void(Result<size_t>)> done) {
    store_.drop_apart(std::move(done));
  }
  /// See BatchStore::waiting().
  std::vector<BatchStore::Waiting> waiting(size_t count_max) const {
    return store_.waiting(count_max);
  }
  /// Of the oldest entry; 0: there is none.
  int64_t oldest_age_us() const;
  const BatchMetrics& metrics() const { return metrics_; }
  /// Told to the others with each heartbeat.
  BatchWord word() const;

 private:
  /// Which parts of a version are on their replicas already.
  struct Progress {
    uint32_t version = 0;
    std::vector<bool> done;
    HostId shared_with;
    int64_t back_off_us = 0;
  };
  void register_verbs();
  void on_store(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  Result<void> check(const BatchHead& head, const RpcContext& context) const;
  bool is_leaving() const;
  base::MonotonicUs due_us(uint8_t rank) const;
  void look();
  Task<void> replay(BatchStore::Due due);
  /// True: all its parts are on W. Errors: of reading; kCorruption: it was set apart.
  Task<Result<bool>> replay_parts(BatchStore::Due due);
  void set_apart(const Uuid& id, Bytes found, const Error& why);
  Task<bool> write_part(storage::Mutation part, int64_t created_us);
  /// So that another node has the entry when the first part is written.
  enum class Shared { kYes, kNo, kIsDone };
  Task<Shared> share(BatchHead head, const std::vector<storage::Mutation>& parts);
  Task<Shared> give_to(HostId host, BatchHead head, const std::vector<storage::Mutation>& parts);
  void remove(const Uuid& id, HostId other);
  void put_off(const Uuid& id);

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  Membership& membership_;
  const BatchOptions options_;
  const Logger logger_;
  BatchStore store_;
  BatchMetrics metrics_;
  Coordinator* coordinator_ = nullptr;
  std::map<Uuid, Progress> under_way_;  // and those that have failed before
  std::set<Uuid> running_;
  base::MonotonicUs silent_until_us_ = 0;  // replays of the last life may be under way
  base::Reactor::TimerId timer_ = 0;
  base::TaskGroup tasks_;  // last: goes first
};

}  // namespace tetrad::replication
