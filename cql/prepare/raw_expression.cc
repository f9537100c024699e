// SPDX-License-Identifier: Apache-2.0
// The tree's terms and selectors in one shape.
//
// The grammar has two sets of nodes: terms (values in WHERE, SET, VALUES) and selectors (items of a
// select list). Most of them mean the same, and a selector may contain terms. ExpressionBuilder
// sees the shape of this file alone, so each rule about types and functions stands once.
//
// A RawExpression keeps pointers into the tree and owns its children. It lives as long as one term
// or item is being prepared.
#include "cql/grammar/ast_print.h"
#include "cql/prepare/expression_builder.h"

namespace tetrad::cql {

namespace {

using Kind = RawExpression::Kind;

/// For std::visit: one lambda for each type of node; a node without a lambda does not compile.
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

/// Children in the order of the text.
template <class Items>
void add_all(RawExpression& raw, const Items& items) {
  raw.children.reserve(items.size());
  for (const auto& item : items) raw.children.push_back(raw_of(item));
}

}  // namespace

// One table, as the one for selectors below. {a: 1} may come as a map where a user type is meant:
// the receiver's type decides.
RawExpression raw_of(const ast::Term& term) {
  RawExpression raw;
  raw.term = &term;
  std::visit(Overloaded{
                 [&](const ast::Literal& node) {
                   raw.kind = Kind::kLiteral;
                   raw.literal = &node;
                 },
                 [&](const ast::BindMarker& node) {
                   raw.kind = Kind::kMarker;
                   raw.marker = &node;
                 },
                 [&](const ast::ListTerm& node) {
                   raw.kind = Kind::kList;
                   add_all(raw, node.items);
                 },
                 [&](const ast::SetTerm& node) {
                   raw.kind = Kind::kSet;
                   add_all(raw, node.items);
                 },
                 [&](const ast::MapTerm& node) {
                   raw.kind = Kind::kMap;
                   for (const auto& [key, value] : node.entries) {
                     raw.children.push_back(raw_of(key));
                     raw.children.push_back(raw_of(value));
                   }
                 },
                 [&](const ast::UdtTerm& node) {
                   raw.kind = Kind::kUdt;
                   for (const auto& [field, value] : node.fields) {
                     raw.identifiers.push_back(&field);
                     raw.children.push_back(raw_of(value));
                   }
                 },
                 [&](const ast::TupleTerm& node) {
                   raw.kind = Kind::kTuple;
                   add_all(raw, node.items);
                 },
                 [&](const ast::FunctionTerm& node) {
                   raw.kind = Kind::kFunction;
                   raw.function = &*node.name;
                   add_all(raw, node.arguments);
                 },
                 [&](const ast::TypeCastTerm& node) {
                   raw.kind = Kind::kTypeHint;
                   raw.type = &*node.type;
                   raw.children.push_back(raw_of(*node.argument));
                 },
                 [&](const ast::ArithmeticTerm& node) {
                   raw.kind = Kind::kArithmetic;
                   raw.op = node.op;
                   raw.children.push_back(raw_of(*node.left));
                   raw.children.push_back(raw_of(*node.right));
                 },
                 [&](const ast::NegationTerm& node) {
                   raw.kind = Kind::kNegation;
                   raw.children.push_back(raw_of(*node.argument));
                 },
             },
             term.node);
  return raw;
}

// One table: each node of a selector and what it becomes; the counterpart of raw_of() for terms.
RawExpression raw_of(const ast::Selector& selector) {
  // A constant or marker in a select list: the term's shape, shown as a selector in errors and
  // names.
  if (const auto* term = selector.get_if<ast::TermSelector>()) {
    RawExpression raw = raw_of(term->term);
    raw.selector = &selector;
    return raw;
  }
  RawExpression raw;
  raw.selector = &selector;
  std::visit(Overloaded{
                 [&](const ast::ColumnSelector& node) {
                   raw.kind = Kind::kColumn;
                   raw.identifiers.push_back(&node.name);
                 },
                 [&](const ast::TermSelector&) {},
                 [&](const ast::CountRowsSelector&) { raw.kind = Kind::kCountRows; },
                 [&](const ast::WriteTimeSelector& node) {
                   raw.kind = Kind::kTimes;
                   raw.times = node.kind;
                   raw.children.push_back(raw_of(*node.target));
                 },
                 [&](const ast::FunctionSelector& node) {
                   raw.kind = Kind::kFunction;
                   raw.function = &*node.name;
                   add_all(raw, node.arguments);
                 },
                 [&](const ast::CastSelector& node) {
                   raw.kind = Kind::kCast;
                   raw.type = &*node.type;
                   raw.children.push_back(raw_of(*node.argument));
                 },
                 [&](const ast::FieldSelector& node) {
                   raw.kind = Kind::kField;
                   raw.identifiers.push_back(&node.field);
                   raw.children.push_back(raw_of(*node.source));
                 },
                 [&](const ast::ElementSelector& node) {
                   raw.kind = Kind::kElement;
                   raw.children.push_back(raw_of(*node.source));
                   raw.children.push_back(raw_of(node.key));
                 },
                 [&](const ast::SliceSelector& node) {
                   raw.kind = Kind::kSlice;
                   raw.children.push_back(raw_of(*node.source));
                   raw.children.push_back(node.lower ? raw_of(*node.lower) : RawExpression());
                   raw.children.push_back(node.upper ? raw_of(*node.upper) : RawExpression());
                 },
                 [&](const ast::TupleSelector& node) {
                   raw.kind = Kind::kTuple;
                   add_all(raw, node.items);
                 },
                 [&](const ast::ListSelector& node) {
                   raw.kind = Kind::kList;
                   add_all(raw, node.items);
                 },
                 [&](const ast::SetSelector& node) {
                   raw.kind = Kind::kSet;
                   add_all(raw, node.items);
                 },
                 [&](const ast::MapSelector& node) {
                   raw.kind = Kind::kMap;
                   for (const auto& [key, value] : node.entries) {
                     raw.children.push_back(raw_of(key));
                     raw.children.push_back(raw_of(value));
                   }
                 },
                 [&](const ast::TypeHintSelector& node) {
                   raw.kind = Kind::kTypeHint;
                   raw.type = &*node.type;
                   raw.children.push_back(raw_of(*node.argument));
                 },
                 [&](const ast::ArithmeticSelector& node) {
                   raw.kind = Kind::kArithmetic;
                   raw.op = node.op;
                   raw.children.push_back(raw_of(*node.left));
                   raw.children.push_back(raw_of(*node.right));
                 },
                 [&](const ast::NegationSelector& node) {
                   raw.kind = Kind::kNegation;
                   raw.children.push_back(raw_of(*node.argument));
                 },
             },
             selector.node);
  return raw;
}

// A term as it was written; a selector as the column of the result is named after it, with
// functions in full. Both texts are in Cassandra's errors.
std::string RawExpression::text(std::string_view keyspace) const {
  if (term != nullptr && kind == Kind::kTypeHint) {
    return fmt::format("({}){}", ast::to_string(ast::in_keyspace(*type, keyspace, false)),
                       children[0].text(keyspace));
  }
  if (term != nullptr) return ast::to_string(*term);
  if (selector != nullptr) {
    const auto full_name = [](const ast::FunctionName& name) {
      return name.keyspace ? ast::to_string(name) : "system." + ast::to_string(name);
    };
    return ast::result_name(*selector, full_name, {}, keyspace);
  }
  return {};
}

}  // namespace tetrad::cql
