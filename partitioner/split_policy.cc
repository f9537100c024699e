// SPDX-License-Identifier: Apache-2.0
// Choice of the place to cut a tablet.
#include "partitioner/split_policy.h"

namespace tetrad::partitioner {

Result<RingPosition> choose_split_point(const Tablet& tablet,
                                        std::span<const SplitSample> samples) {
  uint64_t total = 0;
  std::optional<RingPosition> last;
  for (const SplitSample& sample : samples) {
    if (!tablet.range.contains(sample.position)) continue;
    total += sample.bytes;
    last = sample.position;
  }
  std::optional<RingPosition> best;
  uint64_t best_distance = 0, left = 0;
  for (const SplitSample& sample : samples) {
    if (!tablet.range.contains(sample.position)) continue;
    left += sample.bytes;
    // After the last sample nothing would be right of the cut.
    if (!(sample.position < *last) || !(sample.position < tablet.range.end)) break;
    const uint64_t right = total - left;
    const uint64_t distance = left > right ? left - right : right - left;
    if (!best || distance < best_distance) {
      best = sample.position;
      best_distance = distance;
    }
  }
  if (!best) {
    return fail(ErrorCode::kLimit, "physical partition {} holds a single logical partition",
                tablet.id.value);
  }
  return *best;
}

std::optional<RingPosition> choose_isolating_cut(const Tablet& tablet, RingPosition position) {
  if (!tablet.range.contains(position)) return std::nullopt;
  if (position < tablet.range.end) return position;
  RingPosition before = position;
  if (before.hash-- == 0) --before.token;
  if (tablet.range.start < before) return before;
  return std::nullopt;
}

bool is_set_apart(const Tablet& tablet) {
  RingPosition next = tablet.range.start;
  if (++next.hash == 0) ++next.token;
  return next == tablet.range.end;
}

}  // namespace tetrad::partitioner
