// SPDX-License-Identifier: Apache-2.0
// One node without a network: a coordinator over a MemoryStore, and metadata that is applied at
// once. Statements run as text and answer as text, so that whole scripts are tests.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/assert.h"
#include "base/random.h"
#include "base/task_group.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/system/virtual_tables.h"
#include "replication/coordinator/coordinator.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "storage/engine/memory_store.h"
#include "storage/row/row_fold.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::tests {

/// Runs a task that needs nothing but the reactor's turns.
template <class T>
T run_task(ManualReactor& reactor, Task<T> task) {
  std::optional<T> result;
  base::TaskGroup group;
  const auto body = [](Task<T> inner, std::optional<T>& into) -> Task<void> {
    auto value = co_await inner;
    into.emplace(std::move(value));
  };
  group.spawn(body(std::move(task), result));
  reactor.run_until([&] { return result.has_value(); });
  TETRAD_ASSERT(result.has_value());
  return std::move(*result);
}

class LocalCoordinator final : public replication::Coordinator {
 public:
  LocalCoordinator(ManualReactor& reactor, storage::Store& store)
      : reactor_(reactor), store_(store) {}
  Task<Result<void>> write(std::vector<storage::Mutation> mutations,
                           replication::WriteOptions options) override;
  /// All of it is one shard's.
  Task<Result<void>> increment(std::vector<replication::CounterIncrement> increments,
                               replication::WriteOptions options) override;
  Task<Result<void>> write_logged(std::vector<storage::Mutation> mutations,
                                  replication::WriteOptions options) override {
    if (mutations.size() > 1) ++logged_batches;
    return write(std::move(mutations), options);
  }
  /// Nobody else decides: each statement meets the rows as the one before left them. It is asked to
  /// decide `decisions` times, and the last counts.
  Task<Result<bool>> write_if(replication::ConditionalStatement& statement,
                              replication::ConditionalOptions options) override;
  Task<Result<storage::ReadResult>> read(storage::ReadCommand command,
                                         replication::ReadOptions options) override;
  std::optional<Result<storage::ReadEnd>> read_here(storage::ReadCommand& command,
                                                    const replication::ReadOptions& options,
                                                    storage::RowSink& sink) override;
  Task<Result<std::vector<storage::ReadResult>>> read_many(
      std::vector<storage::ReadCommand> commands, replication::ReadOptions options) override;
  Task<Result<std::optional<replication::NearestNames>>> nearest(
      storage::ReadCommand command, replication::ReadOptions options) override;
  Task<Result<replication::Counted>> count(storage::ReadCommand command,
                                           replication::ReadOptions options) override;
  Task<Result<replication::ChangesPage>> changes(replication::ChangesCommand command,
                                                 replication::ReadOptions options) override;
  int64_t next_timestamp_us() override;
  replication::ConditionalMoment next_moment();
  int64_t now_us() override { return reactor_.wall_time_us(); }
  int64_t clock_skew_us() const override { return replication::kClockSkewMaxUs; }

  std::vector<storage::Mutation> written;  // what the last write() got
  int logged_batches = 0;                  // of several partitions
  uint64_t reads = 0;
  base::Deadline deadline;             // what the last call was given
  base::Deadline contention_deadline;  // what the last write_if() was given
  int decisions = 1;
  ConsistencyLevel level{};                      // of the last read()
  std::optional<storage::IndexBounds> by_index;  // of the last read() or read_here()
  uint32_t row_limit = 0;                        // of the last read()
  bool knows_nearest = true;                     // else as if a node ran an older program
  std::vector<uint32_t> nearest_asked;           // the rows_max of each nearest()
  /// May change what a nearest() answers.
  std::function<void(replication::NearestNames&)> on_nearest;
  /// May change what a read() answers.
  std::function<void(storage::ReadResult&)> on_read;
  /// Every other one falls through after the sink has got something: the statement must not notice.
  uint64_t reads_here = 0;
  /// Whether counts fold; a fold is made of small pages, and of two ranges where it may be.
  bool folds = true;
  uint64_t folded = 0, given_up = 0;  // how many
  /// The log of changes: of every table from its first write on, whether it wants one or not, by
  /// the time of arrival. Of a place that was written again only the last entry stays, as in a
  /// store. It reaches back to `changes_since_us`; places in it before `changes_forgotten` are
  /// gone.
  int64_t changes_since_us = INT64_MIN;
  uint64_t changes_forgotten = 0;
  uint64_t changes_read = 0;  // how many pages
  uint64_t changes_end() const { return change_log_.empty() ? 0 : change_log_.rbegin()->first; }
  /// Gets each fold's spec and what it came to in one page.
  std::function<void(BytesView spec, BytesView state)> on_fold;

