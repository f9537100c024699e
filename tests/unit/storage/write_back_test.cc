// SPDX-License-Identifier: Apache-2.0
// Rule 19: a value that a read had to join of many versions is put back as one, and never over a
// write that the read has not seen.
#include <catch2/catch.hpp>

#include "base/data_mutants.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

Mutation update(BytesView clustering_key, int64_t timestamp, BytesView value) {
  return row_mutation(1, "p", clustering_key,
                      encoded(record_of({value_cell(1, timestamp, value)})));
}

/// `count` updates of one row in as many turns: merge operands, never Put.
void update_often(StoreRig& rig, BytesView clustering_key, int count) {
  for (int i = 1; i <= count; ++i)
    REQUIRE(rig.apply(update(clustering_key, i, "v" + std::to_string(i))).has_value());
}

ReadCommand one_row(BytesView clustering_key) {
  ReadCommand command = partition_read(1, "p");
  command.rows = {Bytes(clustering_key)};
  return command;
}

std::string value_of(const Result<ReadResult>& result, size_t row = 0) {
  REQUIRE(result.has_value());
  if (result->partitions.empty()) return "nothing";
  const auto record = decode_row_record(result->partitions[0].rows.at(row).record);
  REQUIRE(record.has_value());
  return std::string(record->cells.at(0).value);
}

uint64_t written_back(StoreRig& rig) { return rig.store->statistics().values_written_back; }

StoreOptions sync_options(CommitLogSync sync) {
  StoreOptions options = small_options();
  options.sync = sync;
  return options;
}

TEST_CASE("a read of more than eight versions leaves one") {
  for (const auto sync : {CommitLogSync::kPeriodic, CommitLogSync::kGroup}) {
    StoreRig rig(rocks_factory(sync_options(sync)));
    update_often(rig, "a", 8);
    CHECK(value_of(rig.read(one_row("a"))) == "v8");
    CHECK(written_back(rig) == 0);
    update_often(rig, "b", 9);
    CHECK(value_of(rig.read(one_row("b"))) == "v9");
    CHECK(written_back(rig) == 1);
    rig.reactor.run_until_idle();
    // Now it is one value, and an older version does not come through it.
    REQUIRE(rig.apply(update("b", 5, "older")).has_value());
    CHECK(value_of(rig.read_here(one_row("b"))) == "v9");
    REQUIRE(rig.apply(update("b", 10, "newer")).has_value());
    CHECK(value_of(rig.read(one_row("b"))) == "newer");
    CHECK(written_back(rig) == 1);
    rig.close();
    rig.open();
    CHECK(value_of(rig.read(one_row("b"))) == "newer");
    CHECK(value_of(rig.read(one_row("a"))) == "v8");
  }
}

TEST_CASE("a large row is left as one version when it was changed often") {
  StoreRig rig(rocks_factory());
  REQUIRE(rig.apply(row_mutation(1, "p", "a",
                                 encoded(record_of({value_cell(2, 1, Bytes(200'000, 'x'))}))))
              .has_value());
  update_often(rig, "a", 200);
  CHECK(value_of(rig.read(one_row("a"))) == "v200");
  CHECK(written_back(rig) == 0);
  update_often(rig, "a", 60);  // the same once more
  CHECK(value_of(rig.read(one_row("a"))) == "v200");
  CHECK(written_back(rig) == 1);
  rig.reactor.run_until_idle();
  update_often(rig, "a", 201);
  CHECK(value_of(rig.read(one_row("a"))) == "v201");
  CHECK(written_back(rig) == 1);
}

TEST_CASE("slices and reads for the page write back too") {
  StoreRig rig(rocks_factory());
  update_often(rig, "a", 9);
  update_often(rig, "b", 9);
  CHECK(rig.read_keys(partition_read(1, "p")) == "p/a p/b");
  CHECK(written_back(rig) == 2);
  update_often(rig, "c", 9);
  CHECK(value_of(rig.read_here(one_row("c"))) == "v9");
  CHECK(written_back(rig) == 3);
  rig.reactor.run_until_idle();
  CHECK(rig.read_keys(partition_read(1, "p")) == "p/a p/b p/c");
  CHECK(written_back(rig) == 3);
}

/// A write that waits in the turn's batch when another row's reader looks.
std::string write_then_read_in_one_turn() {
  StoreRig rig(rocks_factory());
  update_often(rig, "a", 9);
  std::optional<Result<void>> applied;
  rig.store->apply(update("a", 20, "mine"), [&](Result<void> r) { applied = std::move(r); });
  std::optional<Result<ReadResult>> read;
  rig.store->read(one_row("a"), base::kNoDeadline,
                  [&](Result<ReadResult> r) { read = std::move(r); });
  REQUIRE(read.has_value());
  CHECK(value_of(*read) == "v9");  // not acknowledged yet, so not to be seen
  REQUIRE(rig.comes([&] { return applied.has_value(); }));
  return value_of(rig.read(one_row("a")));
}

/// A write that comes while the I/O pool reads.
std::string write_while_the_pool_reads() {
  StoreRig rig(rocks_factory());
  Mutation many = mutation_of(1, "p");
  for (int i = 0; i < 2100; ++i)  // more than is looked at on the loop
    many.rows.push_back({fmt::format("a{:05}", i), inserted(1, "x"), false});
  REQUIRE(rig.apply(many).has_value());
  update_often(rig, "b", 9);
  std::optional<Result<ReadResult>> read;
  rig.pool.hold();
  rig.store->read(partition_read(1, "p"), base::kNoDeadline,
                  [&](Result<ReadResult> r) { read = std::move(r); });
  REQUIRE(!read.has_value());
  REQUIRE(rig.apply(update("b", 20, "mine")).has_value());
  rig.pool.release();
  REQUIRE(rig.comes([&] { return read.has_value(); }));
  CHECK(value_of(*read, 2100) == "v9");
  rig.reactor.run_until_idle();
  return value_of(rig.read(one_row("b")));
}

TEST_CASE("a value is not put over a write that the read has not seen") {
  CHECK(write_then_read_in_one_turn() == "mine");
  CHECK(write_while_the_pool_reads() == "mine");
}

TEST_CASE("the tests notice when it is") {
  base::data_mutants.writes_back_blindly = true;
  CHECK(write_then_read_in_one_turn() == "v9");
  CHECK(write_while_the_pool_reads() == "v9");
  base::data_mutants.writes_back_blindly = false;
}

}  // namespace
}  // namespace tetrad::storage
