// SPDX-License-Identifier: Apache-2.0
// How long a read waits for the replicas that it has asked before it asks one more.
//
//   1. One in eight of the reads that could ask another replica is timed, from asking to enough answers; by
//      chance, since clients have rhythms.
//   2. After 64 of them the patience is the time within which 99 in 100 had their answers, of the last minutes
//      (base/recent_histogram.h), between a least and a most.
//
// So about one read in a hundred asks a replica more than it needs. The most is a bound on what a replica
// that stalls costs the reads that meet it: those are late themselves, and raise the patience no further
// than that.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/reactor.h"
#include "base/recent_histogram.h"

namespace tetrad::replication {

/// Of the reads of single partitions of one shard's coordinator, on its thread.
class ReadPace {
 public:
  /// Until enough reads are timed the patience is the most.
  ReadPace(int64_t least_us, int64_t most_us)
      : least_us_(std::min(least_us, most_us)), most_us_(most_us), patience_us_(most_us) {}

  int64_t patience_us() const { return patience_us_; }
  /// Whether the next read is to be timed.
  bool times_next() {
    chance_ = chance_ * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;  // Knuth's
    return (chance_ >> 61) == 0;
  }
  /// What a read took that was to be timed.
  void note(int64_t took_us, base::MonotonicUs now_us) {
    took_.record(static_cast<uint64_t>(std::max<int64_t>(took_us, 0)), 1, now_us);
    if ((++timed_ & 63) != 0) return;
    base::RecentFigures figures;
    figures.add(took_, now_us);
    // As a double it may be above what an integer holds.
    patience_us_ = static_cast<int64_t>(std::clamp(figures.at(0.99), static_cast<double>(least_us_),
                                                   static_cast<double>(most_us_)));
  }

 private:
  int64_t least_us_, most_us_, patience_us_;
  uint64_t chance_ = 0, timed_ = 0;
  base::RecentHistogram took_;
};

}  // namespace tetrad::replication
