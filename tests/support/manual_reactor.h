// SPDX-License-Identifier: Apache-2.0
// A reactor for unit tests: one thread, time moves only when the test says so. And an I/O pool that
// runs its work inline as a later event of that reactor.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/io_pool.h"
#include "base/reactor.h"

namespace tetrad::tests {

class ManualReactor final : public base::Reactor {
 public:
  /// 2023-11-14 22:13:20 UTC, so that wall-clock arithmetic of tests is readable.
  static constexpr int64_t kWallStartUs = 1'700'000'000'000'000;

  base::MonotonicUs now_us() const override { return now_us_; }
  int64_t wall_time_us() const override { return wall_offset_us_ + now_us_; }
  int64_t boot_time_us() const override { return now_us_; }
  void post(base::Callback callback) override { posted_.push_back(std::move(callback)); }
  void post_from_any_thread(base::Callback callback) override {
    const std::lock_guard lock(mutex_);
    foreign_.push_back(std::move(callback));
  }
  void at_turn_end(base::Callback callback) override { turn_end_.push_back(std::move(callback)); }
  TimerId call_at(base::MonotonicUs at_us, base::Callback callback) override {
    const TimerId id = next_timer_++;
    timers_.emplace(std::pair(at_us, id), std::move(callback));
    timer_times_.emplace(id, at_us);
    return id;
  }
  void cancel(TimerId timer) override {
    const auto found = timer_times_.find(timer);
    if (found == timer_times_.end()) return;
    timers_.erase(std::pair(found->second, timer));
    timer_times_.erase(found);
  }

  void set_wall_time_us(int64_t wall_us) { wall_offset_us_ = wall_us - now_us_; }

  /// One turn: what is posted and due now, then the turn's end. False when nothing ran.
  bool run_turn() {
    take_foreign();
    bool ran = false;
    for (auto& callback : std::exchange(posted_, {})) {
      callback();
      ran = true;
    }
    while (!timers_.empty() && timers_.begin()->first.first <= now_us_) {
      auto timer = timers_.extract(timers_.begin());
      timer_times_.erase(timer.key().second);
      timer.mapped()();
      ran = true;
    }
    while (!turn_end_.empty()) {
      for (auto& callback : std::exchange(turn_end_, {})) callback();
      ran = true;
    }
    return ran;
  }

  /// Turns until nothing is left to do at this point of time.
  void run_until_idle() {
    while (run_turn()) {
    }
  }

  /// Moves time forward by `us`, stopping at every timer on the way.
  void advance_us(int64_t us) {
    const base::MonotonicUs until = now_us_ + us;
    run_until_idle();
    while (!timers_.empty() && timers_.begin()->first.first <= until) {
      now_us_ = std::max(now_us_, timers_.begin()->first.first);
      run_until_idle();
    }
    now_us_ = until;
    run_until_idle();
  }

  /// Runs, and moves time from timer to timer, until `condition` holds. False when nothing is left
  /// that could make it so, or `at_most_us` of manual time have passed.
  bool run_until(const std::function<bool()>& condition, int64_t at_most_us = 60'000'000) {
    const base::MonotonicUs until = now_us_ + at_most_us;
    for (;;) {
      if (condition()) return true;
      if (run_turn()) continue;
      if (timers_.empty() || timers_.begin()->first.first > until) return condition();
      now_us_ = std::max(now_us_, timers_.begin()->first.first);
    }
  }

  size_t timer_count() const { return timers_.size(); }
  /// Drops everything that waits: a crash.
  void drop_all() {
    take_foreign();
    posted_.clear();
    turn_end_.clear();
    timers_.clear();
    timer_times_.clear();
  }

 private:
  void take_foreign() {
    const std::lock_guard lock(mutex_);
    for (auto& callback : foreign_) posted_.push_back(std::move(callback));
    foreign_.clear();
  }

  base::MonotonicUs now_us_ = 1'000'000;
  int64_t wall_offset_us_ = kWallStartUs - 1'000'000;
  TimerId next_timer_ = 1;
  std::deque<base::Callback> posted_;
  std::vector<base::Callback> turn_end_;
  std::map<std::pair<base::MonotonicUs, TimerId>, base::Callback> timers_;
  std::map<TimerId, base::MonotonicUs> timer_times_;
  std::mutex mutex_;
  std::vector<base::Callback> foreign_;
};

/// Runs work on the reactor's own thread as a later event; calls keep their order. A test may hold
/// everything back for a while.
class InlineIoPool final : public base::IoPool {
 public:
  void run(base::Reactor& reactor, base::IoDuty, uint32_t, base::Callback work,
           base::Callback done) override {
    take({&reactor, std::move(work), std::move(done)});
  }
  void read(base::Reactor& reactor, base::Deadline deadline, base::Callback work,
            ReadDone done) override {
    const auto began = std::make_shared<Result<void>>();
    take({&reactor,
          [&reactor, deadline, began, work = std::move(work)]() mutable {
            if (reactor.now_us() < deadline.at_us) {
              work();
            } else {
              *began = fail(ErrorCode::kTimedOut, "too late");
            }
            work = nullptr;
          },
          [began, done = std::move(done)]() mutable { done(std::move(*began)); }});
  }
  void hold() { held_ = true; }
  void release() {
    held_ = false;
    for (auto& job : std::exchange(waiting_, {})) start(std::move(job));
  }
  /// Held jobs are forgotten: a crash.
  void drop_all() { waiting_.clear(); }
  uint64_t run_count() const { return run_count_; }

 private:
  struct Job {
    base::Reactor* reactor;
    base::Callback work, done;
  };
  void take(Job job) {
    ++run_count_;
    if (held_) {
      waiting_.push_back(std::move(job));
      return;
    }
    start(std::move(job));
  }
  static void start(Job job) {
    base::Reactor& reactor = *job.reactor;
    reactor.post([work = std::move(job.work), done = std::move(job.done)]() mutable {
      work();
      done();
    });
  }
  bool held_ = false;
  uint64_t run_count_ = 0;
  std::vector<Job> waiting_;
};

}  // namespace tetrad::tests
