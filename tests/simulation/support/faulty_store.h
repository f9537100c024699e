// SPDX-License-Identifier: Apache-2.0
// A store over another one, whose disk has the faults that StoreFaults says. Without any it does
// what the other does, in the same events.
#pragma once

#include <deque>
#include <memory>

#include "storage/engine/store.h"
#include "tests/simulation/support/store_faults.h"

namespace tetrad::simulation {

class FaultyStore final : public storage::Store {
 public:
  /// Everything outlives it but `inner`, which is its own.
  FaultyStore(std::unique_ptr<storage::Store> inner, StoreFaults& faults, base::Reactor& reactor)
      : inner_(std::move(inner)), faults_(faults), reactor_(reactor) {}
  ~FaultyStore() override {
    *alive_ = false;
    if (timer_ != 0) reactor_.cancel(timer_);
    if (state_timer_ != 0) reactor_.cancel(state_timer_);
  }

  /// Without the faults.
  storage::Store& inner() { return *inner_; }

  void apply(const storage::Mutation& mutation, storage::WriteGuard guard,
             ApplyCallback done) override {
    write(apply_later(mutation, false), std::move(guard), std::move(done));
  }
  void apply_merged(const storage::Mutation& mutation, storage::WriteGuard guard,
                    ApplyCallback done) override {
    write(apply_later(mutation, true), std::move(guard), std::move(done));
  }
  using storage::Store::write_registers;
  void write_registers(const storage::RegistersWrite& write, storage::WriteGuard guard,
                       base::Callback written, ApplyCallback done) override;
  void read_registers(const storage::PartitionName& partition, base::Deadline deadline,
                      RegistersCallback done) override;
  void list_registers(TableIncarnation incarnation, const RingRange& range, Bytes after,
                      size_t partitions_max,
                      std::move_only_function<void(Result<RegistersPage>)> done) override;
  void latest_timestamp(storage::ReadCommand command, base::Deadline deadline,
                        std::move_only_function<void(Result<int64_t>)> done) override;

