// SPDX-License-Identifier: Apache-2.0
// What a cell keeps of an entry of a map, beside its path. On disk: never change.
//
//   entry := value                                 where every key is what its path decodes to
//          | value 0x00                            of a type where that is not so for all (can_be_lossy)
//          | value, original key, u32 its size, 0x01
//
// The value stands first, so that of two entries of one timestamp the larger value wins.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// An entry of a map as its cell's value holds it; views into that value.
struct MapEntry {
  BytesView value;
  OptionalView key;  // the original bytes, where the path does not give them
};

/// Whether entries of maps with such keys are more than their values.
bool has_entry_mark(const DataType& key_type);
/// For keys with has_entry_mark().
Bytes encode_map_entry(const DataType& key_type, BytesView key, BytesView value);
/// Errors: kCorruption.
Result<MapEntry> decode_map_entry(BytesView encoded);

}  // namespace tetrad::cql
