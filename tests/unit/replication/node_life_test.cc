// SPDX-License-Identifier: Apache-2.0
// How a node's last life ended.
#include "replication/membership/node_life.h"

#include <catch2/catch.hpp>

#include "base/random.h"
#include "storage/engine/memory_store.h"
#include "tests/support/manual_reactor.h"

namespace tetrad::replication {
namespace {

const MachineStart kFirst{"boot-1", 7}, kSecond{"boot-2", 7}, kElsewhere{"boot-1", 8};

struct Lives {
  tests::ManualReactor reactor;
  std::shared_ptr<storage::MemoryDisk> disk = std::make_shared<storage::MemoryDisk>();
  std::unique_ptr<storage::LocalLog> log = storage::make_memory_local_log(disk, reactor);

  LastEnd begin(const MachineStart& now) {
    const auto kept = load_lives(*log);
    REQUIRE(kept.has_value());
    const LastEnd end = end_of(kept->last, kept->clean_mark, now);
    life = next_life(kept->last, end, now);
    write(begin_life(life));
    return end;
  }
  void write(std::vector<storage::LocalLog::Operation> batch) {
    bool done = false;
    log->write(std::move(batch), true, [&](const auto& r) { done = r.has_value(); });
    reactor.run_until_idle();
    REQUIRE(done);
  }
  void end() { write(end_life(life)); }

  NodeLife life;
};

}  // namespace

TEST_CASE("a node that was stopped, or killed on the same machine, has lost nothing") {
  Lives lives;
  CHECK(lives.begin(kFirst) == LastEnd::kUnknown);
  CHECK(lives.life.start_number == 1);
  lives.end();
  CHECK(lives.begin(kSecond) == LastEnd::kClean);
  CHECK(lives.life.start_number == 2);
  CHECK(lives.begin(kSecond) == LastEnd::kKilled);
  CHECK(lives.begin(kSecond) == LastEnd::kKilled);
  lives.end();
  CHECK(lives.begin(kElsewhere) == LastEnd::kClean);
  CHECK(lives.life.start_number == 5);
}

TEST_CASE("a start of the machine, or of its mount, without a clean mark is a power cut") {
  Lives lives;
  lives.begin(kFirst);
  CHECK(lives.begin(kSecond) == LastEnd::kCut);
  // Killed since: whether that life has noted what it lacked is not known.
  CHECK(lives.begin(kSecond) == LastEnd::kCut);
  lives.end();
  CHECK(lives.begin(kSecond) == LastEnd::kClean);
  CHECK(lives.begin(kSecond) == LastEnd::kKilled);
  CHECK(lives.begin(kFirst) == LastEnd::kCut);
  lives.end();
  lives.begin(kFirst);
  CHECK(lives.begin(kElsewhere) == LastEnd::kCut);
}

TEST_CASE("a machine that does not name its starts has been started anew each time") {
  Lives lives;
  lives.begin({"", 7});
  CHECK(lives.begin({"", 7}) == LastEnd::kCut);
  lives.end();
  CHECK(lives.begin({"", 7}) == LastEnd::kClean);
}

TEST_CASE("the mark of an older life says nothing of the last one") {
  const NodeLife last{5, false, kFirst};
  CHECK(end_of(last, 4, kSecond) == LastEnd::kCut);
  CHECK(end_of(last, 5, kSecond) == LastEnd::kClean);
  CHECK(end_of(last, std::nullopt, kFirst) == LastEnd::kKilled);
}

TEST_CASE("a life that was cut off is an error, as is one of another version") {
  const NodeLife life{9, true, {"boot", 3}};
  const auto read = NodeLife::decode(life.encode());
  REQUIRE(read.has_value());
  CHECK(read->start_number == 9);
  CHECK(read->after_cut);
  CHECK(read->machine.boot_id == "boot");
  CHECK(read->machine.device == 3);
  CHECK_FALSE(NodeLife::decode(life.encode().substr(0, 17)).has_value());
  Bytes other = life.encode();
  other[0] = 2;
  CHECK_FALSE(NodeLife::decode(other).has_value());
  other = life.encode();
  other[9] = 2;
  CHECK_FALSE(NodeLife::decode(other).has_value());
}

}  // namespace tetrad::replication
