// SPDX-License-Identifier: Apache-2.0
// Coroutines: order, loops without stack, values that come once, and the end of what is suspended.
#include <stdexcept>

#include <catch2/catch.hpp>

#include "base/sleep.h"
#include "base/task_group.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::base {
namespace {

using tests::ManualReactor;

/// Counts how many are alive.
struct Alive {
  explicit Alive(int& c) : count(&c) { ++*count; }
  Alive(const Alive& other) : count(other.count) { ++*count; }
  ~Alive() { --*count; }
  Alive& operator=(const Alive&) = delete;
  int* count;
};

Task<int> give(int value) { co_return value; }

Task<uintptr_t> give_stack() { co_return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

Task<void> add_many(int count, int64_t& sum, int& moved) {
  const uintptr_t first = co_await give_stack();
  for (int i = 0; i < count; ++i) {
    const int value = co_await give(i);
    sum += value;
    const uintptr_t now = co_await give_stack();
    if (now != first) ++moved;
  }
}

TEST_CASE("a million awaits that complete at once need no stack") {
  int64_t sum = 0;
  int moved = 0;
  TaskGroup group;
  group.spawn(add_many(1'000'000, sum, moved));
  CHECK(moved == 0);
  CHECK(group.running_count() == 0);
  CHECK(sum == 499'999'500'000);
}

Task<int> count_down(ManualReactor& reactor, int left) {
  if (left == 0) {
    co_await sleep_for(reactor, 10);
    co_return 0;
  }
  const int below = co_await count_down(reactor, left - 1);
  co_return below + 1;
}

Task<void> keep_int(Task<int> task, int& into) { into = co_await task; }

TEST_CASE("a chain of tasks goes on from its innermost suspension") {
  ManualReactor reactor;
  int result = -1;
  TaskGroup group;
  group.spawn(keep_int(count_down(reactor, 100), result));
  CHECK(group.running_count() == 1);
  CHECK(result == -1);
  reactor.advance_us(9);
  CHECK(result == -1);
  reactor.advance_us(1);
  CHECK(result == 100);
  CHECK(group.running_count() == 0);
  CHECK(reactor.timer_count() == 0);
}

Task<int> throw_late(ManualReactor& reactor) {
  co_await sleep_for(reactor, 1);
  throw std::runtime_error("late");
}

Task<void> catch_it(ManualReactor& reactor, std::string& said) {
  try {
    const int never = co_await throw_late(reactor);
    said = std::to_string(never);
  } catch (const std::runtime_error& e) {
    said = e.what();
  }
}

TEST_CASE("an exception goes to the awaiter") {
  ManualReactor reactor;
  std::string said;
  TaskGroup group;
  group.spawn(catch_it(reactor, said));
  reactor.advance_us(1);
  CHECK(said == "late");
}

Task<void> sleeper(ManualReactor& reactor, Alive, int64_t us, int& woken) {
  co_await sleep_for(reactor, us);
  ++woken;
}

Task<void> outer_sleeper(ManualReactor& reactor, Alive alive, int& woken) {
  co_await sleeper(reactor, alive, 1000, woken);
  ++woken;
}

TEST_CASE("a group destroys what still sleeps, frame by frame, and its timers with it") {
  ManualReactor reactor;
  int alive = 0, woken = 0;
  {
    TaskGroup group;
    for (int i = 0; i < 50; ++i) group.spawn(outer_sleeper(reactor, Alive(alive), woken));
    group.spawn(sleeper(reactor, Alive(alive), 5, woken));
    CHECK(group.running_count() == 51);
    reactor.advance_us(5);
    CHECK(woken == 1);
    CHECK(group.running_count() == 50);
    CHECK(alive > 0);
  }
  CHECK(alive == 0);
  CHECK(reactor.timer_count() == 0);
  reactor.advance_us(5000);
  CHECK(woken == 1);
}

TEST_CASE("a group can be emptied and used again") {
  ManualReactor reactor;
  int alive = 0, woken = 0;
  TaskGroup group;
  group.spawn(sleeper(reactor, Alive(alive), 5, woken));
  group.destroy_all();
  CHECK(alive == 0);
  CHECK(group.running_count() == 0);
  group.spawn(sleeper(reactor, Alive(alive), 5, woken));
  reactor.advance_us(5);
  CHECK(woken == 1);
  CHECK(alive == 0);
}

TEST_CASE("a task that is never awaited does not start") {
  ManualReactor reactor;
  int alive = 0, woken = 0;
  {
    const Task<void> task = sleeper(reactor, Alive(alive), 5, woken);
    CHECK(alive > 0);
    CHECK(reactor.timer_count() == 0);
  }
  CHECK(alive == 0);
}

Task<void> wait_for(OneShot<int>& shot, int& into) { into = co_await shot; }

Task<void> own_and_wait(std::optional<OneShot<int>::Setter>& setter, int& into) {
  OneShot<int> shot;
  setter.emplace(shot.setter());
  into = co_await shot;
}

TEST_CASE("a value arrives once: before the waiter, after it, or after its end") {
  int got = 0;
  TaskGroup group;
  SECTION("before") {
    OneShot<int> shot;
    shot.setter().set(1);
    shot.setter().set(2);  // ignored
    CHECK(shot.setter().is_set());
    group.spawn(wait_for(shot, got));
    CHECK(got == 1);
  }
  SECTION("after") {
    OneShot<int> shot;
    const auto setter = shot.setter();
    group.spawn(wait_for(shot, got));
    CHECK(got == 0);
    setter.set(3);
    CHECK(got == 3);
    setter.set(4);
    CHECK(got == 3);
  }
  SECTION("after the waiter is gone") {
    std::optional<OneShot<int>::Setter> setter;
    group.spawn(own_and_wait(setter, got));
    REQUIRE(setter);
    group.destroy_all();
    setter->set(5);
    CHECK(got == 0);
  }
  SECTION("never") {
    std::optional<OneShot<int>::Setter> setter;
    group.spawn(own_and_wait(setter, got));
    setter.reset();
    CHECK(group.running_count() == 1);
  }
}

Task<void> spawn_more(TaskGroup& group, ManualReactor& reactor, int left, int& ran) {
  ++ran;
  if (left > 0) group.spawn(spawn_more(group, reactor, left - 1, ran));
  co_await sleep_for(reactor, left);
}

TEST_CASE("a task may spawn others into its own group") {
  ManualReactor reactor;
  int ran = 0;
  TaskGroup group;
  group.spawn(spawn_more(group, reactor, 100, ran));
  CHECK(ran == 101);
  CHECK(group.running_count() == 101);
  reactor.advance_us(50);
  CHECK(group.running_count() == 50);
  reactor.advance_us(50);
  CHECK(group.running_count() == 0);
}

}  // namespace
}  // namespace tetrad::base