 private:
  Task<Result<replication::Counted>> count_range(storage::ReadCommand command,
                                                 replication::ReadOptions options);

  void note_changes(const storage::Mutation& mutation);

  struct LoggedChange {
    TableIncarnation incarnation;
    int64_t arrived_us;
    replication::Change change;
  };
  ManualReactor& reactor_;
  storage::Store& store_;
  int64_t last_timestamp_us_ = 0;
  std::map<uint64_t, LoggedChange> change_log_;  // by number, from 1
  using LoggedPlace = std::tuple<uint32_t, Bytes, std::optional<Bytes>>;
  std::map<LoggedPlace, uint64_t> logged_;  // the number of its entry
};

class LocalMeta final : public replication::MetaService {
 public:
  LocalMeta();
  HostId self() const override { return self_; }
  replication::MetaSnapshot snapshot() const override { return state_; }
  std::shared_ptr<void> subscribe(Listener listener) override;
  Task<Result<void>> change_schema(replication::SchemaChange change, base::Deadline deadline,
                                   std::vector<std::string>* warnings) override;
  bool is_live(HostId host) const override { return host == self_; }
  const replication::FillingDisks& filling_disks() const override { return filling_disks_; }
  bool takes_clients(HostId) const override { return true; }
  const replication::StoreTroubles& store_troubles() const override { return store_troubles_; }
  /// As if a node with an older program were in the cluster.
  void set_format(replication::ClusterFormat format);
  void set_disk_usage(replication::DiskUsage usage) { filling_disks_ = {{self_, usage}}; }
  uint64_t tablet_bytes(TabletId) const override { return 0; }

 private:
  Result<void> apply(replication::SchemaChange change);
  HostId self_;
  replication::FillingDisks filling_disks_;
  replication::StoreTroubles store_troubles_;
  replication::MetaSnapshot state_;
  std::vector<std::pair<std::weak_ptr<void>, Listener>> listeners_;
};

class LocalCluster {
 public:
  LocalCluster();
  ~LocalCluster();

  /// Runs one statement and prints what it answers:
  ///   "ok" | "a | b" columns, then a line for each row | "error: text" | "warning: …" lines after.
  std::string cql(std::string_view text);
  /// As cql() without the line of column names.
  std::string rows(std::string_view text);
  /// The error's text, or what else it answered.
  std::string error(std::string_view text);

  /// Prepares once; `bind` prints "name type, name type | pk 0,1 | column type, …".
  cql::StatementPtr prepare(std::string_view text);
  Result<cql::StatementPtr> try_prepare(std::string_view text) { return prepared(text); }
  std::string bind(std::string_view text);
  /// The newest.
  const cql::SchemaPtr& schema() {
    take_schema();
    return schema_;
  }
  Result<cql::StatementResult> execute(const cql::StatementPtr& statement,
                                       std::vector<cql::BoundValue> values);
  Result<cql::StatementResult> execute(const cql::Statement& statement,
                                       std::span<const cql::BoundValue> values);
  Result<cql::StatementResult> execute_batch(cql::BatchType type,
                                             std::span<const cql::BatchEntry> entries);
  std::string print(const Result<cql::StatementResult>& result, bool with_header = true);
  /// All pages of a query, one after another: the rows, and a line "--" between pages.
  std::string pages(std::string_view text, int32_t page_size);

  ManualReactor reactor;
  cql::QueryOptions options;
  cql::QuerySettings settings;
  cql::ScriptEngine scripts{cql::ScriptLimits()};
  cql::AnswerBudget answers{reactor, 32u << 20};
  cql::DiskGuard disk_guard;
  cql::ClientState client;
  std::vector<std::string> warnings;  // of the last statement
  cql::RequestCharge charge;          // of the last statement
  std::unique_ptr<LocalCoordinator> coordinator;
  LocalMeta meta;
  base::Random random{7};

 private:
  Result<cql::StatementPtr> prepared(std::string_view text);
  void take_schema();

  class InlinePool;
  std::unique_ptr<InlinePool> pool_;
  std::shared_ptr<storage::MemoryDisk> disk_;
  std::unique_ptr<storage::StoreFactory> factory_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<cql::VirtualTables> virtual_tables_;
  cql::SchemaPtr schema_;
};

}  // namespace tetrad::tests
