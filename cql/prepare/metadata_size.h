// SPDX-License-Identifier: Apache-2.0
// A bound on what the columns of a result, and the markers of a statement, take in answers: each
// spells its type in full, and types of user types are long.
#pragma once

#include <span>

#include "cql/prepare/prepared_statement.h"

namespace tetrad::cql {

/// What the metadata of one answer may take; rows come beside it.
inline constexpr size_t kMetadataBytesMax = 8u << 20;

/// `columns`: of a result, or markers. Errors: kInvalid, they take more than kMetadataBytesMax.
Result<void> check_metadata_size(std::span<const ColumnSpec> columns);

}  // namespace tetrad::cql
