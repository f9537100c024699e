// SPDX-License-Identifier: Apache-2.0
// Choice of tablets to split and of the place to cut.
#include "partitioner/split_policy.h"

#include <algorithm>
#include <optional>

namespace tetrad::partitioner {

std::vector<TabletId> tablets_to_split(const TabletMap& map,
                                       const std::function<uint64_t(TabletId)>& bytes_of,
                                       uint64_t bytes_max) {
  std::vector<std::pair<uint64_t, TabletId>> large;
  for (const Tablet& tablet : map.tablets()) {
    if (tablet.stage != TabletStage::kNormal || tablet.full) continue;
    const uint64_t bytes = bytes_of(tablet.id);
    if (bytes > bytes_max) large.emplace_back(bytes, tablet.id);
  }
  std::sort(large.begin(), large.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<TabletId> ids;
  for (const auto& [bytes, id] : large) ids.push_back(id);
  return ids;
}

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

}  // namespace tetrad::partitioner
