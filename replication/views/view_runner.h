// SPDX-License-Identifier: Apache-2.0
// Materialized views of a shard's stores (design, rule 24). A task of a store is executed so, by
// this store or by another one that has one of the same row:
//
//   1. The members of the base row's tablet share the work: the one whose turn it is begins after a
//      millisecond, the others later, if the task is still there.
//   2. A stamp above all that this store has seen is taken. All live members are asked for the row
//      with it; who has seen one as high says so, and another one is taken.
//   3. W members, of each set while reads ask both, must hold the same values, this store among
//      them if it is one. Else the row is read at ALL or QUORUM, which makes members equal, and 2
//      begins again.
//   4. For every view: the row's image at its present name, and a tombstone at every other name
//      that was answered, all at the stamp. They are written at QUORUM like any other rows.
//   5. Each member that has answered with these values drops the tasks that its answer named.
//
// Why a view cannot drift: an execution that missed a write w, which is on W members, has read one
// of these before w came there; w's task is still there, so a later execution, whose stamp is
// higher, reads the row with w. An execution that wrote an image of a name which is not current any
// more had W members that have the name noted; the write that replaced it is on one of these, and
// its task's execution deletes it. Stamps decide whatever arrives late.
//
// Where all copies of a row are on one node, its coordinator waits for the execution before it
// answers (coordinator/awaited_views.cc): clients of a single node read in a view what they wrote.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "base/reactor.h"
#include "base/task_group.h"
#include "partitioner/tablet_map.h"
#include "replication/coordinator/coordinator.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/replica/behind.h"
#include "replication/rpc/rpc.h"
#include "replication/views/view_messages.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// When tasks of views are executed, and how much is in memory.
struct ViewOptions {
  int64_t first_after_us = 1'000;   // that a task was made
  int64_t next_after_us = 200'000;  // that the member before should have executed it
  size_t running_max = 32;          // executions of a shard at once
  size_t waiting_max = 100'000;  // rows and ranges in memory; others are found in the stores later
  size_t tasks_of_row_max = 1'024;  // in memory
  uint64_t build_page_bytes = 64 << 10;
  int64_t build_pause_us = 5'000;
};

/// Counters of one shard's tasks, changed by its thread only.
struct ViewMetrics {
  base::Counter executed, failed, rows_written, rows_built;
};

/// How far a view is in a store.
struct ViewStatus {
  TableIncarnation base, view;
  uint32_t store = 0;
  bool built = false;     // each row has a task
  bool complete = false;  // and these have been executed: the view has all that was there then
  RingPosition position;  // all before it has tasks
  uint64_t rows = 0;      // that this life has built
  int64_t built_us = 0;   // by the wall clock; or since when this life knows of it
};

/// Executes the tasks of views that the stores of a shard have, and answers as a member. Owned by
/// the shard, on its thread. Always: a row has one execution at a time; what waits here is a copy
/// of what is in the stores, and may be forgotten.
class ViewRunner {
 public:
  /// `stores` by number; null: another shard's. Registers its verbs; everything outlives it.
  ViewRunner(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, HybridClock& clock,
             Coordinator& coordinator, BehindStores& behind, std::vector<storage::Store*> stores,
             ViewOptions options, Logger logger);
  ~ViewRunner();
  ViewRunner(const ViewRunner&) = delete;
  ViewRunner& operator=(const ViewRunner&) = delete;
  void start();

  /// Tasks that wait, as far as they are known, and views that are being built.
  size_t pending() const;
  /// How long the oldest task has waited.
  int64_t lag_us() const;
  std::vector<ViewStatus> statuses();
  const ViewMetrics& metrics() const { return metrics_; }
  void register_in(base::MetricsRegistry& registry, const std::string& labels) const;

