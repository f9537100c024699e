// SPDX-License-Identifier: Apache-2.0
// How batches come to RocksDB and to the disk.
//
//   Periodic: at the turn's end the batch is written on the loop, without waiting, and its
//   callbacks run. The commit thread syncs the log once each sync period while there is something
//   to sync.
//     1. If RocksDB would make it wait, batches are parked from then on, in order, behind the one
//        that is in flight; small ones are joined.
//     2. The next goes to the commit thread when the pace allows it (write_pace.h), one at a time.
//     3. When nothing waits and RocksDB has caught up, turns are written on the loop again.
//   Group: the commit thread writes and syncs a batch; what comes meanwhile is the next batch.
//
//   What had to wait is asked again before it leaves: spans whose guard does not allow them are cut
//   out of the batch, records and all, and answered. Deadlines are answered on time wherever the
//   write is; one in flight may still succeed.
//
//   Sync records: when a sync has ended, a record of what it covers goes with the next batch.
//   Without writes one is written each minute.
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "storage/engine/guarded_status.h"
#include "storage/engine/rocks_status.h"
#include "storage/engine/write_batch.h"
#include "storage/engine/write_turn.h"

namespace tetrad::storage {
namespace {

constexpr size_t kBatchBytesKept = 1 << 20;  // a larger buffer is given back after its write
// While RocksDB is behind. A batch takes in what comes until it is that large.
constexpr size_t kPacedBatchBytes = 256 << 10;
constexpr int64_t kStoppedLookUs = 2'000, kIdleLookUs = 50'000;
// A store that nothing is written to writes and syncs a record of it so often; it looks more often
// until the first one of its life.
constexpr int64_t kIdleRecordUs = 60'000'000, kFirstRecordUs = 1'000'000;
// After that long the disk hangs.
constexpr int64_t kHungUs = 5'000'000, kHungLookUs = 1'000'000;
constexpr int64_t kDeadlineLookUs = 10'000;

/// Copies the records of a batch but for some: RocksDB has no way to take records out of a batch.
/// Rare: only where a write has waited and lost its epoch or its time.
class KeptRecords final : public rocksdb::WriteBatch::Handler {
 public:
  /// Ascending, disjoint [begin, end) of records that are left out.
  using Gaps = std::vector<std::pair<uint32_t, uint32_t>>;
  explicit KeptRecords(const Gaps& gaps) : gaps_(gaps) {}
  rocksdb::Status PutCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& v) override {
    return is_kept() ? kept.Put(key, v) : rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t, const rocksdb::Slice& key) override {
    return is_kept() ? kept.Delete(key) : rocksdb::Status::OK();
  }
  rocksdb::Status MergeCF(uint32_t, const rocksdb::Slice& key, const rocksdb::Slice& v) override {
    return is_kept() ? kept.Merge(key, v) : rocksdb::Status::OK();
  }

  rocksdb::WriteBatch kept;

 private:
  bool is_kept() {
    const uint32_t here = next_++;
    while (gap_ < gaps_.size() && gaps_[gap_].second <= here) ++gap_;
    return gap_ == gaps_.size() || here < gaps_[gap_].first;
  }

  const Gaps& gaps_;
  size_t gap_ = 0;
  uint32_t next_ = 0;
};

}  // namespace

// ---- periodic ----

// no_slowdown: RocksDB answers Incomplete instead of making the loop wait, and has written nothing
// then. The batch stays current_ and takes the other way.
void WriteTurn::write_here() {
  rocksdb::WriteOptions write;
  write.no_slowdown = true;
  const rocksdb::Status status = database_->db().Write(write, &current_->writes);
  if (status.IsIncomplete()) {  // from now on nobody asks without waiting
    paced_since_us_ = reactor_.now_us();
    return write_paced();
  }
  // Callbacks may apply more: that is of a batch that begins now.
  std::unique_ptr<Batch> written = std::exchange(current_, std::make_unique<Batch>());
  if (!status.ok()) return write_failed(*written, status);
  // The end rises by at least the records of the batch.
  const uint64_t log_end = end_of_log(database_->db());
  TETRAD_ASSERT(log_end >= log_end_ + written->writes.Count());
  log_end_ = log_end;
  see_written(*written);
  unsynced_ = true;
  arm_sync();
  if (!written->registers.empty()) wait_for_registers(*written);
  // A callback may destroy the store, and this with it: `alive` is looked at after each of them.
  const std::shared_ptr<bool> alive = alive_;
  complete(*written, {});
  if (*alive) keep_for_reuse(std::move(written));
}

