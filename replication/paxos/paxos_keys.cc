// SPDX-License-Identifier: Apache-2.0
#include "replication/paxos/paxos_keys.h"

#include "base/assert.h"
#include "base/byte_io.h"

namespace tetrad::replication {

using storage::PartitionName;
using storage::PaxosRegisters;

namespace {

constexpr size_t kWaitingMax = 10'000;  // beyond it: refused, the sender tries again

}  // namespace

struct PaxosKeys::Entry {
  Key key;
  TableIncarnation incarnation;
  RingPosition position;
  Bytes partition_key;
  std::optional<PaxosRegisters> held;
  std::deque<Waiter> waiters;  // the first has the turn

  PartitionName name() const { return {incarnation, position, partition_key}; }
};

PaxosKeys::PaxosKeys(base::Reactor& reactor, std::vector<storage::Store*> stores)
    : reactor_(reactor), stores_(std::move(stores)) {}

PaxosRegisters& PaxosKeys::Turn::registers() { return *entry_->held; }
PartitionName PaxosKeys::Turn::partition() const { return entry_->name(); }
void PaxosKeys::Turn::forget() { entry_->held.reset(); }

void PaxosKeys::Turn::end() {
  const std::shared_ptr<Entry> entry = std::move(entry_);
  if (entry == nullptr) return;
  if (const auto keys = keys_.lock()) (*keys)->next(entry);
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
  const bool is_first = found == nullptr;
  if (is_first) {
    found = std::make_shared<Entry>();
    found->key = std::move(key);
    found->incarnation = partition.incarnation;
    found->position = partition.position;
    found->partition_key = Bytes(partition.partition_key);
  }
  ++waiting_;
  const std::shared_ptr<Entry> entry = found;
  entry->waiters.push_back({deadline, std::move(done)});
  if (is_first) give_turn(entry);
}

void PaxosKeys::give_turn(const std::shared_ptr<Entry>& entry) {
  TETRAD_ASSERT(!entry->waiters.empty());
  const auto refuse = [this, &entry](Error error) {
    TurnCallback done = std::move(entry->waiters.front().done);
    done(std::unexpected(std::move(error)));
    next(entry);
  };
  if (reactor_.now_us() >= entry->waiters.front().deadline.at_us)
    return refuse(Error(ErrorCode::kTimedOut, "it waited behind others until its time was over"));
  if (entry->held) {
    TurnCallback done = std::move(entry->waiters.front().done);
    return done(Turn(self_, entry));
  }
  stores_[entry->key.first]->read_registers(
      entry->name(), entry->waiters.front().deadline,
      [this, alive = std::weak_ptr<PaxosKeys*>(self_), entry](Result<PaxosRegisters> read) {
        if (alive.expired()) return;
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
  entry->waiters.pop_front();
  --waiting_;
  if (entry->waiters.empty()) {
    entries_.erase(entry->key);
    return;
  }
  reactor_.post([this, alive = std::weak_ptr<PaxosKeys*>(self_), entry] {
    if (!alive.expired()) give_turn(entry);
  });
}

}  // namespace tetrad::replication
