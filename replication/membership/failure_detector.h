// SPDX-License-Identifier: Apache-2.0
// How suspicious a silence is, from the rhythm of the heartbeats before it (phi accrual,
// Hayashibara et al. 2004, with exponentially distributed gaps as Cassandra has it). Advisory.
// Pure.
#pragma once

#include <array>
#include <cstdint>

#include "base/reactor.h"

namespace tetrad::replication {

/// Suspicion of one other node: how unlikely its silence is, from the gaps between its last
/// heartbeats. Pure: time is handed in.
class FailureDetector {
 public:
  /// `expected_us`: the interval at which heartbeats are sent.
  explicit FailureDetector(int64_t expected_us) : expected_us_(expected_us) {}

  void heard(base::MonotonicUs now_us);
  /// A silence of one mean gap is 0.43, of ten is 4.3; grows without bound. 0 before the first
  /// heartbeat.
  double phi(base::MonotonicUs now_us) const;
  bool heard_ever() const { return last_us_ != 0; }

 private:
  static constexpr size_t kWindow = 64;
  const int64_t expected_us_;
  base::MonotonicUs last_us_ = 0;
  std::array<int64_t, kWindow> gaps_us_{};
  size_t count_ = 0, next_ = 0;
  int64_t sum_us_ = 0;
};

}  // namespace tetrad::replication
