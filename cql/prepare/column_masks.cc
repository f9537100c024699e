// SPDX-License-Identifier: Apache-2.0
// Dynamic data masking (Cassandra 5.0, CEP-20).
//
// 1. resolve_mask(), in CREATE and ALTER TABLE: the function is found by the rules of calls, with
//    the column as its first argument; the other arguments are evaluated to bytes, which the table
//    keeps.
// 2. make_masks(), when a SELECT is prepared: a call for each slot whose column has a mask.
// 3. mask_values(), for each row: the values that a client may not see are replaced.
#include "cql/prepare/column_masks.h"

#include <algorithm>
#include <utility>

#include "cql/functions/user_function.h"
#include "cql/grammar/ast_print.h"
#include "cql/prepare/expression_builder.h"
#include "replication/meta/cluster_format.h"

namespace tetrad::cql {
namespace {

constexpr std::string_view kNativePrefix = "mask_";
/// Of a mask as it is written: the loop evaluates its arguments, each row shows them.
constexpr size_t kWrittenBytesMax = 4096;

/// The call as it was written, with the function's whole name: "system.mask_inner(1, null)".
std::string shown_call(const ast::ColumnMask& written) {
  std::string out = ast::to_string(written.function) + "(";
  for (size_t i = 0; i < written.arguments.size(); ++i)
    out += (i == 0 ? "" : ", ") + ast::to_string(written.arguments[i]);
  return out + ")";
}

/// The written mask with the function that DEFAULT stands for.
ast::ColumnMask with_function(const ast::ColumnMask& written) {
  ast::ColumnMask out = written;
  if (written.is_default) out.function = {{{"system", false, {}}}, {"mask_default", false, {}}};
  return out;
}

std::unexpected<Error> not_of_aggregates(const std::string& shown) {
  return fail(ErrorCode::kInvalid, "Aggregate function {} cannot be used for masking table columns",
              shown);
}

Result<void> check_function(const ScalarFunction& function, const std::string& shown,
                            const ColumnSchema& column, const std::string& keyspace,
                            const std::string& table) {
  if (function.aggregate) return not_of_aggregates(shown);
  if (function.keyspace == "system" && !function.name.starts_with(kNativePrefix))
    return fail(ErrorCode::kInvalid,
                "Not-masking function {} cannot be used for masking table columns", shown);
  if (function.keyspace != "system" && function.keyspace != keyspace)
    return fail(ErrorCode::kInvalid,
                "Masking function {} doesn't belong to the same keyspace as the table {}.{}", shown,
                keyspace, table);
  // What user-defined functions give is frozen, and their types are written without it.
  const bool same = function.keyspace == "system"
                        ? *function.return_type == *column.type
                        : *freeze(function.return_type) == *freeze(column.type);
  if (same) return {};
  return fail(ErrorCode::kInvalid,
              "Masking function {} return type is {}. This is different to the type of the masked "
              "column {} of type {}. Masking functions can only be attached to table columns if "
              "they return the same data type as the masked column.",
              shown, function.return_type->cql_text(), column.name, column.type->cql_text());
}

bool has_marker(const RawExpression& raw) {
  return raw.kind == RawExpression::Kind::kMarker || std::ranges::any_of(raw.children, has_marker);
}

/// The value of an argument, which is the same for all rows.
// Evaluated once, in the plan of the schema change: every node must show the same mask.
Result<OptionalBytes> value_of(const ast::Term& term, const Receiver& receiver,
                               ExpressionBuilder& builder, const PlanInput& input) {
  TETRAD_TRY(const ExpressionPtr made, builder.term(term, receiver));
  if (!builder.take_used_functions().is_empty())
    return fail(ErrorCode::kInvalid,
                "User-defined functions cannot be called in the arguments of a mask: {}",
                ast::to_string(term));
  base::Arena arena;
  const FunctionEnvironment environment{&input.random, input.now_us / 1000,
                                        [&input] { return input.now_us; }, nullptr};
  EvalContext evaluation{{}, arena, environment, 0, nullptr, {}};
  TETRAD_TRY(const BoundValue value, made->evaluate(evaluation));
  if (!value.has_bytes()) return std::nullopt;
  return OptionalBytes(Bytes(value.bytes));
}

// Null: this program knows no such function. Then reads fail instead of showing the value.
ScalarFunctionPtr native_mask(const ColumnMask& mask, const TypePtr& type) {
  std::vector<TypePtr> types = {type};
  types.insert(types.end(), mask.argument_types.begin(), mask.argument_types.end());
  if (is_generic_function(mask.function)) {
    auto made = make_generic_function(mask.function, types, type);
    return made ? *made : nullptr;
  }
  for (const ScalarFunctionPtr& function : find_native_functions(mask.function))
    if (equal_types(function->argument_types, types)) return function;
  return nullptr;
}

/// What is shown in place of the value in `slot` of a row.
Result<ExpressionPtr> mask_expression(const ColumnSchema& column, int32_t slot,
                                      const SchemaSnapshot& schema, const QuerySettings& settings,
                                      UsedFunctions& used) {
  const ColumnMask& mask = *column.mask;
  ScalarFunctionPtr function;
  if (mask.is_native()) {
    function = native_mask(mask, column.type);
  } else if (const KeyspaceSchema* keyspace = schema.keyspace(mask.keyspace)) {
    TETRAD_TRY_VOID(check_user_functions(settings.user_functions_enabled));
    for (const FunctionPtr& known : keyspace->functions) {
      if (!mask.calls(column.type, known->keyspace, known->name, known->argument_types)) continue;
      function = make_user_function(*known);
      used.add(known);
    }
  }
  const bool fits = function && *freeze(function->return_type) == *freeze(column.type);
  if (!fits)  // of one that was replaced, too: its values would be read as others
    return fail(ErrorCode::kInvalid, "The function of the mask {} of column {} is not there",
                mask.cql_text(), column.name);
  std::vector<ExpressionPtr> arguments;
  arguments.push_back(make_column(column.type, slot));
  for (size_t i = 0; i < mask.arguments.size(); ++i)
    arguments.push_back(make_constant(mask.argument_types[i], mask.arguments[i]));
  return make_call(std::move(function), std::move(arguments));
}

}  // namespace

Result<void> check_masks_enabled(const PlanInput& input) {
  if (!input.settings.data_masking_enabled)
    return fail(ErrorCode::kInvalid,
                "Cannot mask columns because dynamic data masking is not enabled. You can enable "
                "it with the option dynamic_data_masking_enabled.");
  // A program that does not know masks would show what they hide.
  if (input.meta.format < replication::kFormatMasks)
    return fail(ErrorCode::kInvalid,
                "Masks of columns wait until all nodes run a program that knows them");
  return {};
}

Result<ColumnMaskPtr> resolve_mask(const ast::ColumnMask& source, const ColumnSchema& column,
                                   const std::string& keyspace, const std::string& table,
                                   const PlanInput& input) {
  TETRAD_TRY_VOID(check_masks_enabled(input));
  const ast::ColumnMask written = with_function(source);
  // A table of just this column, in which the argument's name resolves; it is no key there, since
  // keys have other rules.
  TableSchema alone;
  alone.keyspace = keyspace;
  alone.name = table;
  ColumnSchema plain = column;
  plain.mask = nullptr;
  plain.kind = ColumnKind::kRegular;
  plain.id = 1;
  alone.set_columns({std::move(plain)});
  const std::vector<std::optional<std::string>> no_markers;
  const PrepareContext context{SchemaPtr(SchemaPtr(), &input.schema), keyspace, input.settings,
                               no_markers};
  BindMarkers markers(0);
  ExpressionBuilder builder(context, alone, markers);

  // In errors about the arguments the value stands as the class of its type, as in Cassandra.
  const ast::Identifier name{column.name, false, {}};
  const ast::Selector shown_value{ast::ColumnSelector{{column.type->class_name(), false, {}}}, {}};
  RawExpression call;
  call.kind = RawExpression::Kind::kFunction;
  call.function = &written.function;
  RawExpression& value = call.children.emplace_back();
  value.kind = RawExpression::Kind::kColumn;
  value.selector = &shown_value;
  value.identifiers.push_back(&name);
  for (const ast::Term& argument : written.arguments) call.children.push_back(raw_of(argument));

  const std::string shown = shown_call(written);
  if (shown.size() > kWrittenBytesMax)
    return fail(ErrorCode::kInvalid, "The mask of a column may take {} bytes at most, not {}",
                kWrittenBytesMax, shown.size());
  if (has_marker(call))
    return fail(ErrorCode::kInvalid, "Bind variables cannot be used for masks of columns");
  if (!builder.is_known(call))
    return fail(ErrorCode::kInvalid,
                "Unable to find masking function for {}, no declared function matches the "
                "signature {}",
                column.name, shown);
  if (builder.names_native_aggregate(call)) return not_of_aggregates(shown);
  TETRAD_TRY(const ScalarFunctionPtr function, builder.resolve(call, nullptr, column.name));
  TETRAD_TRY_VOID(check_function(*function, shown, column, keyspace, table));
  auto mask = std::make_shared<ColumnMask>();
  mask->keyspace = function->keyspace;
  mask->function = function->name;
  for (size_t i = 0; i < written.arguments.size(); ++i) {
    const TypePtr& type = function->argument_types[i + 1];
    TETRAD_TRY(OptionalBytes bytes,
               value_of(written.arguments[i], {"(dummy)", type, nullptr}, builder, input));
    mask->argument_types.push_back(type);
    mask->arguments.push_back(std::move(bytes));
  }
  return ColumnMaskPtr(std::move(mask));
}

Result<std::vector<MaskedSlot>> make_masks(std::span<const ColumnSchema* const> slots,
                                           const SchemaSnapshot& schema,
                                           const QuerySettings& settings, UsedFunctions& used) {
  std::vector<MaskedSlot> masks;
  if (!settings.data_masking_enabled) return masks;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i]->mask) continue;
    const auto slot = static_cast<int32_t>(i);
    TETRAD_TRY(ExpressionPtr shown, mask_expression(*slots[i], slot, schema, settings, used));
    masks.push_back({slot, std::move(shown)});
  }
  return masks;
}

// `values` is a copy of the row's values: every mask reads the row in `unmasked`.
Result<void> mask_values(std::span<const MaskedSlot> masks, EvalContext& unmasked,
                         std::vector<OptionalView>& values) {
  for (const MaskedSlot& mask : masks) {
    TETRAD_TRY(const BoundValue value, mask.shown->evaluate(unmasked));
    values[static_cast<size_t>(mask.slot)] = optional_view(value);
  }
  return {};
}

std::string tables_masked_by(const FunctionSchema& function, const KeyspaceSchema& keyspace) {
  std::string names;
  for (const auto& [name, table] : keyspace.tables) {
    const bool masked = std::ranges::any_of(table->columns(), [&](const ColumnSchema& column) {
      return column.mask && column.mask->calls(column.type, function.keyspace, function.name,
                                               function.argument_types);
    });
    if (masked) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

}  // namespace tetrad::cql
