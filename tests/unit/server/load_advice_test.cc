// SPDX-License-Identifier: Apache-2.0
#include "server/load_advice.h"

#include <catch2/catch.hpp>

namespace tetrad::server {

TEST_CASE("a physical partition is hot by its work, not by the width of its range") {
  // Ranges as they are born: one has half of the ring, and half of evenly spread work.
  CHECK_FALSE(hot_partition_of({{0.5, 5'000}, {0.125, 1'250}, {0.125, 1'250}, {0.25, 2'500}}));
  // The same work on a narrow one.
  const auto hot = hot_partition_of({{0.5, 1'250}, {0.125, 5'000}, {0.125, 1'250}, {0.25, 2'500}});
  REQUIRE(hot);
  CHECK(hot->index == 1);
  CHECK(hot->share == 0.5);
  CHECK(hot->skew == 2);
  // A narrow one with its mean, and nothing else to do.
  CHECK_FALSE(hot_partition_of({{0.98, 1'000}, {0.01, 1'000}, {0.01, 1'000}}));
}

TEST_CASE("no physical partition is hot with less work than is worth a change, or alone") {
  CHECK_FALSE(hot_partition_of({}));
  CHECK_FALSE(hot_partition_of({{1, 100'000}}));
  CHECK_FALSE(hot_partition_of({{0.5, 0}, {0.25, 99}, {0.25, 0}}));
  CHECK(hot_partition_of({{0.5, 0}, {0.25, 100}, {0.25, 0}}));
}

}  // namespace tetrad::server
