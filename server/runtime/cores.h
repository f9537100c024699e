// SPDX-License-Identifier: Apache-2.0
// How many cores this process may use.
#pragma once

#include <cstdint>
#include <string_view>

namespace tetrad::server {

/// The cores of the affinity mask, but no more than the CPU time its control group allows. At least
/// one.
uint32_t usable_cores();

/// What a control group's `cpu.max` ("max 100000", "150000 100000") allows, rounded up; 0: no
/// limit, or not readable.
uint32_t cores_of_cpu_max(std::string_view text);

}  // namespace tetrad::server