 private:
  /// A row of a base table in one store.
  struct Key {
    uint32_t store;
    storage::ViewRow row;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// A write whose coordinator waits until its rows are in the views: `left` of its tasks are not
  /// done.
  struct Awaited {
    RpcNode::Reply reply;
    size_t left = 1;
  };
  using AwaitedPtr = std::shared_ptr<Awaited>;
  struct AwaitedRow {
    uint64_t last = 0;  // of its tasks in the row
    AwaitedPtr awaited;
    bool is_covered = false;  // an execution has begun since
    bool goes_first = false;
  };
  /// A deletion of rows that waits for its expansion, or is being expanded.
  struct Range {
    uint32_t store;
    storage::ViewTaskEntry task;
    std::vector<AwaitedPtr> awaited;
  };
  using RangePtr = std::shared_ptr<Range>;
  /// Tasks of one row.
  struct Waiting {
    std::map<uint64_t, int64_t> tasks;  // sequences, and when the store took the change
    int64_t since_us = 0;               // of the oldest
    base::MonotonicUs due_us = 0;
    uint32_t tries = 0, unseen = 0;  // executions that failed; that did not find the tasks
    uint32_t put_off = 0;            // how often, since one has not failed
    bool runs = false;
    uint64_t unseen_first = 0;  // of the tasks that the last execution did not find
    std::vector<AwaitedRow> awaited;
    bool is_first = false;  // it is in due_first_
  };
  using WaitingRow = std::pair<const Key, Waiting>;
  /// Rows by when they are to be executed.
  using Due = std::set<std::pair<base::MonotonicUs, Key>>;
  struct Attempt;
  using Store = storage::Store;

