// SPDX-License-Identifier: Apache-2.0
// What reads find in the block cache is counted once, on whatever thread they end.
#include "storage/engine/block_reads.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

/// Each read of the disk on a thread of its own.
class OwnThreads final : public base::IoPool {
 public:
  void run(base::Reactor& reactor, base::IoDuty duty, uint32_t lane, base::Callback work,
           base::Callback done) override {
    inline_.run(reactor, duty, lane, std::move(work), std::move(done));
  }
  void read(base::Reactor& reactor, base::Deadline deadline, base::Callback work,
            ReadDone done) override {
    inline_.read(
        reactor, deadline,
        [work = std::move(work)]() mutable { std::thread(std::exchange(work, nullptr)).join(); },
        std::move(done));
  }

 private:
  tests::InlineIoPool inline_;
};

struct Counted {
  uint64_t hits, misses;
  bool operator==(const Counted&) const = default;
};

/// What is counted while `work` runs.
template <class Work>
Counted counted(StoreRig& rig, Work work) {
  const StoreStatistics before = rig.store->statistics();
  work();
  const StoreStatistics after = rig.store->statistics();
  return {after.block_cache_hits - before.block_cache_hits,
          after.block_cache_misses - before.block_cache_misses};
}

ReadCommand row_read(BytesView clustering_key) {
  ReadCommand read = partition_read(1, "p");
  read.rows.emplace_back(clustering_key);
  return read;
}

void check_a_row(StoreRig& rig) {
  REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(1, "value"))));
  const auto read = [&] { CHECK(rig.read_keys(row_read("a")) == "p/a"); };
  CHECK(counted(rig, read) == Counted{0, 0});  // in the memtable
  REQUIRE(rig.flush());
  // Of a file of level 0 the index and the filter are pinned.
  CHECK(counted(rig, read) == Counted{0, 1});
  CHECK(counted(rig, read) == Counted{1, 0});
  CHECK(counted(rig, [&] { REQUIRE(rig.read_here(row_read("a"))); }) == Counted{1, 0});
}

}  // namespace

TEST_CASE("a read that misses the block cache counts one miss, and a hit when it comes again") {
  StoreRig rig(rocks_factory());
  check_a_row(rig);
}

TEST_CASE("what a reader's thread finds in the block cache counts as what the loop finds") {
  OwnThreads threads;
  StoreRig rig(rocks_factory());
  rig.close();
  rig.store = *rig.factory->open(rig.directory, rig.reactor, threads);
  check_a_row(rig);
  rig.crash();
}

TEST_CASE("blocks that are read ahead count as misses, those of exports not at all") {
  StoreOptions options = small_options();
  options.block_cache_bytes = 16 << 20;
  StoreRig rig(rocks_factory(options));
  const std::string value(1000, 'v');
  for (int i = 0; i < 4000; ++i)
    REQUIRE(rig.apply(row_mutation(1, "p", fmt::format("{:04}", i), inserted(1, value))));
  REQUIRE(rig.flush());
  REQUIRE(rig.compact());
  const Counted exported =
      counted(rig, [&] { REQUIRE(rig.export_range(RingRange(), "", 1 << 20)); });
  CHECK(exported == Counted{0, 0});

  ReadCommand all = range_read();
  all.count_only = true;
  const auto count = [&] { CHECK(rig.read(all)->live_row_count == 4000); };
  const Counted first = counted(rig, count), second = counted(rig, count);
  // Rows of 1 kB in blocks of 8 KiB.
  CHECK((first.misses > 450 && first.misses < 700));
  CHECK(second.misses == 0);
  CHECK(second.hits == first.hits + first.misses);
}

TEST_CASE("the rates of the block cache are those of the last note_time()") {
  StoreRig rig(rocks_factory());
  const base::MonotonicUs opened_us = rig.reactor.now_us();
  REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(1, "value"))));
  REQUIRE(rig.flush());
  for (int i = 0; i < 100; ++i) REQUIRE(rig.read(row_read("a")));
  CHECK(rig.store->statistics().block_cache_requests_per_s == 0);
  rig.reactor.advance_us(10'000'000);
  rig.store->note_time(kNow_s);
  const double passed_s = static_cast<double>(rig.reactor.now_us() - opened_us) / 1e6;
  const StoreStatistics statistics = rig.store->statistics();
  CHECK(statistics.block_cache_requests_per_s == Approx(100 / passed_s));
  CHECK(statistics.block_cache_hits_per_s == Approx(99 / passed_s));
}

}  // namespace tetrad::storage
