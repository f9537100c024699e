// SPDX-License-Identifier: Apache-2.0
// How the groups of native functions come together; for the files of this folder.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cql/functions/scalar.h"

namespace tetrad::cql {

/// Native functions by name, overloads in the order in which they were added.
class FunctionTable {
 public:
  void add(ScalarFunction function) {
    std::string name = function.name;
    functions_[std::move(name)].push_back(
        std::make_shared<const ScalarFunction>(std::move(function)));
  }
  /// The same function under an old and a new name.
  void add(std::initializer_list<std::string_view> names, const ScalarFunction& function) {
    for (const std::string_view name : names) {
      ScalarFunction named = function;
      named.name = name;
      add(std::move(named));
    }
  }
  /// All overloads; empty: there is none. Views live as long as the table.
  std::span<const ScalarFunctionPtr> find(std::string_view name) const {
    const auto found = functions_.find(name);
    if (found == functions_.end()) return {};
    return found->second;
  }

 private:
  std::map<std::string, std::vector<ScalarFunctionPtr>, std::less<>> functions_;
};

/// Without its name, which add() gives it.
inline ScalarFunction pure_function(std::vector<TypePtr> arguments, TypePtr result,
                                    FunctionBody body) {
  ScalarFunction function;
  function.argument_types = std::move(arguments);
  function.return_type = std::move(result);
  function.body = std::move(body);
  return function;
}

// The groups of functions, which scalar.cc puts together.

void add_time_functions(FunctionTable& table);
void add_blob_functions(FunctionTable& table);
void add_math_functions(FunctionTable& table);
void add_mask_functions(FunctionTable& table);

// Numbers of any kind.

bool is_number(const DataType& type);
bool is_integer(const DataType& type);  // tinyint to bigint, counter
/// The value of a type of is_integer(); none for an empty value.
std::optional<int64_t> integer_of(const DataType& type, BytesView value);
/// The low bits of `value` as a value of such a type.
Bytes make_integer(const DataType& type, int64_t value);
/// Of any type of is_number(), rounded; the value is not empty.
double double_of(const DataType& type, BytesView value);
Bytes varint_of(const DataType& type, BytesView value);
Result<Bytes> decimal_of(const DataType& type, BytesView value);
/// Any number as a number of another type, as CAST does.
Result<Bytes> convert_number(const DataType& from, BytesView value, const DataType& to);
/// In the order in which Cassandra lists them.
std::span<const TypePtr> number_types();

/// `left op right` where both are of `type`. Errors: kFunctionFailure.
Result<OptionalBytes> calculate(char op, const DataType& type, BytesView left, BytesView right);

}  // namespace tetrad::cql