  void on_read(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  void on_mend(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  void on_settle(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  void on_await(const RpcContext& context, BytesView body, RpcNode::Reply reply);
  /// Null: another shard's, or none.
  Store* own_store(uint32_t number) const {
    return number < stores_.size() ? stores_[number] : nullptr;
  }
  bool is_own(const StoreAddress& store) const {
    return store.host == meta_.self() && own_store(store.store) != nullptr;
  }
  using ReadDone = std::move_only_function<void(Result<storage::ViewRowAnswer>)>;
  /// What a member does when it is asked, by a message or by this shard itself.
  void read_as_member(uint32_t store, const ViewReadRequest& request, base::Deadline deadline,
                      ReadDone done);
  void settle_as_member(uint32_t store, storage::ViewSettlement settlement,
                        std::move_only_function<void(Result<void>)> done);
  void on_state();
  void add(uint32_t store, storage::ViewTaskEntry entry);
  bool is_complete(const ViewStatus& status) const;
  /// Executions of a row that fail until nobody waits for it any more.
  static constexpr uint32_t kTriesAwaited = 3;
  /// How long what waits has waited.
  void note_since(TableIncarnation base, Waiting& waiting);
  void forget_since(TableIncarnation base, int64_t since_us);
  std::vector<uint64_t> known_of(const Key& key) const;
  void set_due(const Key& key, Waiting& waiting, base::MonotonicUs due_us);
  void drop(const Key& key, Waiting& waiting, const std::vector<uint64_t>& done);

  // view_awaited.cc
  /// `awaited` is answered when the tasks that these rows have now are done, at once where they
  /// cannot be at present. They are due from now on; where they are few, before all others.
  void await_rows(const std::vector<WaitingRow*>& rows, const AwaitedPtr& awaited);
  void await_row(const Key& key, Waiting& waiting, AwaitedRow row);
  /// Rows of a partition from this one on, that have tasks.
  void add_rows_from(const Key& start, std::vector<WaitingRow*>& rows);
  static bool is_of_partition(const Key& key, const Key& other);
  static bool goes_first(const Waiting& waiting);
  void await_ranges(const Key& partition, const AwaitedPtr& awaited);
  /// Those whose tasks of the row are done.
  void release_awaited(Waiting& waiting);
  /// Those that an execution has begun for, which is over.
  void release_covered(Waiting& waiting);
  template <class IsDone>
  void release_if(Waiting& waiting, IsDone is_done);
  void release(const AwaitedPtr& awaited);
  /// Its rows have tasks: who waits for it waits for them.
  void forget_range(const RangePtr& range);
  /// After which the store begins, by its turn among the members.
  int64_t turn_after_us(const Key& key) const;
  /// Another member executes the row, which takes as long as the row is large: the own turn comes
  /// later.
  void put_off(uint32_t store, const storage::ViewRow& row, uint64_t bytes);
  Due& due_of(const Waiting& waiting) { return waiting.is_first ? due_first_ : due_; }
  /// Begins executions that are due, as many as may run at once.
  void pump();
  /// What is to be begun next; null: nothing is due.
  Due* next_due();
  /// The timer for what is left, while there is room.
  void look_at_next();
  /// Fewer at once after one that failed for time, as rows may be large; one more after each that
  /// has not failed. What is refused at once says nothing of it.
  void note_outcome(bool is_done, int64_t took_us);
  /// Sets the timer, if it would come later.
  void look_at(base::MonotonicUs at_us);

  Task<void> run(Key key);
  void forget_unseen(const Key& key, Waiting& waiting, const std::vector<uint64_t>& known,
                     const std::vector<uint64_t>& done);
  /// The tasks of the own store that are done. Errors: to be tried again.
  /// `tries`: how often it has failed before.
  Task<Result<std::vector<uint64_t>>> execute(Key key, uint32_t tries);
  /// Ends when all have answered, or W of each set have and the others are late.
  Task<void> ask_members(std::shared_ptr<Attempt> attempt);
  /// What the own store knows of a row whose tablet it is no member of any more.
  Task<Result<void>> ask_own(Store& store, Attempt* attempt);
  /// By a read, which repairs. Errors: those of the read.
  Task<Result<void>> make_equal(const Attempt& attempt);
  /// `each_us`: for each of the writes that it takes.
  Task<Result<void>> write_images(std::vector<storage::Mutation> images, int64_t each_us);
  /// Tells those whose values were used which tasks are done. Not awaited.
  void settle(const Attempt& attempt);

  /// While there are views.
  Task<void> keep_up();
  bool has_work() const;
  /// Tasks of the stores that are not in memory yet.
  Task<void> scan_some();
  Task<void> scan_one();
  /// As many ranges at once as may be.
  void expand_some();
  Task<void> expand_one(RangePtr range);
  Task<void> build_some();
  std::string name_for_log(TableIncarnation table) const;

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  HybridClock& clock_;
  Coordinator& coordinator_;
  BehindStores& behind_;
  const std::vector<Store*> stores_;
  const ViewOptions options_;
  const Logger logger_;
  ViewMetrics metrics_;
  std::map<Key, Waiting> waiting_;
  size_t tasks_known_ = 0;  // of those in waiting_
  /// Of those in waiting_, and of ranges, by base table; no table without one.
  std::map<TableIncarnation, std::multiset<int64_t>> since_us_;
  Due due_, due_first_;                    // of those that clients wait for
  uint32_t begun_ = 0;                     // executions: which of the two is next
  std::deque<RangePtr> ranges_;            // that wait
  std::multimap<Key, RangePtr> range_of_;  // all, by their start
  size_t awaited_ = 0;                     // entries of rows and ranges for those who wait
  std::set<std::pair<uint32_t, TableIncarnation>> to_scan_;
  std::map<std::tuple<uint32_t, TableIncarnation, TableIncarnation>, ViewStatus> views_;
  size_t running_ = 0, expanding_ = 0;
  size_t running_most_ = 4;  // at present: nobody knows yet how large rows are
  std::optional<std::pair<uint32_t, TableIncarnation>> scanned_;  // that is being read
  bool keeps_up_ = false;
  bool is_posted_ = false;  // pump(), for what is due now
  base::Reactor::TimerId timer_ = 0;
  base::MonotonicUs timer_at_us_ = 0;
  std::shared_ptr<void> subscription_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
