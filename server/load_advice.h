// SPDX-License-Identifier: Apache-2.0
// What is worth advice in the load of a table (system_tetrad.advice). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tetrad::server {

/// Advice is given on what is worth a change: of a physical partition that gets this much.
inline constexpr uint64_t kAdviceRuPerSLeast = 100;

/// A physical partition's part of the token ring, from 0 to 1, and its work.
struct PartitionLoad {
  double part = 0;
  uint64_t ru_per_s = 0;
};

struct HotPartition {
  size_t index = 0;
  double share = 0;  // of the table's work
  double skew = 0;   // its work over the mean of all
};

/// The busiest of those that get kAdviceRuPerSLeast, and both twice the mean and twice what their part
/// of the ring would get of work that is spread evenly: ranges may differ tenfold from birth.
std::optional<HotPartition> hot_partition_of(const std::vector<PartitionLoad>& partitions);

}  // namespace tetrad::server