void WriteTurn::keep_for_reuse(std::unique_ptr<Batch> written) {
  if (!current_->empty() || written->bytes() > kBatchBytesKept) return;
  written->writes.Clear();  // its buffers serve again
  std::swap(current_->writes, written->writes);
  std::swap(current_->spans, written->spans);
}

// Runs at the end of a turn with writes while RocksDB is behind, when a batch has ended, and by a
// timer. What leaves is always the oldest: parked_ first, so the order of add() holds.
void WriteTurn::write_paced() {
  if (current_->bytes() >= kPacedBatchBytes) {
    queued_bytes_ += current_->bytes();
    parked_.push_back(std::exchange(current_, std::make_unique<Batch>()));
  }
  // One batch in flight. Its end calls this again.
  if (refusal_ || in_flight_ != nullptr) return;
  const bool waits = !parked_.empty() || !current_->empty();
  if (waits) watch_deadlines();
  if (pace_timer_ != 0) {
    if (!std::exchange(idle_, false) || !waits) return;
    reactor_.cancel(std::exchange(pace_timer_, 0));
  }
  WriteLimit limit;
  uint64_t stopped = 0;
  // Both properties are read from memory; this takes no file.
  rocksdb::DB& db = database_->db();
  db.GetIntProperty(rocksdb::DB::Properties::kIsWriteStopped, &stopped);
  db.GetIntProperty(rocksdb::DB::Properties::kActualDelayedWriteRate, &limit.bytes_per_s);
  limit.stopped = stopped != 0;
  const base::MonotonicUs now_us = reactor_.now_us();
  pace_.look(limit, now_us);
  // Nothing waits and RocksDB has been at ease: end_turn() writes on the loop again.
  if (!waits && pace_.is_over()) {
    figures_.paced_us += static_cast<uint64_t>(now_us - *std::exchange(paced_since_us_, {}));
    return;
  }
  idle_ = !waits;
  if (idle_) return look_later(now_us + kIdleLookUs);
  if (limit.stopped) return look_later(now_us + kStoppedLookUs);
  if (!pace_.may_write(now_us)) return look_later(pace_.due_us());
  ++figures_.parked;
  std::unique_ptr<Batch> next;
  if (parked_.empty()) {
    next = std::exchange(current_, std::make_unique<Batch>());
  } else {
    next = std::move(parked_.front());
    parked_.pop_front();
    TETRAD_ASSERT(queued_bytes_ >= next->bytes());
    queued_bytes_ -= next->bytes();
  }
  // Between the moment it was taken and now an epoch may have been confirmed (rule 8): what is void
  // must not reach the disk behind the stream that ought to have sent it.
  std::vector<Refused> refused = cut(*next);
  pace_.wrote(next->bytes(), now_us);
  hand_over(std::move(next), false);
  answer(std::move(refused));
}

void WriteTurn::look_later(base::MonotonicUs at_us) {
  pace_timer_ = reactor_.call_at(at_us, [this] {
    pace_timer_ = 0;
    write_paced();
  });
}

// One sync at a time: what is written while it runs is covered by the next.
void WriteTurn::arm_sync() {
  if (sync_timer_ != 0 || syncing_) return;
  sync_timer_ = reactor_.call_at(reactor_.now_us() + options_.sync_period_us, [this] {
    sync_timer_ = 0;
    start_sync();
  });
}

