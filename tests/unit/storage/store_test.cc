// SPDX-License-Identifier: Apache-2.0
// The contract of Store, case by case, on both engines; what is RocksStore's alone on real files.
#include "storage/engine/store.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "storage/engine/value_merge.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

namespace fs = std::filesystem;

/// A folder of its own on the real file system, gone afterwards.
struct Folder {
  fs::path path;
  Folder() {
    static int number = 0;
    path = fs::temp_directory_path() /
           ("tetrad-store-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number));
    fs::remove_all(path);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

StoreOptions file_options() {
  StoreOptions options = small_options();
  options.in_memory_files = false;
  return options;
}

std::vector<std::shared_ptr<StoreFactory>> both() { return {memory_factory(), rocks_factory()}; }

Bytes read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}
void write_file(const fs::path& path, BytesView bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), bytes.size());
}

void fill(StoreRig& rig, int partitions, int rows, size_t value_bytes = 10) {
  for (int p = 0; p < partitions; ++p) {
    Mutation m = mutation_of(p * 1000, "p" + std::to_string(p));
    for (int r = 0; r < rows; ++r)
      m.rows.push_back({fmt::format("{:04}", r), inserted(5, Bytes(value_bytes, 'v')), true});
    REQUIRE(rig.apply(m).has_value());
  }
}

TEST_CASE("rows are read by name, by slice, backwards, and page by page") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    for (const char* ck : {"a", "b", "c", "d"})
      REQUIRE(rig.apply(row_mutation(1, "p", ck, inserted(5, ck), true)).has_value());
    ReadCommand c = partition_read(1, "p");
    CHECK(rig.read_keys(c) == "p/a p/b p/c p/d");
    c.rows = {"b", "bb", "d"};
    CHECK(rig.read_keys(c) == "p/b p/d");
    c.reversed = true;
    CHECK(rig.read_keys(c) == "p/d p/b");
    c.rows.clear();
    c.clustering_ranges = {{"a", "b"}, {"c", "\xFF"}};
    CHECK(rig.read_keys(c) == "p/d p/c p/a");
    c.reversed = false;
    c.row_limit = 2;
    const auto page = rig.read(c);
    CHECK(keys_of(*page) == "p/a p/c");
    CHECK_FALSE(page->exhausted);
    CHECK(page->complete_up_to == ReadPosition{position_of(1), "p", "c"});
    c.resume_after = page->complete_up_to;
    CHECK(rig.read_keys(c) == "p/d");
    CHECK(rig.read_keys(partition_read(2, "p")) == "");
    CHECK(rig.read_keys(partition_read(1, "q")) == "");
  }
}

TEST_CASE("a read by the name of the last row wanted is exhausted at its limit") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    REQUIRE(rig.apply(row_mutation(1, "p", "", inserted(5, "v"))).has_value());
    ReadCommand c = partition_read(1, "p");
    c.rows = {""};
    c.row_limit = 1;
    const auto result = rig.read(c);
    CHECK(keys_of(*result) == "p/");
    CHECK(result->exhausted);
  }
}

TEST_CASE("mutations of one turn become one write and are acknowledged at its end") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    int done = 0;
    for (int i = 0; i < 10; ++i)
      rig.store->apply(row_mutation(1, "p", std::to_string(i), inserted(5, "v")),
                       [&](Result<void> r) { done += r.has_value() ? 1 : 100; });
    CHECK(done == 0);
    rig.reactor.run_turn();
    CHECK(done == 10);
    CHECK(rig.read(partition_read(1, "p"))->live_row_count == 10);
  }
}

