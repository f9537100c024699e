// SPDX-License-Identifier: Apache-2.0
// A turn: up to kHandlersPerTurnMax handlers that are ready, or kTurnUsMax; then the callbacks of
// at_turn_end(), until there are none. Work that is batched (store writes, messages, answers) hangs
// on those callbacks, so the bounds keep a busy loop from holding answers back.
//
// now_us() is read once for many handlers. is_late_ says that the value may be from before the loop
// slept: the first call then reads the clock again.
#include "server/runtime/asio_reactor.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <boost/asio/post.hpp>

namespace tetrad::server {
namespace {

// Then the turn ends, so that replies never wait for long.
constexpr int kHandlersPerTurnMax = 256;
constexpr int64_t kTurnUsMax = 1'000;

}  // namespace

base::MonotonicUs monotonic_now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t wall_now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

AsioReactor::AsioReactor() : work_(boost::asio::make_work_guard(context_)), timer_(context_) {
  read_clock();
}
AsioReactor::~AsioReactor() = default;

void AsioReactor::read_clock() const {
  is_late_ = false;
  now_us_ = monotonic_now_us();
}

base::MonotonicUs AsioReactor::now_us() const {
  if (is_late_) read_clock();
  return now_us_;
}

int64_t AsioReactor::boot_time_us() const {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

int64_t AsioReactor::wall_time_us() const { return wall_now_us(); }

void AsioReactor::post(base::Callback callback) {
  boost::asio::post(context_, std::move(callback));
}
void AsioReactor::post_from_any_thread(base::Callback callback) {
  boost::asio::post(context_, std::move(callback));
}
void AsioReactor::at_turn_end(base::Callback callback) { turn_end_.push_back(std::move(callback)); }

// All timers share one Asio timer, armed for the earliest. Sorted by time, then by id, so equal
// times run in the order of the calls.
base::Reactor::TimerId AsioReactor::call_at(base::MonotonicUs at_us, base::Callback callback) {
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(at_us, id), std::move(callback));
  timer_due_us_.emplace(id, at_us);
  if (timers_.begin()->first.second == id) arm_timer();
  return id;
}

void AsioReactor::cancel(TimerId timer) {
  const auto found = timer_due_us_.find(timer);
  if (found == timer_due_us_.end()) return;
  timers_.erase({found->second, timer});
  timer_due_us_.erase(found);
}

void AsioReactor::arm_timer() {
  if (timers_.empty()) return;
  const base::MonotonicUs due_us = timers_.begin()->first.first;
  // Cancelled timers are not disarmed: most are cancelled (time limits of requests that ended), and
  // a wake-up too many costs less than a system call for each.
  if (armed_for_us_ != 0 && armed_for_us_ <= due_us) return;  // it fires early enough and re-arms
  armed_for_us_ = due_us;
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::microseconds(due_us)));
  timer_.async_wait([this, due_us](const boost::system::error_code& error) {
    if (error || armed_for_us_ != due_us) return;  // replaced by an earlier one
    armed_for_us_ = 0;
    read_clock();
    timers_us_ = std::min(timers_us_, now_us_);
    run_due_timers();
    arm_timer();
  });
}

/// Those that are added meanwhile, for now or earlier, wait for the next turn.
void AsioReactor::run_due_timers() {
  const TimerId first_new = next_timer_;
  while (!timers_.empty() && timers_.begin()->first.first <= now_us_ &&
         timers_.begin()->first.second < first_new) {
    auto node = timers_.extract(timers_.begin());
    timer_due_us_.erase(node.key().second);
    node.mapped()();
  }
}

void AsioReactor::run_turn_end() {
  while (!turn_end_.empty()) {
    // Two vectors that are swapped keep their memory; callbacks may add others, which run in the
    // same turn end.
    turn_end_running_.swap(turn_end_);
    for (auto& callback : turn_end_running_) callback();
    turn_end_running_.clear();
  }
}

void AsioReactor::run() {
  bool may_have_more = false;  // handlers that are ready already
  base::MonotonicUs ended_us = 0;
  while (!stopped_.load(std::memory_order_relaxed)) {
    // When the loop has slept nobody knows when its first handler began: that reads the clock, or
    // has no need of it.
    is_late_ = true;
    // run_one() blocks in epoll when nothing is ready.
    const bool has_slept = !may_have_more || context_.poll_one() == 0;
    if (has_slept) context_.run_one();
    read_clock();
    may_have_more = true;
    for (int i = 1; i < kHandlersPerTurnMax && may_have_more; ++i) {
      may_have_more = context_.poll_one() != 0;
      if (may_have_more && monotonic_now_us() - now_us_ > kTurnUsMax) break;
    }
    const base::MonotonicUs began_us = has_slept ? std::min(now_us_, timers_us_) : ended_us;
    timers_us_ = INT64_MAX;
    run_turn_end();
    if (watch_ == nullptr) {
      // Without a watch nobody needs the begin of a turn, and run_one() is as good as poll_one().
      may_have_more = false;
      continue;
    }
    ended_us = monotonic_now_us();
    busy_us_ += ended_us - began_us;
    watch_->turn_ended(began_us, ended_us);
  }
}

void AsioReactor::run_until(const std::function<bool()>& done) {
  run_turn_end();
  while (!done()) {
    is_late_ = true;
    context_.run_one();
    read_clock();
    run_turn_end();
  }
}

// A post, so that a loop that sleeps wakes up.
void AsioReactor::stop() {
  post_from_any_thread([this] { stopped_.store(true, std::memory_order_relaxed); });
}

}  // namespace tetrad::server