void WriteTurn::start_sync() {
  TETRAD_ASSERT(!syncing_);
  if (sync_timer_ != 0) reactor_.cancel(std::exchange(sync_timer_, 0));
  syncing_ = true;
  unsynced_ = false;
  ++figures_.syncs;
  sync_since_us_ = reactor_.now_us();
  watch_commit_thread();
  const auto synced =
      std::make_shared<rocksdb::Status>(rocksdb::Status::Aborted("the store is closed"));
  // What the sync covers is noted before it begins; what is written while it runs may not be on the
  // disk when it ends.
  pool_.run(
      reactor_, base::IoDuty::kCommit, lane_,
      [database = database_, synced] {
        const RocksDatabase::Visit visit(*database);
        if (visit)
          *synced = guarded_status("syncing the log", [&] { return database->sync_log(); });
      },
      [this, alive = alive_, synced, begun = records_.begin(log_end_),
       waiting = std::exchange(sync_waiting_, {})]() mutable {
        if (*alive) end_sync(begun, *synced, std::move(waiting));
      });
}

void WriteTurn::end_sync(const SyncRecords::Begun& begun, const rocksdb::Status& status,
                         std::vector<Store::ApplyCallback> waiting) {
  const std::shared_ptr<bool> alive = alive_;
  syncing_ = false;
  sync_since_us_.reset();
  look_at_commit_thread();
  if (status.ok()) {
    records_.end(begun, begun.number);
  } else {
    // The record is not raised: after a power cut the store must count these writes as lost.
    unsynced_ = true;  // if it is aborted, until the log is a new one
    if (!status.IsAborted()) trouble_.failed(status, "syncing the log");
  }
  if (*alive && !sync_waiting_.empty()) {
    sync_at_turn_end();
  } else if (*alive && unsynced_ && !status.IsAborted()) {
    arm_sync();
  }
  // Answered last: a callback may ask for the next sync or write.
  Result<void> result;
  if (!status.ok()) result = std::unexpected(error_of(status, "syncing the log"));
  for (Store::ApplyCallback& done : waiting) done(result);
}

void WriteTurn::sync(Store::ApplyCallback done) {
  if (refusal_) return done(std::unexpected(*refusal_));
  current_->add_span(when_synced(std::move(done)), {}, current_->writes.Count(), false);
  begin_turn();
}

// Asked for when the batch has been written: only a sync that begins after that covers it.
Store::ApplyCallback WriteTurn::when_synced(Store::ApplyCallback done, base::Callback written) {
  return [this, alive = alive_, done = std::move(done),
          written = std::move(written)](const Result<void>& result) mutable {
    if (!*alive) return done(fail(ErrorCode::kCancelled, "the store is closed"));
    // A group's batch is synced when it has been written.
    if (!result || options_.sync == CommitLogSync::kGroup) return done(result);
    if (refusal_) return done(std::unexpected(*refusal_));
    wait_for_sync(std::move(done));
    if (written != nullptr) written();
  };
}

void WriteTurn::wait_for_sync(Store::ApplyCallback done) {
  sync_waiting_.push_back(std::move(done));
  if (sync_waiting_.size() == 1) sync_at_turn_end();
}

// In periodic mode a batch ends before it is on the disk; until then its registers must not be read
// as promised, nor written again.
void WriteTurn::wait_for_registers(Batch& batch) {
  for (Span& span : batch.spans) {
    if (span.registers == Span::kNone || !batch.registers[span.registers].synced) continue;
    Batch::Registers& registers = batch.registers[std::exchange(span.registers, Span::kNone)];
    if (registers.lets_pass) registers_->let_pass(registers.key);
    wait_for_sync(
        [under_way = registers_, passed = registers.lets_pass,
         key = std::move(registers.key)](const Result<void>&) { under_way->end(key, passed); });
  }
}

/// All that ask in this turn share one sync.
void WriteTurn::sync_at_turn_end() {
  reactor_.at_turn_end([this, alive = alive_] {
    if (*alive && !syncing_ && !sync_waiting_.empty()) start_sync();
  });
}

// ---- sync records ----

void WriteTurn::begin_records() {
  if (record_timer_ == 0) keep_records();
}

void WriteTurn::add_record() {
  const auto [key, value] = records_.take_due();
  current_->writes.Put(slice_of(key), slice_of(value));
  // In group mode each write is a sync, and could carry one.
  record_not_before_us_ = reactor_.now_us() + options_.sync_period_us;
}