TEST_CASE("range tombstones of every bound hide what lies inside them, in both directions") {
  const std::vector<Bytes> keys = {"a", "ab", "b", "bc", "c"};
  const std::vector<Bytes> starts = {"", "a", "a\xFF", "ab", "b", "b\xFF"};
  const std::vector<Bytes> ends = {"\xFF", "a", "a\xFF", "b", "b\xFF", "c"};
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    int64_t token = 0;
    for (const Bytes& start : starts) {
      for (const Bytes& end : ends) {
        ++token;
        for (const Bytes& key : keys)
          REQUIRE(rig.apply(row_mutation(token, "p", key, inserted(5, "v"))).has_value());
        Mutation m = mutation_of(token, "p");
        m.range_tombstones.push_back({{start, end}, {5, 1}});
        REQUIRE(rig.apply(m).has_value());
        std::string forward, backward;
        for (const Bytes& key : keys) {
          if (start <= key && key < end) continue;
          forward += (forward.empty() ? "p/" : " p/") + key;
          backward = "p/" + key + (backward.empty() ? "" : " ") + backward;
        }
        ReadCommand c = partition_read(token, "p");
        CHECK(rig.read_keys(c) == forward);
        c.reversed = true;
        CHECK(rig.read_keys(c) == backward);
        // A page of one row at a time, through the tombstone.
        for (const bool reversed : {false, true}) {
          ReadCommand paged = partition_read(token, "p");
          paged.reversed = reversed;
          paged.row_limit = 1;
          std::string got;
          for (;;) {
            const auto page = rig.read(paged);
            REQUIRE(page.has_value());
            if (page->live_row_count > 0) got += (got.empty() ? "" : " ") + keys_of(*page);
            if (page->exhausted) break;
            paged.resume_after = page->complete_up_to;
          }
          CHECK(got == (reversed ? backward : forward));
        }
        // By name.
        ReadCommand named = partition_read(token, "p");
        named.rows = keys;
        CHECK(rig.read_keys(named) == forward);
      }
    }
  }
}

TEST_CASE("a row that is newer than a range tombstone stays") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    Mutation m = mutation_of(1, "p");
    m.range_tombstones.push_back({{"a", "c"}, {5, 1}});
    m.rows.push_back({"a", inserted(5, "old"), false});
    m.rows.push_back({"b", inserted(6, "new"), false});
    REQUIRE(rig.apply(m).has_value());
    CHECK(rig.read_keys(partition_read(1, "p")) == "p/b");
  }
}

TEST_CASE("ranges of the ring are read in order, with limits, without the start, with the end") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    for (int64_t token : {-5, 0, 5, 9})
      for (const char* ck : {"a", "b"})
        REQUIRE(rig.apply(row_mutation(token, "t" + std::to_string(token), ck, inserted(5, "v")))
                    .has_value());
    CHECK(rig.read_keys(range_read()) == "t-5/a t-5/b t0/a t0/b t5/a t5/b t9/a t9/b");
    CHECK(rig.read_keys(range_read({position_of(-5), position_of(5)})) == "t0/a t0/b t5/a t5/b");
    ReadCommand c = range_read();
    c.per_partition_limit = 1;
    CHECK(rig.read_keys(c) == "t-5/a t0/a t5/a t9/a");
    c = range_read();
    c.distinct_partitions = true;
    c.row_limit = 3;
    const auto page = rig.read(c);
    CHECK(keys_of(*page) == "t-5/a t0/a t5/a");
    CHECK(page->complete_up_to == ReadPosition{position_of(5), "t5", std::nullopt});
    c.resume_after = page->complete_up_to;
    CHECK(rig.read_keys(c) == "t9/a");
    CHECK(rig.read_keys(range_read({position_of(5), position_of(5)})) == "");
  }
}

TEST_CASE("a retired incarnation is gone for good, its neighbours stay") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.directory = "/tetrad/retired";
    rig.crash();
    rig.open();
    fill(rig, 20, 20);
    Mutation other = row_mutation(1, "p", "a", inserted(5, "v"));
    other.incarnation = {8};
    REQUIRE(rig.apply(other).has_value());
    REQUIRE(rig.flush().has_value());
    for (int i = 0; i < 2; ++i) {
      rig.store->retire(kTable);
      rig.reactor.run_until_idle();
    }
    const auto gone = rig.read(range_read());
    REQUIRE_FALSE(gone.has_value());
    CHECK(gone.error().code == ErrorCode::kStaleSchema);
    CHECK(rig.apply(row_mutation(1, "p", "a", inserted(9, "v"))).error().code ==
          ErrorCode::kStaleSchema);
    CHECK(rig.store->approximate_bytes(kTable, {}) == 0);
    REQUIRE(rig.compact().has_value());
    ReadCommand c = partition_read(1, "p");
    c.incarnation = {8};
    CHECK(rig.read_keys(c) == "p/a");
    rig.close();
    rig.open();
    CHECK(rig.read(range_read()).error().code == ErrorCode::kStaleSchema);
    CHECK(rig.read_keys(c) == "p/a");
    CHECK(rig.store->statistics().estimated_keys < 20);
  }
}

