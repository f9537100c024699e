// SPDX-License-Identifier: Apache-2.0
// Trees as text, for names of result columns, error texts and DESCRIBE. Clients compare these
// texts, so spaces, quotes and even misspellings are Cassandra's.
#include "cql/grammar/ast_print.h"

#include <algorithm>

#include <fmt/format.h>

namespace tetrad::cql::ast {
namespace {

// One visitor of several lambdas.
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

// Prints the items with ", " between them.
template <class Items, class Print>
std::string joined(const Items& items, Print print) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += print(item);
  }
  return text;
}

// Recursive through to_string().
std::string print_terms(const std::vector<Term>& terms) {
  return joined(terms, [](const Term& t) { return to_string(t); });
}

/// As Cassandra prints them: in the order in which a HashMap of Java has these names.
std::vector<const std::pair<Identifier, Term>*> fields_in_order(const UdtTerm& term) {
  // Java's HashMap doubles its buckets when three quarters are in use.
  size_t buckets = 16;
  while (term.fields.size() > buckets / 4 * 3) buckets *= 2;
  std::vector<std::pair<uint32_t, const std::pair<Identifier, Term>*>> fields;
  fields.reserve(term.fields.size());
  for (const auto& field : term.fields) {
    const std::string& name = field.first.text;
    // The hash of a ByteBuffer in Java: from the last byte to the first, bytes with a sign. A
    // HashMap mixes in the upper half and grows at three quarters.
    uint32_t hash = 1;
    for (auto byte = name.rbegin(); byte != name.rend(); ++byte)
      hash = 31 * hash + static_cast<uint32_t>(static_cast<int8_t>(*byte));
    fields.emplace_back((hash ^ (hash >> 16)) % buckets, &field);
  }
  std::ranges::stable_sort(fields, {}, [](const auto& field) { return field.first; });
  std::vector<const std::pair<Identifier, Term>*> out;
  for (const auto& field : fields) out.push_back(field.second);
  return out;
}

// Selectors as result names show them: every name bare.
class SelectorPrinter {
 public:
  SelectorPrinter(const FunctionNamer& namer, const CastTest& casts_nothing,
                  std::string_view keyspace)
      : namer_(namer), casts_nothing_(casts_nothing), keyspace_(keyspace) {}

  // Recursive over the tree, whose depth the parser has bounded.
  std::string print(const Selector& selector) const {
    return std::visit([this](const auto& node) { return print_node(node); }, selector.node);
  }

 private:
  std::string print_all(const std::vector<Selector>& items) const {
    return joined(items, [this](const Selector& s) { return print(s); });
  }
  // One for each kind of node, so that a new one does not compile without.
  std::string print_node(const ColumnSelector& node) const { return node.name.text; }
  std::string print_node(const TermSelector& node) const { return to_string(node.term); }
  // Also when count(1) was written.
  std::string print_node(const CountRowsSelector&) const { return "count"; }
  std::string print_node(const WriteTimeSelector& node) const {
    using Kind = WriteTimeSelector::Kind;
    const std::string_view function = node.kind == Kind::kTtl         ? "ttl"
                                      : node.kind == Kind::kWriteTime ? "writetime"
                                                                      : "maxwritetime";
    return fmt::format("{}({})", function, print(*node.target));
  }
  // With the name that the namer gives, since two functions may have one name.
  std::string print_node(const FunctionSelector& node) const {
    return fmt::format("{}({})", namer_(*node.name), print_all(node.arguments));
  }
  // A cast to the type that the argument has already does nothing, and Cassandra leaves it out of
  // the name.
  std::string print_node(const CastSelector& node) const {
    if (casts_nothing_ && casts_nothing_(node)) return print(*node.argument);
    return fmt::format("cast({} as {})", print(*node.argument), to_string(*node.type));
  }
  std::string print_node(const FieldSelector& node) const {
    return fmt::format("{}.{}", print(*node.source), node.field.text);
  }
  std::string print_node(const ElementSelector& node) const {
    return fmt::format("{}[{}]", print(*node.source), to_string(node.key));
  }
  std::string print_node(const SliceSelector& node) const {
    return fmt::format("{}[{}..{}]", print(*node.source), node.lower ? to_string(*node.lower) : "",
                       node.upper ? to_string(*node.upper) : "");
  }
  std::string print_node(const TupleSelector& node) const {
    return fmt::format("({})", print_all(node.items));
  }
  std::string print_node(const ListSelector& node) const {
    return fmt::format("[{}]", print_all(node.items));
  }
  std::string print_node(const SetSelector& node) const {
    return fmt::format("{{{}}}", print_all(node.items));
  }
  // Also a user type's literal, whose names are columns to the grammar.
  std::string print_node(const MapSelector& node) const {
    return fmt::format("{{{}}}", joined(node.entries, [this](const auto& entry) {
                         return fmt::format("{}: {}", print(entry.first), print(entry.second));
                       }));
  }
  std::string print_node(const TypeHintSelector& node) const {
    return fmt::format("({}){}",
                       to_string(as_made(in_keyspace(*node.type, keyspace_, false), false)),
                       print(*node.argument));
  }
  std::string print_node(const ArithmeticSelector& node) const {
    return fmt::format("{} {} {}", print(*node.left), arithmetic_symbol(node.op),
                       print(*node.right));
  }
  std::string print_node(const NegationSelector& node) const {
    return fmt::format("-{}", print(*node.argument));
  }

