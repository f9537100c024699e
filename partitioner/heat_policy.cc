// SPDX-License-Identifier: Apache-2.0
#include "partitioner/heat_policy.h"

#include <algorithm>

#include "base/assert.h"
#include "partitioner/split_policy.h"

namespace tetrad::partitioner {

//
// Pure:
//   1. Too few samples say nothing.
//   2. One position with nearly all of the work: no cut helps.
//   3. One with more than half: set it apart by two cuts.
//   4. Otherwise cut at the position in the middle, before or behind it, whichever halves better;
//      set that one apart if it alone spoils the halves.
//   5. A part that would keep too much of the work is not worth a split.
namespace {

/// What the others must have at least for a position to be set apart from them.
constexpr double kOthersLeast = 0.05;
/// A cut this near to half is good enough: 1.6 % is what the sample errs by at one sigma.
constexpr double kGoodHalf = 0.53;
/// A position in the middle with less than this of the work is left with one of the halves.
constexpr double kApartLeast = 0.06;

/// All samples of one position.
struct Place {
  RingPosition position;
  size_t first = 0;  // samples before it
  size_t count = 0;
  size_t end() const { return first + count; }
};

std::vector<Place> places_of(const Tablet& tablet, std::span<const RingPosition> samples) {
  std::vector<Place> places;
  size_t seen = 0;
  for (const RingPosition& position : samples) {
    // Samples of what was cut off since they were taken.
    if (!tablet.range.contains(position)) continue;
    if (places.empty() || places.back().position != position) {
      TETRAD_ASSERT(places.empty() || places.back().position < position);
      places.push_back({position, seen, 0});
    }
    ++places.back().count;
    ++seen;
  }
  return places;
}

RingPosition before(RingPosition position) {
  if (position.hash-- == 0) --position.token;
  return position;
}

HeatCuts cuts_around(const Tablet& tablet, const Place& place, size_t all) {
  HeatCuts out;
  out.sets_apart = true;
  const RingPosition left = before(place.position);
  // At an edge of the tablet one cut is enough.
  if (tablet.range.start < left) out.cuts.push_back(left);
  if (place.position < tablet.range.end) out.cuts.push_back(place.position);
  const size_t largest = std::max({place.first, place.count, all - place.end()});
  out.largest = static_cast<double>(largest) / static_cast<double>(all);
  return out;
}

}  // namespace

Result<HeatCuts> choose_heat_cuts(const Tablet& tablet, std::span<const RingPosition> samples,
                                  double largest_allowed) {
  const auto places = places_of(tablet, samples);
  const size_t all = places.empty() ? 0 : places.back().end();
  if (all < kHeatSamplesLeast)
    return fail(ErrorCode::kLimit, "{} samples of its requests are too few", all);
  const auto share = [all](size_t count) {
    return static_cast<double>(count) / static_cast<double>(all);
  };
  const auto hottest = std::ranges::max_element(places, {}, &Place::count);
  if (is_set_apart(tablet) || share(all - hottest->count) < kOthersLeast)
    return fail(ErrorCode::kLimit, "one logical partition has {:.0f} % of its work",
                100 * share(hottest->count));
  HeatCuts out;
  if (share(hottest->count) > 0.5) {
    out = cuts_around(tablet, *hottest, all);
  } else {
    const auto middle =
        std::ranges::find_if(places, [&](const Place& place) { return 2 * place.end() >= all; });
    TETRAD_ASSERT(middle != places.end());
    // A position cannot be divided: it goes to one side whole.
    // Before the position in the middle, or behind it.
    const size_t larger_before = all - middle->first, larger_behind = middle->end();
    const bool cut_before = middle != places.begin() && larger_before <= larger_behind;
    out.largest = share(cut_before ? larger_before : larger_behind);
    out.cuts = {cut_before ? std::prev(middle)->position : middle->position};
    if (out.largest > kGoodHalf && share(middle->count) > kApartLeast)
      out = cuts_around(tablet, *middle, all);
  }
  if (out.largest > largest_allowed)
    return fail(ErrorCode::kLimit, "the busiest part would keep {:.0f} % of its work",
                100 * out.largest);
  TETRAD_ASSERT(!out.cuts.empty() && out.cuts.back() < tablet.range.end);
  return out;
}

}  // namespace tetrad::partitioner
