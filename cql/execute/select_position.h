// SPDX-License-Identifier: Apache-2.0
// Where a SELECT goes on: what is done, and what its limits still allow. Sealed by the processor
// into a paging state.
//
//   position := u8 version (1), zigzag rows left (-1: no limit), varint rows done of the partition,
//               i64 token, u64 hash, varint size, partition key,
//               u8 whether a clustering key follows, [varint size, clustering key]
#pragma once

#include <cstdint>

#include "base/result.h"
#include "storage/row/read_command.h"

namespace tetrad::cql {

/// Where a page of a SELECT ended: the position inside of its paging state.
struct SelectPosition {
  storage::ReadPosition after;
  int64_t rows_left = -1;            // of LIMIT
  uint32_t partition_rows_done = 0;  // of PER PARTITION LIMIT
};

Bytes encode_select_position(const SelectPosition& position);
/// Errors: kProtocol.
Result<SelectPosition> decode_select_position(BytesView encoded);

}  // namespace tetrad::cql
