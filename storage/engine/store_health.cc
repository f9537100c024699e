// SPDX-License-Identifier: Apache-2.0
// The states of a store: see store_health.h. Every change goes through become(): first writes are
// refused or let in, then listeners hear of it.
#include "storage/engine/store_health.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/guarded.h"
#include "storage/engine/failure_mark.h"
#include "storage/engine/rocks_status.h"
#include "storage/engine/store_status.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

// Between two attempts to write again.
constexpr int64_t kTryEveryUs = 5'000'000;
constexpr uint64_t kRoomBytesLeast = 16u << 20;  // beyond what the memtables hold

/// A record of the store's own that a store writes to see whether it can.
Bytes probe_key() {
  Bytes key;
  base::ByteWriter w(key);
  w.u32(kStoreIncarnation.value);
  w.raw("probe");
  return key;
}

/// The text goes to clients, without the folder that the data is in: "/data/store-0" becomes
/// "store-0".
std::string without_path(std::string text, const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  if (path.empty() || name == path) return text;
  for (size_t at = 0; (at = text.find(path, at)) != std::string::npos; at += name.size())
    text.replace(at, path.size(), name);
  return text;
}

}  // namespace

// ---- background errors ----

class BackgroundErrors::Impl final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    const auto work = reason == rocksdb::BackgroundErrorReason::kCompaction
                          ? BackgroundWork::kCompaction
                          : BackgroundWork::kOther;
    const std::lock_guard lock(mutex_);
    // Errors before the store is made: the first one is kept, it says why.
    if (listener_) {
      listener_(*error, work);
    } else if (early_.empty()) {
      early_.emplace_back(*error, work);
    }
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;  // StoreHealth says when
  }
  void deliver_to(Listener listener) {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
    if (!listener_) return;
    for (const auto& [error, work] : std::exchange(early_, {})) listener_(error, work);
  }

 private:
  std::mutex mutex_;
  Listener listener_;
  std::vector<std::pair<rocksdb::Status, BackgroundWork>> early_;
};

BackgroundErrors::BackgroundErrors() : impl_(std::make_shared<Impl>()) {}
BackgroundErrors::~BackgroundErrors() { impl_->deliver_to(nullptr); }
std::shared_ptr<rocksdb::EventListener> BackgroundErrors::listener() const { return impl_; }
void BackgroundErrors::deliver_to(Listener listener) { impl_->deliver_to(std::move(listener)); }

// ---- health ----

StoreHealth::StoreHealth(std::string name, base::Reactor& reactor, base::IoPool& pool,
                         Actions actions, Logger logger)
    : name_(std::move(name)),
      reactor_(reactor),
      pool_(pool),
      actions_(std::move(actions)),
      logger_(std::move(logger)) {}

StoreHealth::~StoreHealth() {
  *alive_ = false;
  stop();
}

void StoreHealth::stop() {
  stopped_ = true;
  if (timer_ != 0) reactor_.cancel(std::exchange(timer_, 0));
}

void StoreHealth::take(const rocksdb::Status& error, std::string_view what, BackgroundWork work) {
  // kFailed is for good: whatever comes after it changes nothing.
  if (stopped_ || status_.state == StoreState::kFailed || error.ok()) return;
  if (error.IsShutdownInProgress() || actions_.database() == nullptr) return;
  // A failed sync outweighs everything: what the disk has is not known any more, so nothing more is
  // written (storage/README.md, disks in trouble).
  if (const auto failed_sync = actions_.database()->watch().failed_sync())
    return become(StoreState::kFailed, "a sync failed, " + *failed_sync);
  // RocksDB's status names neither the file nor the call, so the disk is asked whether it has refused
  // a read. An error of writing that comes at the same time leaves no result of the compaction
  // behind, and the next write of anything else meets it again.
  const bool is_unread = work == BackgroundWork::kCompaction && error.IsIOError() &&
                         !is_want_of_room(error) && actions_.database()->watch().read_failed();
  // RocksDB refuses writes after such an error; opened anew without compactions, it goes on with what
  // is good.
  if (error.IsCorruption() || is_unread) {
    take_damage(error.ToString());
    compacts_ = false;
    if (!trying_) reopen();
    return;
  }
  // Neither damage nor room: nobody knows what it means.
  if (!is_want_of_room(error))
    return become(StoreState::kFailed, fmt::format("{}: {}", what, error.ToString()));
  if (status_.state != StoreState::kFull) {
    become(StoreState::kFull, error.IsNoSpace() ? "the disk of " + name_ + " is full"
                                                : name_ + ": " + error.ToString());
    try_later();
  }
}

