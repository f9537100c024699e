// SPDX-License-Identifier: Apache-2.0
// Settings of the whole cluster that `tetractl setting` changes.
//
// They are part of the metadata (replication/meta), so a change is in force on all nodes when it is
// applied there, and stays. The table is also what describe-cluster shows.
#pragma once

#include <cstdint>
#include <string_view>

#include "replication/tablets/balance_plan.h"
#include "replication/tablets/split_runner.h"
#include "replication/throughput/throughput_holder.h"

namespace tetrad::server {

/// What `tetractl setting` changes: whole numbers.
struct ClusterSetting {
  std::string_view name;
  // `otherwise` holds where nobody has set it. Bounds are checked before the change is proposed.
  uint64_t otherwise, most;
  const char* unit;
  uint64_t least = 1;
};

// Bytes of physical and logical partitions, work of physical partitions, when the balancer begins,
// and bursts.
inline constexpr ClusterSetting kClusterSettings[] = {
    {replication::kSettingPhysicalPartitionMb, replication::kPhysicalPartitionMbDefault, 1u << 24,
     "MiB"},
    {replication::kSettingLogicalPartitionMb, replication::kLogicalPartitionMbDefault, 1u << 24,
     "MiB"},
    {replication::kSettingPhysicalPartitionRuPerS, replication::kPhysicalPartitionRuPerSDefault,
     1'000'000, "RU/s"},
    {replication::kSettingBalanceStartPercent, replication::kBalanceStartPercentDefault,
     replication::kBalanceOffPercent, "%"},
    {replication::kSettingBurstRuPerS, replication::kBurstRuPerSDefault, 1'000'000, "RU/s", 0},
};

}  // namespace tetrad::server
