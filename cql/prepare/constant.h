// SPDX-License-Identifier: Apache-2.0
// Constants of CQL: which types one may stand for, and its bytes as such a type.
#pragma once

#include "cql/grammar/ast_terms.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// The type a constant has where nothing else tells; null for null.
TypePtr preferred_type(const ast::Literal& literal);
/// Whether the constant may stand where `type` is wanted.
Assignability test_constant(const ast::Literal& literal, const DataType& type);
/// Its bytes; nullopt for null. Errors: kInvalid with Cassandra's texts.
Result<OptionalBytes> parse_constant(const ast::Literal& literal, const TypePtr& type);
/// "INTEGER", "STRING" … as messages name it.
std::string_view kind_name(ast::Literal::Kind kind);

}  // namespace tetrad::cql
