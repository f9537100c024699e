// SPDX-License-Identifier: Apache-2.0
// What must hold before nodes are given up (RemoveLostNodes), wherever it is asked: by the operator's
// node, by the leader before the command is in its log, and when it is applied.
#pragma once

#include <vector>

#include "replication/meta/meta_state.h"

namespace tetrad::replication {

/// Whoever stays reads the command; what the lost ones read does not count. Once it is in the log it
/// ends a node that does not read it. Errors: kConflict.
Result<void> check_readers(const MetaState& state, const std::vector<HostId>& lost);

}  // namespace tetrad::replication
