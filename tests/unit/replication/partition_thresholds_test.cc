// SPDX-License-Identifier: Apache-2.0
// Lines of the log on partitions that are too large, as Cassandra 5.0.9 words them.
#include <catch2/catch.hpp>

#include "replication/repair/purge_runner.h"

namespace tetrad::replication {

TEST_CASE("the lowest thresholds that are set") {
  const auto lowest = [](PartitionThresholds thresholds) {
    const auto least = thresholds.lowest();
    return std::pair(least.bytes, least.tombstones);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  CHECK(lowest({}) == Pair(0, 0));
  CHECK(lowest({10, 20, 0, 0}) == Pair(10, 0));
  CHECK(lowest({0, 20, 5, 0}) == Pair(20, 5));
  CHECK(lowest({30, 20, 0, 7}) == Pair(20, 7));
}

TEST_CASE("lines on partitions beyond their thresholds") {
  const PartitionThresholds both{1000, 2000, 10, 20};
  const auto lines = [](const PartitionThresholds& thresholds, storage::PartitionExtent extent) {
    std::string text;
    for (const auto& line : thresholds.lines("ks.t:0a0b", extent))
      text += (line.fails ? "error: " : "warn: ") + line.text + "\n";
    return text;
  };
  CHECK(lines(both, {1000, 10}).empty());
  CHECK(lines(both, {1001, 0}) ==
        "warn: Guardrail partition_size violated: Partition ks.t:0a0b has size 1001, this exceeds "
        "the warning threshold of 1000. Too large partitions can cause performance problems.\n");
  CHECK(
      lines(both, {2001, 11}) ==
      "error: Guardrail partition_size violated: Partition ks.t:0a0b has size 2001, this exceeds "
      "the failure threshold of 2000. Too large partitions can cause performance problems.\n"
      "warn: Guardrail partition_tombstones violated: Partition ks.t:0a0b has 11 tombstones, this "
      "exceeds the warning threshold of 10. Partitions with too many tombstones can cause "
      "performance problems.\n");
  CHECK(lines({0, 0, 0, 20}, {5000, 21}) ==
        "error: Guardrail partition_tombstones violated: Partition ks.t:0a0b has 21 tombstones, "
        "this exceeds the failure threshold of 20. Partitions with too many tombstones can cause "
        "performance problems.\n");
  CHECK(lines({}, {5000, 5000}).empty());
}

}  // namespace tetrad::replication