  void read(storage::ReadCommand command, base::Deadline deadline, ReadCallback done) override {
    if (fails(StoreCall::kRead, done)) return;
    if (faults_.rotten) return done(fail(ErrorCode::kCorruption, "a block does not read"));
    hold_or_run([this, deadline, command = std::move(command), done = std::move(done)]() mutable {
      if (reactor_.now_us() >= deadline.at_us)
        return done(fail(ErrorCode::kTimedOut, "the read waited until its time was over"));
      inner_->read(std::move(command), deadline, std::move(done));
    });
  }
  std::optional<Result<storage::ReadEnd>> read_here(const storage::ReadCommand& command,
                                                    storage::RowSink& sink) override {
    if (faults_.hangs || faults_.rotten || faults_.is_to_fail(StoreCall::kRead))
      return std::nullopt;
    return inner_->read_here(command, sink);
  }
  uint64_t approximate_bytes(TableIncarnation incarnation, const RingRange& range) override {
    return inner_->approximate_bytes(incarnation, range);
  }
  void sample_sizes(
      TableIncarnation incarnation, const RingRange& range, size_t count,
      std::move_only_function<void(Result<std::vector<storage::SizeSample>>)> done) override {
    if (fails(StoreCall::kSample, done)) return;
    hold_or_run([this, incarnation, range, count, done = std::move(done)]() mutable {
      inner_->sample_sizes(incarnation, range, count, std::move(done));
    });
  }
  void retire(TableIncarnation incarnation) override { inner_->retire(incarnation); }
  void set_indexes(TableIncarnation incarnation, storage::ClaimMakerPtr maker) override {
    inner_->set_indexes(incarnation, std::move(maker));
  }
  bool is_built(TableIncarnation incarnation, uint16_t index_id) override {
    return inner_->is_built(incarnation, index_id);
  }
  void build_index(TableIncarnation incarnation, uint16_t index_id, uint64_t bytes_max,
                   std::move_only_function<void(Result<storage::IndexBuildPage>)> done) override {
    if (fails(StoreCall::kExport, done)) return;
    hold_or_run([this, incarnation, index_id, bytes_max, done = std::move(done)]() mutable {
      inner_->build_index(incarnation, index_id, bytes_max, std::move(done));
    });
  }
  void sweep_claims(storage::ClaimSweepCommand command, Bytes after,
                    std::move_only_function<void(Result<storage::ClaimSweepPage>)> done) override {
    if (fails(StoreCall::kSweep, done)) return;
    hold_or_run([this, command = std::move(command), after = std::move(after),
                 done = std::move(done)]() mutable {
      inner_->sweep_claims(std::move(command), std::move(after), std::move(done));
    });
  }
  void export_range(TableIncarnation incarnation, const RingRange& range, Bytes after,
                    uint64_t bytes_max, storage::ExportParts parts, ExportCallback done) override {
    if (fails(StoreCall::kExport, done)) return;
    hold_or_run([this, incarnation, range, after = std::move(after), bytes_max, parts,
                 done = std::move(done)]() mutable {
      inner_->export_range(incarnation, range, std::move(after), bytes_max, parts, std::move(done));
    });
  }
  void sweep(storage::SweepCommand command, storage::SweepPlace from,
             std::move_only_function<void(Result<storage::SweepPage>)> done) override {
    if (fails(StoreCall::kSweep, done)) return;
    // It writes, too: not while other writes are parked.
    if (!faults_.holds_writes() && parked_.empty() && held_.empty())
      return inner_->sweep(std::move(command), std::move(from), std::move(done));
    hold([this, command = std::move(command), from = std::move(from),
          done = std::move(done)]() mutable {
      inner_->sweep(std::move(command), std::move(from), std::move(done));
    });
  }
  const storage::Recovered& recovered() const override { return inner_->recovered(); }
  storage::SyncNumbers sync_numbers() const override { return inner_->sync_numbers(); }
  void sync(std::move_only_function<void(Result<void>)> done) override {
    if (fails(StoreCall::kFlush, done)) return;
    hold_flush([this, done = std::move(done)]() mutable { inner_->sync(std::move(done)); });
  }
  void set_sync_clock(std::function<std::optional<int64_t>()> now_us) override {
    inner_->set_sync_clock(std::move(now_us));
  }
  void recent(RecentCommand command, Bytes after, uint64_t bytes_max,
              std::move_only_function<void(Result<RecentPage>)> done) override {
    if (fails(StoreCall::kExport, done)) return;
    // What is parked is not in the inner store yet.
    hold_until_written(0, [this, command = std::move(command), after = std::move(after), bytes_max,
                           done = std::move(done)]() mutable {
      inner_->recent(std::move(command), std::move(after), bytes_max, std::move(done));
    });
  }
  storage::StoreViews& views() override { return inner_->views(); }
  void set_views(TableIncarnation base, storage::ViewMakersPtr makers,
                 TableIncarnation next) override {
    inner_->set_views(base, std::move(makers), next);
  }
  uint64_t dead_seen(TableIncarnation incarnation) override {
    return inner_->dead_seen(incarnation);
  }
  void note_time(int64_t now_s) override { inner_->note_time(now_s); }
  void flush(std::move_only_function<void(Result<void>)> done) override {
    if (fails(StoreCall::kFlush, done)) return;
    hold_flush([this, done = std::move(done)]() mutable { inner_->flush(std::move(done)); });
  }
  void compact(std::vector<TableIncarnation> tables,
               std::move_only_function<void(Result<void>)> done) override {
    if (fails(StoreCall::kCompact, done)) return;
    hold_or_run([this, tables = std::move(tables), done = std::move(done)]() mutable {
      inner_->compact(std::move(tables), std::move(done));
    });
  }
  void keep_files(storage::KeepCommand command,
                  std::move_only_function<void(Result<storage::KeptFiles>)> done) override {
    inner_->keep_files(std::move(command), std::move(done));
  }
  void verify(std::move_only_function<void(Result<storage::ScrubSummary>)> done) override {
    inner_->verify(std::move(done));
  }
  storage::StoreStatistics statistics() override {
    storage::StoreStatistics statistics = inner_->statistics();
    statistics.writes_stopped |= !parked_.empty();
    return statistics;
  }
  const storage::StoreStatus& status() const override {
    return status_.state == storage::StoreState::kServing ? inner_->status() : status_;
  }
  void on_status(StatusListener changed) override {
    inner_->on_status([this](const storage::StoreStatus&) { tell_status(); });
    changed_ = std::move(changed);
    look_at_state();
  }
  int64_t high_water_timestamp(TableIncarnation incarnation, RingPosition position) override {
    return inner_->high_water_timestamp(incarnation, position);
  }
  Result<void> close() override {
    if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
    if (state_timer_ != 0) reactor_.cancel(std::exchange(state_timer_, 0));
    for (Parked& parked : std::exchange(parked_, {})) hand_over(parked);
    for (auto* queue : {&flushes_, &held_})
      for (Held& held : std::exchange(*queue, {})) held.work();
    return inner_->close();
  }

