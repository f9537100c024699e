// SPDX-License-Identifier: Apache-2.0
// The user types of a keyspace, read from the metadata itself, where no snapshot of the schema is at
// hand.
#pragma once

#include "cql/types/data_type.h"
#include "replication/meta/meta_state.h"

namespace tetrad::cql {

/// They are read as they are asked for; null for one that is not there. `state` outlives it.
UdtResolver types_of(const replication::MetaState& state, const std::string& keyspace);

}  // namespace tetrad::cql
