// SPDX-License-Identifier: Apache-2.0
// Reads that the loop gives to the readers of the disk.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/unit/storage/storage_rig.h"

namespace tetrad::storage {

/// Many reads of the disk may be under way, of statements that took little room for their answers.
TEST_CASE("an answer from the disk that is larger than its reader has room for stays there") {
  StoreRig rig(rocks_factory());
  for (int i = 0; i < 3000; ++i)
    REQUIRE(rig.apply(row_mutation(1, "p", fmt::format("{:04}", i), inserted(1, "value"))));
  ReadCommand whole = partition_read(1, "p");
  const auto read = rig.read(whole);
  REQUIRE(read);
  const uint64_t bytes = read->arena.allocated_bytes();
  CHECK(read->live_row_count == 3000);

  whole.bytes_max = bytes - 1;
  const auto withheld = rig.read(whole);
  REQUIRE(withheld);
  CHECK(withheld->withheld_bytes == bytes);
  CHECK(withheld->partitions.empty());

  // On the loop nothing is under way but this one.
  ReadCommand few = whole;
  few.row_limit = 10;
  few.bytes_max = 1;
  const auto here = rig.read(few);
  REQUIRE(here);
  CHECK(here->withheld_bytes == 0);
  CHECK(here->live_row_count == 10);
}

}  // namespace tetrad::storage
