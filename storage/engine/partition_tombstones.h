// SPDX-License-Identifier: Apache-2.0
// All range tombstones of a partition, for a read of a range of the ring, which comes by them
// anyway. A read of one partition looks up those that it needs: tombstone_window.h.
#pragma once

#include "base/bytes.h"
#include "storage/engine/partition_reader.h"
#include "storage/row/range_tombstones.h"

namespace tetrad::storage {

/// The steps of those that reach beyond `wanted_from` and that the partition's own deletion does not
/// hide; their views are in `arena`. The iterator stands at or after the first range tombstone of
/// the partition whose keys begin with `prefix`, and afterwards behind its last one. Each that was
/// looked at counts in `examined`. Errors: kCorruption, and those of the view.
Result<TombstoneSteps> read_range_tombstones(KeyIterator& it, BytesView prefix,
                                             BytesView wanted_from, const Deletion& partition,
                                             base::Arena& arena, uint64_t& examined);

}  // namespace tetrad::storage
