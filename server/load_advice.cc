// SPDX-License-Identifier: Apache-2.0
#include "server/load_advice.h"

namespace tetrad::server {

std::optional<HotPartition> hot_partition_of(const std::vector<PartitionLoad>& partitions) {
  constexpr double kSkewLeast = 2;
  double sum = 0;
  for (const PartitionLoad& one : partitions) sum += static_cast<double>(one.ru_per_s);
  std::optional<HotPartition> hot;
  for (size_t i = 0; i < partitions.size(); ++i) {
    const PartitionLoad& one = partitions[i];
    if (one.ru_per_s < kAdviceRuPerSLeast) continue;
    const double share = static_cast<double>(one.ru_per_s) / sum;
    const double skew = share * static_cast<double>(partitions.size());
    if (skew < kSkewLeast || share < kSkewLeast * one.part) continue;
    if (!hot || share > hot->share) hot = {i, share, skew};
  }
  return hot;
}

}  // namespace tetrad::server
