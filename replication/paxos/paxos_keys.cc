// SPDX-License-Identifier: Apache-2.0
// An entry is there while somebody waits for it or a write of it is not synced. Its first waiter
// has the turn; the next one gets it in a loop turn of its own, when the first one's write is seen.
// Registers are
//
//   1. enter(): no entry for the partition: one is made, and its registers are read. Otherwise the
//      message waits.
//   2. The turn's holder changes the registers in memory and writes them.
//   3. The write is seen (pass_on): the next waiter gets its turn, the write counts as unsynced.
//   4. The write is on the disk (Unsynced::end): those who wait for it, or for writes before it,
//      are answered.
//   5. Nobody waits and nothing is unsynced: the entry goes.
// read from the store once, and held while the entry lives; after a failed write they are read
// anew.
#include "replication/paxos/paxos_keys.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::replication {

using storage::PartitionName;
using storage::PaxosRegisters;

namespace {

constexpr size_t kWaitingMax = 10'000;    // beyond it: refused, the sender tries again
constexpr int64_t kLookPauseUs = 20'000;  // between looks at deadlines, at least

Error late() {
  return Error(ErrorCode::kTimedOut, "it waited behind others until its time was over");
}

}  // namespace

// Shared with its turns and unsynced writes, which may outlive the PaxosKeys.
struct PaxosKeys::Entry {
  Key key;
  TableIncarnation incarnation;
  RingPosition position;
  Bytes partition_key;
  // As the store has them or will have them; unset: not read yet, or not to be trusted.
  std::optional<PaxosRegisters> held;
  bool is_stale = false;        // `held` is to be read anew when the turn has ended
  std::deque<Waiter> waiters;   // the first has the turn
  std::set<uint64_t> unsynced;  // writes, by number
  uint64_t last_write = 0;
  /// Who waits for the writes up to one.
  struct SyncWaiter {
    uint64_t through;
    Result<void> result;
    SyncedCallback done;
  };
  std::deque<SyncWaiter> sync_waiters;  // ascending

  PartitionName name() const { return {incarnation, position, partition_key}; }
};

PaxosKeys::PaxosKeys(base::Reactor& reactor, std::vector<storage::Store*> stores)
    : reactor_(reactor), stores_(std::move(stores)) {}

PaxosKeys::~PaxosKeys() { reactor_.cancel(timer_); }

PaxosRegisters& PaxosKeys::Turn::registers() {
  TETRAD_ASSERT(entry_ != nullptr);
  TETRAD_ASSERT(entry_->held);
  return *entry_->held;
}

PartitionName PaxosKeys::Turn::partition() const {
  TETRAD_ASSERT(entry_ != nullptr);
  return entry_->name();
}

// Called while the turn is held, before end(): the next one reads what the store has.
void PaxosKeys::Turn::forget() { entry_->held.reset(); }

void PaxosKeys::Turn::end() {
  const std::shared_ptr<Entry> entry = std::move(entry_);
  if (entry == nullptr) return;
  if (const auto keys = keys_.lock()) (*keys)->next(entry);
}

PaxosKeys::Unsynced PaxosKeys::Turn::pass_on() {
  // The number is given before the turn ends, so that who comes next waits for this write, too.
  TETRAD_ASSERT(entry_ != nullptr);
  const uint64_t number = ++entry_->last_write;
  entry_->unsynced.insert(number);
  Unsynced write(keys_, entry_, number);
  end();
  return write;
}

void PaxosKeys::Turn::when_synced(SyncedCallback done) {
  TETRAD_ASSERT(entry_ != nullptr);
  // Nothing that this turn can have seen is unsynced.
  if (entry_->unsynced.empty()) return done({});
  entry_->sync_waiters.push_back({entry_->last_write, {}, std::move(done)});
}

PaxosKeys::Unsynced::~Unsynced() {
  if (entry_ != nullptr) end(fail(ErrorCode::kCancelled, "the write was given up"));
}

void PaxosKeys::Unsynced::end(const Result<void>& synced) {
  const std::shared_ptr<Entry> entry = std::move(entry_);
  TETRAD_ASSERT(entry != nullptr);
  if (const auto keys = keys_.lock()) (*keys)->end_unsynced(entry, number_, synced);
}

/// After a failure whoever comes next reads the registers anew.
void PaxosKeys::end_unsynced(const std::shared_ptr<Entry>& entry, uint64_t number,
                             const Result<void>& synced) {
  const size_t ended = entry->unsynced.erase(number);
  TETRAD_ASSERT(ended == 1);
  if (!synced) {
    entry->is_stale = true;
    // Whoever saw this write, or a later one that was made from it, saw what may be lost.
    for (Entry::SyncWaiter& waiter : entry->sync_waiters)
      if (waiter.through >= number) waiter.result = synced;
  }
  std::vector<Entry::SyncWaiter> due;
  // Syncs end in order of their writes, or several at once: a waiter is due when no write up to its
  // own is left.
  while (
      !entry->sync_waiters.empty() &&
      (entry->unsynced.empty() || *entry->unsynced.begin() > entry->sync_waiters.front().through)) {
    due.push_back(std::move(entry->sync_waiters.front()));
    entry->sync_waiters.pop_front();
  }
  // Before the callbacks: they may enter the partition again.
  erase_unused(entry);
  for (Entry::SyncWaiter& waiter : due) waiter.done(std::move(waiter.result));
}

