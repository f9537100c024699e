// SPDX-License-Identifier: Apache-2.0
// Terms: what may stand for a value outside a select list. No term names a column.
//
// A term has no type of its own before the statement is prepared: `1` may become an int, a bigint,
// a varint, a counter or a decimal, as the column or the argument that receives it says.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cql/grammar/ast_types.h"

namespace tetrad::cql::ast {

/// A constant. The text is checked for its shape only, never for its range.
/// Whether the type that receives it can hold it is decided by cql/types/literal.h when the
/// statement is prepared.
struct Literal {
  /// How the constant was written, which decides the types that it may stand for.
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

/// What can be bound: the protocol counts the values of a request with 16 bits.
inline constexpr size_t kBindMarkersMax = 65'535;

/// `?` or `:name`. Indexes follow the text from 0; the same name twice has two indexes.
/// Values of an EXECUTE come in the order of the indexes, or by name (native protocol v5, 4.1.4).
struct BindMarker {
  int32_t index = 0;
  std::optional<std::string> name;
};

struct Term;

/// [a, b]: a list or a vector.
struct ListTerm {
  std::vector<Term> items;
};
/// {a, b}; without items: an empty set or an empty map.
struct SetTerm {
  std::vector<Term> items;
};
/// {a: b}, at least one entry.
/// `{}` is no MapTerm but an empty SetTerm: only the receiver tells them apart.
struct MapTerm {
  std::vector<std::pair<Term, Term>> entries;
};
/// {field: b}, at least one field.
/// Fields may be left out, which makes them null, and come in any order.
struct UdtTerm {
  std::vector<std::pair<Identifier, Term>> fields;
};
/// (a, b); of one item: a tuple of one or parentheses, as the receiver's type says.
struct TupleTerm {
  std::vector<Term> items;
};
/// f(a, b); CAST(a AS int) is written as system.cast_as_int(a).
struct FunctionTerm {
  Box<FunctionName> name;  // boxed, as the type below, to keep terms small
  std::vector<Term> arguments;
};
/// (int) a: a is of that type; no conversion.
/// It chooses among overloads and gives a marker its type.
struct TypeCastTerm {
  Box<CqlType> type;
  Box<Term> argument;
};

/// The operators between two terms or two selectors.
enum class ArithmeticOperator : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kModulo };
/// '+', '-', '*', '/' or '%'.
char arithmetic_symbol(ArithmeticOperator op);

/// left op right, grouped by precedence.
/// * / % bind tighter than + and -, and operators of one rank group from the left. Dates and
/// durations may be added, too; which types go together is prepare/arithmetic.cc.
struct ArithmeticTerm {
  ArithmeticOperator op;
  Box<Term> left, right;
};
/// - f(x); a sign before a number belongs to the literal.
struct NegationTerm {
  Box<Term> argument;
};

// The order is of no meaning to anybody; Box keeps the size of a Term small where a node holds
// another one.
using TermVariant =
    std::variant<Literal, BindMarker, ListTerm, SetTerm, MapTerm, UdtTerm, TupleTerm, FunctionTerm,
                 TypeCastTerm, ArithmeticTerm, NegationTerm>;

/// A term and the place where it begins. Its depth is at most ParseLimits::depth_max, so that
/// functions may recurse over it.
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
