// SPDX-License-Identifier: Apache-2.0
// One relation of a WHERE clause by itself: the columns it restricts, and the terms it does so
// with.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cql/prepare/restrictions.h"

namespace tetrad::cql {

/// What `relation` says. Errors: kInvalid, one that no column of this kind or type may stand in.
Result<RestrictionPtr> read_relation(const ast::Relation& relation, ExpressionBuilder& expressions,
                                     WhereOf of);

/// "UPDATE", "DELETE" or "CREATE MATERIALIZED VIEW".
std::string_view statement_name(WhereOf of);

/// The columns' names with `between` between them: ", ", " ," and "," all occur in Cassandra's
/// texts.
std::string join_names(std::span<const ColumnSchema* const> columns, std::string_view between);

}  // namespace tetrad::cql
