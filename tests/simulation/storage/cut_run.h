// SPDX-License-Identifier: Apache-2.0
// The power of a machine with MemoryStore is cut over and over, which takes a part of what was not
// synced, also from the middle: below the number of the newest sync record nothing may go.
#pragma once

#include <cstdint>
#include <string>

namespace tetrad::simulation {

/// What is wrong; "": nothing.
std::string run_cuts(uint64_t seed);

}  // namespace tetrad::simulation
