// SPDX-License-Identifier: Apache-2.0
// Counts the answers of a round of messages, of each set of a tablet by itself (design, rule 9): while
// members change, a member of both sets counts in each, and an answer of one set is worth nothing to
// the other. Pure.
#pragma once

#include <optional>

#include "replication/coordinator/replica_sets.h"
#include "replication/coordinator/write_tally.h"

namespace tetrad::replication {

/// The tallies of one set, or of both while members change. Each member answers once; what comes from
/// a store that is in neither set is not counted. Lives as long as its round, on the shard's thread.
class SetsTally {
 public:
  /// `need_of(set)`: what is needed of a set; all of its members together meet it.
  template <class NeedOf>
  SetsTally(const WriteSets& sets, NeedOf need_of) : sets_(&sets), old_(need_of(sets.old_set)) {
    if (!sets.new_set.empty()) new_.emplace(need_of(sets.new_set));
  }

  void on_yes(const StoreAddress& from) {
    if (const int at = index_in(sets_->old_set, from); at >= 0) old_.on_ack(at);
    if (!new_) return;
    if (const int at = index_in(sets_->new_set, from); at >= 0) new_->on_ack(at);
  }
  void on_no(const StoreAddress& from) {
    if (const int at = index_in(sets_->old_set, from); at >= 0) old_.on_failure(at);
    if (!new_) return;
    if (const int at = index_in(sets_->new_set, from); at >= 0) new_->on_failure(at);
  }
  /// A set that cannot meet its need any more decides for both: the round has failed. Else the one
  /// that is still open does, and the round has succeeded when both have.
  WriteTally::Verdict verdict() const {
    const auto first = old_.verdict();
    if (!new_ || first == WriteTally::Verdict::kFailed) return first;
    const auto second = new_->verdict();
    return second == WriteTally::Verdict::kFailed || first == WriteTally::Verdict::kSucceeded
               ? second
               : first;
  }
  bool succeeded() const { return verdict() == WriteTally::Verdict::kSucceeded; }
  /// Of the set that has not enough: what a client hears of.
  const WriteTally& short_of() const {
    return new_ && old_.verdict() == WriteTally::Verdict::kSucceeded ? *new_ : old_;
  }

 private:
  const WriteSets* sets_;  // outlive it
  WriteTally old_;
  std::optional<WriteTally> new_;  // unset: the members do not change
};

}  // namespace tetrad::replication
