// SPDX-License-Identifier: Apache-2.0
// Random numbers of the operating system: nobody can foresee them from earlier ones.
//
// The Random::Source of a real node (base/random.h); simulations never use it.
#pragma once

#include <cstdint>
#include <span>

namespace tetrad::server {

/// Fills `words` from the kernel's generator; waits for its first seed only. The process ends if
/// the kernel has none.
void os_random(std::span<uint64_t> words);

}  // namespace tetrad::server