  /// What is inside of something frozen, or of a tuple, is frozen; of tuples and vectors themselves
  /// it is not said.
  CqlType as_made(CqlType type, bool inside) const {
    const bool is_tuple = type.kind == CqlType::Kind::kTuple;
    const bool is_marked = !is_tuple && type.kind != CqlType::Kind::kVector &&
                           type.kind != CqlType::Kind::kNative &&
                           type.kind != CqlType::Kind::kCustom;
    const bool is_frozen = is_tuple || type.frozen || inside;
    type.frozen = is_marked && is_frozen;
    for (CqlType& parameter : type.parameters) {
      parameter = as_made(std::move(parameter), is_frozen);
    }
    return type;
  }

  // The caller's, for the time of one call.
  const FunctionNamer& namer_;
  const CastTest& casts_nothing_;
  const std::string_view keyspace_;
};

// The right side of a relation or a condition; a marker is "?" whether it has a name or not.
std::string print_values(RelationOperator op, bool in_marker, const std::vector<Term>& values) {
  switch (op) {
    case RelationOperator::kIsNotNull:
      return "";
    case RelationOperator::kIn:
    case RelationOperator::kNotIn:
      return in_marker ? "?" : fmt::format("({})", print_terms(values));
    case RelationOperator::kBetween:
      return fmt::format("{} AND {}", to_string(values[0]), to_string(values[1]));
    default:
      return to_string(values[0]);
  }
}

}  // namespace

// Cassandra's functions behind the operators, which errors and names show.
std::string_view operator_function(ArithmeticOperator op) {
  switch (op) {
    case ArithmeticOperator::kAdd:
      return "_add";
    case ArithmeticOperator::kSubtract:
      return "_substract";  // spelled as Cassandra does
    case ArithmeticOperator::kMultiply:
      return "_multiply";
    case ArithmeticOperator::kDivide:
      return "_divide";
    case ArithmeticOperator::kModulo:
      return "_modulo";
  }
  return "";
}

char arithmetic_symbol(ArithmeticOperator op) {
  switch (op) {
    case ArithmeticOperator::kAdd:
      return '+';
    case ArithmeticOperator::kSubtract:
      return '-';
    case ArithmeticOperator::kMultiply:
      return '*';
    case ArithmeticOperator::kDivide:
      return '/';
    case ArithmeticOperator::kModulo:
      return '%';
  }
  return '?';
}

