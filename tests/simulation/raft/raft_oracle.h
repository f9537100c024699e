// SPDX-License-Identifier: Apache-2.0
// What must hold for a whole Raft group at every instant, watched from outside.
//
// Election safety: one leader in a term. Log matching: an (index, term) has one content and one
// predecessor everywhere. Leader completeness: a new leader holds all that was committed in earlier
// terms. State machine safety: all servers apply the same entries in the same order. Commit quorum:
// what is committed is on the disks of a majority. Promises: what a message says is on disk. Reads:
// a confirmed read shows all that was committed when it was asked.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "replication/meta/raft_core.h"

namespace tetrad::replication {

/// Thrown at the first thing that must not be.
struct Violation {
  std::string what;
};

/// A state machine's content: everything applied, as one number.
struct RaftImage {
  RaftSnapshotMeta meta;
  uint64_t chain = 0;
};

/// What of a server survives a crash.
struct RaftDisk {
  RaftHardState hard_state;
  RaftImage image;
  std::deque<RaftEntry> entries;

  RaftIndex last_index() const { return entries.empty() ? image.meta.index : entries.back().index; }
  RaftTerm last_term() const { return entries.empty() ? image.meta.term : entries.back().term; }
  std::optional<RaftTerm> term_at(RaftIndex index) const;
  /// One atomic write.
  void apply(const RaftPersist& write, const RaftImage& image_to_install);
};

class RaftOracle {
 public:
  explicit RaftOracle(std::vector<const RaftDisk*> disks, uint64_t (*place_of)(RaftServerId))
      : disks_(std::move(disks)), place_of_(place_of) {}

  void on_entries(const RaftCore& core, const std::vector<RaftEntry>& entries);
  /// After an event; `before` is the commit index before it.
  void on_commit(const RaftCore& core, RaftIndex before);
  void on_leader(const RaftCore& core);
  void on_send(const RaftCore& core, const RaftDisk& disk, const RaftMessage& message) const;
  /// Returns the state machine's content after `entry`.
  uint64_t on_apply(const RaftEntry& entry, uint64_t chain_before) const;
  void on_image(const RaftImage& image) const;
  void on_read_asked(uint64_t context) { read_floors_[context] = committed_last(); }
  void on_read_state(const RaftReadState& state);

  RaftIndex committed_last() const { return committed_.size() - 1; }
  uint64_t reads_confirmed() const { return reads_confirmed_; }
  uint64_t leaders() const { return leaders_.size(); }
  uint64_t configurations() const { return configurations_; }

 private:
  struct Seen {
    RaftTerm term;
    RaftTerm previous_term;
    uint64_t content;
  };
  struct Committed {
    RaftTerm term = 0;
    uint64_t content = 0;
    RaftTerm in_term = 0;  // of the leader that committed it
    uint64_t chain = 0;
  };

  static uint64_t content_of(const RaftEntry& entry);

  std::vector<const RaftDisk*> disks_;
  uint64_t (*place_of_)(RaftServerId);
  std::vector<std::vector<Seen>> seen_;                 // by index
  std::vector<Committed> committed_{{}, {1, 0, 1, 0}};  // by index; 1 is what a group starts from
  std::unordered_map<RaftTerm, RaftServerId> leaders_;
  std::map<uint64_t, RaftIndex> read_floors_;
  uint64_t reads_confirmed_ = 0;
  uint64_t configurations_ = 0;
};

}  // namespace tetrad::replication
