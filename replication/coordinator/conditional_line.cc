// SPDX-License-Identifier: Apache-2.0
// A line is a list of waiters by partition. The place at its head goes from one to the next; who stops
// waiting leaves from the midst. All in memory of one shard: other shards and nodes meet by ballots.
#include "replication/coordinator/conditional_line.h"

#include "base/assert.h"

namespace tetrad::replication {

namespace {

constexpr size_t kWaitingMax = 10'000;

}  // namespace

struct ConditionalLine::Waiting {
  ~Waiting() {
    if (line.take_out(key, waiter)) return;
    if (waiter->has_turn) line.leave(key);
  }
  ConditionalLine& line;
  const Bytes key;
  const WaiterPtr waiter;
};

Task<Result<ConditionalLine::Place>> ConditionalLine::enter(Bytes key, base::Deadline deadline) {
  const bool is_first = lines_.try_emplace(key).second;
  if (is_first) co_return Place(this, std::move(key));
  if (waiting_ >= kWaitingMax)
    co_return fail(ErrorCode::kOverloaded, "too many conditional statements wait; try again");
  base::OneShot<bool> turn;
  Waiting waiting{*this, key, std::make_shared<Waiter>(turn.setter())};
  const WaiterPtr waiter = waiting.waiter;
  Waiters& line = lines_[key];
  waiter->at = line.insert(line.end(), waiter);
  ++waiting_;
  waiter->timer = reactor_.call_at(deadline.at_us, [this, key, waiter] {
    waiter->timer = 0;
    if (take_out(key, waiter)) waiter->turn.set(false);
  });
  const bool has_turn = co_await turn;
  if (!has_turn)
    co_return fail(ErrorCode::kTimedOut, "it waited behind others until its time was over");
  waiter->has_turn = false;  // the place has it now
  co_return Place(this, std::move(key));
}

bool ConditionalLine::take_out(const Bytes& key, const WaiterPtr& waiter) {
  if (!std::exchange(waiter->waits, false)) return false;
  TETRAD_ASSERT(!waiter->has_turn);
  TETRAD_ASSERT(waiting_ != 0);
  lines_.at(key).erase(waiter->at);
  --waiting_;
  if (waiter->timer != 0) reactor_.cancel(waiter->timer);
  return true;
}

/// The next one goes on in an event of its own.
void ConditionalLine::leave(const Bytes& key) {
  const auto line = lines_.find(key);
  TETRAD_ASSERT(line != lines_.end());
  if (line->second.empty()) {
    lines_.erase(line);
    return;
  }
  const WaiterPtr next = line->second.front();
  line->second.pop_front();
  TETRAD_ASSERT(next->waits);
  TETRAD_ASSERT(waiting_ != 0);
  next->waits = false;
  --waiting_;
  reactor_.cancel(next->timer);
  next->has_turn = true;
  reactor_.post([next] { next->turn.set(true); });
}

}  // namespace tetrad::replication
