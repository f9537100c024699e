// SPDX-License-Identifier: Apache-2.0
// Bytes of answers on one shard are in three states: promised (a read under way may become that
// large), held (rows of an answer that is being made), unsent (answers that a client has not read
// yet). `bytes_max_` bounds the sum, with exceptions that keep the shard from standing still:
//
// 1. A large answer begins when the client has less than kClientBytesMax of large ones unsent and
//    under way; until then it waits for its turn among those of its client (await_turn). What is
//    found to be large as it is read waits, too, with the little that it has.
// 2. A read asks with promise(). If there is room it goes on at once.
// 3. Otherwise it waits until room_is_free() lets grant() look at all that wait: first answers of
//    which a part is held, in the order in which they began, then the others in the order of
//    arrival.
// 4. Whoever waits beyond his deadline gets false; a timer looks every 50 ms.
// 5. When a large one waits, large ones behind it wait, too; small ones pass.
// 6. Answers that hold a part each could wait for each other. So one of them, the first that waits
//    and whose client takes its answers, does not wait for what the others hold; until it has ended
//    there is no second one.
// 7. While somebody wants room whose own answers are taken, connections end whose clients take nothing
//    (is_wanted()): four of them, each with a page of 16 MiB, would keep all large answers from all
//    others for as long as they are kept.
//
// All of it on the shard's thread.
#include "cql/prepare/answer_budget.h"

#include <memory>
#include <vector>

namespace tetrad::cql {
namespace {

/// An answer up to here is small: it hardly waits for those that are not.
constexpr uint64_t kSmallBytes = 64u << 10;
constexpr int64_t kLookForLateOnesUs = 50'000;

/// Whether one more large answer of this client may begin. What those hold that wait for this does not
/// count, however much it is.
bool has_turn(const ClientAnswers& client) {
  return client.large_waiting == 0 &&
         client.unsent_bytes + client.turn_bytes <= AnswerBudget::kClientBytesMax;
}

}  // namespace

AnswerBudget::~AnswerBudget() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void AnswerBudget::set_unsent(ClientAnswers& client, uint64_t now_bytes) {
  const bool is_less = now_bytes < client.unsent_bytes;
  unsent_bytes_ += now_bytes - client.unsent_bytes;
  client.unsent_bytes = now_bytes;
  if (!is_less) return;
  room_is_free();
  look_at_turns(client);
}

void AnswerBudget::let_go(ClientAnswers& client) {
  client.has_gone = true;
  look_at_turns(client);
  room_is_free();  // its reads that wait for room end, too
}

void AnswerBudget::look_at_turns(ClientAnswers& client) {
  if (client.waiting() == 0 || client.turns->look_scheduled) return;
  client.turns->look_scheduled = true;
  reactor_.at_turn_end(
      [this, alive = std::weak_ptr<char>(alive_), waiting = std::weak_ptr(client.turns)] {
        const auto turns = waiting.lock();
        if (turns == nullptr || alive.expired()) return;
        turns->look_scheduled = false;
        // Who begins takes room at once, inside set(), so the sum is right for the next.
        while (!turns->waiting.empty() && (turns->client.has_gone || has_turn(turns->client))) {
          const auto may_begin = turns->waiting.front().may_begin;
          leave_turns(*turns, turns->waiting.begin());
          may_begin.set(!turns->client.has_gone);
        }
      });
}

void AnswerBudget::leave_turns(AnswerTurns& turns, std::list<AnswerTurns::Waiting>::iterator one) {
  turns.request_bytes -= one->request_bytes;
  turns.waiting.erase(one);
  --waiting_turns_;
}

/// Reads under way end by themselves, so a client that has read all its answers is held back by
/// them only, not by answers that others leave unread, up to a second bound.
bool AnswerBudget::has_room(const AnswerRoom& room, uint64_t bytes) const {
  // The tests, in their order, for a sum that is over the bound. 1: a client that has unread
  // answers gets no more. 2: a small answer goes on while promises are below one and a half of the
  // bound. 3: a large one gets nothing once twice the bound is used; what others hold does not
  // count for the one that goes first. 4: if nothing is promised, one large answer goes on whatever
  // its size, so that it is made at all. 5: otherwise promises stay within the bound, and the sum
  // within twice the bound.
  if (used_bytes() + bytes <= bytes_max_) return true;
  if (room.client_.unsent_bytes != 0) return false;
  if (room.held_ + bytes <= kSmallBytes) return promised_bytes_ + bytes <= bytes_max_ / 2 * 3;
  const uint64_t used = used_bytes() - (first_ == &room ? held_bytes_ : 0);
  if (used >= 2 * bytes_max_) return false;
  if (promised_bytes_ == 0) return true;
  return promised_bytes_ + bytes <= bytes_max_ && used + bytes <= 2 * bytes_max_;
}

void AnswerBudget::room_is_free() {
  if (waiting_.empty() || grant_scheduled_) return;
  grant_scheduled_ = true;
  // At the end of the turn: many answers that end in one turn cause one look.
  reactor_.at_turn_end([this, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) grant();
  });
}

