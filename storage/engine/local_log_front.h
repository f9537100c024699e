// SPDX-License-Identifier: Apache-2.0
// The node's local log as the other shards see it.
#pragma once

#include "storage/engine/local_log.h"

namespace tetrad::storage {

/// A log that belongs to the thread of `own` and writes through `log`, which belongs to that of
/// `main`: what is written in a turn goes over together as one batch. Reads go to `log` itself, so
/// nothing is read any more once it closes. Both reactors and `log` outlive the front.
std::unique_ptr<LocalLog> make_local_log_front(LocalLog& log, base::Reactor& main,
                                               base::Reactor& own);

}  // namespace tetrad::storage
