// SPDX-License-Identifier: Apache-2.0
// Whether the machine lost power under the last process on a data directory: known before the local
// log, which says it, too (replication/membership/node_life.h), can be opened.
//
//   <data directory>/RUNNING := boot id, ' ', device, '\n'    while a process is on it; removed
//                                                             when all is closed
#pragma once

#include <string>

#include "base/result.h"
#include "replication/membership/node_life.h"
#include "storage/engine/log_recovery.h"

namespace tetrad::server {

/// How logs are opened that a process has left on this data directory, before `now`.
storage::LogRecovery log_recovery_of(const std::string& data_directory,
                                     const replication::MachineStart& now);
/// Synced. Only when what the last process has left is opened: it must be known till then.
/// Errors: kIo.
Result<void> mark_running(const std::string& data_directory, const replication::MachineStart& now);
/// Errors: kIo.
Result<void> unmark_running(const std::string& data_directory);

}  // namespace tetrad::server
