// SPDX-License-Identifier: Apache-2.0
// The local log over a small RocksDB of its own. Writes go through a commit thread of its own; what
// comes while one is on its way becomes one write after it. When the disk is full the ballast goes,
// and the write that failed is done again, and again, until there is room: nothing is acknowledged
// meanwhile. Every other failure is for good.
#include <mutex>
#include <shared_mutex>

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "storage/engine/ballast.h"
#include "storage/engine/failure_mark.h"
#include "storage/engine/guarded_status.h"
#include "storage/engine/local_log.h"
#include "storage/engine/rocks_database.h"
#include "storage/engine/rocks_options.h"
#include "storage/engine/rocks_status.h"
#include "storage/engine/store_health.h"

namespace tetrad::storage {
namespace {

constexpr uint32_t kLane = 0x10ca1106;      // of the I/O pool; stores count from 1
constexpr int64_t kTryEveryUs = 1'000'000;  // while the disk is full

rocksdb::Slice slice_of(BytesView bytes) { return {bytes.data(), bytes.size()}; }

/// What one write on the pool does, in the order of the calls.
struct Commit {
  struct Step {
    rocksdb::WriteBatch writes;
    std::optional<std::pair<Bytes, Bytes>> erased;  // then `writes` is empty
  };
  std::vector<Step> steps;
  std::vector<LocalLog::DoneCallback> done;
  bool sync = false;
  bool written = false;
  rocksdb::Status status;
};

rocksdb::Status erase_keys(rocksdb::DB& db, const Bytes& start, const Bytes& end) {
  rocksdb::ReadOptions read = read_options();
  const rocksdb::Slice upper = slice_of(end);
  read.iterate_upper_bound = &upper;
  rocksdb::WriteBatch erase;
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(read));
  for (it->Seek(slice_of(start)); it->Valid(); it->Next()) {
    erase.Delete(it->key());
    // In batches of a MiB, so that the memory is bounded whatever is erased.
    if (erase.GetDataSize() < (1 << 20)) continue;
    const rocksdb::Status status = db.Write({}, &erase);
    if (!status.ok()) return status;
    erase.Clear();
  }
  if (!it->status().ok()) return it->status();
  return erase.Count() > 0 ? db.Write({}, &erase) : rocksdb::Status::OK();
}

Result<LocalLog::Pairs> scan_in(rocksdb::DB& db, BytesView start, BytesView end, size_t limit,
                                uint64_t bytes_max) {
  rocksdb::ReadOptions read = read_options();
  const rocksdb::Slice upper = slice_of(end);
  read.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(read));
  LocalLog::Pairs found;
  uint64_t bytes = 0;
  for (it->Seek(slice_of(start)); it->Valid() && found.size() < limit; it->Next()) {
    bytes += it->key().size() + it->value().size();
    if (!found.empty() && bytes > bytes_max) break;
    found.emplace_back(it->key().ToString(), it->value().ToString());
  }
  if (!it->status().ok()) return std::unexpected(error_of(it->status(), "reading the local log"));
  return found;
}

/// Consecutive batches are joined; only the last of a synced commit is synced, which covers those
/// before it.
rocksdb::Status run(RocksDatabase& database, Commit& commit) {
  rocksdb::DB& db = database.db();
  for (size_t i = 0; i < commit.steps.size(); ++i) {
    Commit::Step& step = commit.steps[i];
    rocksdb::Status status;
    if (step.erased) {
      status = erase_keys(db, step.erased->first, step.erased->second);
    } else {
      rocksdb::WriteOptions write;
      write.sync = commit.sync && i + 1 == commit.steps.size();
      status = db.Write(write, &step.writes);
    }
    if (!status.ok()) return status;
  }
  // An erasure writes without a sync, so the log is synced by itself.
  const bool ends_with_erase = !commit.steps.empty() && commit.steps.back().erased;
  return commit.sync && ends_with_erase ? database.sync_log() : rocksdb::Status::OK();
}

/// The database, which is another one after a full disk.
struct LogFiles {
  std::mutex working;    // held by the job at work; close() waits for it
  bool closing = false;  // under it
  std::shared_mutex replacing;
  std::shared_ptr<RocksDatabase> database;  // null: there is no room to open it
  std::function<Result<std::shared_ptr<RocksDatabase>>()> open;
};

/// Once more, after a failure for want of room. The same keys get the same values.
rocksdb::Status run_again(LogFiles& files, Commit& commit) {
  constexpr uint64_t kRoomBytes = 4 << 20;
  if (files.database != nullptr) {
    if (!files.database->has_room(kRoomBytes)) return commit.status;
    const std::unique_lock nobody_looks(files.replacing);
    // RocksDB takes no writes after such an error; a database that is opened anew does.
    files.database->close_when_idle();
    if (files.database->watch().failed_sync()) return rocksdb::Status::IOError("a sync failed");
    files.database = nullptr;
  }
  // With the lock free: opening reads the log, and readers meanwhile get no_room().
  auto opened = files.open();
  if (!opened) return commit.status;
  {
    const std::unique_lock nobody_looks(files.replacing);
    files.database = std::move(*opened);
  }
  return run(*files.database, commit);
}

