// SPDX-License-Identifier: Apache-2.0
// Joining the values of one key, in both engines. It never fails (rule 16): what does not decode is
// kept beside what does, in a bundle that no reader takes for data, so that the corruption is
// reported whenever the key is read.
//
//   bundle := u8 0xFF, bytes what could be joined ("" if nothing), varint count, bytes undecodable*
#pragma once

#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/row/mutation.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {

/// Appends the join of `values` (of a key of that kind, at least one) to `out`. Returns how many
/// undecodable values are in it.
size_t merge_values(KeyKind kind, std::span<const BytesView> values, Bytes& out);

/// Whether every part of a mutation decodes and its keys are within bounds. Errors: kCorruption,
/// kInvalid.
Result<void> check_mutation(const Mutation& mutation);

/// The range tombstones of a mutation as values of keys: (place, encoded set), each place once,
/// ascending. Ranges without a key are left out.
std::vector<std::pair<Bytes, Bytes>> tombstone_values(const Mutation& mutation);

}  // namespace tetrad::storage