/// Without writes no record would go out: the time since which something may be lost stays close.
void WriteTurn::keep_records() {
  const int64_t every_us = records_.has_written() ? kIdleRecordUs : kFirstRecordUs;
  record_timer_ = reactor_.call_at(reactor_.now_us() + every_us, [this] { keep_records(); });
  const bool all_synced =
      !unsynced_ && !syncing_ && in_flight_ == nullptr && parked_.empty() && current_->empty();
  if (refusal_ || !all_synced) return;
  if (reactor_.now_us() < record_not_before_us_ + kIdleRecordUs && records_.has_written()) return;
  const auto begun = records_.begin(log_end_);
  records_.end(begun, begun.number);
  if (!records_.is_due()) return;
  add_record();
  begin_turn();
}

// ---- by the commit thread ----

// One write and one sync for all that came during the one before: the slower the disk, the larger
// the batches.
void WriteTurn::write_group() {
  if (current_->empty()) return;
  watch_deadlines();
  if (in_flight_ != nullptr) {  // the writes that came meanwhile go next
    current_->waited = true;
    return;
  }
  std::unique_ptr<Batch> next = std::exchange(current_, std::make_unique<Batch>());
  // Fresh batches were let in by their guards in this very turn.
  std::vector<Refused> refused;
  if (next->waited) refused = cut(*next);
  hand_over(std::move(next), true);
  answer(std::move(refused));
}

void WriteTurn::hand_over(std::unique_ptr<Batch> batch, bool sync) {
  TETRAD_ASSERT(in_flight_ == nullptr);  // one at a time, so that the order holds
  in_flight_ = std::make_shared<Job>();
  in_flight_->batch = std::move(batch);
  in_flight_->sync = sync;
  in_flight_->begun =
      records_.begin(log_end_);  // before the write: a later time would promise more
  queued_bytes_ += in_flight_->batch->bytes();
  job_since_us_ = reactor_.now_us();
  watch_commit_thread();
  pool_.run(
      reactor_, base::IoDuty::kCommit, lane_,
      [database = database_, job = in_flight_] {
        const RocksDatabase::Visit visit(*database);
        // `written` is set by finish() when it takes the batch over; then this thread leaves it
        // alone.
        if (!visit || job->written) return;
        rocksdb::WriteOptions write;
        write.sync = job->sync;
        job->status = guarded_status("writing to the store", [&] {
          const rocksdb::Status status = database->db().Write(write, &job->batch->writes);
          job->log_end = end_of_log(database->db());
          return status;
        });
        job->written = true;
      },
      [this, alive = alive_, job = in_flight_] {
        if (*alive) written_elsewhere(job);
      });
}

void WriteTurn::written_elsewhere(const std::shared_ptr<Job>& job) {
  if (job != in_flight_) return;  // finish() was quicker
  in_flight_.reset();
  TETRAD_ASSERT(queued_bytes_ >= job->batch->bytes());
  queued_bytes_ -= job->batch->bytes();
  job_since_us_.reset();
  look_at_commit_thread();
  if (job->sync) ++figures_.syncs;
  if (!job->written)  // the database was closed before
    return complete(*job->batch, fail(ErrorCode::kCancelled, "the store is being opened anew"));
  // The commit thread does not decide what an error means; that is done here, on the loop.
  if (!job->status.ok()) return write_failed(*job->batch, job->status);
  see_written(*job->batch);
  log_end_ = job->log_end;
  if (job->sync) {
    records_.end(job->begun, log_end_);
  } else {
    unsynced_ = true;
    arm_sync();
    if (!job->batch->registers.empty()) wait_for_registers(*job->batch);
  }
  // Before the callbacks: those who wait for a settled state must see it before more is applied.
  const std::shared_ptr<bool> alive = alive_;
  if (parked_.empty() && !settled_.empty()) run_settled();
  if (!*alive) return;
  complete(*job->batch, {});
  if (!*alive) return;
  job->sync ? write_group() : write_paced();
}

// ---- what had to wait ----

