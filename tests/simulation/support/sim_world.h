// SPDX-License-Identifier: Apache-2.0
// The simulated world: one thread, one queue of events, one seed. Everything of a whole cluster
// runs in here, and the same seed runs the same way again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/io_pool.h"
#include "base/random.h"
#include "base/reactor.h"

namespace tetrad::simulation {

class World {
 public:
  using EventId = std::pair<base::MonotonicUs, uint64_t>;

  explicit World(uint64_t seed) : random_(seed) {}

  base::MonotonicUs now_us() const { return now_us_; }
  base::Random& random() { return random_; }

  /// Events of one moment run in the order in which they were scheduled.
  EventId schedule(base::MonotonicUs at_us, base::Callback callback) {
    const EventId id{std::max(at_us, now_us_), next_++};
    events_.emplace(id, std::move(callback));
    return id;
  }
  void cancel(EventId id) { events_.erase(id); }

  /// Runs the next event. False when there is none.
  bool step() {
    if (events_.empty()) return false;
    auto event = events_.extract(events_.begin());
    now_us_ = event.key().first;
    ++event_count_;
    event.mapped()();
    return true;
  }
  void run_for(int64_t us) {
    const base::MonotonicUs until = now_us_ + us;
    while (!events_.empty() && events_.begin()->first.first <= until) step();
    now_us_ = until;
  }
  /// False when the condition does not hold within `at_most_us`.
  template <class Condition>
  bool run_until(Condition condition, int64_t at_most_us) {
    const base::MonotonicUs until = now_us_ + at_most_us;
    while (!condition()) {
      if (events_.empty() || events_.begin()->first.first > until) return condition();
      step();
    }
    return true;
  }
  uint64_t event_count() const { return event_count_; }
  size_t events_waiting() const { return events_.size(); }

 private:
  base::MonotonicUs now_us_ = 1'000'000;
  uint64_t next_ = 1;
  uint64_t event_count_ = 0;
  base::Random random_;
  std::map<EventId, base::Callback> events_;
};

/// The clocks of one machine, over all lives of its node: what it counts since its start, at a rate
/// of its own, and the wall clock, which may step. It may stand still for a while.
class SimClock {
 public:
  explicit SimClock(World& world) : world_(world) {}

  int64_t wall_time_us() const { return kWallStartUs + boot_time_us() + offset_us_; }
  int64_t boot_time_us() const {
    return counted_us_ + (world_.now_us() - since_us_) +
           (world_.now_us() - since_us_) * rate_ppm_ / 1'000'000;
  }
  /// How far the wall clock is ahead of the right time.
  int64_t off_us() const { return wall_time_us() - kWallStartUs - world_.now_us(); }
  /// The wall clock is ahead of what the machine counts by so much.
  void set_offset_us(int64_t offset_us) { offset_us_ = offset_us; }
  void step(int64_t us) { offset_us_ += us; }
  /// The clock is fast by so much.
  void set_rate_ppm(int64_t ppm) {
    counted_us_ = boot_time_us();
    since_us_ = world_.now_us();
    rate_ppm_ = ppm;
  }
  /// Nothing runs on this machine for so long; messages queue. `uncounted`: as a virtual machine
  /// that is paused, it does not count the time either. Answers how much it does not: the clock of
  /// a machine that stands still already never counts back.
  int64_t freeze(int64_t us, bool uncounted = false) {
    const base::MonotonicUs from_us = std::max(frozen_until_us_, world_.now_us());
    frozen_until_us_ = std::max(from_us, world_.now_us() + us);
    const int64_t lost_us = uncounted ? frozen_until_us_ - from_us : 0;
    counted_us_ -= lost_us;
    return lost_us;
  }
  base::MonotonicUs frozen_until_us() const { return frozen_until_us_; }
  bool is_frozen() const { return world_.now_us() < frozen_until_us_; }

 private:
  static constexpr int64_t kWallStartUs = 1'700'000'000'000'000;
  World& world_;
  base::MonotonicUs since_us_ = 0, frozen_until_us_ = 0;
  int64_t counted_us_ = 0, rate_ppm_ = 0, offset_us_ = 0;
};

/// One node's thread. Destroying it drops what waits, as a crash does. A turn is one event.
class SimReactor final : public base::Reactor {
 public:
  /// `clock` outlives it.
  SimReactor(World& world, const SimClock& clock) : state_(std::make_shared<State>(world, clock)) {}
  ~SimReactor() override { state_->alive = false; }