void PaxosKeys::erase_unused(const std::shared_ptr<Entry>& entry) {
  if (!entry->waiters.empty() || !entry->unsynced.empty()) return;
  // Who waits for a sync waits for a write that is not synced.
  TETRAD_ASSERT(entry->sync_waiters.empty());
  entries_.erase(entry->key);
}

PaxosKeys::Key PaxosKeys::key_of(uint32_t store, const PartitionName& partition) {
  Bytes key;
  base::ByteWriter writer(key);
  writer.u32(partition.incarnation.value);
  writer.raw(partition.partition_key);
  return {store, std::move(key)};
}

void PaxosKeys::enter(uint32_t store, PartitionName partition, base::Deadline deadline,
                      TurnCallback done) {
  if (store >= stores_.size() || stores_[store] == nullptr)
    return done(fail(ErrorCode::kNotFound, "store {} is not of this shard", store));
  if (waiting_ >= kWaitingMax)
    return done(fail(ErrorCode::kOverloaded, "too many conditional statements wait"));
  Key key = key_of(store, partition);
  std::shared_ptr<Entry>& found = entries_[key];
  if (found == nullptr) {
    found = std::make_shared<Entry>();
    found->key = std::move(key);
    found->incarnation = partition.incarnation;
    found->position = partition.position;
    found->partition_key = Bytes(partition.partition_key);
  }
  ++waiting_;
  const std::shared_ptr<Entry> entry = found;
  const bool is_first = entry->waiters.empty();
  // The first waiter is the holder; it stays in the queue until next().
  entry->waiters.push_back({deadline, std::move(done)});
  if (is_first) return give_turn(entry);
  look_at(deadline.at_us);
}

// One timer for all partitions, at the earliest deadline but not more often than every 20 ms.
void PaxosKeys::look_at(base::MonotonicUs deadline_us) {
  const base::MonotonicUs at_us = std::max(deadline_us, reactor_.now_us() + kLookPauseUs);
  if (timer_ != 0 && timer_at_us_ <= at_us) return;
  reactor_.cancel(timer_);
  timer_at_us_ = at_us;
  timer_ = reactor_.call_at(at_us, [this] {
    timer_ = 0;
    end_late();
  });
}

/// Of those behind the first, whose turn may take as long as a disk hangs.
void PaxosKeys::end_late() {
  std::vector<TurnCallback> late_ones;
  base::MonotonicUs next_us = std::numeric_limits<base::MonotonicUs>::max();
  for (const auto& [key, entry] : entries_) {
    if (entry->waiters.empty()) continue;
    std::deque<Waiter> kept;
    // The holder is not ended here: its write may be under way, and the registers are its own.
    kept.push_back(std::move(entry->waiters.front()));
    for (auto waiter = entry->waiters.begin() + 1; waiter != entry->waiters.end(); ++waiter) {
      if (waiter->deadline.at_us <= reactor_.now_us()) {
        late_ones.push_back(std::move(waiter->done));
        continue;
      }
      next_us = std::min(next_us, waiter->deadline.at_us);
      kept.push_back(std::move(*waiter));
    }
    entry->waiters = std::move(kept);
  }
  TETRAD_ASSERT(waiting_ >= late_ones.size());
  waiting_ -= late_ones.size();
  if (next_us != std::numeric_limits<base::MonotonicUs>::max()) look_at(next_us);
  for (TurnCallback& done : late_ones) done(std::unexpected(late()));
}

void PaxosKeys::give_turn(const std::shared_ptr<Entry>& entry) {
  TETRAD_ASSERT(!entry->waiters.empty());
  // Who has waited past its deadline is answered without a turn, and the next one gets it.
  const auto refuse = [this, &entry](Error error) {
    TurnCallback done = std::move(entry->waiters.front().done);
    done(std::unexpected(std::move(error)));
    next(entry);
  };
  if (reactor_.now_us() >= entry->waiters.front().deadline.at_us) return refuse(late());
  if (std::exchange(entry->is_stale, false)) entry->held.reset();
  if (entry->held) {
    TurnCallback done = std::move(entry->waiters.front().done);
    return done(Turn(self_, entry));
  }
  // Until the answer the first waiter holds the turn: nobody else touches `held`.
  stores_[entry->key.first]->read_registers(
      entry->name(), entry->waiters.front().deadline,
      [this, alive = std::weak_ptr<PaxosKeys*>(self_), entry](Result<PaxosRegisters> read) {
        if (alive.expired()) return;
        TETRAD_ASSERT(!entry->waiters.empty());
        TurnCallback done = std::move(entry->waiters.front().done);
        if (!read) {
          done(std::unexpected(std::move(read.error())));
          return next(entry);
        }
        entry->held = std::move(*read);
        done(Turn(self_, entry));
      });
}

/// In a turn of its own, so that no stack grows over those who wait.
void PaxosKeys::next(const std::shared_ptr<Entry>& entry) {
  TETRAD_ASSERT(!entry->waiters.empty());
  TETRAD_ASSERT(waiting_ != 0);
  entry->waiters.pop_front();
  --waiting_;
  if (entry->waiters.empty()) return erase_unused(entry);
  reactor_.post([this, alive = std::weak_ptr<PaxosKeys*>(self_), entry] {
    if (!alive.expired()) give_turn(entry);
  });
}

}  // namespace tetrad::replication
