// SPDX-License-Identifier: Apache-2.0
// User-defined functions and aggregates as calls see them.
#pragma once

#include "cql/functions/aggregate.h"
#include "cql/functions/scalar.h"
#include "cql/schema/schema_snapshot.h"

namespace tetrad::cql {

/// A function with a body in Lua as a call of it.
ScalarFunctionPtr make_user_function(const FunctionSchema& function);
/// Has `aggregate` set. Null when one of its functions is not there.
ScalarFunctionPtr make_user_aggregate(const AggregateSchema& aggregate,
                                      const KeyspaceSchema& keyspace);

/// The functions that make up an aggregate; null: there is none, or none is named.
FunctionPtr state_function_of(const AggregateSchema& aggregate, const KeyspaceSchema& keyspace);
FunctionPtr final_function_of(const AggregateSchema& aggregate, const KeyspaceSchema& keyspace);

/// Refuses to make and call them where they are not enabled. Errors: kInvalid.
Result<void> check_user_functions(bool enabled);
/// The error of a call with what the protocol tells about it.
Error function_failure(Error error, const ScalarFunction& function);

}  // namespace tetrad::cql
