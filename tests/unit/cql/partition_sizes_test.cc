// SPDX-License-Identifier: Apache-2.0
#include "cql/system/partition_sizes.h"

#include <map>

#include <catch2/catch.hpp>

namespace tetrad::cql {

TEST_CASE("the largest logical partition is known where it is alone in the largest physical one") {
  // The position (0, 5) is set apart.
  std::vector<partitioner::Tablet> tablets(3);
  const RingPosition before{0, 4}, at{0, 5};
  tablets[0].range = {RingPosition::lowest(), before};
  tablets[1].range = {before, at};
  tablets[2].range = {at, RingPosition::highest()};
  for (size_t i = 0; i < 3; ++i) tablets[i].id = TabletId{i + 1};
  const partitioner::TabletMap map(std::move(tablets));
  std::map<TabletId, uint64_t> bytes;
  const auto largest = [&] {
    return largest_partition_bytes(map, [&](TabletId tablet) { return bytes[tablet]; });
  };
  CHECK(largest() == std::nullopt);
  bytes[TabletId{2}] = 100;
  CHECK(largest() == 100u);
  bytes[TabletId{1}] = 99;
  CHECK(largest() == 100u);
  // One of its many may be the largest.
  bytes[TabletId{3}] = 101;
  CHECK(largest() == std::nullopt);
  bytes[TabletId{2}] = 102;
  CHECK(largest() == 102u);
}

}  // namespace tetrad::cql
