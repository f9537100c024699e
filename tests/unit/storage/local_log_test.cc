// SPDX-License-Identifier: Apache-2.0
// The contract of LocalLog on both engines.
#include "storage/engine/local_log.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "storage/engine/local_log_front.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

namespace fs = std::filesystem;

struct LogRig {
  tests::ManualReactor reactor;
  tests::InlineIoPool pool;
  fs::path directory;
  std::shared_ptr<MemoryDisk> disk;  // set: the model
  std::unique_ptr<LocalLog> log;

  explicit LogRig(bool memory) {
    static int number = 0;
    if (memory) disk = std::make_shared<MemoryDisk>();
    directory = fs::temp_directory_path() /
                ("tetrad-log-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number));
    fs::remove_all(directory);
    open();
  }
  ~LogRig() {
    crash();
    std::error_code ignored;
    fs::remove_all(directory, ignored);
  }
  void open() {
    if (disk != nullptr) {
      log = make_memory_local_log(disk, reactor);
      return;
    }
    auto opened = open_rocks_local_log(directory, reactor, pool);
    if (!opened) FAIL(opened.error().message);
    log = std::move(*opened);
  }
  void crash() {
    log.reset();
    pool.drop_all();
    reactor.drop_all();
  }
  Result<void> wait(const std::function<void(LocalLog::DoneCallback)>& start) {
    std::optional<Result<void>> answer;
    start([&](Result<void> r) { answer = std::move(r); });
    REQUIRE(reactor.run_until([&] { return answer.has_value(); }));
    return *answer;
  }
  Result<void> write(std::vector<LocalLog::Operation> batch, bool sync = true) {
    return wait([&](LocalLog::DoneCallback done) { log->write(batch, sync, std::move(done)); });
  }
  std::string all(BytesView start = "", BytesView end = "~", size_t limit = 100) {
    std::string text;
    const auto pairs = log->scan(start, end, limit);
    for (const auto& [key, value] : *pairs) text += key + "=" + value + " ";
    return text;
  }
};

TEST_CASE("a local log keeps batches in order through restarts") {
  for (const bool memory : {true, false}) {
    LogRig rig(memory);
    REQUIRE(rig.write({{"a", "1"}, {"b", "2"}, {"c", "3"}}).has_value());
    REQUIRE(rig.write({{"b", std::nullopt}, {"a", "4"}}, false).has_value());
    CHECK(rig.all() == "a=4 c=3 ");
    CHECK(*rig.log->get("a") == "4");
    CHECK(*rig.log->get("b") == std::nullopt);
    CHECK(rig.all("b") == "c=3 ");
    CHECK(rig.all("", "c") == "a=4 ");
    CHECK(rig.all("", "~", 1) == "a=4 ");
    rig.crash();
    rig.open();
    CHECK(rig.all() == "a=4 c=3 ");
    REQUIRE(rig.log->close().has_value());
    rig.crash();
    rig.open();
    CHECK(rig.all() == "a=4 c=3 ");
  }
}

TEST_CASE("calls made together are done in their order, erasures between writes too") {
  for (const bool memory : {true, false}) {
    LogRig rig(memory);
    std::string order;
    const auto note = [&](char c) { return [&order, c](Result<void> r) { order += r ? c : '!'; }; };
    rig.log->write({{"k1", "old"}, {"k2", "old"}, {"x", "old"}}, true, note('1'));
    rig.log->erase_range("k", "l", note('2'));
    rig.log->write({{"k2", "new"}}, true, note('3'));
    CHECK(order.empty());
    rig.reactor.run_until_idle();
    CHECK(order == "123");
    CHECK(rig.all() == "k2=new x=old ");
    REQUIRE(rig.wait([&](auto done) { rig.log->erase_range("", "~", std::move(done)); }));
    CHECK(rig.all().empty());
  }
}

TEST_CASE("a power cut drops a tail of what was not synced and nothing that was") {
  LogRig rig(true);
  base::Random random(1);
  for (int i = 0; i < 30; ++i) {
    REQUIRE(rig.write({{"synced", std::to_string(i)}}).has_value());
    REQUIRE(rig.write({{"first", std::to_string(i)}}, false).has_value());
    REQUIRE(rig.write({{"second", std::to_string(i)}}, false).has_value());
    rig.crash();
    rig.disk->lose_unsynced(random);
    rig.open();
    CHECK(*rig.log->get("synced") == std::to_string(i));
    // Never the second without the first.
    if (*rig.log->get("second") == std::to_string(i))
      CHECK(*rig.log->get("first") == std::to_string(i));
  }
}

TEST_CASE("a closed local log takes nothing, one on its way is written") {
  LogRig rig(false);
  rig.pool.hold();
  std::string order;
  rig.log->write({{"a", "1"}}, true, [&](Result<void> r) { order += r ? 'a' : '!'; });
  rig.reactor.run_turn();
  rig.log->write({{"b", "1"}}, true, [&](Result<void> r) { order += r ? 'b' : '!'; });
  REQUIRE(rig.log->close().has_value());
  CHECK(order == "ab");
  rig.log->write({{"c", "1"}}, true, [&](Result<void> r) { order += r ? 'c' : '!'; });
  CHECK(order == "ab!");
  rig.pool.release();
  rig.reactor.run_until_idle();
  rig.crash();
  rig.open();
  CHECK(rig.all() == "a=1 b=1 ");
}

TEST_CASE("a local log of another format is refused") {
  LogRig rig(false);
  REQUIRE(rig.log->close().has_value());
  rig.crash();
  { std::ofstream(rig.directory / "TETRAD_FORMAT") << "tetrad store format 1\n"; }
  const auto opened = open_rocks_local_log(rig.directory, rig.reactor, rig.pool);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().code == ErrorCode::kCorruption);
  { std::ofstream(rig.directory / "TETRAD_FORMAT") << "tetrad local log format 1\n"; }
  rig.open();
}

TEST_CASE("another shard writes through a front, a turn at a time") {
  LogRig rig(true);
  tests::ManualReactor shard;
  auto front = make_local_log_front(*rig.log, rig.reactor, shard);
  int written = 0;
  const auto done = [&](const Result<void>& result) { written += result ? 1 : 100; };
  front->write({{"a", "1"}}, false, done);
  front->write({{"b", "2"}, {"a", std::nullopt}}, true, done);
  rig.reactor.run_until_idle();
  CHECK_FALSE(*front->get("b"));  // the shard's turn has not ended
  shard.run_until_idle();
  rig.reactor.run_until_idle();
  CHECK(written == 0);  // the answer comes to the shard's own thread
  shard.run_until_idle();
  CHECK(written == 2);
  CHECK(front->get("b")->value() == "2");
  CHECK_FALSE(*front->get("a"));

  front->write({{"c", "3"}}, false, done);
  front->erase_range("a", "z", done);
  shard.run_until_idle();
  rig.reactor.run_until_idle();
  shard.run_until_idle();
  CHECK(written == 4);
  CHECK(front->scan("a", "z", 10)->empty());
}

}  // namespace
}  // namespace tetrad::storage
