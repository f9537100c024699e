// SPDX-License-Identifier: Apache-2.0
// Paxos registers of a store under writes, imports, purges, kills and power cuts: they are as they
// were written last; of what was told nothing is lost, be it that the power fails; and the rows of
// a commit are there when its registers are, and only then. Odd seeds run MemoryStore, whose disk
// loses what was not synced, even ones RocksStore.
#pragma once

#include <cstdint>
#include <string>

namespace tetrad::simulation {

/// What is wrong; "": nothing.
std::string run_registers(uint64_t seed);

}  // namespace tetrad::simulation