  base::MonotonicUs now_us() const override { return state_->world.now_us(); }
  int64_t wall_time_us() const override { return state_->clock.wall_time_us(); }
  int64_t boot_time_us() const override { return state_->clock.boot_time_us(); }
  void post(base::Callback callback) override { schedule(now_us(), std::move(callback)); }
  void post_from_any_thread(base::Callback callback) override { post(std::move(callback)); }
  void at_turn_end(base::Callback callback) override {
    // Asked for from outside of an event (a test's own code): the turn is an event of its own.
    if (state_->turn_end.empty() && !state_->in_turn) post([] {});
    state_->turn_end.push_back(std::move(callback));
  }
  TimerId call_at(base::MonotonicUs at_us, base::Callback callback) override {
    const TimerId id = next_timer_++;
    const auto event =
        schedule(at_us, [state = state_, id, callback = std::move(callback)]() mutable {
          if (state->timers.erase(id) == 0) return;  // cancelled while the machine stood still
          callback();
        });
    state_->timers.emplace(id, event);
    return id;
  }
  void cancel(TimerId timer) override {
    const auto found = state_->timers.find(timer);
    if (found == state_->timers.end()) return;
    state_->world.cancel(found->second);
    state_->timers.erase(found);
  }

 private:
  struct State {
    State(World& w, const SimClock& c) : world(w), clock(c) {}
    World& world;
    const SimClock& clock;
    bool alive = true;
    bool in_turn = false;
    std::vector<base::Callback> turn_end;
    std::map<TimerId, World::EventId> timers;
  };

  using StatePtr = std::shared_ptr<State>;
  static void run(const StatePtr& state, base::Callback callback) {
    if (!state->alive) return;
    if (state->clock.is_frozen()) {
      state->world.schedule(
          state->clock.frozen_until_us(),
          [state, callback = std::move(callback)]() mutable { run(state, std::move(callback)); });
      return;
    }
    state->in_turn = true;
    callback();
    while (state->alive && !state->turn_end.empty())
      for (auto& end : std::exchange(state->turn_end, {}))
        if (state->alive) end();
    state->in_turn = false;
  }
  World::EventId schedule(base::MonotonicUs at_us, base::Callback callback) {
    return state_->world.schedule(at_us,
                                  [state = state_, callback = std::move(callback)]() mutable {
                                    run(state, std::move(callback));
                                  });
  }

  StatePtr state_;
  TimerId next_timer_ = 1;
};

/// A disk's threads: the work runs as a later event, then `done` on the reactor. Each log, each
/// lane of maintenance and the readers have a queue of their own; nothing keeps order between them.
class SimIoPool final : public base::IoPool {
 public:
  explicit SimIoPool(World& world) : world_(world) {}
  void run(base::Reactor& reactor, base::IoDuty duty, uint32_t lane, base::Callback work,
           base::Callback done) override {
    int64_t at_us = some_time_later();
    if (duty != base::IoDuty::kMaintenance || lane != 0) {
      int64_t& last_us = last_us_[{duty, lane}];
      at_us = last_us = std::max(last_us, at_us);
    }
    reactor.call_at(at_us, [work = std::move(work), done = std::move(done)]() mutable {
      work();
      done();
    });
  }
  void read(base::Reactor& reactor, base::Deadline deadline, base::Callback work,
            ReadDone done) override {
    reactor.call_at(some_time_later(), [&reactor, deadline, work = std::move(work),
                                        done = std::move(done)]() mutable {
      if (reactor.now_us() >= deadline.at_us)
        return done(fail(ErrorCode::kTimedOut, "the read waited until its time was over"));
      work();
      done({});
    });
  }

 private:
  int64_t some_time_later() {
    return world_.now_us() + 50 + static_cast<int64_t>(world_.random().below(200));
  }

  World& world_;
  std::map<std::pair<base::IoDuty, uint32_t>, base::MonotonicUs> last_us_;
};

}  // namespace tetrad::simulation
