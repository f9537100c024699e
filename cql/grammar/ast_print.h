// SPDX-License-Identifier: Apache-2.0
// Prints parts of a tree back as Cassandra shows them in messages and result names.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cql/grammar/ast.h"

namespace tetrad::cql::ast {

/// 'text' with ' doubled.
std::string quote_string(std::string_view text);

std::string to_string(const Identifier& name);
std::string to_string(const QualifiedName& name);
std::string to_string(const FunctionName& name);
/// The class of a type in quotes, with its package, as far as what is written looks like a name.
std::string full_class_name(const CqlType& type);
std::string to_string(const CqlType& type);
std::string to_string(const Literal& literal);
std::string to_string(const Term& term);
std::string to_string(const Selector& selector);
std::string to_string(const Relation& relation);
std::string to_string(const Condition& condition);

/// The name of an operator's function, `_add`.
std::string_view operator_function(ArithmeticOperator op);

/// With the keyspace at the names of users' types that have none, or at the quoted ones of these:
/// so `"text"` is no native type.
CqlType in_keyspace(CqlType type, std::string_view keyspace, bool quoted_only);

/// Gives a function's full name once it is known which is meant: `now` becomes `system.now`.
using FunctionNamer = std::function<std::string(const FunctionName&)>;

/// The name of a result column without an alias: `count` for count(*), `ttl(v)`, `system.now()`,
/// `cast(a as int)`, `m['a']`, `a + b`. Column names stand without quotes. A cast that
/// `casts_nothing` (may be empty) is left out. Types stand as they came to be: frozen inside of
/// tuples, those of users with their keyspace, `keyspace` where they are written without one.
using CastTest = std::function<bool(const CastSelector&)>;
std::string result_name(const Selector& selector, const FunctionNamer& namer,
                        const CastTest& casts_nothing = {}, std::string_view keyspace = {});

}  // namespace tetrad::cql::ast
