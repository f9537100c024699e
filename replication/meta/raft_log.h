// SPDX-License-Identifier: Apache-2.0
// The log as a Raft server sees it in memory: entries after a base, the newest snapshot's
// description, and the configurations in force along it.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "replication/meta/raft_messages.h"

namespace tetrad::replication {

/// Holds base_index() < index <= last_index(); of the base only the term is known. Entries up to
/// the snapshot may still be there for followers that are a little behind. A configuration is in
/// force from the moment its entry is appended, and no longer once that is cut off. Indexes given
/// by the caller must be inside the log (asserted): what comes from outside is checked by the core.
class RaftLog {
 public:
  /// From what storage held. Errors: kCorruption when the entries have gaps, falling terms, do not
  /// reach the snapshot, or hold a configuration that cannot be read.
  static Result<RaftLog> make(RaftSnapshotMeta snapshot, std::vector<RaftEntry> entries);

  RaftIndex base_index() const { return base_index_; }
  RaftIndex last_index() const { return base_index_ + entries_.size(); }
  RaftTerm last_term() const { return entries_.empty() ? base_term_ : entries_.back().term; }
  /// Nothing for an index outside of [base, last].
  std::optional<RaftTerm> term_at(RaftIndex index) const;
  const RaftEntry& entry(RaftIndex index) const;
  const RaftSnapshotMeta& snapshot() const { return snapshot_; }
  /// Bytes of data held, with a fixed sum per entry.
  size_t bytes() const { return bytes_; }

  /// The configuration in force at the end of the log, and the index of its entry.
  const RaftConfiguration& configuration() const { return configurations_.back().configuration; }
  RaftIndex configuration_index() const { return configurations_.back().index; }
  /// As of `index`, which is not below the snapshot's.
  const RaftConfiguration& configuration_at(RaftIndex index) const;

  /// True when a log ending in (index, term) holds all that this one may have committed (Raft
  /// §5.4.1).
  bool is_up_to_date(RaftIndex index, RaftTerm term) const;
  /// The largest index <= `index` whose term is <= `term` or unknown: where a leader and a follower
  /// that disagree at `index` may agree at the latest.
  RaftIndex last_agreement(RaftIndex index, RaftTerm term) const;

  /// `entry.index` is last_index() + 1; a configuration entry's data has been checked.
  void append(RaftEntry entry);
  /// Cuts off `index` and all after it. `keep_configuration` is a mutant's.
  void truncate_from(RaftIndex index, bool keep_configuration = false);
  /// Takes note of a newer snapshot of this log, and drops entries up to `trailing` before it.
  void compact(RaftSnapshotMeta snapshot, size_t trailing);
  /// Forgets everything for a snapshot from elsewhere.
  void reset(RaftSnapshotMeta snapshot);
  /// Copies entries from `first` on, at least one, until `bytes_max` or the count is reached or
  /// `last` is included.
  std::vector<RaftEntry> copy(RaftIndex first, RaftIndex last, size_t bytes_max) const;

  /// What one entry counts in bounds on bytes.
  static size_t size_of(const RaftEntry& entry) { return entry.data.size() + 32; }

 private:
  /// A configuration and the entry that brought it.
  struct ConfigurationAt {
    RaftIndex index;
    RaftConfiguration configuration;
  };

  RaftIndex base_index_ = 0;
  RaftTerm base_term_ = 0;
  std::deque<RaftEntry> entries_;
  RaftSnapshotMeta snapshot_;
  std::vector<ConfigurationAt> configurations_;  // never empty; ascending by index
  size_t bytes_ = 0;
};

}  // namespace tetrad::replication
