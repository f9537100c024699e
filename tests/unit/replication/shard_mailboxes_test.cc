// SPDX-License-Identifier: Apache-2.0
#include "replication/rpc/shard_mailboxes.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/support/manual_reactor.h"

namespace tetrad::replication {

namespace {

struct Shards {
  tests::ManualReactor first, second, third;
  ShardMailboxes mailboxes{{&first, &second, &third}};
  std::vector<Bytes> received[3];

  Shards() {
    for (uint32_t i = 0; i < 3; ++i)
      mailboxes.deliver_to(
          i, [this, i](ShardMessage message) { received[i].push_back(std::move(message.bytes)); });
  }
};

/// A loop of its own thread that runs what is posted, and the turn's end after it.
class ThreadLoop final : public base::Reactor {
 public:
  base::MonotonicUs now_us() const override { return 0; }
  int64_t wall_time_us() const override { return 0; }
  int64_t boot_time_us() const override { return 0; }
  void post(base::Callback callback) override { post_from_any_thread(std::move(callback)); }
  void post_from_any_thread(base::Callback callback) override {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(callback));
      ++wakes;
    }
    wake_.notify_one();
  }
  void at_turn_end(base::Callback callback) override { turn_end_.push_back(std::move(callback)); }
  TimerId call_at(base::MonotonicUs, base::Callback) override { return 1; }
  void cancel(TimerId) override {}

  void run(const std::atomic<bool>& done) {
    while (!done) {
      std::deque<base::Callback> now;
      {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, std::chrono::milliseconds(1), [this] { return !posted_.empty(); });
        now.swap(posted_);
      }
      for (auto& callback : now) callback();
      for (auto& callback : std::exchange(turn_end_, {})) callback();
    }
  }
  uint64_t wakes = 0;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<base::Callback> posted_;
  std::vector<base::Callback> turn_end_;
};

}  // namespace

TEST_CASE("messages to another shard leave at the turn's end and arrive in order") {
  Shards shards;
  shards.mailboxes.send(0, 1, Bytes("a"));
  shards.mailboxes.send(0, 2, Bytes("b"));
  shards.mailboxes.send(0, 1, Bytes("c"));
  shards.second.run_until_idle();
  CHECK(shards.received[1].empty());  // the turn of the first has not ended
  shards.first.run_until_idle();
  shards.second.run_until_idle();
  CHECK(shards.received[1] == std::vector<Bytes>{"a", "c"});
  CHECK(shards.received[2].empty());
  shards.third.run_until_idle();
  CHECK(shards.received[2] == std::vector<Bytes>{"b"});
}

TEST_CASE("a shard takes many messages in several steps, and answers in the turn they came") {
  Shards shards;
  shards.mailboxes.deliver_to(1, [&](ShardMessage message) {
    shards.received[1].push_back(message.bytes);
    shards.mailboxes.send(1, 0, "re: " + message.bytes);
  });
  for (int i = 0; i < 1000; ++i) shards.mailboxes.send(0, 1, std::to_string(i));
  shards.first.run_until_idle();
  CHECK(shards.second.run_turn());
  CHECK(shards.received[1].size() < 1000);  // other work comes in between
  shards.first.run_turn();
  CHECK(shards.received[0].size() == shards.received[1].size());
  shards.second.run_until_idle();
  shards.first.run_until_idle();
  REQUIRE(shards.received[0].size() == 1000);
  for (int i = 0; i < 1000; ++i)
    CHECK(shards.received[0][static_cast<size_t>(i)] == "re: " + std::to_string(i));
}

TEST_CASE("what nobody takes, or what is too much, is dropped") {
  Shards shards;
  shards.mailboxes.deliver_to(2, nullptr);
  shards.mailboxes.send(0, 2, Bytes("x"));
  shards.first.run_until_idle();
  shards.third.run_until_idle();
  const Bytes large(100 << 20, 'x');
  for (int turn = 0; turn < 4; ++turn) {
    shards.mailboxes.send(0, 1, large);
    shards.first.run_until_idle();
  }
  shards.second.run_until_idle();
  CHECK(shards.received[1].size() == 2);
  shards.mailboxes.send(0, 1, Bytes("y"));
  shards.first.run_until_idle();
  shards.second.run_until_idle();
  CHECK(shards.received[1].size() == 3);
}

TEST_CASE("two threads hand over to each other without losing or reordering anything") {
  constexpr int kRounds = 20'000;
  ThreadLoop loops[2];
  ShardMailboxes mailboxes({&loops[0], &loops[1]});
  std::atomic<bool> done = false;
  int next[2] = {0, 0};
  bool in_order = true;
  mailboxes.deliver_to(1, [&](ShardMessage message) {
    in_order = in_order && message.bytes == std::to_string(next[1]++);
    mailboxes.send(1, 0, std::move(message));
  });
  mailboxes.deliver_to(0, [&](ShardMessage message) {
    in_order = in_order && message.bytes == std::to_string(next[0]++);
    if (next[0] == kRounds) done = true;
  });
  loops[0].post([&] {
    for (int i = 0; i < kRounds; ++i) mailboxes.send(0, 1, std::to_string(i));
  });
  std::thread other([&] { loops[1].run(done); });
  loops[0].run(done);
  other.join();
  CHECK(next[0] == kRounds);
  CHECK(in_order);
  // One wake-up for many messages.
  CHECK(loops[0].wakes + loops[1].wakes < kRounds / 10);
}

}  // namespace tetrad::replication
