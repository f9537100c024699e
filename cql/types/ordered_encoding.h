// SPDX-License-Identifier: Apache-2.0
// Order-preserving encoding of clustering values and collection elements: memcmp of the encoded
// components sorts as compare() sorts the values, null first. Self-delimiting and reversible. On
// disk: never renumber.
//
//   component := 0x10 (null) | 0x20 (empty: zero-length) | 0x30 payload
//   DESC      := every byte of the component inverted
//   So no component starts with 0x00 or 0xFF: a prefix sorts before all its extensions, and the
//   prefix + 0xFF after all of them, ascending or descending.
//
//   tinyint smallint int bigint counter timestamp := big-endian, sign bit flipped
//   date time            := big-endian as it is
//   boolean              := 0 | 1
//   float double         := IEEE bits; negative: all inverted, else the sign bit flipped; one NaN
//   text ascii blob inet duration custom := bytes, 0x00 as 0x00 0xFF, ended by 0x00 0x01
//   varint n bytes long  := 0x80+n | 0x7F-n, n <= 119; or 0xF8 u32 n | 0x07 u32 ~n; then the bytes
//   decimal              := 0x80 zero | 0xC0 rest | 0x40 inverted rest
//     rest: i64 exponent, sign flipped; digit pairs, each 1 + value, the last one filled with 0; 0x00
//     the value is 0.ddd… x 10^exponent
//   uuid                 := version nibble, the other 60 bits of the high half, the low half;
//                           in version 1 the high half in the order time_hi, time_mid, time_low
//   timeuuid             := version and time_hi, time_mid, time_low, low half with 0x80 in each byte
//   list set map         := component*, 0x00                        of a map key and value in turn
//   tuple udt            := component* without nulls at the end, 0x00
//   vector               := payload*                                elements of fixed length
//                         | component*                              others
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// Appends one component. `value` should have passed validate(); bytes that have not fail with
/// kInvalid and leave `out` with an incomplete component (drop it), as does a decimal of more than
/// kNumberBytesMax bytes.
Result<void> append_ordered(Bytes& out, const DataType& type, OptionalView value, bool descending);

/// Takes one component off the front of `in` and returns the value's canonical bytes, or null.
/// Errors: kCorruption.
Result<OptionalBytes> decode_ordered(BytesView& in, const DataType& type, bool descending);
/// As decode_ordered, appending to `out` what is not null. Returns false for null.
Result<bool> decode_ordered_to(Bytes& out, BytesView& in, const DataType& type, bool descending);

/// Takes one component off the front and returns its encoded bytes.
Result<BytesView> skip_ordered(BytesView& in, const DataType& type, bool descending);

/// Whether a valid value can have other bytes than decode_ordered() gives for it: keep the original
/// beside the row then.
bool is_lossy(const DataType& type, BytesView value);
/// False when no value of the type is lossy, so that is_lossy need not be asked.
bool can_be_lossy(const DataType& type);

}  // namespace tetrad::cql
