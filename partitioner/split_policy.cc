// SPDX-License-Identifier: Apache-2.0
// Choice of the place to cut a tablet.
//
//   By size: each sample ends one logical partition, so a cut after a sample is never inside one.
//   Of all cuts with something on either side the one whose halves differ least is taken, the first
//   of equals. A single logical partition has no such cut.
//   To isolate a partition: after it, if something is behind it, else before it: two cuts at most.
//   For more tablets: the widest ranges first, each cut in the middle of its tokens.
#include "partitioner/split_policy.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace tetrad::partitioner {

namespace {

using Positions = unsigned __int128;

// A ring position as a number: token and hash, in the order of positions.
Positions number_of(RingPosition position) {
  const uint64_t token = static_cast<uint64_t>(position.token) ^ (uint64_t{1} << 63);
  return (Positions{token} << 64) | position.hash;
}

Positions width_of(const RingRange& range) { return number_of(range.end) - number_of(range.start); }

}  // namespace

Result<RingPosition> choose_split_point(const Tablet& tablet,
                                        std::span<const SplitSample> samples) {
  // All samples inside of the tablet, and the last of them: a cut behind it would leave nothing on
  // the right.
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
    // A sample belongs to the left half, since a range includes its end.
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
  TETRAD_ASSERT(tablet.range.contains(*best) && *best < tablet.range.end);  // two halves
  return *best;
}

std::optional<RingPosition> choose_isolating_cut(const Tablet& tablet, RingPosition position) {
  // Cut behind the position, or before it when it is the tablet's end: two such cuts set it apart.
  if (!tablet.range.contains(position)) return std::nullopt;
  if (position < tablet.range.end) return position;
  RingPosition before = position;
  if (before.hash-- == 0) --before.token;
  if (!(tablet.range.start < before)) return std::nullopt;
  TETRAD_ASSERT(tablet.range.contains(before) && before < tablet.range.end);
  return before;
}

bool is_set_apart(const Tablet& tablet) {
  // One position wide: nothing can be cut off.
  RingPosition next = tablet.range.start;
  if (++next.hash == 0) ++next.token;
  return next == tablet.range.end;
}

std::vector<size_t> choose_tablets_to_split(const TabletMap& map, size_t wanted) {
  const std::vector<Tablet>& tablets = map.tablets();
  std::vector<size_t> out;
  if (tablets.size() >= wanted) return out;
  for (size_t i = 0; i < tablets.size(); ++i) {
    // Never one that changes members, or is one position.
    if (tablets[i].stage == TabletStage::kNormal && !is_set_apart(tablets[i])) out.push_back(i);
  }
  const size_t count = std::min(out.size(), wanted - tablets.size());
  const auto comes_before = [&](size_t a, size_t b) {
    const Positions width_a = width_of(tablets[a].range), width_b = width_of(tablets[b].range);
    return width_a != width_b ? width_a > width_b : tablets[a].id < tablets[b].id;
  };
  std::partial_sort(out.begin(), out.begin() + static_cast<ptrdiff_t>(count), out.end(),
                    comes_before);
  out.resize(count);
  return out;
}

std::optional<RingPosition> choose_middle(const Tablet& tablet) {
  const RingPosition start = tablet.range.start, end = tablet.range.end;
  // Between tokens, while there are some; then inside of one token, by the hash.
  const uint64_t tokens = static_cast<uint64_t>(end.token) - static_cast<uint64_t>(start.token);
  if (tokens >= 2) {
    const uint64_t middle = static_cast<uint64_t>(start.token) + tokens / 2;
    const RingPosition cut = RingPosition::end_of_token(static_cast<int64_t>(middle));
    TETRAD_ASSERT(tablet.range.contains(cut) && cut < end);
    return cut;
  }
  const Positions width = width_of(tablet.range);
  if (width <= 1) return std::nullopt;
  const Positions middle = number_of(start) + width / 2;
  const auto token = static_cast<uint64_t>(middle >> 64) ^ (uint64_t{1} << 63);
  return RingPosition{static_cast<int64_t>(token), static_cast<uint64_t>(middle)};
}

}  // namespace tetrad::partitioner
