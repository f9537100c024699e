// SPDX-License-Identifier: Apache-2.0
// What a leader knows of one follower's log, and how much it may send before it hears back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "replication/meta/raft_configuration.h"

namespace tetrad::replication {

/// kProbe: where the logs agree is not known; one append at a time. kReplicate: appends follow each
/// other without waiting, within a window. kSnapshot: an image is on its way, nothing else is sent.
struct RaftProgress {
  /// One append at a time until the logs meet, then a stream of them, or an image first.
  enum class State : uint8_t { kProbe, kReplicate, kSnapshot };

  State state = State::kProbe;
  RaftIndex match = 0;  // durable on the follower, as in the leader's log
  RaftIndex next = 1;   // first entry of the next append; invariant: next > match
  // While probing: an append is out, another waits for its answer or the next heartbeat's.
  bool probe_sent = false;
  // While an image is on its way: the index that the member has when it arrives.
  RaftIndex pending_snapshot = 0;
  uint32_t snapshot_ticks = 0;      // since the image was sent
  std::deque<RaftIndex> in_flight;  // last index of each append not answered yet
  // The commit index that the member has been sent at most.
  RaftIndex commit_sent = 0;
  uint64_t read_round = 0;         // highest answered
  bool recently_active = false;    // heard since the leader last checked its majority
  uint32_t ticks_since_heard = 0;  // saturates

  /// One append at a time, from what is certain on.
  void probe() {
    next = state == State::kSnapshot ? std::max(match, pending_snapshot) + 1 : match + 1;
    state = State::kProbe;
    probe_sent = false;
    pending_snapshot = 0;
    in_flight.clear();
  }
  /// A window of appends from `match` on.
  void replicate() {
    state = State::kReplicate;
    next = match + 1;
    probe_sent = false;
    pending_snapshot = 0;
    in_flight.clear();
  }
  /// No append until the image has arrived or was given up.
  void await_snapshot(RaftIndex index) {
    state = State::kSnapshot;
    pending_snapshot = index;
    snapshot_ticks = 0;
    probe_sent = false;
    in_flight.clear();
  }
  /// Whether an append may go now. `in_flight_max`: how many may wait for their answers, so that a
  /// follower which has stopped does not collect the whole log in its socket.
  bool may_send(size_t in_flight_max) const {
    switch (state) {
      case State::kProbe:
        return !probe_sent;
      case State::kReplicate:
        return in_flight.size() < in_flight_max;
      case State::kSnapshot:
        return false;
    }
    return false;
  }
  /// An acknowledgement covers all appends up to its index.
  void acknowledge(RaftIndex index) {
    while (!in_flight.empty() && in_flight.front() <= index) in_flight.pop_front();
  }
};

}  // namespace tetrad::replication
