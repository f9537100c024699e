// SPDX-License-Identifier: Apache-2.0
// Values between CQL and Lua; cql/README.md has the table. Both functions raise Lua errors, so they
// run in protected calls only.
//
// A value that does not fit the type is an error of the call, never a value that is changed to fit.
#pragma once

#include "cql/types/data_type.h"
#include "cql/types/value.h"

struct lua_State;

namespace tetrad::cql {

/// Pushes a value; null and empty values of types that have none are nil.
void push_value(lua_State* state, const DataType& type, OptionalView value);
/// The value at `index`, a valid one of the type.
OptionalBytes value_at(lua_State* state, int index, const DataType& type);

}  // namespace tetrad::cql
