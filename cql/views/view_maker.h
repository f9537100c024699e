// SPDX-License-Identifier: Apache-2.0
// The views of a table as storage and replication know them (storage/views/view_maker.h).
#pragma once

#include "replication/meta/meta_state.h"
#include "storage/views/view_maker.h"

namespace tetrad::cql {

/// Of the views that the schema objects of `state` give the base table. Null: it has none, or a text
/// does not read. Looks at the texts of this table, its views and the types they use alone.
storage::ViewMakersPtr view_makers_of(const replication::MetaState& state,
                                      const replication::TableInfo& base);

}  // namespace tetrad::cql
