// SPDX-License-Identifier: Apache-2.0
// A ring position as bytes: i64 token, u64 hash.
//
// Example: token -1, hash 2 is ffffffffffffffff 0000000000000002.
#pragma once

#include "base/byte_io.h"
#include "base/ring_position.h"

namespace tetrad::base {

/// 16 bytes, big-endian. As bytes negative tokens sort behind positive ones: keys of a store flip
/// the sign (storage/row/storage_key.h).
inline void write_position(RingPosition position, ByteWriter& out) {
  out.i64(position.token);
  out.u64(position.hash);
}

/// Errors: kCorruption.
inline Result<RingPosition> read_position(ByteReader& in) {
  RingPosition position;
  TETRAD_TRY(position.token, in.read_i64());
  TETRAD_TRY(position.hash, in.read_u64());
  return position;
}

}  // namespace tetrad::base
