// SPDX-License-Identifier: Apache-2.0
// The mask of a column: what is shown in place of its values to who may not see them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// A call of a function: of the column's value and, behind it, of constants. Immutable.
struct ColumnMask {
  std::string keyspace;  // of the function: system, or the table's
  std::string function;
  std::vector<TypePtr> argument_types;   // of the constants
  std::vector<OptionalBytes> arguments;  // as many, each as a value of its type

  bool is_native() const { return keyspace == "system"; }
  /// "system.mask_inner(1, null)", as DESCRIBE has it behind MASKED WITH.
  std::string cql_text() const;
  /// Whether it calls the function of that name and these types in that keyspace, for a column of
  /// `type`.
  bool calls(const TypePtr& type, std::string_view in_keyspace, std::string_view name,
             const std::vector<TypePtr>& types) const;
};
using ColumnMaskPtr = std::shared_ptr<const ColumnMask>;

/// Of two masks, or of none.
bool equal_masks(const ColumnMaskPtr& a, const ColumnMaskPtr& b);

}  // namespace tetrad::cql
