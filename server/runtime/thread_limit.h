// SPDX-License-Identifier: Apache-2.0
// Whether the process may have as many threads as it is about to make. Libraries end the process
// where a thread of theirs cannot be made.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace tetrad::server {

/// What to raise; behind the error of a thread that cannot be made.
inline constexpr const char* kThreadLimits =
    "raise the limit of threads (ulimit -u, TasksMax= of systemd, the pids limit of a container) "
    "or "
    "of memory (ulimit -v)";

/// Makes so many at once, and ends them again. Errors: kLimit.
Result<void> check_threads(uint64_t wanted);

}  // namespace tetrad::server
