// SPDX-License-Identifier: Apache-2.0
// Native scalar functions: bytes in, bytes out. Every overload is one ScalarFunction; functions
// over any type are made for the types they are called with.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "cql/functions/work_meter.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {

class ScriptEngine;
struct AggregateFunction;

/// What a function may ask of the running statement.
struct FunctionEnvironment {
  base::Random* random = nullptr;
  int64_t now_ms = 0;                               // of the statement: current_timestamp()
  std::function<int64_t()> next_timestamp_us = {};  // strictly rising: now()
  ScriptEngine* scripts = nullptr;                  // for user-defined functions
  WorkMeter* work = nullptr;                        // null: nobody counts
};

using FunctionArguments = std::span<const OptionalView>;
using FunctionBody =
    std::function<Result<OptionalBytes>(const FunctionEnvironment&, FunctionArguments)>;

/// One overload of a function. Immutable.
struct ScalarFunction {
  std::string keyspace = "system";
  std::string name;
  std::vector<TypePtr> argument_types;
  TypePtr return_type;
  FunctionBody body;
  bool called_on_null = false;  // otherwise a null argument gives null
  bool pure = true;             // the same arguments give the same result
  bool monotonic = false;       // may stand in GROUP BY
  /// Set when it is a user-defined aggregate; then there is no body.
  std::shared_ptr<const AggregateFunction> aggregate = nullptr;

  /// `system.abs : (int) -> int`
  std::string signature() const;
  std::string qualified_name() const { return keyspace + "." + name; }
};
using ScalarFunctionPtr = std::shared_ptr<const ScalarFunction>;

/// The overloads of a native function of fixed types; empty if there is none. `name` is in lower
/// case.
std::span<const ScalarFunctionPtr> find_native_functions(std::string_view name);

/// Whether `name` is a native function that is made for the types of its arguments.
bool is_generic_function(std::string_view name);
/// How many arguments a generic function takes: (least, most).
std::pair<size_t, size_t> generic_function_arity(std::string_view name);
/// What it takes, as error texts say it.
std::string_view generic_function_parameters(std::string_view name);
/// Makes a generic function. `arguments`: the types as far as they are known (null: not known);
/// `receiver`: what the result is for, or null. Errors: kInvalid.
Result<ScalarFunctionPtr> make_generic_function(std::string_view name,
                                                std::span<const TypePtr> arguments,
                                                const TypePtr& receiver);

/// CAST(x AS type): the conversion of one native type into another, or null if there is none.
ScalarFunctionPtr find_cast(const TypePtr& from, const TypePtr& to);
/// `system.cast_as_int : (double) -> int, …`: every cast to a type; "" if there is none.
std::string cast_signatures(const TypePtr& to);

/// `left op right` for op one of + - * / %; null if the types do not go together.
ScalarFunctionPtr find_operator(char op, const TypePtr& left, const TypePtr& right);
/// `-argument`, or null.
ScalarFunctionPtr find_negation(const TypePtr& argument);

/// Version 1 UUID of the next moment of this shard, with random node and clock sequence.
Uuid next_time_uuid(const FunctionEnvironment& environment);

}  // namespace tetrad::cql
