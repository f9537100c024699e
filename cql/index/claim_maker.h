// SPDX-License-Identifier: Apache-2.0
// The claims that stores keep of a table's indexes (storage/index/claim.h), made of its rows.
#pragma once

#include "replication/meta/meta_state.h"
#include "storage/index/claim.h"

namespace tetrad::cql {

/// Of the indexes that the schema objects of `state` give the table. Null: it has none and had none,
/// or its text does not read. Looks at this table's text alone, and at those of the types it uses.
storage::ClaimMakerPtr claim_maker_of(const replication::MetaState& state,
                                      const replication::TableInfo& table);

}  // namespace tetrad::cql