// One table, in Cassandra's words.
std::string_view relation_operator_name(RelationOperator op) {
  switch (op) {
    case RelationOperator::kEqual:
      return "=";
    case RelationOperator::kNotEqual:
      return "!=";
    case RelationOperator::kLess:
      return "<";
    case RelationOperator::kLessOrEqual:
      return "<=";
    case RelationOperator::kGreater:
      return ">";
    case RelationOperator::kGreaterOrEqual:
      return ">=";
    case RelationOperator::kIn:
      return "IN";
    case RelationOperator::kNotIn:
      return "NOT IN";
    case RelationOperator::kContains:
      return "CONTAINS";
    case RelationOperator::kContainsKey:
      return "CONTAINS KEY";
    case RelationOperator::kNotContains:
      return "NOT CONTAINS";
    case RelationOperator::kNotContainsKey:
      return "NOT CONTAINS KEY";
    case RelationOperator::kBetween:
      return "BETWEEN";
    case RelationOperator::kLike:
      return "LIKE";
    case RelationOperator::kIsNotNull:
      return "IS NOT NULL";
    case RelationOperator::kCustomIndex:
      return "expr";
  }
  return "";
}

// For texts that are read again: DESCRIBE and schema texts.
std::string quote_string(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) {
    quoted.push_back(c);
    if (c == '\'') quoted.push_back(c);
  }
  quoted.push_back('\'');
  return quoted;
}

std::string to_string(const Identifier& name) { return quote_identifier(name.text); }

std::string to_string(const QualifiedName& name) {
  return name.keyspace ? fmt::format("{}.{}", to_string(*name.keyspace), to_string(name.name))
                       : to_string(name.name);
}

std::string to_string(const FunctionName& name) {
  // token is a reserved word and yet stands bare.
  const std::string function = name.name.text == "token" ? "token" : to_string(name.name);
  return name.keyspace ? fmt::format("{}.{}", to_string(*name.keyspace), function) : function;
}

// Cassandra completes a class without a package before it looks for it, and messages show the
// completed name. Parameters in parentheses are left as written.
std::string full_class_name(const CqlType& type) {
  constexpr std::string_view kNameCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.&$";
  const std::string_view written = type.class_name;
  if (written.find('(') != std::string_view::npos) return type.class_name;
  const std::string_view name = written.substr(0, written.find_first_not_of(kNameCharacters));
  if (name.find('.') != std::string_view::npos) return std::string(name);
  return fmt::format("org.apache.cassandra.db.marshal.{}", name.empty() ? "BytesType" : name);
}

// As Cassandra's CQL3Type.Raw prints it, which is not always how it was written.
std::string to_string(const CqlType& type) {
  const auto parameters = [&] {
    return joined(type.parameters, [](const CqlType& t) { return to_string(t); });
  };
  std::string text;
  switch (type.kind) {
    case CqlType::Kind::kNative:
      text = keyword_text(type.native);
      break;
    case CqlType::Kind::kList:
      text = fmt::format("list<{}>", parameters());
      break;
    case CqlType::Kind::kSet:
      text = fmt::format("set<{}>", parameters());
      break;
    case CqlType::Kind::kMap:
      text = fmt::format("map<{}>", parameters());
      break;
    case CqlType::Kind::kTuple:
      text = fmt::format("tuple<{}>", parameters());
      break;
    case CqlType::Kind::kVector:
      text = fmt::format("vector<{}, {}>", parameters(), type.dimension);
      break;
    case CqlType::Kind::kUser:
      text = to_string(type.name);
      break;
    case CqlType::Kind::kCustom:
      text = fmt::format("'{}'", full_class_name(type));
      break;
  }
  return type.frozen ? fmt::format("frozen<{}>", text) : text;
}

// By value: a type in a message is printed once.
CqlType in_keyspace(CqlType type, std::string_view keyspace, bool quoted_only) {
  if (type.kind == CqlType::Kind::kUser && !type.name.keyspace && !keyspace.empty() &&
      (type.name.name.quoted || !quoted_only)) {
    type.name.keyspace = Identifier{std::string(keyspace), false, {}};
  }
  for (CqlType& parameter : type.parameters) {
    parameter = in_keyspace(std::move(parameter), keyspace, quoted_only);
  }
  return type;
}

