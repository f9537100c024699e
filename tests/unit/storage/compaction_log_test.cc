// SPDX-License-Identifier: Apache-2.0
#include "storage/engine/compaction_log.h"

#include "storage/engine/log_recovery.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {

TEST_CASE("of more compactions than are kept the oldest go") {
  int64_t now_us = 100;
  CompactionLog log(3, [&] { return now_us++; });
  CHECK(log.records().empty());
  for (uint64_t i = 1; i <= 5; ++i) log.add("default", 10 * i, i);
  const std::vector<CompactionRecord> records = log.records();
  REQUIRE(records.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(records[i].number == i + 3);
    CHECK(records[i].ended_us == static_cast<int64_t>(i) + 102);
    CHECK(records[i].bytes_in == 10 * (i + 3));
    CHECK(records[i].bytes_out == i + 3);
  }
}

TEST_CASE("a store notes what its compactions read and wrote") {
  const auto log = std::make_shared<CompactionLog>(1'000, [] { return int64_t{7}; });
  StoreRig rig(
      make_rocks_store_factory(small_options(), Logger(), nullptr, LogRecovery::kStrict, log));
  REQUIRE(rig.compact().has_value());
  const size_t before = log->records().size();
  // The second file hides the first.
  for (int64_t timestamp : {1, 2}) {
    for (int64_t token = 0; token < 50; ++token)
      REQUIRE(
          rig.apply(row_mutation(token, "p", "a", inserted(timestamp, std::string(500, 'v')), true))
              .has_value());
    REQUIRE(rig.flush().has_value());
  }
  REQUIRE(rig.compact().has_value());
  const std::vector<CompactionRecord> records = log->records();
  REQUIRE(records.size() > before);
  for (const CompactionRecord& record : records) {
    CHECK(record.family == "default");
    CHECK(record.ended_us == 7);
    CHECK(record.bytes_in > 0);
  }
  CHECK(std::ranges::any_of(records, [](const CompactionRecord& record) {
    return record.bytes_out > 0 && record.bytes_out < record.bytes_in;
  }));
}

}  // namespace tetrad::storage
