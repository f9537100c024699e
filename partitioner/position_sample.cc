// SPDX-License-Identifier: Apache-2.0
// A weighted sample without replacement (Efraimidis and Spirakis, 2006) in logarithms: each piece
// of work draws a priority from its weight, and the highest kSize stay. What cannot get in is
// skipped without drawing. Weights grow with time in place of older ones fading.
#include "partitioner/position_sample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tetrad::partitioner {

namespace {

constexpr auto kFirstOut = [](const auto& a, const auto& b) { return a.priority > b.priority; };

}  // namespace

PositionSample::PositionSample(base::Random& random, int64_t now_us)
    : random_(random), begun_us_(now_us) {}

double PositionSample::uniform() {
  // Between 0 and 1, neither of them: a logarithm is taken of it.
  return (static_cast<double>(random_.next() >> 12) + 0.5) * 0x1.0p-52;
}

void PositionSample::advance(int64_t now_us) {
  const double age = std::numbers::ln2 * static_cast<double>(now_us - begun_us_) /
                     static_cast<double>(kHalfLifeUs);
  if (age <= age_) return;
  // Work counts for more now than it did when the skip was drawn.
  skipped_ *= std::exp(age_ - age);
  age_ = age;
}

void PositionSample::take(RingPosition position, double work) {
  const double weight = std::log(work) + age_;
  if (drawn_.size() < kSize) {
    drawn_.push_back({weight - std::log(-std::log(uniform())), position});
    std::push_heap(drawn_.begin(), drawn_.end(), kFirstOut);
    if (drawn_.size() < kSize) {
      skipped_ = 0;
    } else {
      draw_skip();
    }
    return;
  }
  // That it gets in is decided: its priority is drawn from above the lowest one.
  const double bound = std::exp(weight - drawn_.front().priority);
  const double exponential = -std::log1p(uniform() * std::expm1(-bound));
  std::pop_heap(drawn_.begin(), drawn_.end(), kFirstOut);
  drawn_.back() = {weight - std::log(exponential), position};
  std::push_heap(drawn_.begin(), drawn_.end(), kFirstOut);
  draw_skip();
}

void PositionSample::draw_skip() {
  skipped_ = -std::log(uniform()) * std::exp(drawn_.front().priority - age_);
}

std::vector<RingPosition> PositionSample::positions() const {
  std::vector<RingPosition> out;
  out.reserve(drawn_.size());
  for (const Drawn& one : drawn_) out.push_back(one.position);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tetrad::partitioner