TEST_CASE("a mutation with a broken record is refused whole") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    Mutation m = row_mutation(1, "p", "a", inserted(5, "v"));
    m.rows.push_back({"b", "\x55zzz", false});
    CHECK(rig.apply(m).error().code == ErrorCode::kCorruption);
    CHECK(rig.read_keys(partition_read(1, "p")) == "");
    Mutation long_key = mutation_of(1, Bytes(65536, 'k'));
    CHECK(rig.apply(long_key).error().code == ErrorCode::kInvalid);
  }
}

TEST_CASE("a full write queue answers overloaded and takes writes again later") {
  StoreOptions options = small_options();
  options.write_queue_max_bytes = 10'000;
  for (const auto& factory : {memory_factory(options), rocks_factory(options)}) {
    StoreRig rig(factory);
    int taken = 0, refused = 0;
    for (int i = 0; i < 100; ++i)
      rig.store->apply(row_mutation(1, "p", std::to_string(i), inserted(5, Bytes(1000, 'v'))),
                       [&](Result<void> r) {
                         r ? ++taken : ++refused;
                         if (!r) CHECK(r.error().code == ErrorCode::kOverloaded);
                       });
    rig.reactor.run_until_idle();
    CHECK(taken + refused == 100);
    CHECK(taken >= 9);
    CHECK(taken <= 12);
    CHECK(rig.apply(row_mutation(1, "p", "z", inserted(5, "v"))).has_value());
  }
}

TEST_CASE("bucket marks rise with what is applied and survive a restart") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    rig.directory = "/tetrad/marks";
    rig.crash();
    rig.open();
    CHECK(rig.store->high_water_timestamp(kTable, position_of(1)) == kNoTimestamp);
    REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(50, "v"))).has_value());
    REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(40, "v"))).has_value());
    CHECK(rig.store->high_water_timestamp(kTable, position_of(1)) == 50);
    rig.crash();
    rig.open();
    CHECK(rig.store->high_water_timestamp(kTable, position_of(1)) == 50);
    Mutation tombstone = mutation_of(1, "p");
    tombstone.range_tombstones.push_back({{"a", "b"}, {60, 1}});
    REQUIRE(rig.apply(tombstone).has_value());
    rig.close();
    rig.open();
    CHECK(rig.store->high_water_timestamp(kTable, position_of(1)) == 60);
  }
}

TEST_CASE("a complete row of an older schema version does not wipe a newer column") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    Mutation newer = row_mutation(1, "p", "a", encoded(record_of({value_cell(2, 10, "new")})));
    newer.schema_version = {2};
    REQUIRE(rig.apply(newer).has_value());
    REQUIRE(rig.apply(row_mutation(1, "p", "a", inserted(20, "v"), true)).has_value());
    const auto result = rig.read(partition_read(1, "p"));
    CHECK(decode_row_record(result->partitions[0].rows[0].record)->cells.size() == 2);
  }
}

TEST_CASE("one row twice in one mutation is joined whatever comes first") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    Mutation m = mutation_of(1, "p");
    m.rows.push_back({"a", encoded(record_of({value_cell(2, 20, "x")})), false});
    m.rows.push_back({"a", inserted(20, "v"), true});
    REQUIRE(rig.apply(m).has_value());
    const auto result = rig.read(partition_read(1, "p"));
    CHECK(decode_row_record(result->partitions[0].rows[0].record)->cells.size() == 2);
  }
}

