// SPDX-License-Identifier: Apache-2.0
// All range tombstones of a partition, for a read of a range of the ring, which comes by them
// anyway. A read of one partition looks up those that it needs: tombstone_window.h. What an answer
// delivers of either is made here, too.
#pragma once

#include "base/bytes.h"
#include "storage/engine/partition_reader.h"
#include "storage/row/range_tombstones.h"

namespace tetrad::storage {

/// The steps of those that reach beyond `wanted_from` and that the partition's own deletion does
/// not hide; their views are in `arena`. The iterator stands at or after the first range tombstone
/// of the partition whose keys begin with `prefix`, and afterwards behind its last one. Each that
/// was looked at counts in `examined`. Errors: kCorruption, and those of the view.
Result<TombstoneSteps> read_range_tombstones(KeyIterator& it, BytesView prefix,
                                             BytesView wanted_from, const Deletion& partition,
                                             base::Arena& arena, uint64_t& examined);

/// Appends to `shown` what of the steps lies in [start, end), less what `bound` takes: this is what
/// an answer delivers for a merge. Calls come in ascending order of disjoint ranges. The bounds may
/// be temporaries, since `arena` gets copies. Neighbouring steps with one deletion become one, so
/// that equal content has one form (rule 6). Returns the bytes that count against a page's limit.
uint64_t append_shown_steps(const TombstoneSteps& steps, BytesView start, BytesView end,
                            const PurgeBound& bound, base::Arena& arena, TombstoneSteps& shown);

}  // namespace tetrad::storage
