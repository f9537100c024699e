// SPDX-License-Identifier: Apache-2.0
// Gates, one for each tablet and epoch that a write has come for:
//
//   1. enter() gives passes of the gate of the present epoch.
//   2. A new map closes the gates of older epochs: passes that wait are void, those that are at work keep
//      their gate, among the former ones, until they have ended.
//   3. drained() is over when no former gate of the range, of an earlier epoch, is left.
//
// A split makes new gates for the parts without closing the old one: the epoch is the same.
#include "replication/replica/fence.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::replication {

using partitioner::Tablet;

namespace {

bool overlap(const RingRange& a, const RingRange& b) { return a.start < b.end && b.start < a.end; }

size_t index_of(const TableInfo& table, const Tablet& tablet) {
  const size_t index = static_cast<size_t>(&tablet - table.tablets.tablets().data());
  TETRAD_ASSERT(index < table.tablets.tablets().size());
  return index;
}

/// Whether a part of the range is at a later epoch.
bool is_over(const TableInfo& now, const RingRange& range, SetEpoch epoch) {
  const std::vector<Tablet>& tablets = now.tablets.tablets();
  for (size_t i = index_of(now, now.tablets.find(range.end));; --i) {
    if (overlap(tablets[i].range, range) && epoch < tablets[i].epoch) return true;
    if (i == 0 || tablets[i].range.start <= range.start) return false;
  }
}

}  // namespace

// One gate: owned by the fence while it is current or former, by its passes after that
// (WriteGate::let_go). `serial` orders gates of one epoch.
class Fence::Gate final : public storage::WriteGate {
 public:
  Gate(Fence& its_fence, uint64_t number, TableIncarnation its_incarnation, const Tablet& of)
      : serial(number),
        incarnation(its_incarnation),
        tablet(of.id),
        range(of.range),
        epoch(of.epoch),
        fence(&its_fence) {}
  void on_empty() override { fence->on_empty(*this); }

  const uint64_t serial;
  const TableIncarnation incarnation;
  const TabletId tablet;
  const RingRange range;
  const SetEpoch epoch;
  Fence* const fence;
  // Replaced, and passes of it are still out.
  bool is_former = false;
};

struct Fence::Waiter {
  TableIncarnation incarnation;
  RingRange range;
  SetEpoch epoch;       // waits for passes of earlier ones,
  uint64_t serial = 0;  // and for those of earlier gates
  Then then;
  base::Reactor::TimerId timer = 0;
};

Fence::Fence(base::Reactor& reactor, MetaService& meta)
    : reactor_(reactor), meta_(meta), state_(meta.snapshot()) {
  subscription_ = meta.subscribe([this](const MetaSnapshot& before, const MetaSnapshot& now) {
    if (before != now) catch_up(now);
  });
}

Fence::~Fence() {
  for (const auto& waiter : waiters_) reactor_.cancel(waiter->timer);
  for (auto& [incarnation, gates] : gates_) {
    for (Gate* gate : gates.of_tablets)
      if (gate != nullptr) gate->let_go();
    for (Gate* gate : gates.former) gate->let_go();
  }
}

// Called with a snapshot that may be newer than the subscription has brought: whoever comes first
// closes.
/// Whoever asks first of those who have the new map, it is closed what it closes.
void Fence::catch_up(const MetaSnapshot& now) {
  if (state_ == now) return;
  const MetaSnapshot before = std::exchange(state_, now);
  if (gates_.empty()) return;
  using Tables = decltype(now->tables);
  Tables::compare(before->tables, now->tables,
                  [this](const TableId&, const auto* known, const auto* table) {
                    if (known != nullptr)
                      change_table(**known, table == nullptr ? nullptr : table->get());
                  });
}

void Fence::retire(Gates& gates, Gate* gate) {
  TETRAD_ASSERT(!gate->is_former);
  // Nothing is under way: it goes.
  if (gate->out() == 0) return gate->let_go();
  gate->is_former = true;
  gates.former.push_back(gate);
}

