// SPDX-License-Identifier: Apache-2.0
// A partition key as operators write it: nodetool's getendpoints.
//
// The example "k1:a\:b" is a key of two columns, "k1" and "a:b".
#pragma once

#include <string_view>

#include "base/result.h"
#include "cql/schema/table_schema.h"

namespace tetrad::cql {

/// The bytes of a partition key. `text`: the value as AbstractType.fromString reads it (literal.h);
/// of several columns with ':' between them, "\:" is a colon of a value. Errors: kInvalid.
Result<Bytes> partition_key_of_text(const TableSchema& table, std::string_view text);

}  // namespace tetrad::cql
