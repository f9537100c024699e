// SPDX-License-Identifier: Apache-2.0
#include "base/recent_histogram.h"

#include <algorithm>

namespace tetrad::base {

// At a steady rate the weights stand for one to two minutes: the values since the last halving, and
// half of those before it. `window_us_` is halved with them, so that a young histogram knows
// that it has seen less.
void RecentHistogram::decay(int64_t now_us) {
  constexpr int64_t kAllGone = 32;
  const int64_t halvings = (now_us - decayed_us_) / kHalfLifeUs;
  if (halvings >= kAllGone) {
    *this = RecentHistogram();
    decayed_us_ = now_us;
    return;
  }
  for (uint32_t& weight : weights_) weight >>= halvings;
  for (int64_t i = 0; i < halvings; ++i)
    window_us_ = (window_us_ + static_cast<double>(kHalfLifeUs)) / 2;
  decayed_us_ += halvings * kHalfLifeUs;
}

void RecentFigures::add(const RecentHistogram& histogram, int64_t now_us) {
  RecentHistogram settled = histogram;
  if (now_us - settled.decayed_us_ >= RecentHistogram::kHalfLifeUs) settled.decay(now_us);
  uint64_t own = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] += settled.weights_[i];
    own += settled.weights_[i];
  }
  const double own_weight = static_cast<double>(own) / RecentHistogram::kParts;
  // Of less than a second nobody knows a rate.
  constexpr double kLeast_us = 1e6;
  const double window_us = settled.window_us_ + static_cast<double>(now_us - settled.decayed_us_);
  per_second += own_weight * 1e6 / std::max(window_us, kLeast_us);
}

void RecentFigures::add(const RecentFigures& other) {
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += other.weights[i];
  per_second += other.per_second;
}

double RecentFigures::mean() const {
  double all = 0, sum = 0;
  for (int i = 0; i < RecentHistogram::kBuckets; ++i) {
    const uint64_t least = i == 0 ? 0 : RecentHistogram::bound_of(i - 1);
    const auto middle = static_cast<double>(least + RecentHistogram::bound_of(i) - 1) / 2;
    const auto weight = static_cast<double>(weights[static_cast<size_t>(i)]);
    all += weight;
    sum += weight * middle;
  }
  return all == 0 ? 0 : sum / all;
}

double RecentFigures::at(double part) const {
  uint64_t all = 0, below = 0;
  for (const uint64_t one : weights) all += one;
  if (all == 0) return 0;
  const double wanted = std::max(part * static_cast<double>(all), 1.0);
  for (size_t i = 0; i < weights.size(); ++i) {
    below += weights[i];
    if (static_cast<double>(below) >= wanted)
      return static_cast<double>(RecentHistogram::bound_of(static_cast<int>(i)));
  }
  return static_cast<double>(RecentHistogram::bound_of(RecentHistogram::kBuckets - 1));
}

}  // namespace tetrad::base
