// SPDX-License-Identifier: Apache-2.0
// A materialized view as CQL sees it. It is a table of its own, whose schema says what it is a view of;
// the base table's schema names its views.
#pragma once

#include <string>

#include "base/ids.h"

namespace tetrad::cql {

/// Of a table that is a view.
/// DESCRIBE and the updates of views (cql/views) read it; the columns are those of the table.
struct ViewDefinition {
  std::string base_table;  // of the same keyspace
  TableId base_id;
  bool include_all_columns =
      false;          // SELECT *: it has the columns that the base is given later, too
  std::string where;  // as system_schema.views shows it
  bool operator==(const ViewDefinition&) const = default;
};

}  // namespace tetrad::cql
