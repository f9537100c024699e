// SPDX-License-Identifier: Apache-2.0
// What clocks do while the data simulation runs, to one node at a time: the wall clock steps by up
// to an hour, runs fast or slow, or the machine stands still, counted or not. What was done to a
// node is taken back before another's turn.
#pragma once

#include <algorithm>

#include "base/random.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

class ClockNemesis {
 public:
  explicit ClockNemesis(uint64_t seed) : random_(seed) {}

  /// Now and then.
  void step(SimCluster& cluster) {
    const size_t chosen = random_.below(cluster.size());
    switch (random_.below(10)) {
      case 0:
        take(cluster, chosen);
        return cluster[chosen].clock().step(up_to(kHourUs));
      case 1:
        take(cluster, chosen);
        return cluster[chosen].clock().step(random_.one_in(2) ? kHourUs : -kHourUs);
      case 2:
        take(cluster, chosen);
        return cluster[chosen].clock().step(up_to(3'000'000));
      case 3:
        take(cluster, chosen);
        return cluster[chosen].clock().set_rate_ppm(up_to(20'000));
      case 4:
        take(cluster, chosen);
        cluster[chosen].clock().freeze(static_cast<int64_t>(random_.below(5'000'000)),
                                       random_.one_in(2));
        return;
      case 5:
        return set_right(cluster);
      default:
        return;
    }
  }
  void set_right(SimCluster& cluster) {
    if (!victim_) return;
    SimClock& clock = cluster[*victim_].clock();
    clock.set_rate_ppm(0);
    clock.step(-clock.off_us());
    victim_.reset();
  }

 private:
  static constexpr int64_t kHourUs = int64_t{3600} * 1'000'000;
  int64_t up_to(int64_t us) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(2 * us))) - us;
  }
  void take(SimCluster& cluster, size_t chosen) {
    if (victim_ && *victim_ != chosen) set_right(cluster);
    victim_ = chosen;
  }

  base::Random random_;
  std::optional<size_t> victim_;
};

}  // namespace tetrad::simulation
