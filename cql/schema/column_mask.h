// SPDX-License-Identifier: Apache-2.0
// The mask of a column: what is shown in place of its values to who may not see them.
//
// Made by MASKED WITH in CREATE TABLE or ALTER TABLE; a role with UNMASK sees the values,
// SELECT_MASKED lets a role query the column without seeing them. How statements apply a mask:
// prepare/column_masks.h.
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

  /// A mask of a user's function keeps that function from being dropped; a native one needs
  /// nothing.
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
/// By value, types included: for finding out whether an ALTER changed anything.
bool equal_masks(const ColumnMaskPtr& a, const ColumnMaskPtr& b);

}  // namespace tetrad::cql
