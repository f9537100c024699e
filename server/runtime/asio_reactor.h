// SPDX-License-Identifier: Apache-2.0
// The Reactor of a real shard: one thread, one Asio io_context (epoll). A turn runs what is ready,
// then the callbacks of the turn's end: that is where store writes, peer messages and replies leave
// together.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/reactor.h"
#include "server/runtime/stall_watch.h"

namespace tetrad::server {

/// The clock of AsioReactor and of its deadlines, read now. Any thread.
base::MonotonicUs monotonic_now_us();
/// The wall clock, microseconds since 1970.
int64_t wall_now_us();

/// The event loop of one shard over Asio. Belongs to the thread that runs it; only
/// post_from_any_thread() may be called from others.
class AsioReactor final : public base::Reactor {
 public:
  AsioReactor();
  ~AsioReactor() override;

  base::MonotonicUs now_us() const override;
  int64_t wall_time_us() const override;
  /// Read at each call: the thread may have been off its processor since the turn began, and a
  /// write must not be stamped below what another node has answered meanwhile.
  int64_t boot_time_us() const override;
  void post(base::Callback callback) override;
  void post_from_any_thread(base::Callback callback) override;
  void at_turn_end(base::Callback callback) override;
  TimerId call_at(base::MonotonicUs at_us, base::Callback callback) override;
  void cancel(TimerId timer) override;

  boost::asio::io_context& context() { return context_; }
  /// Gets the length of each turn; null: none. To be set before run(), or on the shard's thread.
  void set_watch(StallWatch* watch) { watch_ = watch; }
  /// How long the turns have taken in all, while there was a watch. On the shard's thread.
  int64_t busy_us() const { return busy_us_; }
  /// Runs turns until stop(); call it on the shard's thread.
  void run();
  /// Runs turns until `done` holds, before run(): for what a start waits for.
  void run_until(const std::function<bool()>& done);
  /// Ends run() after the current turn. From any thread.
  void stop();

 private:
  /// Until no callback is left: one may add others.
  void run_turn_end();
  /// Arms timer_ for the earliest due time, unless it is armed for one at least as early.
  void arm_timer();
  // All that are due now, in the order of their time; those that they add wait for the next turn.
  void run_due_timers();

  boost::asio::io_context context_{1};
  // Keeps run() from ending when nothing is pending.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer timer_;
  base::MonotonicUs armed_for_us_ = 0;  // 0: not armed
  // Timers by due time; one Asio timer stands for the earliest of them.
  std::map<std::pair<base::MonotonicUs, TimerId>, base::Callback> timers_;
  std::unordered_map<TimerId, base::MonotonicUs> timer_due_us_;
  TimerId next_timer_ = 1;
  // What was asked for the end of this turn, and what runs now.
  std::vector<base::Callback> turn_end_, turn_end_running_;
  // Once a turn, when the first handler asks.
  void read_clock() const;

  // What the clock said in this turn; late: it is read when the first handler asks.
  mutable base::MonotonicUs now_us_ = 0;
  mutable bool is_late_ = false;
  StallWatch* watch_ = nullptr;
  int64_t busy_us_ = 0;
  base::MonotonicUs timers_us_ = INT64_MAX;  // when this turn's timers began
  std::atomic<bool> stopped_{false};
};

}  // namespace tetrad::server