std::string to_string(const Literal& literal) {
  // Cassandra does not double the quotes again.
  return literal.kind == Literal::Kind::kString ? fmt::format("'{}'", literal.text) : literal.text;
}

std::string to_string(const Term& term) {
  return std::visit(
      Overloaded{[](const Literal& t) { return to_string(t); },
                 [](const BindMarker&) { return std::string("?"); },
                 [](const ListTerm& t) { return fmt::format("[{}]", print_terms(t.items)); },
                 [](const SetTerm& t) { return fmt::format("{{{}}}", print_terms(t.items)); },
                 [](const MapTerm& t) {
                   return fmt::format("{{{}}}", joined(t.entries, [](const auto& entry) {
                                        return fmt::format("{}: {}", to_string(entry.first),
                                                           to_string(entry.second));
                                      }));
                 },
                 [](const UdtTerm& t) {
                   return fmt::format("{{{}}}", joined(fields_in_order(t), [](const auto* entry) {
                                        return fmt::format("{}: {}", entry->first.text,
                                                           to_string(entry->second));
                                      }));
                 },
                 [](const TupleTerm& t) { return fmt::format("({})", print_terms(t.items)); },
                 [](const FunctionTerm& t) {
                   return fmt::format("{}({})", to_string(*t.name), print_terms(t.arguments));
                 },
                 [](const TypeCastTerm& t) {
                   return fmt::format("({}){}", to_string(*t.type), to_string(*t.argument));
                 },
                 // Terms with operators are calls of functions to Cassandra, and messages show
                 // these.
                 [](const ArithmeticTerm& t) {
                   return fmt::format("system.\"{}\"({}, {})", operator_function(t.op),
                                      to_string(*t.left), to_string(*t.right));
                 },
                 [](const NegationTerm& t) {
                   return fmt::format("system.\"_negate\"({})", to_string(*t.argument));
                 }},
      term.node);
}

std::string result_name(const Selector& selector, const FunctionNamer& namer,
                        const CastTest& casts_nothing, std::string_view keyspace) {
  return SelectorPrinter(namer, casts_nothing, keyspace).print(selector);
}

std::string to_string(const Selector& selector) {
  const FunctionNamer as_written = [](const FunctionName& name) { return to_string(name); };
  return result_name(selector, as_written);
}

// "a = 1", "token(a, b) > ?", "(a, b) IN ((1, 2))": as errors of WHERE quote relations.
std::string to_string(const Relation& relation) {
  const auto columns = [&] {
    return joined(relation.columns, [](const Identifier& i) { return to_string(i); });
  };
  std::string target;
  switch (relation.target) {
    case Relation::Target::kColumn:
      target = columns();
      break;
    case Relation::Target::kElement:
      target = fmt::format("{}[{}]", columns(), to_string(*relation.element));
      break;
    case Relation::Target::kTuple:
      target = fmt::format("({})", columns());
      break;
    case Relation::Target::kToken:
      target = fmt::format("token({})", columns());
      break;
    case Relation::Target::kCustomIndex:
      // Without a blank behind the comma, as Cassandra.
      return fmt::format("expr({},{})", to_string(*relation.index), to_string(relation.values[0]));
    case Relation::Target::kChangeFeed:
      target = "COSMOS_CHANGEFEED_START_TIME()";
      break;
  }
  const std::string values = print_values(relation.op, relation.in_marker, relation.values);
  return fmt::format("{} {}{}{}", target, relation_operator_name(relation.op),
                     values.empty() ? "" : " ", values);
}

// "a[1] = 2", "a.b IN (1, 2)": as errors of IF quote conditions.
std::string to_string(const Condition& condition) {
  std::string target = to_string(condition.column);
  if (condition.element) target += fmt::format("[{}]", to_string(*condition.element));
  if (condition.field) target += fmt::format(".{}", to_string(*condition.field));
  const std::string values = print_values(condition.op, condition.in_marker, condition.values);
  return fmt::format("{} {}{}{}", target, relation_operator_name(condition.op),
                     values.empty() ? "" : " ", values);
}

}  // namespace tetrad::cql::ast
