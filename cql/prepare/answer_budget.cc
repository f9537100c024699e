// SPDX-License-Identifier: Apache-2.0
// Bytes of answers on one shard are in three states: promised (a read under way may become that
// large), held (rows of an answer that is being made), unsent (answers that a client has not read
// yet). `bytes_max_` bounds the sum, with exceptions that keep the shard from standing still:
//
// 1. A read asks with promise(). If there is room it goes on at once.
// 2. Otherwise it waits, in the order of arrival, until room_is_free() lets grant() look at all
//    that wait.
// 3. Whoever waits beyond his deadline gets false; a timer looks every 50 ms.
// 4. When a large one waits, large ones behind it wait, too; small ones pass.
// 5. While somebody wants room whose own answers are taken, connections end whose clients take nothing
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

}  // namespace

AnswerBudget::~AnswerBudget() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void AnswerBudget::set_unsent(ClientAnswers& client, uint64_t now_bytes) {
  const bool is_less = now_bytes < client.unsent_bytes;
  unsent_bytes_ += now_bytes - client.unsent_bytes;
  client.unsent_bytes = now_bytes;
  if (is_less) room_is_free();
}

/// Reads under way end by themselves, so a client that has read all its answers is held back by
/// them only, not by answers that others leave unread, up to a second bound.
bool AnswerBudget::has_room(const AnswerRoom& room, uint64_t bytes) const {
  // The tests, in their order, for a sum that is over the bound. 1: a client that has unread
  // answers gets no more. 2: a small answer goes on while promises are below one and a half of the
  // bound. 3: a large one gets nothing once twice the bound is used. 4: if nothing is promised, one
  // large answer goes on whatever its size, so that it is made at all. 5: otherwise promises stay
  // within the bound, and the sum within twice the bound.
  if (used_bytes() + bytes <= bytes_max_) return true;
  if (room.client_.unsent_bytes != 0) return false;
  if (room.held_ + bytes <= kSmallBytes) return promised_bytes_ + bytes <= bytes_max_ / 2 * 3;
  if (used_bytes() >= 2 * bytes_max_) return false;
  if (promised_bytes_ == 0) return true;
  return promised_bytes_ + bytes <= bytes_max_ && used_bytes() + bytes <= 2 * bytes_max_;
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
  std::vector<base::OneShot<bool>::Setter> granted;
  bool large_waits = false;  // then those behind it wait too, lest it waits for ever
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto one = next++;
    AnswerRoom& room = *one->room;
    const bool is_large = room.held_ + one->bytes > kSmallBytes;
    if ((is_large && large_waits) || !has_room(room, one->bytes)) {
      large_waits |= is_large && room.client_.unsent_bytes == 0;
      continue;
    }
    room.set(room.held_, one->bytes);
    room.waits_ = false;
    granted.push_back(std::move(one->granted));
    waiting_.erase(one);
  }
  // After the loop: a task that resumes may change `waiting_`.
  for (const auto& setter : granted) setter.set(true);
}

void AnswerBudget::give_up_late_ones() {
  timer_ = 0;
  std::vector<base::OneShot<bool>::Setter> late;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto one = next++;
    if (reactor_.now_us() < one->deadline_us) continue;
    one->room->waits_ = false;
    late.push_back(std::move(one->granted));
    waiting_.erase(one);
  }
  for (const auto& setter : late) setter.set(false);
  if (waiting_.empty() || timer_ != 0) return;
  timer_ =
      reactor_.call_at(reactor_.now_us() + kLookForLateOnesUs, [this] { give_up_late_ones(); });
}

AnswerRoom::~AnswerRoom() {
  if (waits_) budget_.waiting_.erase(place_);
  set(0, 0);
}

void AnswerRoom::set(uint64_t held, uint64_t promised) {
  const uint64_t before = held_ + promised_;
  budget_.held_bytes_ += held - held_;
  budget_.promised_bytes_ += promised - promised_;
  held_ = held;
  promised_ = promised;
  client_.promised_bytes += held_ + promised_ - before;
  if (held_ + promised_ < before) budget_.room_is_free();
}

bool AnswerRoom::promise(uint64_t held, uint64_t more) {
  set(held, 0);
  // The old promise is gone by now: it must not stand against the new one.
  const bool is_large = held + more > kSmallBytes;
  if ((is_large && !budget_.waiting_.empty()) || !budget_.has_room(*this, more)) return false;
  set(held, more);
  return true;
}

Task<bool> AnswerRoom::wait(uint64_t more, base::Deadline deadline) {
  if (client_.unsent_bytes == 0) budget_.note_wanted();
  base::OneShot<bool> granted;
  place_ = budget_.waiting_.insert(budget_.waiting_.end(),
                                   {this, more, deadline.at_us, granted.setter()});
  waits_ = true;
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