// Damage outlives everything but the folder: a restart that forgot it would make the store a source
// for streams again.
void StoreHealth::take_damage(const std::string& what) {
  if (!damage_.empty() || stopped_) return;
  pool_.run(
      reactor_, base::IoDuty::kMaintenance, 0,
      [name = name_, what] {
        // Best effort: the damage is found again.
        (void)base::guarded("noting damage of the store", [&]() -> Result<void> {
          note_damage(name, what);
          return {};
        });
      },
      [] {});
  begin_damaged(what);
}

void StoreHealth::begin_damaged(const std::string& what) {
  damage_ = what;
  logger_.error("store_damaged store={} error=\"{}\"", name_, what);
  if (status_.state == StoreState::kServing) become(StoreState::kDamaged, what);
}

void StoreHealth::set_hung(bool hung) {
  // A hung disk takes nothing and answers nothing: writes are refused until the one that is under
  // way has ended.
  hung_ = hung;
  if (hung && status_.takes_writes()) {
    become(StoreState::kHung, "the disk of " + name_ + " does not answer");
  } else if (!hung && status_.state == StoreState::kHung) {
    recovered();
  }
}

void StoreHealth::become(StoreState state, std::string reason) {
  TETRAD_ASSERT(status_.state != StoreState::kFailed);  // that is for good
  status_ = {state, std::move(reason)};
  if (state == StoreState::kServing) {
    logger_.info("store_serves_again store={}", name_);
  } else if (state != StoreState::kDamaged) {
    logger_.error("store_takes_no_writes store={} state={} reason=\"{}\"", name_, name_of(state),
                  status_.reason);
  }
  // For the next start, whose choice it is to try again.
  if (state == StoreState::kFailed) note_failure(name_, reactor_.wall_time_us(), status_.reason);
  std::optional<Error> refusal;
  if (!status_.takes_writes())
    refusal = Error(state == StoreState::kFailed ? ErrorCode::kIo : ErrorCode::kOverloaded,
                    without_path(status_.reason, name_) + "; no writes are taken");
  // refuse() answers waiting writes; their callbacks may end the store.
  const std::shared_ptr<bool> alive = alive_;
  actions_.refuse(std::move(refusal));
  if (*alive) actions_.changed();
}

void StoreHealth::recovered() {
  if (hung_) return become(StoreState::kHung, "the disk of " + name_ + " does not answer");
  if (damage_.empty()) return become(StoreState::kServing, "");
  become(StoreState::kDamaged, damage_);
}

void StoreHealth::try_later() {
  if (timer_ != 0 || stopped_) return;
  timer_ = reactor_.call_at(reactor_.now_us() + kTryEveryUs, [this] {
    timer_ = 0;
    try_again();
  });
}

// Room first: RocksDB resumes by flushing, and a flush that fails again costs more than a look. A
// record that is written and synced is the proof that writes may be taken.
StoreHealth::Attempt StoreHealth::resume(RocksDatabase& database) {
  // Old logs that are kept for others are the first to go.
  if (!database.has_room(kRoomBytesLeast)) database.drop_kept_logs();
  if (!database.has_room(kRoomBytesLeast))
    return {fail(ErrorCode::kLimit, "there is no room for what is in memory")};
  // The log has a hole or an unknown end: RocksDB can only begin a new one by being opened anew.
  if (database.watch().append_failed())
    return {fail(ErrorCode::kIo, "the log must be a new one"), true};
  rocksdb::DB& db = database.db();
  const auto failed = [](const rocksdb::Status& status, std::string_view what) -> Attempt {
    const bool is_fatal = status.severity() >= rocksdb::Status::Severity::kFatalError;
    return {std::unexpected(error_of(status, what)), is_fatal || !is_want_of_room(status)};
  };
  if (const rocksdb::Status resumed = db.Resume(); !resumed.ok())
    return failed(resumed, "resuming");
  // Written and synced, so that "it works" is known and not hoped.
  rocksdb::WriteOptions write;
  write.sync = true;
  const rocksdb::Status probed = db.Put(write, probe_key(), rocksdb::Slice());
  if (!probed.ok()) return failed(probed, "probing");
  return {};
}

