// SPDX-License-Identifier: Apache-2.0
// Compactions that an operator switches off for a while.
#include "storage/engine/auto_compaction.h"

#include <catch2/catch.hpp>

#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {
namespace {

/// A file more, of the same keys: what a compaction would join.
void write_file(StoreRig& rig, int64_t timestamp) {
  for (int64_t token = 0; token < 20; ++token)
    REQUIRE(rig.apply(row_mutation(token, "p", "a", inserted(timestamp, "v"))).has_value());
  REQUIRE(rig.flush().has_value());
}

AutoCompaction& compactions_of(StoreRig& rig) {
  auto* const found = dynamic_cast<AutoCompaction*>(rig.store.get());
  REQUIRE(found != nullptr);
  return *found;
}

void set_auto_compaction(StoreRig& rig, bool runs) {
  std::optional<Result<void>> answer;
  compactions_of(rig).set_auto_compaction(runs, [&](Result<void> set) { answer = set; });
  REQUIRE(rig.comes([&] { return answer.has_value(); }));
  REQUIRE(answer->has_value());
}

uint64_t files_to_sort(StoreRig& rig) { return rig.store->statistics().level0_files; }

}  // namespace

TEST_CASE("while compactions are off files stay as they are, until they are switched on") {
  StoreRig rig(rocks_factory());
  CHECK(compactions_of(rig).auto_compaction_runs());
  set_auto_compaction(rig, false);
  CHECK(!compactions_of(rig).auto_compaction_runs());
  // RocksDB would begin at four.
  for (int i = 1; i <= 10; ++i) write_file(rig, i);
  CHECK(files_to_sort(rig) == 10);
  CHECK(!compactions_of(rig).auto_compaction_runs());
  set_auto_compaction(rig, true);
  CHECK(compactions_of(rig).auto_compaction_runs());
  CHECK(rig.comes([&] { return files_to_sort(rig) < 4; }));
}

TEST_CASE("an order compacts while the store does not by itself") {
  StoreRig rig(rocks_factory());
  set_auto_compaction(rig, false);
  for (int i = 1; i <= 6; ++i) write_file(rig, i);
  REQUIRE(rig.compact().has_value());
  CHECK(files_to_sort(rig) == 0);
  CHECK(!compactions_of(rig).auto_compaction_runs());
}

TEST_CASE("compactions begin again before writes would have to wait for them") {
  StoreRig rig(rocks_factory());
  set_auto_compaction(rig, false);
  for (uint64_t i = 1; i <= AutoCompaction::kLevel0FilesMax; ++i)
    write_file(rig, static_cast<int64_t>(i));
  CHECK(rig.comes([&] { return compactions_of(rig).auto_compaction_runs(); }));
  CHECK(rig.comes([&] { return files_to_sort(rig) < 4; }));
  CHECK(rig.store->statistics().delayed_write_bytes_per_s == 0);
}

TEST_CASE("a store that is opened again compacts") {
  StoreRig rig(rocks_factory());
  set_auto_compaction(rig, false);
  write_file(rig, 1);
  rig.close();
  rig.open();
  CHECK(compactions_of(rig).auto_compaction_runs());
  for (int i = 2; i <= 6; ++i) write_file(rig, i);
  CHECK(rig.comes([&] { return files_to_sort(rig) < 4; }));
}

}  // namespace tetrad::storage
