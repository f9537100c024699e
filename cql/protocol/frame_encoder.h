// SPDX-License-Identifier: Apache-2.0
// From the envelopes of one loop turn to the bytes that go on the wire: compressed bodies in v3 and
// v4, segments in v5. What appends envelopes (response.h, client.h) knows neither.
#pragma once

#include "base/bytes.h"
#include "cql/protocol/frame.h"

namespace tetrad::cql {

/// The sending half of one connection; belongs to it and to its thread. Invariant: out() holds
/// whole envelopes whenever finish_turn() or start() is called.
class FrameEncoder {
 public:
  /// Where whole envelopes are appended, one after another.
  Bytes& out() { return pending_; }
  bool empty() const { return pending_.empty(); }
  size_t pending_bytes() const { return pending_.size(); }

  /// Everything in out() so far goes bare; what follows is compressed (v3, v4) or put into segments
  /// (v5). Call it after the answer to STARTUP (server), or before the first request after it
  /// (client).
  void start(int version, Compression compression);

  /// The wire form of out(), which is emptied. `wire` is overwritten; both keep their capacity, so
  /// that a connection that hands the same buffer in again allocates nothing in the steady state.
  void finish_turn(Bytes& wire);

  /// Gives back the memory of empty buffers.
  void release_idle();

 private:
  Bytes pending_;
  size_t bare_bytes_ = 0;  // at the front of pending_
  int version_ = 0;
  Compression compression_ = Compression::kNone;
};

}  // namespace tetrad::cql
