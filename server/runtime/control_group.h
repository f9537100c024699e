// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine: its control groups' limits (cgroup v1 and v2), which
// are a container's.
#pragma once

#include <cstdint>
#include <string>

namespace tetrad::server {

/// 0: no limit.
struct ControlGroupLimits {
  uint64_t memory_bytes = 0;
  uint32_t cores = 0;  // of CPU time, rounded up
};

/// The tightest limits of the group of a process and of the groups around it. `membership` is the
/// text of /proc/self/cgroup, `mounts` the folder that control groups are mounted in. A group that
/// is not visible there (a container sees its own as the top) counts as the top one. What cannot be
/// read is no limit.
ControlGroupLimits control_group_limits(const std::string& membership, const std::string& mounts);

/// Of this process; at least one.
uint32_t usable_cores();
uint64_t usable_memory_bytes();

}  // namespace tetrad::server