void Fence::change_table(const TableInfo& before, const TableInfo* now) {
  const auto found = gates_.find(before.incarnation.value);
  if (found == gates_.end()) return;
  Gates& gates = found->second;
  // The table is gone: nothing of it may be written any more.
  if (now == nullptr || now->incarnation != before.incarnation) {
    for (Gate* gate : gates.former) gate->close();
    for (Gate* gate : std::exchange(gates.of_tablets, {})) {
      if (gate == nullptr) continue;
      gate->close();
      retire(gates, gate);
    }
    if (gates.former.empty()) gates_.erase(found);
    return;
  }
  for (Gate* gate : gates.former)
    if (gate->is_open() && is_over(*now, gate->range, gate->epoch)) gate->close();
  std::vector<Gate*> kept(now->tablets.tablets().size());
  for (Gate* gate : std::exchange(gates.of_tablets, {})) {
    if (gate == nullptr) continue;
    const Tablet& tablet = now->tablets.find(gate->range.end);
    // The tablet is what it was: its gate goes on.
    if (tablet.id == gate->tablet && tablet.range == gate->range && tablet.epoch == gate->epoch) {
      kept[index_of(*now, tablet)] = gate;
      continue;
    }
    // Split or merged at the same epoch: the old gate stays open for those inside, but gets no new
    // ones.
    if (is_over(*now, gate->range, gate->epoch)) gate->close();
    retire(gates, gate);
  }
  gates.of_tablets = std::move(kept);
}

storage::WritePass Fence::enter(const MetaSnapshot& now, const TableInfo& table,
                                const Tablet& tablet) {
  if (now != state_) catch_up(now);
  TETRAD_ASSERT(state_ == now);
  Gates& gates = gates_[table.incarnation.value];
  // Made when the first write of the table comes.
  const size_t count = table.tablets.tablets().size();
  if (gates.of_tablets.size() != count) {
    TETRAD_ASSERT(gates.of_tablets.empty());
    gates.of_tablets.resize(count);
  }
  Gate*& gate = gates.of_tablets[index_of(table, tablet)];
  if (gate == nullptr) gate = new Gate(*this, next_serial_++, table.incarnation, tablet);
  TETRAD_ASSERT(gate->epoch == tablet.epoch && gate->tablet == tablet.id);
  return storage::WritePass(*gate);
}

void Fence::on_empty(Gate& gate) {
  if (!gate.is_former) return;
  const auto found = gates_.find(gate.incarnation.value);
  TETRAD_ASSERT(found != gates_.end());
  const size_t erased = std::erase(found->second.former, &gate);
  TETRAD_ASSERT(erased == 1);
  if (found->second.former.empty() && found->second.of_tablets.empty()) gates_.erase(found);
  gate.let_go();
  // In a step of its own: this runs where a write ends.
  if (waiters_.empty() || look_posted_) return;
  look_posted_ = true;
  reactor_.post([this, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    look_posted_ = false;
    look_at_waiters();
  });
}

bool Fence::is_drained(const Waiter& waiter) const {
  const auto found = gates_.find(waiter.incarnation.value);
  if (found == gates_.end() || TETRAD_MUTANT(drain_skipped)) return true;
  // Passes of current gates are of the present epoch, and are not waited for.
  return std::ranges::none_of(found->second.former, [&](const Gate* gate) {
    return overlap(gate->range, waiter.range) &&
           (gate->epoch < waiter.epoch || gate->serial < waiter.serial);
  });
}

void Fence::look_at_waiters() {
  std::vector<std::shared_ptr<Waiter>> ready;
  std::erase_if(waiters_, [&](const std::shared_ptr<Waiter>& waiter) {
    if (!is_drained(*waiter)) return false;
    ready.push_back(waiter);
    return true;
  });
  for (const auto& waiter : ready) reactor_.cancel(waiter->timer);
  for (const auto& waiter : ready) waiter->then(true);
}

// The deadline answers false.
void Fence::wait(std::shared_ptr<Waiter> waiter, base::Deadline deadline) {
  if (is_drained(*waiter)) return waiter->then(true);
  waiters_.push_back(waiter);
  waiter->timer = reactor_.call_at(deadline.at_us, [this, waiter] {
    std::erase(waiters_, waiter);
    waiter->then(false);
  });
}

void Fence::drained(TableIncarnation incarnation, const RingRange& range, SetEpoch epoch,
                    base::Deadline deadline, Then then) {
  catch_up(meta_.snapshot());
  wait(std::make_shared<Waiter>(Waiter{incarnation, range, epoch, 0, std::move(then)}), deadline);
}

void Fence::drained_now(TableIncarnation incarnation, const RingRange& range,
                        base::Deadline deadline, Then then) {
  catch_up(meta_.snapshot());
  // Gates with passes out become former ones, so that they can be waited for; `next_serial_` is
  // behind all of them.
  const auto found = gates_.find(incarnation.value);
  if (found != gates_.end()) {
    // Writes from now on get another gate of the same epoch.
    for (Gate*& gate : found->second.of_tablets)
      if (gate != nullptr && gate->out() != 0 && overlap(gate->range, range))
        retire(found->second, std::exchange(gate, nullptr));
  }
  wait(std::make_shared<Waiter>(
           Waiter{incarnation, range, SetEpoch(), next_serial_, std::move(then)}),
       deadline);
}

}  // namespace tetrad::replication
