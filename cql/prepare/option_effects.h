// SPDX-License-Identifier: Apache-2.0
// Table options that are checked, kept and shown as Cassandra does, and change nothing.
#pragma once

#include <optional>
#include <string>

#include "cql/grammar/ast_schema.h"
#include "cql/schema/table_schema.h"

namespace tetrad::cql {

/// The client's warning for the properties of a CREATE or ALTER TABLE that ask for something else
/// than a new table has, and change nothing; unset: there are none. `now`: the options with the
/// properties, `fresh`: those of a new table.
std::optional<std::string> no_effect_warning(const ast::Properties& properties,
                                             const TableOptions& now, const TableOptions& fresh);

}  // namespace tetrad::cql