void StoreHealth::try_again() {
  if (trying_ || stopped_ || status_.state == StoreState::kFailed) return;
  if (std::exchange(must_reopen_, false)) return reopen();
  trying_ = true;
  const auto attempt =
      std::make_shared<Attempt>(Attempt{fail(ErrorCode::kCancelled, "the store is closed")});
  pool_.run(
      reactor_, base::IoDuty::kMaintenance, 0,
      [database = actions_.database(), attempt] {
        const RocksDatabase::Visit visit(*database);
        if (!visit) return;
        const Result<void> tried = base::guarded("resuming the store", [&]() -> Result<void> {
          *attempt = resume(*database);
          return {};
        });
        if (!tried) *attempt = {tried, true};  // what it has done is not known
      },
      [this, alive = alive_, attempt] {
        if (!*alive) return;
        TETRAD_ASSERT(trying_);
        trying_ = false;
        if (stopped_ || status_.state == StoreState::kFailed) return;
        if (const auto failed_sync = actions_.database()->watch().failed_sync())
          return become(StoreState::kFailed, "a sync failed, " + *failed_sync);
        if (attempt->outcome) return recovered();
        attempt->must_reopen ? reopen() : try_later();
      });
}

/// Between closing and opening reads are refused, too.
void StoreHealth::reopen() {
  TETRAD_ASSERT(!trying_);
  trying_ = true;
  actions_.refuse(Error(ErrorCode::kOverloaded, "the store is being opened anew"));
  std::shared_ptr<RocksDatabase> old = actions_.database();  // null: the last try has closed it
  actions_.let_go();
  struct Reopened {
    Opened database = fail(ErrorCode::kCancelled, "the store is closed");
    std::optional<std::string> failed_sync;
  };
  const auto reopened = std::make_shared<Reopened>();
  pool_.run(
      reactor_, base::IoDuty::kMaintenance, 0,
      [before = std::move(old), open = actions_.open, compacts = compacts_, reopened]() mutable {
        // Waits until no job is inside of the old database.
        if (before != nullptr && before->close_when_idle())
          reopened->failed_sync = before->watch().failed_sync();
        before.reset();
        if (!reopened->failed_sync)
          reopened->database = base::guarded("opening the store", [&] { return open(compacts); });
      },
      [this, alive = alive_, reopened] {
        if (!*alive || stopped_) return;
        TETRAD_ASSERT(trying_);
        trying_ = false;
        if (reopened->failed_sync)
          return become(StoreState::kFailed, "a sync failed, " + *reopened->failed_sync);
        if (reopened->database) {
          actions_.use(std::move(*reopened->database));
          return recovered();
        }
        const Error& error = reopened->database.error();
        // Of a damaged one the disk may withhold what it is opened with, and only room comes back.
        const bool is_lost = error.code == ErrorCode::kCorruption ||
                             (!damage_.empty() && error.code == ErrorCode::kIo);
        if (is_lost) return become(StoreState::kFailed, error.message);
        logger_.warn("store_does_not_open store={} reason=\"{}\"", name_, error.message);
        // Not even opened: room may come back.
        must_reopen_ = true;
        if (status_.state == StoreState::kServing || status_.state == StoreState::kDamaged)
          become(StoreState::kFull, error.message);
        try_later();
      });
}

}  // namespace tetrad::storage
