// SPDX-License-Identifier: Apache-2.0
// A node stays in the data center that it joined its cluster in: replicas were placed by it.
#pragma once

#include <string_view>

#include "base/result.h"
#include "storage/engine/local_log.h"

namespace tetrad::replication {

/// Compares the option with what the local log has, which formation.cc writes when the node becomes
/// a member. A log without it, of an older program, passes: then the metadata decides, later.
/// Errors: kConfig, kIo.
Result<void> check_data_center(storage::LocalLog& log, std::string_view configured);

}  // namespace tetrad::replication
