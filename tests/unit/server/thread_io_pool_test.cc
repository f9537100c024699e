// SPDX-License-Identifier: Apache-2.0
// The threads of the I/O pool: none of one duty waits for another, and reads that nobody waits for
// any more are not begun.
#include "server/runtime/thread_io_pool.h"

#include <atomic>
#include <chrono>
#include <future>

#include <catch2/catch.hpp>

#include "tests/support/manual_reactor.h"

namespace tetrad::server {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

base::MonotonicUs now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Holds a thread until it is let go.
class Block {
 public:
  base::Callback work() {
    return [this] {
      began_.set_value();
      go_on_.get_future().wait();
    };
  }
  void wait_until_begun() { began_.get_future().wait(); }
  void let_go() { go_on_.set_value(); }

 private:
  std::promise<void> began_, go_on_;
};

struct Rig {
  tests::ManualReactor reactor;
  std::unique_ptr<ThreadIoPool> pool;
  std::vector<std::string> ended;

  explicit Rig(const ThreadIoPoolOptions& options = {})
      : pool(std::make_unique<ThreadIoPool>(options)) {}

  base::Callback note(std::string name) {
    return [this, name = std::move(name)] { ended.push_back(name); };
  }
  base::IoPool::ReadDone note_read(std::string name) {
    return [this, name = std::move(name)](const Result<void>& began) {
      const auto how = [&]() -> std::string {
        if (began) return "";
        return began.error().code == ErrorCode::kTimedOut ? " late" : " refused";
      };
      ended.push_back(name + how());
    };
  }
  bool comes(const std::function<bool()>& condition) {
    for (int i = 0; i < 60'000; ++i) {
      if (reactor.run_until(condition, 1'000)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
};

TEST_CASE("a long piece of maintenance holds up no log, no read and no other maintenance") {
  Rig rig({.reader_threads = 1, .maintenance_threads = 2});
  Block compaction;
  rig.pool->run(rig.reactor, base::IoDuty::kMaintenance, 1, compaction.work(), [] {});
  // Behind it in its lane.
  rig.pool->run(
      rig.reactor, base::IoDuty::kMaintenance, 1, [] {}, rig.note("behind"));
  compaction.wait_until_begun();
  rig.pool->run(
      rig.reactor, base::IoDuty::kCommit, 1, [] {}, rig.note("commit"));
  rig.pool->run(
      rig.reactor, base::IoDuty::kMaintenance, 0, [] {}, rig.note("sweep"));
  rig.pool->run(
      rig.reactor, base::IoDuty::kParse, 1, [] {}, rig.note("parse"));
  rig.pool->read(
      rig.reactor, base::kNoDeadline, [] {}, rig.note_read("read"));
  REQUIRE(rig.comes([&] { return rig.ended.size() == 4; }));
  CHECK(std::count(rig.ended.begin(), rig.ended.end(), "behind") == 0);
  compaction.let_go();
  REQUIRE(rig.comes([&] { return rig.ended.size() == 5; }));
  CHECK(rig.ended.back() == "behind");
}

TEST_CASE("a log whose disk hangs holds up no other log") {
  Rig rig;
  Block sync;
  rig.pool->run(rig.reactor, base::IoDuty::kCommit, 1, sync.work(), [] {});
  rig.pool->run(
      rig.reactor, base::IoDuty::kCommit, 1, [] {}, rig.note("1"));
  sync.wait_until_begun();
  for (uint32_t log = 2; log < 6; ++log)
    rig.pool->run(
        rig.reactor, base::IoDuty::kCommit, log, [] {}, rig.note(std::to_string(log)));
  REQUIRE(rig.comes([&] { return rig.ended.size() == 4; }));
  CHECK(std::count(rig.ended.begin(), rig.ended.end(), "1") == 0);
  sync.let_go();
  REQUIRE(rig.comes([&] { return rig.ended.size() == 5; }));
}

TEST_CASE("the earliest deadline is read first, and what is over is not read at all") {
  Rig rig({.reader_threads = 1});
  Block first;
  rig.pool->read(rig.reactor, base::kNoDeadline, first.work(), rig.note_read("first"));
  first.wait_until_begun();
  std::vector<std::string> read;  // by the one thread; looked at when all have ended
  const auto work = [&](std::string name) { return [&read, name] { read.push_back(name); }; };
  const base::MonotonicUs now = now_us();
  const auto ask = [&](const char* name, base::MonotonicUs deadline_us) {
    rig.pool->read(rig.reactor, {deadline_us}, work(name), rig.note_read(name));
  };
  ask("never", base::kNoDeadline.at_us);
  ask("hour", now + 3'600 * kSecondUs);
  ask("over", now - 1);
  ask("half an hour", now + 1'800 * kSecondUs);
  first.let_go();
  REQUIRE(rig.comes([&] { return rig.ended.size() == 5; }));
  CHECK(read == std::vector<std::string>{"half an hour", "hour", "never"});
  CHECK(rig.ended ==
        std::vector<std::string>{"first", "over late", "half an hour", "hour", "never"});
  CHECK(rig.pool->read_figures().late == 1);
}

TEST_CASE("more reads than may wait are refused at once; those that are over make room") {
  Rig rig({.reader_threads = 1, .reads_waiting_max = 3});
  Block first;
  rig.pool->read(rig.reactor, base::kNoDeadline, first.work(), rig.note_read("first"));
  first.wait_until_begun();
  const auto ask = [&](const char* name, base::Deadline deadline) {
    rig.pool->read(
        rig.reactor, deadline, [] {}, rig.note_read(name));
  };
  ask("a", base::kNoDeadline);
  ask("over", {now_us() - 1});
  ask("b", base::kNoDeadline);
  ask("c", base::kNoDeadline);
  ask("d", base::kNoDeadline);
  REQUIRE(rig.comes([&] { return rig.ended.size() == 2; }));
  CHECK(rig.ended == std::vector<std::string>{"over late", "d refused"});
  CHECK(rig.pool->read_figures().waiting == 3);
  CHECK(rig.pool->read_figures().refused == 1);
  first.let_go();
  REQUIRE(rig.comes([&] { return rig.ended.size() == 6; }));
}

TEST_CASE("what is queued runs before the pool ends") {
  std::atomic<int> ran = 0;
  Rig rig({.reader_threads = 1, .maintenance_threads = 1});
  for (int i = 0; i < 20; ++i) {
    rig.pool->read(
        rig.reactor, base::kNoDeadline, [&] { ++ran; }, [](Result<void>) {});
    rig.pool->run(
        rig.reactor, base::IoDuty::kCommit, 1, [&] { ++ran; }, [] {});
    rig.pool->run(
        rig.reactor, base::IoDuty::kMaintenance, 0, [&] { ++ran; }, [] {});
  }
  rig.pool.reset();
  CHECK(ran == 60);
}

TEST_CASE("a read that throws fails, the readers go on") {
  Rig rig({.reader_threads = 1});
  std::optional<Error> error;
  rig.pool->read(
      rig.reactor, {now_us() + kSecondUs * 60}, [] { throw std::bad_alloc(); },
      [&](const Result<void>& ran) {
        if (!ran) error = ran.error();
      });
  REQUIRE(rig.comes([&] { return error.has_value(); }));
  CHECK(error->code == ErrorCode::kServerError);
  CHECK(error->message.starts_with("a read of the disk failed inside the server: "));
  rig.pool->read(
      rig.reactor, {now_us() + kSecondUs * 60}, [] {}, rig.note_read("next"));
  CHECK(rig.comes([&] { return rig.ended.size() == 1; }));
  CHECK(rig.ended == std::vector<std::string>{"next"});
}

}  // namespace
}  // namespace tetrad::server
