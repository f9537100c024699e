// SPDX-License-Identifier: Apache-2.0
// A sample of where the work of a tablet goes: positions drawn from all requests with a chance in
// proportion to their work, and to 2^(-age / half-life). So each share of the sample is about the
// share of the recent work.
//
//   Each request draws the priority  ln(work) + rate * time - ln(-ln(u)),  u uniform in (0, 1);
//   those with the highest priorities are the sample (Efraimidis and Spirakis' weighted sampling,
//   in logarithms, with forward decay). A request that would get in is not looked for one by one:
//   how much work passes until the next one does is drawn, too, so most requests cost a
//   subtraction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/ring_position.h"

namespace tetrad::partitioner {

/// The sample of one tablet: 32 KiB at most. Owned by the store's thread.
class PositionSample {
 public:
  static constexpr size_t kSize = 1024;
  static constexpr int64_t kHalfLifeUs = 10'000'000;

  /// `random` outlives it.
  PositionSample(base::Random& random, int64_t now_us);

  /// `work` of a request at `position`, at the time of the last advance().
  void add(RingPosition position, uint64_t work) {
    skipped_ -= static_cast<double>(work);
    if (skipped_ <= 0 && work > 0) take(position, static_cast<double>(work));
  }
  /// Time passes: what was added before counts less. To be called a few times each half-life.
  void advance(int64_t now_us);

  /// Sorted; a position is there as often as it was drawn.
  std::vector<RingPosition> positions() const;
  size_t size() const { return drawn_.size(); }

 private:
  /// A position in the sample, and the random priority that keeps it there: the highest ones stay.
  struct Drawn {
    double priority;
    RingPosition position;
  };
  void take(RingPosition position, double work);
  void draw_skip();
  /// In (0, 1).
  double uniform();

  base::Random& random_;
  const int64_t begun_us_;
  double age_ = 0;            // in the exponent of a weight that is added now
  double skipped_ = 0;        // work that passes before the next is drawn
  std::vector<Drawn> drawn_;  // a heap, the lowest priority first
};

}  // namespace tetrad::partitioner
