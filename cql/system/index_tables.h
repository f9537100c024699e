// SPDX-License-Identifier: Apache-2.0
// Tables about indexes, beside system_schema.indexes: what the schema says of them. Which are built is
// known to the stores, so the server puts the rows together (server/build_views.cc).
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "cql/system/computed_tables.h"

namespace tetrad::cql {

/// By table and IndexSchema::id: those that a store of the node has not built yet.
using UnbuiltIndexes = std::set<std::pair<TableIncarnation, uint16_t>>;

/// system."IndexInfo": indexes that are built. table_name has the name of a keyspace, as in Cassandra.
std::vector<ComputedTables::Column> built_index_columns();
VirtualRows built_index_rows(const SchemaSnapshot& schema, const UnbuiltIndexes& unbuilt);

/// system_views.sai_column_indexes. An index that is being built can be queried: rows are found without
/// it until then.
std::vector<ComputedTables::Column> sai_index_columns();
VirtualRows sai_index_rows(const SchemaSnapshot& schema, const UnbuiltIndexes& unbuilt);

}  // namespace tetrad::cql
