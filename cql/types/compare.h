// SPDX-License-Identifier: Apache-2.0
// CQL's order of two values of a type, as Cassandra's comparators. Equal here means "the same
// clustering value or set element", even where the bytes differ (decimal 1.0 and 1.00).
#pragma once

#include "base/bytes.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// -1, 0 or 1. An empty value sorts before all others. Collections with a count below zero are the
/// empty one, as they are wherever they are read (Cassandra sorts them before it). The values
/// should be valid for the type; for bytes that are not, the order is some fixed order, and nothing
/// is read past the end.
int compare(const DataType& type, BytesView a, BytesView b);

/// Null first, then empty, then values.
int compare_nullable(const DataType& type, OptionalView a, OptionalView b);

}  // namespace tetrad::cql
