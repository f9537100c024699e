// SPDX-License-Identifier: Apache-2.0
#include "storage/views/view_stamps.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::storage {
namespace {

constexpr int64_t kBoundAhead_us = 1'000'000;
/// The next bound is asked for when less than this is left.
constexpr int64_t kBoundLeftMin_us = kBoundAhead_us / 2;

}  // namespace

std::optional<ViewStamp> ViewStamps::must_sync(ViewStamp stamp) {
  if (stamp.us + kBoundLeftMin_us <= bound_.us) return std::nullopt;
  bound_.us = stamp.us + kBoundAhead_us;
  return bound_;
}

void ViewStamps::synced(ViewStamp bound) { synced_ = std::max(synced_, bound); }

bool ViewStamps::raise(uint16_t bucket, ViewStamp stamp) {
  TETRAD_ASSERT(may_raise(stamp));
  if (stamp <= highest_of(bucket)) return false;
  if (seen_.empty()) seen_.assign(kBucketCount, first_);
  seen_[bucket] = stamp;
  highest_ = std::max(highest_, stamp);
  return true;
}

}  // namespace tetrad::storage
