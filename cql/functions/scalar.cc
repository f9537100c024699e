// SPDX-License-Identifier: Apache-2.0
// The table of native scalar functions, and casts. To add a function of fixed types, add it to the
// table of its group (number_functions.cc, time_functions.cc, generic_functions.cc); nothing else
// finds functions. The table is made once and never changes, so all shards share it.
#include "cql/functions/scalar.h"

#include <array>

#include "base/hash.h"
#include "cql/functions/function_table.h"
#include "cql/types/literal.h"

namespace tetrad::cql {

namespace {

FunctionTable make_table() {
  FunctionTable table;
  add_time_functions(table);
  add_blob_functions(table);
  add_math_functions(table);
  add_mask_functions(table);
  return table;
}

const FunctionTable& native_table() {
  static const FunctionTable kTable = make_table();
  return kTable;
}

/// Types that CAST to a number reads, in the order in which Cassandra lists them.
// Their order shows in error texts.
std::span<const TypePtr> cast_sources() {
  static const std::array<TypePtr, 9> kTypes = {double_type(),  counter_type(), smallint_type(),
                                                decimal_type(), varint_type(),  tinyint_type(),
                                                float_type(),   bigint_type(),  int_type()};
  return kTypes;
}

bool casts_to_text(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kBoolean:
    case TypeKind::kDate:
    case TypeKind::kTime:
    case TypeKind::kTimestamp:
    case TypeKind::kTimeuuid:
    case TypeKind::kUuid:
    case TypeKind::kInet:
    case TypeKind::kAscii:
      return true;
    default:
      return is_number(type);
  }
}

}  // namespace

std::string ScalarFunction::signature() const {
  std::string text = qualified_name() + " : (";
  for (size_t i = 0; i < argument_types.size(); ++i) {
    if (i != 0) text += ", ";
    text += argument_types[i]->cql_text();
  }
  return text + ") -> " + return_type->cql_text();
}

std::span<const ScalarFunctionPtr> find_native_functions(std::string_view name) {
  return native_table().find(name);
}

ScalarFunctionPtr find_cast(const TypePtr& from, const TypePtr& to) {
  FunctionBody body;
  const TypeKind source = from->kind(), target = to->kind();
  // Nothing is cast to a counter, as in Cassandra.
  if (is_number(*from) && is_number(*to) && target != TypeKind::kCounter) {
    body = [from, to](const FunctionEnvironment&,
                      FunctionArguments arguments) -> Result<OptionalBytes> {
      if (arguments[0]->empty()) return std::nullopt;
      TETRAD_TRY(Bytes converted, convert_number(*from, *arguments[0], *to));
      return converted;
    };
  } else if ((target == TypeKind::kText || target == TypeKind::kAscii) && casts_to_text(*from)) {
    body = [from](const FunctionEnvironment&,
                  FunctionArguments arguments) -> Result<OptionalBytes> {
      // The empty value of a type with no text for it is null.
      if (arguments[0]->empty() && from->kind() != TypeKind::kAscii) return std::nullopt;
      return to_string(*from, *arguments[0]);
    };
  } else {
    // Casts between times are the functions of the same meaning.
    std::string_view name;
    if (target == TypeKind::kTimestamp &&
        (source == TypeKind::kTimeuuid || source == TypeKind::kDate)) {
      name = "totimestamp";
    } else if (target == TypeKind::kDate &&
               (source == TypeKind::kTimeuuid || source == TypeKind::kTimestamp)) {
      name = "todate";
    }
    // An empty name finds nothing, so there is no such cast.
    for (const auto& function : find_native_functions(name)) {
      if (function->argument_types[0]->kind() == source) body = function->body;
    }
  }
  if (!body) return nullptr;
  ScalarFunction function = pure_function({from}, to, std::move(body));
  function.name = "cast_as_" + to->cql_text();
  return std::make_shared<const ScalarFunction>(std::move(function));
}

std::string cast_signatures(const TypePtr& to) {
  std::string text;
  const auto add = [&](const TypePtr& from) {
    if (*from == *to) return;
    const auto function = find_cast(from, to);
    if (!function) return;
    if (!text.empty()) text += ", ";
    text += function->signature();
  };
  for (const TypePtr& from : cast_sources()) add(from);
  for (const TypePtr& from : {boolean_type(), timestamp_type(), date_type(), time_type(),
                              uuid_type(), timeuuid_type(), inet_type(), ascii_type()}) {
    add(from);
  }
  return text;
}

void add_blob_functions(FunctionTable& table) {
  for (int kind = 0; kind < static_cast<int>(TypeKind::kEmpty); ++kind) {
    const TypePtr& type = native_type(static_cast<TypeKind>(kind));
    if (type->kind() == TypeKind::kBlob) continue;
    std::vector<std::string> names = {type->cql_text()};
    if (type->kind() == TypeKind::kText) names.emplace_back("varchar");
    // A value as it is stored is its blob: nothing is converted.
    const ScalarFunction to_blob = pure_function(
        {type}, blob_type(),
        [](const FunctionEnvironment&, FunctionArguments arguments) -> Result<OptionalBytes> {
          return Bytes(*arguments[0]);
        });
    for (const std::string& name : names) {
      // Cassandra's old names and those since version 5.
      for (const std::string_view from_name : {"blobas", "blob_as_"}) {
        const std::string full = std::string(from_name) + name;
        table.add({full}, pure_function(
                              {blob_type()}, type,
                              [type, full](const FunctionEnvironment&,
                                           FunctionArguments arguments) -> Result<OptionalBytes> {
                                // Only blobs need a check: all other values have passed one.
                                if (!validate(*type, *arguments[0])) {
                                  return fail(ErrorCode::kInvalid,
                                              "In call to function system.{}, value 0x{} is not "
                                              "a valid binary representation for type {}",
                                              full, base::to_hex(*arguments[0]), type->cql_text());
                                }
                                return Bytes(*arguments[0]);
                              }));
      }
      table.add({name + "asblob", name + "_as_blob"}, to_blob);
    }
  }
}

}  // namespace tetrad::cql