class RocksLocalLog final : public LocalLog {
 public:
  RocksLocalLog(std::shared_ptr<LogFiles> files, std::string directory, base::Reactor& reactor,
                base::IoPool& pool, uint32_t lane, Logger logger)
      : lane_(lane),
        files_(std::move(files)),
        directory_(std::move(directory)),
        reactor_(reactor),
        pool_(pool),
        logger_(std::move(logger)),
        alive_(std::make_shared<bool>(true)),
        waiting_(std::make_shared<Commit>()) {}
  ~RocksLocalLog() override {
    *alive_ = false;
    if (timer_ != 0) reactor_.cancel(timer_);
    shut_out_jobs();
  }

  void write(std::vector<Operation> batch, bool sync, DoneCallback done) override {
    if (failure_) return done(std::unexpected(*failure_));
    // Writes behind an erasure are a step of their own: the order of the calls is kept.
    if (waiting_->steps.empty() || waiting_->steps.back().erased) waiting_->steps.emplace_back();
    rocksdb::WriteBatch& writes = waiting_->steps.back().writes;
    for (const Operation& operation : batch) {
      if (operation.value) {
        writes.Put(operation.key, *operation.value);
      } else {
        writes.Delete(operation.key);
      }
    }
    waiting_->sync |= sync;
    waiting_->done.push_back(std::move(done));
    begin_turn();
  }

  void erase_range(Bytes start, Bytes end, DoneCallback done) override {
    if (failure_) return done(std::unexpected(*failure_));
    waiting_->steps.emplace_back().erased = {std::move(start), std::move(end)};
    waiting_->done.push_back(std::move(done));
    begin_turn();
  }

  Result<std::optional<Bytes>> get(BytesView key) override {
    if (closed_) return fail(ErrorCode::kCancelled, "the local log is closed");
    Bytes value;
    const std::shared_lock looking(files_->replacing);
    if (files_->database == nullptr) return no_room();
    const rocksdb::Status status = files_->database->db().Get({}, slice_of(key), &value);
    if (status.IsNotFound()) return std::nullopt;
    if (!status.ok()) return std::unexpected(error_of(status, "reading the local log"));
    return value;
  }

  Result<std::vector<std::pair<Bytes, Bytes>>> scan(BytesView start, BytesView end,
                                                    size_t limit) override {
    if (closed_) return fail(ErrorCode::kCancelled, "the local log is closed");
    const std::shared_lock looking(files_->replacing);
    if (files_->database == nullptr) return no_room();
    return scan_in(files_->database->db(), start, end, limit, UINT64_MAX);
  }

  void scan_later(Bytes start, Bytes end, size_t limit, uint64_t bytes_max,
                  PairsCallback done) override {
    const auto found = std::make_shared<Result<Pairs>>(Pairs());
    pool_.run(
        reactor_, base::IoDuty::kMaintenance, 0,
        [files = files_, start = std::move(start), end = std::move(end), limit, bytes_max, found] {
          const std::shared_lock looking(files->replacing);
          if (files->database == nullptr)
            *found = no_room();
          else
            *found = base::guarded("reading the local log", [&] {
              return scan_in(files->database->db(), start, end, limit, bytes_max);
            });
        },
        [alive = alive_, found, done = std::move(done)]() mutable {
          if (*alive) done(std::move(*found));
        });
  }

  Result<void> close() override {
    if (closed_) return {};
    closed_ = true;
    if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
    shut_out_jobs();
    // Written, but its answer is still on its way to this loop.
    if (in_flight_ != nullptr && in_flight_->written) finish(std::exchange(in_flight_, nullptr));
    for (auto commit : {std::exchange(in_flight_, nullptr),
                        std::exchange(waiting_, std::make_shared<Commit>())}) {
      if (commit == nullptr || commit->written) continue;
      commit->written = true;
      // On this thread: jobs are shut out, and the process ends.
      if (!failure_ && !full_) commit->status = run(*files_->database, *commit);
      finish(commit);
    }
    if (failure_) return std::unexpected(*failure_);  // not even closed: that writes
    const std::unique_lock nobody_looks(files_->replacing);
    // Without a database a commit waits for room, and has failed just now.
    TETRAD_ASSERT(files_->database != nullptr);
    Result<void> closed = files_->database->close();
    files_->database = nullptr;
    failure_ = Error(ErrorCode::kCancelled, "the local log is closed");
    return closed;
  }

 private:
  void begin_turn() {
    if (turn_begun_ || in_flight_ != nullptr) return;
    turn_begun_ = true;
    reactor_.at_turn_end([this, alive = alive_] {
      if (*alive) submit();
    });
  }

  void submit() {
    turn_begun_ = false;
    if (closed_ || in_flight_ != nullptr || waiting_->done.empty()) return;
    in_flight_ = std::exchange(waiting_, std::make_shared<Commit>());
    hand_over(false);
  }