// A sweep's page replaces values that include the earlier writes of its batch: if one of those is
// cut out, so is the page, which is then asked for again.
std::vector<WriteTurn::Refused> WriteTurn::cut(Batch& batch) {
  std::vector<Refused> refused;
  const base::MonotonicUs now_us = reactor_.now_us();
  const auto may_stay = [now_us](const Span& span) { return span.guard.may_write(now_us); };
  if (std::ranges::all_of(batch.spans, may_stay)) return refused;
  KeptRecords::Gaps gaps;
  std::vector<Span> kept;
  uint32_t removed = 0;
  for (Span& span : batch.spans) {
    // Its epoch was confirmed away, or its deadline is over. A span without a guard stays.
    std::optional<Error> error = refusal_of(span.guard, now_us);
    if (!error && span.is_sweep && removed != 0)
      error.emplace(ErrorCode::kOverloaded, "writes that it has seen were given up");
    if (error) {
      // The registers were not written: the next message of the partition may have its turn.
      batch.end_registers(span);
      if (span.begin < span.end) gaps.emplace_back(span.begin, span.end);
      TETRAD_ASSERT(span.begin <= span.end);
      removed += span.end - span.begin;
      if (span.done) refused.push_back({std::move(span.done), std::move(*error)});
    } else {
      TETRAD_ASSERT(span.begin >= removed);
      span.begin -= removed;
      span.end -= removed;
      kept.push_back(std::move(span));
    }
  }
  batch.spans = std::move(kept);
  if (gaps.empty()) return refused;
  KeptRecords records(gaps);
  const uint32_t count_before = batch.writes.Count();
  const rocksdb::Status status = batch.writes.Iterate(&records);
  // Positions of spans are counted in records: they must still point at their own records in the
  // smaller batch.
  TETRAD_ASSERT(status.ok());  // it is our own batch
  batch.writes = std::move(records.kept);
  TETRAD_ASSERT(batch.writes.Count() + removed == count_before);
  return refused;
}

void WriteTurn::answer(std::vector<Refused> refused) {
  for (Refused& write : refused) write.done(std::unexpected(std::move(write.error)));
}

void WriteTurn::watch_deadlines() {
  // Deadlines are looked at every 10 ms instead of by a timer each: a write costs nothing here
  // unless it waits.
  if (deadline_timer_ != 0) return;
  deadline_timer_ = reactor_.call_at(reactor_.now_us() + kDeadlineLookUs, [this] {
    deadline_timer_ = 0;
    answer_late();
  });
}

void WriteTurn::answer_late() {
  std::vector<Refused> late;
  const base::MonotonicUs now_us = reactor_.now_us();
  const auto look_at_batch = [&](Batch& batch) {
    if (batch.earliest_deadline_us > now_us) return;
    batch.earliest_deadline_us = WriteGuard::kNever;
    for (Span& span : batch.spans) {
      const base::MonotonicUs deadline_us = span.guard.deadline_us;
      if (!span.done) continue;
      if (deadline_us > now_us) {
        batch.earliest_deadline_us = std::min(batch.earliest_deadline_us, deadline_us);
        continue;
      }
      // The span stays in its batch without its callback: if it is in flight it may be written, and
      // its pass is given back when it has ended.
      late.push_back({std::exchange(span.done, nullptr),
                      Error(ErrorCode::kTimedOut, "the store did not take the write in time")});
    }
  };
  for (const auto& batch : parked_) look_at_batch(*batch);
  if (in_flight_ != nullptr) look_at_batch(*in_flight_->batch);
  look_at_batch(*current_);
  if (!parked_.empty() || in_flight_ != nullptr || !current_->empty()) watch_deadlines();
  answer(std::move(late));
}

// ---- the end ----

WriteTurn::Figures WriteTurn::figures() const {
  Figures figures = figures_;
  if (paced_since_us_)
    figures.paced_us += static_cast<uint64_t>(reactor_.now_us() - *paced_since_us_);
  return figures;
}

void WriteTurn::complete(Batch& batch, const Result<void>& result) {
  std::vector<Span> spans = std::exchange(batch.spans, {});
  if (!batch.registers.empty()) [[unlikely]] {
    for (Span& span : spans) batch.end_registers(span);
    batch.registers.clear();
  }
  for (Span& span : spans) {
    // The fence waits for passes of old epochs (rule 8): they go back only here, when the write has
    // ended one way or the other.
    span.guard.pass.give_back();
    if (span.done) span.done(result);  // else it was answered at its deadline
  }
  spans.clear();
  batch.spans = std::move(spans);  // for keep_for_reuse()
}

