// SPDX-License-Identifier: Apache-2.0
// Decides when a write is answered. Pure: the coordinator feeds it and acts on the verdict.
#pragma once

#include "base/assert.h"
#include "replication/quorum.h"

namespace tetrad::replication {

/// Counts the answers of one replica set against what is needed of it. Members are named by their
/// index in the set.
class WriteTally {
 public:
  /// Once it is kSucceeded or kFailed it stays so, whatever comes.
  enum class Verdict { kPending, kSucceeded, kFailed };

  /// All members together meet `need`.
  explicit WriteTally(Need need) : need_(std::move(need)) {
    TETRAD_ASSERT(need_.is_met_by(~Members{0}) && !need_.is_met_by(0));
  }

  /// The member holds the mutation.
  void on_ack(size_t index) {
    TETRAD_ASSERT(((acks_ | failures_) & bit_of(index)) == 0);
    acks_ |= bit_of(index);
  }
  /// The member refused, is down or ran out of time.
  void on_failure(size_t index) {
    TETRAD_ASSERT(((acks_ | failures_) & bit_of(index)) == 0);
    failures_ |= bit_of(index);
  }
  Verdict verdict() const {
    const Need::Group* const unmet = need_.first_unmet(acks_);
    if (unmet == nullptr) return Verdict::kSucceeded;
    return need_.is_met_by(~failures_) ? Verdict::kPending : Verdict::kFailed;
  }
  /// Of those that count for the first group that has not enough: what a client hears of.
  int acks() const { return std::popcount(acks_ & short_group().members); }
  int failures() const { return std::popcount(failures_ & need_.counted()); }
  int required() const { return short_group().count; }

 private:
  const Need::Group& short_group() const {
    const Need::Group* const unmet = need_.first_unmet(acks_);
    return unmet == nullptr ? need_.first() : *unmet;
  }

  Need need_;
  Members acks_ = 0, failures_ = 0;
};

}  // namespace tetrad::replication
