// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/cores.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sched.h>
#include <string>

namespace tetrad::server {

uint32_t cores_of_cpu_max(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return 0;
  const auto number = [](std::string_view digits) {
    uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  };
  const uint64_t quota_us = number(text.substr(0, space));
  const uint64_t period_us = number(text.substr(space + 1));
  if (quota_us == 0 || period_us == 0) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>((quota_us + period_us - 1) / period_us, 1 << 16));
}

uint32_t usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  uint32_t cores = 1;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0)
    cores = static_cast<uint32_t>(std::max(1, CPU_COUNT(&mask)));
  std::ifstream limit("/sys/fs/cgroup/cpu.max");
  std::string line;
  if (std::getline(limit, line)) {
    const uint32_t allowed = cores_of_cpu_max(line);
    if (allowed != 0) cores = std::min(cores, allowed);
  }
  return cores;
}

}  // namespace tetrad::server