// The listener decides what the error means before anybody is answered: a callback that applies
// again must meet the refusal.
void WriteTurn::write_failed(Batch& batch, const rocksdb::Status& status) {
  const std::shared_ptr<bool> alive = alive_;
  trouble_.failed(status, "writing");
  complete(batch, std::unexpected(error_of(status, "writing")));
  if (*alive && !refusal_ && !current_->empty()) begin_turn();
}

void WriteTurn::use(std::shared_ptr<RocksDatabase> database) {
  database_ = std::move(database);
  log_end_ = end_of_log(database_->db());
}

void WriteTurn::refuse(std::optional<Error> why) {
  refusal_ = std::move(why);
  if (!refusal_) {
    if (unsynced_) arm_sync();
    return;
  }
  // Everything that waits is answered; what is in flight is answered when its thread is through.
  auto waiting = std::exchange(parked_, {});
  waiting.push_back(std::exchange(current_, std::make_unique<Batch>()));
  queued_bytes_ = in_flight_ == nullptr ? 0 : in_flight_->batch->bytes();
  const Result<void> refused = std::unexpected(*refusal_);
  const std::shared_ptr<bool> alive = alive_;
  for (Store::ApplyCallback& done : std::exchange(sync_waiting_, {})) done(refused);
  for (const auto& batch : waiting) complete(*batch, refused);
  if (*alive) run_settled();
}

// Once a second while a job runs; an idle store has no timer.
// A disk that hangs gives no error: the time that a job has taken is all there is to see.
void WriteTurn::watch_commit_thread() {
  if (hung_timer_ != 0) return;
  hung_timer_ = reactor_.call_at(reactor_.now_us() + kHungLookUs, [this] {
    hung_timer_ = 0;
    look_at_commit_thread();
    if (job_since_us_ || sync_since_us_) watch_commit_thread();
  });
}

void WriteTurn::look_at_commit_thread() {
  base::MonotonicUs since_us = reactor_.now_us();
  for (const auto& began : {job_since_us_, sync_since_us_})
    if (began) since_us = std::min(since_us, *began);
  const bool hung = reactor_.now_us() - since_us >= kHungUs;
  if (hung != std::exchange(hung_, hung)) trouble_.hung(hung);
}

// The pool's job may be before its write, inside it or behind it. Jobs are shut out, so it is not
// inside: what it has not written is written here, in order.
Result<void> WriteTurn::finish() {
  for (base::Reactor::TimerId* timer :
       {&sync_timer_, &pace_timer_, &hung_timer_, &deadline_timer_, &record_timer_})
    if (*timer != 0) reactor_.cancel(std::exchange(*timer, 0));
  std::deque<std::unique_ptr<Batch>> waiting = std::exchange(parked_, {});
  Result<void> outcome;
  if (refusal_) outcome = std::unexpected(*refusal_);
  if (in_flight_ != nullptr) {
    const std::shared_ptr<Job> job = std::exchange(in_flight_, nullptr);
    if (job->written) {
      if (!job->status.ok()) outcome = std::unexpected(error_of(job->status, "writing"));
      complete(*job->batch, outcome);
    } else {
      job->written = true;  // the pool's thread leaves it alone
      waiting.push_front(std::move(job->batch));
    }
  }
  waiting.push_back(std::exchange(current_, std::make_unique<Batch>()));
  for (const auto& batch : waiting) {
    if (batch->empty()) continue;
    // Guards are asked again here as well: closing is no reason to write what is void.
    answer(cut(*batch));
    // After the first failure nothing more is written: a later batch must not be on the disk
    // without an earlier one.
    if (outcome) {
      rocksdb::WriteOptions write;
      write.sync = options_.sync == CommitLogSync::kGroup;
      const rocksdb::Status status = database_->db().Write(write, &batch->writes);
      if (!status.ok()) outcome = std::unexpected(error_of(status, "writing"));
    }
    complete(*batch, outcome);
  }
  queued_bytes_ = 0;
  if (!refusal_) refusal_ = Error(ErrorCode::kCancelled, "the store is closed");
  for (Store::ApplyCallback& done : std::exchange(sync_waiting_, {}))
    done(std::unexpected(*refusal_));
  run_settled();
  return outcome;
}

}  // namespace tetrad::storage
