// SPDX-License-Identifier: Apache-2.0
// Decides when a write is answered. Pure: the coordinator feeds it and acts on the verdict.
#pragma once

#include "base/assert.h"

namespace tetrad::replication {

class WriteTally {
 public:
  enum class Verdict { kPending, kSucceeded, kFailed };

  /// One per replica set; `required_acks` <= `replica_count`.
  WriteTally(int replica_count, int required_acks)
      : replica_count_(replica_count), required_acks_(required_acks) {
    TETRAD_ASSERT(required_acks > 0 && required_acks <= replica_count);
  }

  /// One replica holds the mutation.
  void on_ack() {
    ++acks_;
    TETRAD_ASSERT(acks_ + failures_ <= replica_count_);
  }
  /// One replica refused, is down or ran out of time.
  void on_failure() {
    ++failures_;
    TETRAD_ASSERT(acks_ + failures_ <= replica_count_);
  }
  Verdict verdict() const {
    if (acks_ >= required_acks_) return Verdict::kSucceeded;
    return replica_count_ - failures_ < required_acks_ ? Verdict::kFailed : Verdict::kPending;
  }
  int acks() const { return acks_; }
  int failures() const { return failures_; }
  int required() const { return required_acks_; }

 private:
  int acks_ = 0, failures_ = 0;
  int replica_count_, required_acks_;
};

}  // namespace tetrad::replication
