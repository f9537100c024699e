// SPDX-License-Identifier: Apache-2.0
// How widely a graph has to be searched. That depends on its vectors: with a width at which a graph of
// clusters misses one in a thousand, one of vectors that are all about as far from each other misses
// two of three. So some searches are checked: the vectors, or a part of them, are measured one by one
// beside the search, and what it has missed decides whether the width is doubled.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace tetrad::storage {

/// What the checks of one graph have shown. For all threads.
class SearchWidth {
 public:
  /// Of the vectors that are nearest no more than this part is to be missed.
  static constexpr double kMissedMost = 0.03;

  /// So many candidates are to be kept where `least` would do for well separated vectors.
  size_t width(size_t least) const { return least * factor_.load(std::memory_order_relaxed); }

  /// Each search asks: whether it is one of those that are checked. Until it is known how widely to
  /// search, all are where a check measures all vectors, and gives the exact answer; some are of a
  /// larger graph. Then one of many, for vectors may come that are of another kind.
  bool is_checked(bool measures_all) {
    const size_t number = searches_.fetch_add(1, std::memory_order_relaxed);
    if (is_known_.load(std::memory_order_relaxed)) return number % kCheckedEvery == 0;
    return measures_all || number % kCheckedOfLarge == 0;
  }

  /// What a search of `width(least)` has found, and missed, of the nearest among those that were
  /// measured. One that began before the width was changed does not count.
  void note(size_t least, size_t width_was, size_t found, size_t missed) {
    const std::lock_guard lock(mutex_);
    if (width(least) != width_was) return;
    found_ += found;
    missed_ += missed;
    const size_t all = found_ + missed_;
    if (all < kWorthALook) return;
    if (static_cast<double>(missed_) > kMissedMost * static_cast<double>(all)) {
      // Far off: not by one step at a time.
      const size_t times = missed_ * 2 > all ? 4 : 2;
      factor_.store(std::min(factor_.load() * times, kFactorMax));
      found_ = missed_ = 0;
      is_known_ = factor_.load() == kFactorMax;
      return;
    }
    if (all < kWorthTrust) return;
    is_known_ = true;
    // What is old counts less and less.
    found_ /= 2;
    missed_ /= 2;
  }

 private:
  // Of vectors.
  static constexpr size_t kWorthALook = 60, kWorthTrust = 400;
  static constexpr size_t kCheckedEvery = 64, kCheckedOfLarge = 4;
  static constexpr size_t kFactorMax = 256;

  std::atomic<size_t> factor_ = 1;
  std::atomic<size_t> searches_ = 0;
  std::atomic<bool> is_known_ = false;
  std::mutex mutex_;
  size_t found_ = 0, missed_ = 0;  // with the present factor
};

}  // namespace tetrad::storage