 private:
  using Write = std::move_only_function<void(storage::WriteGuard, ApplyCallback)>;
  struct Parked {
    uint64_t number;  // they are taken in this order
    Write write;
    bool is_on_its_way;               // to the disk
    base::MonotonicUs not_before_us;  // then it is there
    storage::WriteGuard guard;
    ApplyCallback done;  // null: it was told at its deadline
  };
  struct Held {
    base::MonotonicUs not_before_us;
    uint64_t after;  // the number of a write
    base::Callback work;
  };

  template <class Done>
  bool fails(StoreCall call, Done& done) {
    auto error = faults_.take_error(call);
    if (!error) return false;
    done(std::unexpected(std::move(*error)));
    return true;
  }
  void hold_or_run(base::Callback work) {
    if (!faults_.hangs && held_.empty()) return work();
    hold(std::move(work));
  }
  void hold_flush(base::Callback work) { hold_until_written(faults_.sync_us, std::move(work)); }
  /// Waits for the writes that came before, and keeps nobody waiting but its own kind.
  void hold_until_written(int64_t time_us, base::Callback work) {
    if (time_us == 0 && !faults_.holds_writes() && parked_.empty() && held_.empty() &&
        flushes_.empty())
      return work();
    flushes_.push_back({reactor_.now_us() + time_us, last_number_, std::move(work)});
    ++faults_.figures.held;
    look_later();
  }
  void hold(base::Callback work) {
    held_.push_back({0, 0, std::move(work)});
    ++faults_.figures.held;
    look_later();
  }

  Write apply_later(const storage::Mutation& mutation, bool merged);
  Write write_later(const storage::RegistersWrite& write, base::Callback written);

  void write(Write write, storage::WriteGuard guard, ApplyCallback done);
  void hand_over(Parked& parked);
  /// They stay where they are.
  void answer_late() {
    std::vector<ApplyCallback> late;
    for (Parked& parked : parked_)
      if (parked.done && parked.guard.deadline_us <= reactor_.now_us())
        late.push_back(std::exchange(parked.done, nullptr));
    for (ApplyCallback& done : late)
      done(fail(ErrorCode::kTimedOut, "the store did not take the write in time"));
  }

  /// Each half second: what a test has said of the store is told.
  void look_at_state() {
    state_timer_ = reactor_.call_at(reactor_.now_us() + kStateLookUs, [this] { look_at_state(); });
    if (std::exchange(status_.state, faults_.state) == faults_.state) return;
    status_.reason = "the test says so";
    tell_status();
  }
  void tell_status() {
    if (changed_) changed_(status());
  }

  void look_later() {
    if (timer_ != 0) return;
    timer_ = reactor_.call_at(reactor_.now_us() + kFaultLookUs, [this] {
      timer_ = 0;
      look();
    });
  }
  void look() {
    const std::shared_ptr<bool> alive = alive_;
    answer_late();
    if (!*alive) return;
    while (!parked_.empty() && !faults_.holds_writes() &&
           parked_.front().not_before_us <= reactor_.now_us()) {
      Parked parked = std::move(parked_.front());
      parked_.pop_front();
      hand_over(parked);
      if (!*alive) return;
    }
    for (auto* queue : {&flushes_, &held_}) {
      while (!queue->empty() && may_run(queue->front())) {
        base::Callback work = std::move(queue->front().work);
        queue->pop_front();
        work();
        if (!*alive) return;
      }
    }
    if (!parked_.empty() || !flushes_.empty() || !held_.empty()) look_later();
  }
  bool may_run(const Held& held) const {
    return !faults_.hangs && held.not_before_us <= reactor_.now_us() &&
           (parked_.empty() || parked_.front().number > held.after);
  }

  const std::unique_ptr<storage::Store> inner_;
  StoreFaults& faults_;
  base::Reactor& reactor_;
  std::deque<Parked> parked_;  // writes, in order
  uint64_t last_number_ = 0;   // of a write
  std::deque<Held> flushes_;   // and all else that waits for writes, in order
  std::deque<Held> held_;      // what is left, in order
  base::Reactor::TimerId timer_ = 0, state_timer_ = 0;
  storage::StoreStatus status_;
  StatusListener changed_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tetrad::simulation
