// SPDX-License-Identifier: Apache-2.0
// The local log over a small RocksDB of its own. Writes go through a commit thread of its own; what
// comes while one is on its way becomes one write after it.
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "storage/engine/local_log.h"
#include "storage/engine/rocks_database.h"
#include "storage/engine/rocks_options.h"
#include "storage/engine/rocks_status.h"

namespace tetrad::storage {
namespace {

constexpr uint32_t kLane = 0x10ca1106;  // of the I/O pool; stores count from 1

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
  rocksdb::ReadOptions read;
  const rocksdb::Slice upper = slice_of(end);
  read.iterate_upper_bound = &upper;
  rocksdb::WriteBatch erase;
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(read));
  for (it->Seek(slice_of(start)); it->Valid(); it->Next()) {
    erase.Delete(it->key());
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
  rocksdb::ReadOptions read;
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
rocksdb::Status run(rocksdb::DB& db, Commit& commit) {
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
  const bool ends_with_erase = !commit.steps.empty() && commit.steps.back().erased;
  return commit.sync && ends_with_erase ? db.SyncWAL() : rocksdb::Status::OK();
}

class RocksLocalLog final : public LocalLog {
 public:
  RocksLocalLog(std::shared_ptr<RocksDatabase> database, base::Reactor& reactor, base::IoPool& pool,
                uint32_t lane)
      : lane_(lane),
        database_(std::move(database)),
        reactor_(reactor),
        pool_(pool),
        alive_(std::make_shared<bool>(true)),
        waiting_(std::make_shared<Commit>()) {}
  ~RocksLocalLog() override {
    *alive_ = false;
    database_->shut_out_jobs();
  }

  void write(std::vector<Operation> batch, bool sync, DoneCallback done) override {
    if (failure_) return done(std::unexpected(*failure_));
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
    const rocksdb::Status status = database_->db().Get({}, slice_of(key), &value);
    if (status.IsNotFound()) return std::nullopt;
    if (!status.ok()) return std::unexpected(error_of(status, "reading the local log"));
    return value;
  }

  Result<std::vector<std::pair<Bytes, Bytes>>> scan(BytesView start, BytesView end,
                                                    size_t limit) override {
    if (closed_) return fail(ErrorCode::kCancelled, "the local log is closed");
    return scan_in(database_->db(), start, end, limit, UINT64_MAX);
  }

  void scan_later(Bytes start, Bytes end, size_t limit, uint64_t bytes_max,
                  PairsCallback done) override {
    const auto found = std::make_shared<Result<Pairs>>(Pairs());
    pool_.run(
        reactor_, base::IoDuty::kMaintenance, 0,
        [database = database_, start = std::move(start), end = std::move(end), limit, bytes_max,
         found] {
          const RocksDatabase::Visit visit(*database);
          if (!visit)
            *found = fail(ErrorCode::kCancelled, "the local log is closed");
          else
            *found = scan_in(database->db(), start, end, limit, bytes_max);
        },
        [alive = alive_, found, done = std::move(done)]() mutable {
          if (*alive) done(std::move(*found));
        });
  }

  Result<void> close() override {
    if (closed_) return {};
    closed_ = true;
    database_->shut_out_jobs();
    if (in_flight_ != nullptr && in_flight_->written) finish(std::exchange(in_flight_, nullptr));
    for (auto commit : {std::exchange(in_flight_, nullptr),
                        std::exchange(waiting_, std::make_shared<Commit>())}) {
      if (commit == nullptr || commit->written) continue;
      commit->written = true;
      if (!failure_) commit->status = run(database_->db(), *commit);
      finish(commit);
    }
    Result<void> closed = database_->close();
    if (failure_) return std::unexpected(*failure_);
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
    pool_.run(
        reactor_, base::IoDuty::kCommit, lane_,
        [database = database_, commit = in_flight_] {
          const RocksDatabase::Visit visit(*database);
          if (!visit || commit->written) return;
          commit->status = run(database->db(), *commit);
          commit->written = true;
        },
        [this, alive = alive_, commit = in_flight_] {
          if (!*alive || commit != in_flight_) return;
          in_flight_.reset();
          finish(commit);
          if (*alive) submit();
        });
  }

  void finish(const std::shared_ptr<Commit>& commit) {
    if (!commit->status.ok() && !failure_) {
      Error error = error_of(commit->status, "writing the local log");
      error.message += "; it takes no more writes";
      if (error.code != ErrorCode::kCorruption) error.code = ErrorCode::kIo;
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
  const std::shared_ptr<RocksDatabase> database_;
  base::Reactor& reactor_;
  base::IoPool& pool_;
  const std::shared_ptr<bool> alive_;
  std::shared_ptr<Commit> waiting_, in_flight_;
  bool turn_begun_ = false, closed_ = false;
  std::optional<Error> failure_;
};

}  // namespace

Result<std::unique_ptr<LocalLog>> open_rocks_local_log(const std::string& directory,
                                                       base::Reactor& reactor, base::IoPool& pool,
                                                       uint32_t number) {
  TETRAD_TRY(auto database,
             RocksDatabase::open(local_log_options(), directory, "local log", nullptr));
  return std::make_unique<RocksLocalLog>(std::move(database), reactor, pool, kLane + number);
}

}  // namespace tetrad::storage
