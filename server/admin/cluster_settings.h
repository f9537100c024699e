// SPDX-License-Identifier: Apache-2.0
// Settings of the whole cluster that `tetractl setting` changes.
#pragma once

#include <cstdint>
#include <string_view>

#include "replication/tablets/balance_plan.h"
#include "replication/tablets/split_runner.h"

namespace tetrad::server {

/// What `tetractl setting` changes: whole numbers from 1 on.
struct ClusterSetting {
  std::string_view name;
  uint64_t otherwise, most;
  const char* unit;
};

inline constexpr ClusterSetting kClusterSettings[] = {
    {replication::kSettingPhysicalPartitionMb, replication::kPhysicalPartitionMbDefault, 1u << 24,
     "MiB"},
    {replication::kSettingLogicalPartitionMb, replication::kLogicalPartitionMbDefault, 1u << 24,
     "MiB"},
    {replication::kSettingPhysicalPartitionRuPerS, replication::kPhysicalPartitionRuPerSDefault,
     1'000'000, "RU/s"},
    {replication::kSettingBalanceStartPercent, replication::kBalanceStartPercentDefault,
     replication::kBalanceOffPercent, "%"},
};

}  // namespace tetrad::server
