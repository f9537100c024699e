// SPDX-License-Identifier: Apache-2.0
// A container's limits are those of its control group and of all groups around it; the tightest one
// holds. v2 has one hierarchy (memory.max, cpu.max), v1 one for each controller
// (memory.limit_in_bytes, cpu.cfs_quota_us over cpu.cfs_period_us). A system may have both. Files
// that are missing or say "max" set no limit.
#include "server/runtime/control_group.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sched.h>
#include <sstream>
#include <unistd.h>
#include <vector>

namespace tetrad::server {
namespace {

namespace fs = std::filesystem;

/// cgroup v1 writes "no limit" as the largest multiple of a page.
constexpr uint64_t kNoLimitFrom = uint64_t{1} << 62;

std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Unset: no number ("max", "-1").
std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void tighten_memory(ControlGroupLimits& limits, const std::string& text) {
  const auto bytes = number_of(text);
  if (!bytes || *bytes == 0 || *bytes >= kNoLimitFrom) return;
  limits.memory_bytes = limits.memory_bytes == 0 ? *bytes : std::min(limits.memory_bytes, *bytes);
}

// A quota of 1.5 periods counts as two cores: threads that wait for the quota cost less than a core
// that is unused.
void tighten_cores(ControlGroupLimits& limits, const std::string& quota,
                   const std::string& period) {
  const auto quota_us = number_of(quota), period_us = number_of(period);
  if (!quota_us || !period_us || *quota_us == 0 || *period_us == 0) return;
  const auto cores =
      static_cast<uint32_t>(std::min<uint64_t>((*quota_us + *period_us - 1) / *period_us, 1 << 16));
  limits.cores = limits.cores == 0 ? cores : std::min(limits.cores, cores);
}

/// Calls `read` with the folder of a group and of each group around it, up to the mount.
void for_groups(const fs::path& mount, const std::string& group,
                const std::function<void(const fs::path&)>& read) {
  std::error_code error;
  fs::path at = (mount / fs::path(group).relative_path()).lexically_normal();
  // In a container the path of /proc/self/cgroup may be the host's, which is not mounted there.
  if (!fs::is_directory(at, error)) at = mount;
  while (true) {
    read(at);
    if (at == mount || !at.has_relative_path() || at == at.parent_path()) return;
    at = at.parent_path();
  }
}

}  // namespace

ControlGroupLimits control_group_limits(const std::string& membership, const std::string& mounts) {
  ControlGroupLimits limits;
  const fs::path top(mounts);
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // number:controllers:group
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {  // v2, alone or beside v1
      // `unified` is where v2 is mounted beside v1.
      for (const fs::path& mount : {top, top / "unified"}) {
        for_groups(mount, group, [&](const fs::path& folder) {
          tighten_memory(limits, line_of(folder / "memory.max"));
          const std::string cpu = line_of(folder / "cpu.max");
          const size_t space = cpu.find(' ');
          if (space != std::string::npos)
            tighten_cores(limits, cpu.substr(0, space), cpu.substr(space + 1));
        });
      }
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      // v1 mounts controllers alone or several together ("cpu,cpuacct").
      for (const fs::path& mount : {top / name, top / controllers}) {
        if (name == "memory") {
          for_groups(mount, group, [&](const fs::path& folder) {
            tighten_memory(limits, line_of(folder / "memory.limit_in_bytes"));
          });
        }
        if (name == "cpu") {
          for_groups(mount, group, [&](const fs::path& folder) {
            tighten_cores(limits, line_of(folder / "cpu.cfs_quota_us"),
                          line_of(folder / "cpu.cfs_period_us"));
          });
        }
      }
    }
  }
  return limits;
}

namespace {

ControlGroupLimits own_limits() {
  std::ifstream file("/proc/self/cgroup");
  std::stringstream text;
  text << file.rdbuf();
  return control_group_limits(text.str(), "/sys/fs/cgroup");
}

}  // namespace

uint32_t usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  uint32_t cores = 1;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0)
    cores = static_cast<uint32_t>(std::max(1, CPU_COUNT(&mask)));
  const uint32_t allowed = own_limits().cores;
  return allowed == 0 ? cores : std::min(cores, allowed);
}

uint64_t usable_memory_bytes() {
  const uint64_t physical =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t allowed = own_limits().memory_bytes;
  return allowed == 0 ? physical : std::min(physical, allowed);
}

}  // namespace tetrad::server