  void hand_over(bool again) {
    TETRAD_ASSERT(in_flight_ != nullptr);
    pool_.run(
        reactor_, base::IoDuty::kCommit, lane_,
        [files = files_, commit = in_flight_, again] {
          const std::lock_guard working(files->working);
          if (files->closing || commit->written) return;
          commit->status = guarded_status("writing the local log", [&] {
            return again ? run_again(*files, *commit) : run(*files->database, *commit);
          });
          // A failed sync is for good, even if the disk is full as well (fsyncgate).
          const bool waits = is_want_of_room(commit->status) && !has_failed(*files);
          commit->written = !waits;
        },
        [this, alive = alive_, commit = in_flight_] {
          // close() has answered it.
          if (!*alive || closed_ || commit != in_flight_) return;
          if (!commit->written) return try_later();
          if (std::exchange(full_, false))
            logger_.info("local_log_serves_again directory={}", directory_);
          in_flight_.reset();
          finish(commit);
          if (*alive) submit();
        });
  }

  void try_later() {
    TETRAD_ASSERT(in_flight_ != nullptr);
    TETRAD_ASSERT(timer_ == 0);
    if (!std::exchange(full_, true)) {
      logger_.error("local_log_waits_for_room directory={} reason=\"{}\"", directory_,
                    in_flight_->status.ToString());
      if (release_ballast(directory_)) {
        logger_.warn("the ballast of a full disk is given away directory={}", directory_);
        return hand_over(true);
      }
    }
    timer_ = reactor_.call_at(reactor_.now_us() + kTryEveryUs, [this] {
      timer_ = 0;
      hand_over(true);
    });
  }

  static bool has_failed(LogFiles& files) {
    return files.database != nullptr && files.database->watch().failed_sync().has_value();
  }
  static std::unexpected<Error> no_room() {
    return fail(ErrorCode::kLimit, "the local log is closed, or there is no room to open it");
  }
  void shut_out_jobs() {
    const std::lock_guard working(files_->working);
    files_->closing = true;
  }

  void finish(const std::shared_ptr<Commit>& commit) {
    TETRAD_ASSERT(commit->written);
    if (!commit->status.ok() && !failure_) {
      Error error = error_of(commit->status, "writing the local log");
      error.message += "; it takes no more writes";
      // Any other code, as that of a full disk, would look as if it could pass.
      if (error.code != ErrorCode::kCorruption) error.code = ErrorCode::kIo;
      note_failure(directory_, reactor_.wall_time_us(), error.message);
      failure_ = std::move(error);
    }
    const bool failed = failure_.has_value();
    for (DoneCallback& done : std::exchange(commit->done, {})) {
      if (!done) continue;
      failed ? done(std::unexpected(*failure_)) : done({});
    }
    if (!failed) return;
    for (DoneCallback& done : std::exchange(waiting_->done, {}))
      if (done) done(std::unexpected(*failure_));
  }

  const uint32_t lane_;
  const std::shared_ptr<LogFiles> files_;
  const std::string directory_;
  base::Reactor& reactor_;
  base::IoPool& pool_;
  const Logger logger_;
  const std::shared_ptr<bool> alive_;
  std::shared_ptr<Commit> waiting_, in_flight_;
  bool turn_begun_ = false, closed_ = false, full_ = false;
  base::Reactor::TimerId timer_ = 0;
  std::optional<Error> failure_;
};

}  // namespace

Result<std::unique_ptr<LocalLog>> open_rocks_local_log(const std::string& directory,
                                                       base::Reactor& reactor, base::IoPool& pool,
                                                       uint32_t number, Logger logger,
                                                       std::shared_ptr<rocksdb::FileSystem> files) {
  return open_rocks_local_log(directory, reactor, pool, number, std::move(logger), std::move(files),
                              LogRecovery::kStrict);
}

Result<std::unique_ptr<LocalLog>> open_rocks_local_log(const std::string& directory,
                                                       base::Reactor& reactor, base::IoPool& pool,
                                                       uint32_t number, Logger logger,
                                                       std::shared_ptr<rocksdb::FileSystem> files,
                                                       LogRecovery recovery) {
  TETRAD_TRY_VOID(check_failures(directory, reactor.wall_time_us(), logger));
  const auto log = std::make_shared<LogFiles>();
  log->open = [directory, files, recovery]() mutable {
    rocksdb::Options options = local_log_options();
    set_recovery(options, recovery);
    options.listeners.push_back(BackgroundErrors().listener());
    auto opened = RocksDatabase::open(std::move(options), directory, "local log", {nullptr, files});
    // Only the first opening after a power cut may find a torn end.
    if (opened) recovery = LogRecovery::kStrict;
    return opened;
  };
  auto database = log->open();
  if (!database && database.error().code == ErrorCode::kLimit && release_ballast(directory)) {
    logger.warn("the ballast of a full disk is given away directory={}", directory);
    database = log->open();
  }
  if (!database) return std::unexpected(std::move(database.error()));
  // The logs of a node share a disk: one ballast is enough.
  if (number == 0) make_ballast(directory);
  log->database = std::move(*database);
  return std::make_unique<RocksLocalLog>(log, directory, reactor, pool, kLane + number,
                                         std::move(logger));
}

}  // namespace tetrad::storage
