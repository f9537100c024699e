// SPDX-License-Identifier: Apache-2.0
// The text of a view's WHERE, and back.
//
// Cassandra's system_schema.views shows operators as calls (system."_add"(1, 2)) and texts without
// their quotes doubled. The first is kept and read back as an operator. The second would not read:
// quotes are doubled here.
//
// A condition is the same on every node and for ever: values come from constants and pure native
// functions.
#include "cql/prepare/view_condition.h"

#include <algorithm>
#include <array>

#include "cql/grammar/ast_print.h"
#include "cql/grammar/parser.h"

namespace tetrad::cql {
namespace {

using ast::ArithmeticOperator;

/// Calls `visit` for the term, then for all terms in it as `visit` leaves it.
template <class Visit>
void for_each_term(ast::Term& term, const Visit& visit) {
  visit(term);
  std::visit(
      [&](auto& node) {
        if constexpr (requires { node.items; })
          for (ast::Term& item : node.items) for_each_term(item, visit);
        if constexpr (requires { node.arguments; })
          for (ast::Term& argument : node.arguments) for_each_term(argument, visit);
        if constexpr (requires { node.argument; }) for_each_term(*node.argument, visit);
        if constexpr (requires { node.fields; })
          for (auto& [name, value] : node.fields) for_each_term(value, visit);
        if constexpr (requires { node.entries; })
          for (auto& [key, value] : node.entries) {
            for_each_term(key, visit);
            for_each_term(value, visit);
          }
        if constexpr (requires { node.left; }) {
          for_each_term(*node.left, visit);
          for_each_term(*node.right, visit);
        }
      },
      term.node);
}

template <class Visit>
void for_each_term(std::vector<ast::Relation>& relations, const Visit& visit) {
  for (ast::Relation& relation : relations) {
    if (relation.element) for_each_term(*relation.element, visit);
    for (ast::Term& value : relation.values) for_each_term(value, visit);
  }
}

/// What to_string() does not quote: a text that has quotes, and names of fields.
void quote_inside(ast::Term& term) {
  if (auto* literal = std::get_if<ast::Literal>(&term.node);
      literal != nullptr && literal->kind == ast::Literal::Kind::kString) {
    const std::string quoted = ast::quote_string(literal->text);
    literal->text = quoted.substr(1, quoted.size() - 2);
  }
  if (auto* value = std::get_if<ast::UdtTerm>(&term.node))
    for (auto& [name, field] : value->fields) name.text = quote_identifier(name.text);
}

/// The operator that such a call stands for, if it is one.
void restore_operator(ast::Term& term) {
  auto* const call = std::get_if<ast::FunctionTerm>(&term.node);
  if (call == nullptr || !call->name->keyspace || call->name->keyspace->text != "system") return;
  const std::string& name = call->name->name.text;
  std::vector<ast::Term>& arguments = call->arguments;
  if (name == "_negate" && arguments.size() == 1) {
    ast::NegationTerm negation{std::move(arguments[0])};
    term.node = std::move(negation);
    return;
  }
  constexpr std::array kOperators{ArithmeticOperator::kAdd, ArithmeticOperator::kSubtract,
                                  ArithmeticOperator::kMultiply, ArithmeticOperator::kDivide,
                                  ArithmeticOperator::kModulo};
  for (const ArithmeticOperator op : kOperators) {
    if (name != ast::operator_function(op) || arguments.size() != 2) continue;
    ast::ArithmeticTerm arithmetic{op, std::move(arguments[0]), std::move(arguments[1])};
    term.node = std::move(arithmetic);
    return;
  }
}

/// Errors: kInvalid, a function that does not give the same result everywhere and always.
Result<void> check_functions(std::vector<ast::Relation> relations) {
  std::string refused;
  for_each_term(relations, [&](ast::Term& term) {
    const auto* const call = term.get_if<ast::FunctionTerm>();
    if (call == nullptr) return;
    const auto overloads = find_native_functions(call->name->name.text);
    if (!std::ranges::all_of(overloads, [](const auto& overload) { return overload->pure; }))
      refused = ast::to_string(*call->name);
  });
  if (refused.empty()) return {};
  return fail(ErrorCode::kInvalid,
              "not supported yet: the function {} in a condition of a materialized view, which "
              "must be the same on all nodes and at all times",
              refused);
}

Result<std::vector<ast::Relation>> parse_view_where(std::string_view where) {
  TETRAD_TRY(std::vector<ast::Relation> relations, parse_where(where));
  restore_operators(relations);
  return relations;
}

/// What SELECT's WHERE is built with.
class Preparation {
 public:
  Preparation(const TableSchema& base, const SchemaSnapshot& schema)
      // Borrowed for the time of the preparation.
      : context_{SchemaPtr(SchemaPtr(), &schema), base.keyspace, settings_, no_markers_},
        builder_(context_, base, markers_) {
    settings_.user_functions_enabled = true;  // they are refused by name below
  }

