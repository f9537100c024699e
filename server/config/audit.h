// SPDX-License-Identifier: Apache-2.0
// The options of the audit log, near the names of Cassandra's audit_logging_options.
//
// Their meaning is in server/audit/audit_log.h; how categories are named in cql/execute/audit.h.
#pragma once

#include <vector>

#include "server/config/options.h"

namespace tetrad::server {

/// Lines of the table of options.
/// Called once, by option_table().
void append_audit_options(std::vector<OptionEntry>& table);

}  // namespace tetrad::server
