// SPDX-License-Identifier: Apache-2.0
// All range tombstones of a partition, from an iterator that comes by them, and the part of them
// that an answer delivers.
#include "storage/engine/partition_tombstones.h"

#include <vector>

#include "base/assert.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {

Result<TombstoneSteps> read_range_tombstones(KeyIterator& it, BytesView prefix,
                                             BytesView wanted_from, const Deletion& partition,
                                             base::Arena& arena, uint64_t& examined) {
  TETRAD_ASSERT(!prefix.empty());
  std::vector<RangeTombstoneView> tombstones;
  std::vector<TombstoneEnd> set;
  for (; it.valid(); it.next()) {
    const BytesView key = it.key();
    if (!key.starts_with(prefix) ||
        key[prefix.size()] != static_cast<char>(KeyKind::kRangeTombstone))
      break;
    ++examined;
    set.clear();
    TETRAD_TRY(const BytesView begin, start_at_place(key.substr(prefix.size() + 1)));
    TETRAD_TRY_VOID(decode_tombstone_set(it.value(), set));
    std::erase_if(set, [&](const TombstoneEnd& e) {
      return e.end <= wanted_from || partition.hides(e.deletion.timestamp_us);
    });
    if (set.empty()) continue;
    const BytesView start = arena.copy(begin);
    for (const TombstoneEnd& e : set) tombstones.push_back({start, arena.copy(e.end), e.deletion});
  }
  return make_steps(std::move(tombstones), partition);
}

uint64_t append_shown_steps(const TombstoneSteps& steps, BytesView start, BytesView end,
                            const PurgeBound& bound, base::Arena& arena, TombstoneSteps& shown) {
  uint64_t bytes = 0;
  TombstoneSteps cut;
  append_cut_steps(steps, start, end, cut);
  for (const RangeTombstoneView& step : cut) {
    if (bound.takes(step.deletion)) continue;
    const BytesView step_end = arena.copy(step.end);
    bytes += step.start.size() + step.end.size();
    const bool adjoins =
        !shown.empty() && shown.back().end == step.start && shown.back().deletion == step.deletion;
    if (adjoins) {
      shown.back().end = step_end;
    } else {
      shown.push_back({arena.copy(step.start), step_end, step.deletion});
    }
  }
  return bytes;
}

}  // namespace tetrad::storage
