// SPDX-License-Identifier: Apache-2.0
// Counts the answers of a round of messages, of each set of a tablet by itself (design, rule 9).
// Pure.
#pragma once

#include <algorithm>
#include <optional>

#include "replication/coordinator/replica_sets.h"
#include "replication/coordinator/write_tally.h"

namespace tetrad::replication {

class SetsTally {
 public:
  /// `required(count)`: of a set of so many.
  template <class Required>
  SetsTally(const WriteSets& sets, Required required)
      : sets_(&sets), old_(count(sets.old_set), required(count(sets.old_set))) {
    if (!sets.new_set.empty()) new_.emplace(count(sets.new_set), required(count(sets.new_set)));
  }

  void on_yes(const StoreAddress& from) {
    if (has(sets_->old_set, from)) old_.on_ack();
    if (new_ && has(sets_->new_set, from)) new_->on_ack();
  }
  void on_no(const StoreAddress& from) {
    if (has(sets_->old_set, from)) old_.on_failure();
    if (new_ && has(sets_->new_set, from)) new_->on_failure();
  }
  WriteTally::Verdict verdict() const {
    const auto first = old_.verdict();
    if (!new_ || first == WriteTally::Verdict::kFailed) return first;
    const auto second = new_->verdict();
    return second == WriteTally::Verdict::kFailed || first == WriteTally::Verdict::kSucceeded
               ? second
               : first;
  }
  bool succeeded() const { return verdict() == WriteTally::Verdict::kSucceeded; }
  /// Of the set that has not enough, for who is told.
  const WriteTally& short_of() const {
    return new_ && old_.verdict() == WriteTally::Verdict::kSucceeded ? *new_ : old_;
  }

 private:
  static int count(const std::vector<StoreAddress>& set) { return static_cast<int>(set.size()); }
  static bool has(const std::vector<StoreAddress>& set, const StoreAddress& from) {
    return std::find(set.begin(), set.end(), from) != set.end();
  }
  const WriteSets* sets_;  // outlive it
  WriteTally old_;
  std::optional<WriteTally> new_;
};

}  // namespace tetrad::replication
