// SPDX-License-Identifier: Apache-2.0
// Bounds on a type as a whole. User types that hold one another are a graph; walks see it as a
// tree, and the native protocol spells it as one.
#pragma once

#include "cql/types/data_type.h"

namespace tetrad::cql {

/// Most parts of a type, those of its user types counted wherever they stand.
inline constexpr uint64_t kTypePartsMax = 16'384;
/// Most bytes of the names in it, counted in the same way.
inline constexpr uint64_t kTypeNameBytesMax = 1u << 20;

/// Errors: kInvalid, the type is deeper or larger than types may be. Looks at each of its types
/// once.
Result<void> check_type_size(const DataType& type);

/// A vector type. Errors: kInvalid: `dimension` is not positive, values would be larger than
/// kFixedLengthMax, or the element's values have no bytes.
Result<TypePtr> make_checked_vector(TypePtr element, int64_t dimension);

/// About the bytes that the native protocol spells it with; never far below.
uint64_t spelled_bytes(const DataType& type);

}  // namespace tetrad::cql