TEST_CASE("sizes: a fresh table is not empty, samples ascend and add up, split points are keys") {
  for (const auto& factory : both()) {
    StoreRig rig(factory);
    CHECK(rig.store->approximate_bytes(kTable, {}) == 0);
    REQUIRE(rig.apply(row_mutation(77, "x", "a", inserted(5, "v"))).has_value());
    CHECK(rig.store->approximate_bytes(kTable, {}) > 0);
    CHECK(rig.store->approximate_bytes(kTable, {position_of(76), position_of(77)}) > 0);
    CHECK(rig.store->approximate_bytes(kTable, {position_of(77), position_of(99)}) == 0);
    fill(rig, 100, 10, 1000);  // 1 MB
    for (const bool flushed : {false, true}) {
      if (flushed) REQUIRE(rig.flush().has_value());
      const auto samples = rig.sample_sizes({}, 10);
      REQUIRE(samples.has_value());
      CHECK(samples->size() >= 8);
      CHECK(samples->size() <= 12);
      uint64_t total = 0;
      for (size_t i = 0; i < samples->size(); ++i) {
        total += (*samples)[i].bytes;
        if (i > 0) CHECK((*samples)[i - 1].position < (*samples)[i].position);
        CHECK(((*samples)[i].position.token % 1000 == 0 || (*samples)[i].position.token == 77));
      }
      CHECK(total > 1'000'000);
      CHECK(total < 1'200'000);
      CHECK(samples->back().position == position_of(99'000));
    }
  }
}

TEST_CASE("samples of a small range are right although much else is in memory") {
  StoreRig rig(rocks_factory());
  fill(rig, 1000, 10, 500);  // 5 MB, one partition every thousand tokens
  for (int64_t first = 0; first < 1000; first += 50) {
    const RingRange range{position_of(first * 1000 - 1), position_of((first + 49) * 1000)};
    const auto samples = rig.sample_sizes(range, 256);
    REQUIRE(samples.has_value());
    uint64_t total = 0;
    for (const SizeSample& sample : *samples) total += sample.bytes;
    CHECK(total > 250'000);
    CHECK(total < 310'000);
  }
}

TEST_CASE("sizes of a large range come from file indexes and halve it well") {
  StoreRig rig(rocks_factory());
  fill(rig, 400, 50, 1000);  // 20 MB: more than is looked at key by key
  REQUIRE(rig.compact().has_value());
  const auto samples = rig.sample_sizes({}, 16);
  REQUIRE(samples.has_value());
  REQUIRE(samples->size() >= 8);
  uint64_t total = 0, up_to_middle = 0;
  for (const SizeSample& sample : *samples) {
    total += sample.bytes;
    if (sample.position <= position_of(200'000)) up_to_middle += sample.bytes;
    CHECK(sample.position.token % 1000 == 0);
  }
  CHECK(up_to_middle > total / 3);
  CHECK(up_to_middle < total * 2 / 3);
  CHECK(samples->back().position == position_of(399'000));
}

TEST_CASE("an export, page by page and applied elsewhere, is the same data") {
  for (const auto& factory : both()) {
    StoreRig from(factory), to(memory_factory());
    fill(from, 10, 10);
    Mutation dead = mutation_of(3000, "p3");
    dead.header = encoded(record_of({value_cell(9, 9, "static")}, {}, {4, 4}));
    dead.range_tombstones.push_back({{"0002", "0004"}, {6, 6}});
    dead.rows.push_back({"0007", encoded(record_of({}, {}, {8, 8})), false});
    REQUIRE(from.apply(dead).has_value());
    Bytes after;
    int pages = 0;
    for (;; ++pages) {
      const auto page = from.export_range({}, after, 300);
      REQUIRE(page.has_value());
      for (const Mutation& m : page->mutations) REQUIRE(to.apply(m, true).has_value());
      if (page->exhausted) break;
      after = page->next;
    }
    CHECK(pages > 5);
    ReadCommand everything = range_read();
    everything.live_only = false;
    CHECK(digest_of(*from.read(everything)) == digest_of(*to.read(everything)));
    CHECK(keys_of(*from.read(everything)) == keys_of(*to.read(everything)));
    const auto part = from.export_range({position_of(2000), position_of(4000)}, "", 1 << 20);
    CHECK(part->mutations.size() == 2);
  }
}

TEST_CASE("an unsynced tail of the model store is lost at a power cut, a synced part is not") {
  const auto disk = std::make_shared<MemoryDisk>();
  base::Random random(5);
  StoreRig rig(make_memory_store_factory(disk, small_options()));
  REQUIRE(rig.apply(row_mutation(1, "p", "synced", inserted(5, "v"))).has_value());
  rig.reactor.advance_us(200'000);
  bool lost = false, kept = false;
  for (int i = 0; i < 50 && !(lost && kept); ++i) {
    const Bytes key = "u" + std::to_string(i);
    REQUIRE(rig.apply(row_mutation(1, "p", key, inserted(5, "v"))).has_value());
    rig.crash();
    disk->lose_unsynced(random);
    rig.open();
    const std::string keys = rig.read_keys(partition_read(1, "p"));
    CHECK(keys.find("p/synced") != std::string::npos);
    (keys.find("p/" + key) == std::string::npos ? lost : kept) = true;
  }
  CHECK(lost);
  CHECK(kept);
}

TEST_CASE("a read that needs a file comes from the pool, over the state at its call") {
  Folder folder;
  StoreRig rig(rocks_factory(file_options()));
  rig.directory = folder.path;
  rig.crash();
  rig.open();
  fill(rig, 50, 20, 1000);
  REQUIRE(rig.compact().has_value());
  rig.close();
  rig.open();  // nothing is in memory now
  rig.pool.hold();
  std::optional<Result<ReadResult>> answer;
  ReadCommand c = partition_read(7000, "p7");
  rig.store->read(c, base::kNoDeadline, [&](Result<ReadResult> r) { answer = std::move(r); });
  CHECK_FALSE(answer.has_value());
  rig.store->apply(row_mutation(7000, "p7", "zzzz", inserted(9, "later")), [](Result<void>) {});
  rig.reactor.run_turn();
  rig.pool.release();
  REQUIRE(rig.comes([&] { return answer.has_value(); }));
  REQUIRE(answer->has_value());
  CHECK((*answer)->live_row_count == 20);
  // Once read, it is in memory.
  const uint64_t runs = rig.pool.run_count();
  CHECK(rig.read(c)->live_row_count == 21);
  CHECK(rig.pool.run_count() == runs);
}

TEST_CASE("a long read leaves the loop") {
  StoreRig rig(rocks_factory());
  fill(rig, 3, 3000);
  const uint64_t runs = rig.pool.run_count();
  CHECK(rig.read(range_read())->live_row_count == 9000);
  CHECK(rig.pool.run_count() == runs + 1);
}

TEST_CASE("closing while reads and writes are under way answers all of them") {
  for (const CommitLogSync sync : {CommitLogSync::kPeriodic, CommitLogSync::kGroup}) {
    Folder folder;
    StoreOptions options = file_options();
    options.sync = sync;
    StoreRig rig(rocks_factory(options));
    rig.directory = folder.path;
    rig.crash();
    rig.open();
    fill(rig, 3, 3000);
    rig.pool.hold();
    std::vector<std::string> answers;
    rig.store->read(range_read(), base::kNoDeadline, [&](Result<ReadResult> r) {
      answers.push_back(r ? "read" : r.error().message);
    });
    rig.store->apply(row_mutation(1, "x", "a", inserted(5, "v")),
                     [&](Result<void> r) { answers.push_back(r ? "written" : "lost"); });
    rig.reactor.run_turn();
    rig.store->apply(row_mutation(1, "x", "b", inserted(5, "v")),
                     [&](Result<void> r) { answers.push_back(r ? "written" : "lost"); });
    REQUIRE(rig.store->close().has_value());
    rig.store->apply(row_mutation(1, "x", "c", inserted(5, "v")),
                     [&](Result<void> r) { answers.push_back(r ? "?" : r.error().message); });
    rig.pool.release();
    rig.reactor.run_until_idle();
    std::sort(answers.begin(), answers.end());
    CHECK(answers == std::vector<std::string>{"the store is closed", "the store is closed",
                                              "written", "written"});
    rig.crash();
    rig.open();
    CHECK(rig.read_keys(partition_read(1, "x")) == "x/a x/b");
  }
}

TEST_CASE("cells expired long ago lose their value to compaction and stay otherwise") {
  StoreRig rig(rocks_factory());
  const int64_t long_ago = kNow_s - 7200, lately = kNow_s - 60;
  REQUIRE(rig.apply(row_mutation(1, "p", "a",
                                 encoded(record_of({value_cell(1, 5, "old", 10, long_ago),
                                                    value_cell(2, 5, "recent", 10, lately)}))))
              .has_value());
  REQUIRE(rig.compact().has_value());  // makes a full value of the operand, which the filter sees
  REQUIRE(rig.compact().has_value());  // in the next one
  const auto held = [&] {
    ReadCommand c = partition_read(1, "p");
    c.live_only = false;
    c.now_s = long_ago - 1;  // when both were live
    const auto result = rig.read(c);
    return Bytes(result->partitions[0].rows[0].record);
  };
  // The store asks no clock: nobody has told the time yet.
  CHECK(*decode_row_record(held()) ==
        record_of({value_cell(1, 5, "old", 10, long_ago), value_cell(2, 5, "recent", 10, lately)}));
  rig.store->note_time(kNow_s);
  REQUIRE(rig.compact().has_value());
  CHECK(*decode_row_record(held()) ==
        record_of({value_cell(1, 5, "", 10, long_ago), value_cell(2, 5, "recent", 10, lately)}));
}

// ---- corruption ----

TEST_CASE("a folder of another format or none of ours is refused and left alone") {
  Folder folder;
  StoreRig rig(rocks_factory(file_options()));
  rig.directory = folder.path;
  rig.crash();
  rig.open();
  fill(rig, 2, 2);
  rig.close();
  const fs::path file = folder.path / "TETRAD_FORMAT";
  const Bytes good = read_file(file);
  CHECK(good == "tetrad store format 2\n");
  const auto open = [&] { return rig.factory->open(rig.directory, rig.reactor, rig.pool); };
  for (size_t at = 0; at < good.size(); ++at) {
    Bytes flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    write_file(file, flipped);
    const auto opened = open();
    REQUIRE_FALSE(opened.has_value());
    CHECK((opened.error().code == ErrorCode::kCorruption ||
           opened.error().code == ErrorCode::kConfig));
  }
  write_file(file, "tetrad store format 3\n");
  CHECK(open().error().code == ErrorCode::kConfig);
  CHECK(open().error().message ==
        file.string() +
            " says format 3; this program reads formats up to 2 and leaves the folder alone");
  write_file(file, "tetrad local log format 1\n");
  CHECK(open().error().code == ErrorCode::kCorruption);
  fs::remove(file);
  CHECK(open().error().code == ErrorCode::kConfig);
  write_file(file, good);
  rig.open();
  CHECK(rig.read(range_read())->live_row_count == 4);
}

TEST_CASE("a flipped bit in a table file is an error or harmless, never a wrong answer") {
  Folder folder;
  StoreRig rig(rocks_factory(file_options()));
  rig.directory = folder.path;
  rig.crash();
  rig.open();
  fill(rig, 20, 20, 50);
  REQUIRE(rig.compact().has_value());
  const auto expected = rig.read(range_read());
  const base::Hash128 digest = digest_of(*expected);
  rig.close();
  fs::path table;
  for (const auto& entry : fs::directory_iterator(folder.path))
    if (entry.path().extension() == ".sst") table = entry.path();
  REQUIRE_FALSE(table.empty());
  const Bytes good = read_file(table);
  Folder kept;
  fs::copy(folder.path, kept.path, fs::copy_options::recursive);
  const auto restore = [&] {
    fs::remove_all(folder.path);
    fs::copy(kept.path, folder.path, fs::copy_options::recursive);
  };
  base::Random random(3);
  int refused = 0, unharmed = 0;
  for (int i = 0; i < 60; ++i) {
    restore();
    Bytes flipped = good;
    const size_t at = random.below(good.size());
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << random.below(8)));
    write_file(table, flipped);
    rig.factory = rocks_factory(file_options());  // a cache without the good blocks
    auto opened = rig.factory->open(rig.directory, rig.reactor, rig.pool);
    if (!opened) {
      CHECK(opened.error().code == ErrorCode::kCorruption);
      ++refused;
      continue;
    }
    rig.store = std::move(*opened);
    const auto result = rig.read(range_read());
    if (!result) {
      CHECK(result.error().code == ErrorCode::kCorruption);
      ++refused;
    } else {
      CHECK(digest_of(*result) == digest);
      ++unharmed;
    }
    rig.crash();
  }
  CHECK(refused > 30);
  restore();
  rig.open();
  CHECK(digest_of(*rig.read(range_read())) == digest);
}

TEST_CASE("after a failed write nothing is taken any more, reads go on") {
  Folder folder;
  StoreOptions options = file_options();
  options.write_buffer_bytes = 64 << 10;
  StoreRig rig(rocks_factory(options));
  rig.directory = folder.path;
  rig.crash();
  rig.open();
  fill(rig, 1, 5);
  // The folder disappears under it: the next memtable's log cannot be made.
  fs::rename(folder.path, folder.path.string() + ".moved");
  Result<void> last;
  for (int i = 0; i < 400 && last; ++i)
    last = rig.apply(row_mutation(9, "q", std::to_string(i), inserted(5, Bytes(1000, 'v'))));
  REQUIRE_FALSE(last.has_value());
  CHECK(last.error().code == ErrorCode::kIo);
  fs::rename(folder.path.string() + ".moved", folder.path);
  CHECK(rig.apply(row_mutation(9, "q", "again", inserted(5, "v"))).error().code == ErrorCode::kIo);
  CHECK(rig.read(partition_read(0, "p0"))->live_row_count == 5);
  rig.crash();
  rig.open();
  CHECK(rig.read(partition_read(0, "p0"))->live_row_count == 5);
}

}  // namespace
}  // namespace tetrad::storage
