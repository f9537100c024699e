// SPDX-License-Identifier: Apache-2.0
// Is this node's clock right? Wall clocks are compared with those of the other nodes, as heartbeats
// measure them; the majority is right. Where there is none (two nodes, two against two), the wall
// clock of the metadata group's leader counts. The hybrid clock has no voice: it runs ahead after
// one that was wrong.
//
// What is measured of a peer is set against what this machine counts (Reactor::boot_time_us()), so
// a step of the own wall clock spoils nothing.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/reactor.h"
#include "replication/membership/hybrid_clock.h"

namespace tetrad::replication {

/// A peer's clocks, measured: how far they are ahead of this node's own, and how far that may be
/// wrong.
struct PeerClock {
  HostId host;
  int64_t wall_off_us = 0, own_off_us = 0, error_us = 0;
};

/// What is known when a node judges its clock.
struct ClockView {
  int64_t bound_us = kClockSkewMaxUs;
  size_t nodes = 1;  // of the cluster, itself included
  std::span<const PeerClock> heard;
  std::optional<HostId> leader;  // of the metadata group
  bool leads = false;            // this node is it
  bool strict = false;           // whoever was off must come closer
};

struct ClockVerdict {
  bool is_good = false;
  /// The wall clock that counts, ahead of this node's by so much; unset: nobody knows.
  std::optional<int64_t> reference_off_us;
};

/// Pure.
ClockVerdict judge_clock(const ClockView& view);

/// On shard 0, fed by Membership.
class ClockWatch {
 public:
  /// Everything outlives it.
  ClockWatch(base::Reactor& reactor, HostId self, HybridClock& clock, Logger logger);

  /// A life begins. `kept_us`: what keep_us() was in the last one. From now on the clock is suspect
  /// until others have been asked.
  void begin(std::optional<int64_t> kept_us);
  /// The node has joined others: nothing it has found out alone counts.
  void joined();
  /// A peer has told its clocks, `held_us` after it took the message that this node sent at
  /// `asked_us`.
  struct Told {
    int64_t wall_us = 0, own_us = 0;
    base::MonotonicUs asked_us = 0;
    int64_t held_us = 0;
  };
  void heard(HostId host, const Told& told);
  void forget(HostId host) { peers_.erase(host); }
  /// Judges. `nodes`: of the cluster. True when the others should be asked at once.
  bool tick(size_t nodes, std::optional<HostId> leader);
  /// What the next life must not begin before, while that is known.
  std::optional<int64_t> keep_us() const;

 private:
  struct Peer {
    int64_t wall_us, own_us, error_us;  // ahead of what this machine counts
    base::MonotonicUs at_us;
  };
  bool has_jumped();
  void become_suspect(const char* why);
  void set(ClockStanding standing, const ClockVerdict& verdict);
  void correct(const ClockVerdict& verdict, std::span<const PeerClock> heard);

  base::Reactor& reactor_;
  const HostId self_;
  HybridClock& clock_;
  const Logger logger_;
  std::map<HostId, Peer> peers_;
  std::optional<int64_t> kept_us_;
  bool is_first_ = true;  // no verdict yet: nothing was stamped in this life
  int good_in_turn_ = 0;
  base::MonotonicUs suspect_since_us_ = 0;
  int64_t counted_us_ = 0;     // by the machine, more than now_us(), at the last tick
  int64_t wall_ahead_us_ = 0;  // of what the machine counts, at the last tick
};

}  // namespace tetrad::replication
