// SPDX-License-Identifier: Apache-2.0
// Is this node's clock right? Wall clocks are compared with those of the other nodes, as heartbeats
// measure them; the majority is right. Where there is none (two nodes, two against two), the wall
// clock of the metadata group's leader counts. The hybrid clock is not compared: it stays ahead
// after following a wrong one.
//
// What is measured of a peer is set against what this machine counts (Reactor::boot_time_us()), so
// a step of this node's wall clock does not spoil a measurement.
//
// The own time goes forward at once, but not before that is on the disk: otherwise a node that ends
// then would begin its next life before what it has stamped.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/reactor.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/membership/kept_time.h"

namespace tetrad::replication {

/// A peer's clocks, measured: how far they are ahead of this node's own, and how far that may be
/// wrong.
struct PeerClock {
  HostId host;
  int64_t wall_off_us = 0, own_off_us = 0, error_us = 0;
  bool has_own = true;  // false: it has not had a verdict in its life, its own time says nothing
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

/// Whether this node's clock may be relied on.
struct ClockVerdict {
  bool is_good = false;
  /// How far the reference wall clock is ahead of this node's; unset: unknown.
  std::optional<int64_t> reference_off_us;
};

/// Pure.
ClockVerdict judge_clock(const ClockView& view);

/// On shard 0, fed by Membership.
class ClockWatch {
 public:
  /// Everything outlives it.
  ClockWatch(base::Reactor& reactor, HostId self, HybridClock& clock, Logger logger);

  /// A life begins. `last`: by what keep_us() was in the last one. From now on the clock is suspect
  /// until others have been asked.
  void begin(const std::optional<LastLife>& last);
  /// Puts what the next life must not begin before on the disk, where a power cut does not take it;
  /// then runs `done`. Without it everything counts as kept.
  using Keep = std::function<void(int64_t time_us, base::Callback done)>;
  /// `kept`: runs after each, so that somebody ticks.
  void keep_with(Keep keep, std::function<void()> kept) {
    keep_ = std::move(keep);
    on_kept_ = std::move(kept);
  }
  /// The node has joined others: nothing it has found out alone counts.
  void joined();
  /// A peer reported its clocks, `held_us` after it received the message that this node sent at
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
  /// What the next life must not begin before, to be kept now; unset: what was kept stands.
  std::optional<int64_t> keep_us();
  /// This node's own time for its heartbeats; 0: others must ignore it.
  int64_t told_own_us() const { return is_first_ ? 0 : clock_.own_us(reactor_); }

 private:
  /// What the last heartbeat of another node said of its clocks, as differences.
  struct Peer {
    int64_t wall_us, own_us, error_us;  // ahead of what this machine counts
    base::MonotonicUs at_us;
    bool has_own;
  };
  bool has_jumped();
  std::vector<PeerClock> clocks_heard(int64_t wall_us) const;
  void become_suspect(const char* why);
  void set(ClockStanding standing, const ClockVerdict& verdict);
  /// False: where it should be is not on the disk yet.
  bool correct(const ClockVerdict& verdict, std::span<const PeerClock> heard);
  bool is_kept(int64_t time_us);

  base::Reactor& reactor_;
  const HostId self_;
  HybridClock& clock_;
  const Logger logger_;
  std::map<HostId, Peer> peers_;
  std::optional<int64_t> stamped_us_;  // by the last life, at most
  bool is_first_ = true;               // no verdict yet: nothing was stamped in this life
  Keep keep_;
  std::function<void()> on_kept_;
  /// Where the next life would begin, and where it will when what is being kept is on the disk:
  /// ahead of what the machine counts.
  std::optional<int64_t> kept_ahead_us_, keeping_ahead_us_;
  bool is_keeping_ = false;
  int good_in_turn_ = 0;
  base::MonotonicUs suspect_since_us_ = 0;
  int64_t counted_us_ = 0;     // by the machine, more than now_us(), at the last tick
  int64_t wall_ahead_us_ = 0;  // of what the machine counts, at the last tick
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace tetrad::replication