  Result<Restrictions> build(const std::vector<ast::Relation>& relations) {
    TETRAD_TRY_VOID(check_no_view_markers(relations));
    TETRAD_TRY_VOID(check_functions(relations));
    TETRAD_TRY(Restrictions restrictions,
               Restrictions::build(relations, builder_, WhereOf::kView, true, false));
    if (!builder_.take_used_functions().is_empty()) {
      return fail(ErrorCode::kInvalid,
                  "not supported yet: user-defined functions in a condition of a materialized "
                  "view");
    }
    return restrictions;
  }
  /// By slot of the filters.
  const std::vector<const ColumnSchema*>& slots() const { return builder_.slots(); }

 private:
  QuerySettings settings_;
  const std::vector<std::optional<std::string>> no_markers_;
  const PrepareContext context_;
  BindMarkers markers_{0};
  ExpressionBuilder builder_;
};

}  // namespace

Result<ViewConditionPtr> ViewCondition::read(std::string_view where, TablePtr base,
                                             const SchemaSnapshot& types) {
  TETRAD_TRY(const std::vector<ast::Relation> relations, parse_view_where(where));
  std::shared_ptr<ViewCondition> out(new ViewCondition(std::move(base)));
  TETRAD_TRY_VOID(out->bind(relations, types));
  if (out->filters_.empty()) return nullptr;
  return out;
}

Result<void> ViewCondition::bind(const std::vector<ast::Relation>& relations,
                                 const SchemaSnapshot& types) {
  Preparation preparation(*base_, types);
  TETRAD_TRY(restrictions_, preparation.build(relations));
  const FunctionEnvironment functions;
  EvalContext context{{}, arena_, functions};
  TETRAD_TRY(filters_, restrictions_.bind_filters(context));
  for (const ColumnSchema* const column : preparation.slots()) {
    if (!column->is_primary_key()) {
      return fail(ErrorCode::kInvalid, "a condition of a materialized view on column {}",
                  column->name);
    }
    places_.push_back(column->position + (column->kind == ColumnKind::kClustering
                                              ? base_->partition_key().size()
                                              : 0));
  }
  return {};
}

bool ViewCondition::matches(std::span<const BytesView> key) const {
  RowView row;
  row.values.reserve(places_.size());
  for (const size_t place : places_) row.values.emplace_back(key[place]);
  return std::ranges::all_of(filters_,
                             [&](const BoundFilter& filter) { return filter.matches(row); });
}

void restore_operators(std::vector<ast::Relation>& relations) {
  for_each_term(relations, restore_operator);
}

Result<void> check_no_view_markers(std::vector<ast::Relation> relations) {
  bool has_marker = false;
  for_each_term(relations, [&](ast::Term& term) {
    has_marker = has_marker || term.get_if<ast::BindMarker>() != nullptr;
  });
  if (!has_marker) return {};
  return fail(ErrorCode::kInvalid,
              "Bind variables are not allowed in CREATE MATERIALIZED VIEW statements");
}

Result<void> check_view_relations(const std::vector<ast::Relation>& relations,
                                  const TableSchema& base, const SchemaSnapshot& schema) {
  TETRAD_TRY([[maybe_unused]] const Restrictions checked,
             Preparation(base, schema).build(relations));
  return {};
}

std::string view_where_text(std::vector<ast::Relation> relations) {
  for_each_term(relations, quote_inside);
  std::string text;
  for (const ast::Relation& relation : relations)
    text += (text.empty() ? "" : " AND ") + ast::to_string(relation);
  return text;
}

Result<std::string> renamed_in_where(std::string_view where, std::string_view from,
                                     const std::string& to) {
  TETRAD_TRY(std::vector<ast::Relation> relations, parse_view_where(where));
  for (ast::Relation& relation : relations)
    for (ast::Identifier& column : relation.columns)
      if (column.text == from) column.text = to;
  return view_where_text(std::move(relations));
}

Result<std::string> view_with_condition(const SchemaSnapshot& schema,
                                        const KeyspaceSchema& keyspace) {
  std::string first;
  for (const auto& [name, table] : keyspace.tables) {
    if (!table->view) continue;
    const TablePtr base = schema.table(keyspace.name, table->view->base_table);
    if (base == nullptr) continue;
    const auto condition = ViewCondition::read(table->view->where, base, schema);
    if (!condition)
      return fail(ErrorCode::kInvalid, "the condition of materialized view {}.{}: {}",
                  keyspace.name, name, condition.error().message);
    if (*condition != nullptr && first.empty()) first = name;
  }
  return first;
}

}  // namespace tetrad::cql
