// SPDX-License-Identifier: Apache-2.0
// Phi accrual.
#include "replication/membership/failure_detector.h"

#include <algorithm>

namespace tetrad::replication {

void FailureDetector::heard(base::MonotonicUs now_us) {
  if (last_us_ != 0) {
    // Extra heartbeats must not make the detector nervous, nor a pause make it sleepy.
    const int64_t gap_us = std::clamp(now_us - last_us_, expected_us_ / 2, expected_us_ * 4);
    if (count_ == kWindow)
      sum_us_ -= gaps_us_[next_];
    else
      ++count_;
    gaps_us_[next_] = gap_us;
    sum_us_ += gap_us;
    next_ = (next_ + 1) % kWindow;
  }
  last_us_ = now_us;
}

double FailureDetector::phi(base::MonotonicUs now_us) const {
  if (last_us_ == 0) return 0;
  constexpr double kLog10E = 0.4342944819032518;
  const double mean_us = count_ == 0
                             ? static_cast<double>(expected_us_)
                             : std::max(static_cast<double>(sum_us_) / static_cast<double>(count_),
                                        static_cast<double>(expected_us_) / 2);
  return kLog10E * static_cast<double>(now_us - last_us_) / mean_us;
}

}  // namespace tetrad::replication
