// SPDX-License-Identifier: Apache-2.0
// Terms: what may stand for a value outside a select list. No term names a column.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cql/grammar/ast_types.h"

namespace tetrad::cql::ast {

/// A constant. The text is checked for its shape only, never for its range.
struct Literal {
  enum class Kind : uint8_t {
    kNull,      // "null"
    kString,    // the characters meant: quotes off, '' undoubled, or what stands between $$ and $$
    kInteger,   // "-12", of any length
    kFloat,     // "-1.5e10", "NaN", "-NaN", "Infinity", "-Infinity"
    kBoolean,   // true or false in any case, as written
    kUuid,      // as written
    kHex,       // "0x…" as written
    kDuration,  // "1y2mo" or "P1Y2M" with a "-" before it if there was one, as written
  };
  Kind kind = Kind::kNull;
  std::string text;
};

/// `?` or `:name`. Indexes follow the text from 0; the same name twice has two indexes.
struct BindMarker {
  int32_t index = 0;
  std::optional<std::string> name;
};

struct Term;

struct ListTerm {  // [a, b]: a list or a vector
  std::vector<Term> items;
};
struct SetTerm {  // {a, b}; without items: an empty set or an empty map
  std::vector<Term> items;
};
struct MapTerm {  // {a: b}, at least one entry
  std::vector<std::pair<Term, Term>> entries;
};
struct UdtTerm {  // {field: b}, at least one field
  std::vector<std::pair<Identifier, Term>> fields;
};
struct TupleTerm {  // (a, b); of one item: a tuple of one or parentheses, as the receiver's type
                    // says
  std::vector<Term> items;
};
struct FunctionTerm {      // f(a, b); CAST(a AS int) is written as system.cast_as_int(a)
  Box<FunctionName> name;  // boxed, as the type below, to keep terms small
  std::vector<Term> arguments;
};
struct TypeCastTerm {  // (int) a
  Box<CqlType> type;
  Box<Term> argument;
};

enum class ArithmeticOperator : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kModulo };
/// '+', '-', '*', '/' or '%'.
char arithmetic_symbol(ArithmeticOperator op);

struct ArithmeticTerm {
  ArithmeticOperator op;
  Box<Term> left, right;
};
struct NegationTerm {  // - f(x); a sign before a number belongs to the literal
  Box<Term> argument;
};

using TermVariant =
    std::variant<Literal, BindMarker, ListTerm, SetTerm, MapTerm, UdtTerm, TupleTerm, FunctionTerm,
                 TypeCastTerm, ArithmeticTerm, NegationTerm>;

struct Term {
  TermVariant node;
  Position position;

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&node);
  }
  bool is_null() const {
    const auto* literal = get_if<Literal>();
    return literal != nullptr && literal->kind == Literal::Kind::kNull;
  }
};

}  // namespace tetrad::cql::ast