void AnswerBudget::grant() {
  grant_scheduled_ = false;
  std::vector<base::OneShot<bool>::Setter> granted, gone;
  bool large_waits = false;  // then those behind it wait too, lest it waits for ever
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto one = next++;
    AnswerRoom& room = *one->room;
    if (room.client_.has_gone) {
      room.stop_waiting();
      gone.push_back(std::move(one->granted));
      waiting_.erase(one);
      continue;
    }
    const bool is_large = room.held_ + one->bytes > kSmallBytes;
    // Until it ends, so that there is never a second one.
    if (first_ == nullptr && is_large && room.held_ != 0 && room.client_.unsent_bytes == 0)
      first_ = &room;
    const bool must_wait = is_large && large_waits && first_ != &room;
    if (must_wait || !has_room(room, one->bytes)) {
      large_waits |= is_large && room.client_.unsent_bytes == 0;
      continue;
    }
    room.begin(one->bytes);
    room.stop_waiting();
    granted.push_back(std::move(one->granted));
    waiting_.erase(one);
  }
  // After the loop: a task that resumes may change `waiting_`.
  for (const auto& setter : granted) setter.set(true);
  for (const auto& setter : gone) setter.set(false);
}

void AnswerBudget::give_up_late_ones() {
  timer_ = 0;
  std::vector<base::OneShot<bool>::Setter> late;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto one = next++;
    if (reactor_.now_us() < one->deadline_us) continue;
    one->room->stop_waiting();
    late.push_back(std::move(one->granted));
    waiting_.erase(one);
  }
  for (const auto& setter : late) setter.set(false);
  if (waiting_.empty() || timer_ != 0) return;
  timer_ =
      reactor_.call_at(reactor_.now_us() + kLookForLateOnesUs, [this] { give_up_late_ones(); });
}

AnswerRoom::~AnswerRoom() {
  if (waits_) {
    budget_.waiting_.erase(place_);
    stop_waiting();
  }
  if (turns_ != nullptr) budget_.leave_turns(*turns_, turn_);
  const bool was_first = budget_.first_ == this;
  if (was_first) budget_.first_ = nullptr;
  set(0, 0);
  if (was_first) budget_.room_is_free();
}

bool AnswerRoom::may_begin(uint64_t bytes) const {
  return bytes <= kSmallBytes || had_turn_ || (client_.waiting() == 0 && has_turn(client_));
}

Task<bool> AnswerRoom::await_turn(uint64_t request_bytes) {
  if (client_.has_gone) co_return false;
  if (client_.turns == nullptr)
    client_.turns = std::make_shared<AnswerTurns>(AnswerTurns{.client = client_});
  base::OneShot<bool> may_begin;
  turns_ = client_.turns;
  turn_ = turns_->waiting.insert(turns_->waiting.end(), {request_bytes, may_begin.setter()});
  turns_->request_bytes += request_bytes;
  ++budget_.waiting_turns_;
  const bool is_there = co_await may_begin;
  turns_.reset();
  take_turn();
  co_return is_there;
}

void AnswerRoom::set(uint64_t held, uint64_t promised) {
  const uint64_t before = held_ + promised_, after = held + promised;
  budget_.held_bytes_ += held - held_;
  budget_.promised_bytes_ += promised - promised_;
  held_ = held;
  promised_ = promised;
  client_.promised_bytes += after - before;
  if (had_turn_) client_.turn_bytes += after - before;
  if (after >= before) return;
  budget_.room_is_free();
  budget_.look_at_turns(client_);
}

void AnswerRoom::take_turn() {
  if (had_turn_) return;
  had_turn_ = true;
  client_.turn_bytes += held_ + promised_;
}

void AnswerRoom::stop_waiting() {
  waits_ = false;
  client_.large_waiting -= had_turn_ ? 1 : 0;
  budget_.look_at_turns(client_);
}

void AnswerRoom::begin(uint64_t promised) {
  if (begun_ == 0) begun_ = ++budget_.begun_;
  if (held_ + promised > kSmallBytes) take_turn();
  set(held_, promised);
}

bool AnswerRoom::promise(uint64_t held, uint64_t more) {
  set(held, 0);
  // The old promise is gone by now: it must not stand against the new one.
  const bool is_large = held + more > kSmallBytes;
  if ((is_large && !budget_.waiting_.empty()) || !budget_.has_room(*this, more)) return false;
  begin(more);
  return true;
}

Task<bool> AnswerRoom::wait(uint64_t more, base::Deadline deadline) {
  if (client_.unsent_bytes == 0) budget_.note_wanted();
  base::OneShot<bool> granted;
  // Before the first that has not begun, or began later; those that have begun are few.
  auto behind = begun_ == 0 ? budget_.waiting_.end() : budget_.waiting_.begin();
  while (behind != budget_.waiting_.end() && behind->room->begun_ != 0 &&
         behind->room->begun_ < begun_)
    ++behind;
  place_ = budget_.waiting_.insert(behind, {this, more, deadline.at_us, granted.setter()});
  waits_ = true;
  if (held_ + more > kSmallBytes) take_turn();
  client_.large_waiting += had_turn_ ? 1 : 0;
  budget_.room_is_free();
  if (budget_.timer_ == 0) {
    budget_.timer_ = budget_.reactor_.call_at(budget_.reactor_.now_us() + kLookForLateOnesUs,
                                              [&budget = budget_] { budget.give_up_late_ones(); });
  }
  const bool is_granted = co_await granted;
  co_return is_granted;
}

void AnswerRoom::settle(uint64_t held) { set(held, 0); }

}  // namespace tetrad::cql
