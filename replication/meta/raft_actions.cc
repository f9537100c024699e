// SPDX-License-Identifier: Apache-2.0
// What leaves the core, and when: writes, messages that wait for them, committed entries, snapshots
// of the own state machine.
//
// The rule of all: nothing that rests on a write leaves before the write is durable (rule 21). A
// message that does is held with the number of the write that covers it (send_when_persisted), and
// released by persisted(). Writes may overlap; they end in the order in which they were handed out.
#include <algorithm>

#include "base/assert.h"
#include "replication/meta/raft_core.h"

namespace tetrad::replication {

/// What is true between any two events, whoever sent them.
void RaftCore::check_invariants() const {
  TETRAD_ASSERT(log_.base_index() <= log_.snapshot().index);
  TETRAD_ASSERT(log_.snapshot().index <= commit_);
  TETRAD_ASSERT(applied_ <= commit_);
  TETRAD_ASSERT(commit_ <= log_.last_index());
  TETRAD_ASSERT(log_.configuration_index() <= log_.last_index());
  TETRAD_ASSERT(log_.last_term() <= term_);
  TETRAD_ASSERT(emitted_ <= log_.last_index());
  TETRAD_ASSERT(stable_ <= emitted_);
  TETRAD_ASSERT(stable_term_ <= emitted_term_);
  TETRAD_ASSERT(emitted_term_ <= term_);
  TETRAD_ASSERT(outstanding_.empty() || outstanding_.back().sequence < next_sequence_);
  TETRAD_ASSERT(held_.empty() || held_.back().sequence <= next_sequence_);
  TETRAD_ASSERT((role_ == RaftRole::kLeader) == (leader_ == options_.self));
  if (role_ == RaftRole::kLeader) {
    TETRAD_ASSERT(!pending_snapshot_);
    TETRAD_ASSERT(!progress_.contains(options_.self));
    TETRAD_ASSERT(!transferee_ || configuration().is_voter(*transferee_));
    TETRAD_ASSERT(early_reads_.empty() || commit_ < term_start_);
    TETRAD_ASSERT(reads_.empty() || reads_.back().round <= read_round_ + 1);
    return;
  }
  TETRAD_ASSERT(progress_.empty());
  TETRAD_ASSERT(reads_.empty() && early_reads_.empty());
  TETRAD_ASSERT(!transferee_);
  TETRAD_ASSERT(role_ == RaftRole::kFollower || !leader_);
  TETRAD_ASSERT(role_ != RaftRole::kCandidate || vote_ == options_.self);
}

RaftMessage RaftCore::make_message(RaftServerId to, RaftMessageBody body) const {
  return {options_.cluster_id, options_.group_id, options_.self, to, term_, std::move(body)};
}

void RaftCore::send(RaftServerId to, RaftMessageBody body) {
  messages_.push_back(make_message(to, std::move(body)));
}

/// Holds a message back until everything that is true now is durable.
void RaftCore::send_when_persisted(RaftServerId to, RaftMessageBody body) {
  // Three cases: something is unwritten, and its write will have the next number; a write under way
  // covers it; nothing is open.
  if (must_persist()) {
    held_.push_back({next_sequence_, make_message(to, std::move(body))});
  } else if (!outstanding_.empty()) {
    held_.push_back({outstanding_.back().sequence, make_message(to, std::move(body))});
  } else {
    send(to, std::move(body));
    return;
  }
  // A disk that stands still must not fill the memory; the peers repeat themselves.
  constexpr size_t kHeldMax = 4096;
  if (held_.size() > kHeldMax) held_.pop_front();
}

// The commit index alone is no reason to write: it is learned again.
bool RaftCore::must_persist() const {
  return term_ != emitted_term_ || vote_ != emitted_vote_ || log_.last_index() > emitted_ ||
         pending_truncate_ || pending_snapshot_ || pending_drop_;
}

/// An image that waits to be installed goes at once: its driver holds it only for this call.
bool RaftCore::may_persist() const {
  return must_persist() &&
         (pending_snapshot_ || outstanding_.size() < options_.persists_in_flight_max);
}

RaftPersist RaftCore::make_persist() {
  RaftPersist write;
  write.sequence = next_sequence_++;
  write.snapshot = std::move(pending_snapshot_);
  write.truncate_from = pending_truncate_;
  write.drop_through = pending_drop_;
  pending_snapshot_.reset();
  pending_truncate_.reset();
  pending_drop_.reset();
  write.entries.reserve(static_cast<size_t>(log_.last_index() - emitted_));
  for (RaftIndex index = emitted_ + 1; index <= log_.last_index(); ++index) {
    write.entries.push_back(log_.entry(index));
  }
  emitted_ = log_.last_index();
  emitted_term_ = term_;
  emitted_vote_ = vote_;
  // Writes are done in order, so with this one the log on disk reaches its end as of now.
  write.hard_state = {term_, vote_, std::min(commit_, emitted_)};
  outstanding_.push_back({write.sequence, term_, vote_, emitted_});
  return write;
}

void RaftCore::persisted(uint64_t sequence) {
  TETRAD_ASSERT(sequence < next_sequence_);
  // Entries that were cut off meanwhile do not count: truncate_from() has lowered last_index.
  while (!outstanding_.empty() && outstanding_.front().sequence <= sequence) {
    const OutstandingPersist& write = outstanding_.front();
    TETRAD_ASSERT(write.term >= stable_term_);
    stable_term_ = write.term;
    stable_vote_ = write.vote;
    stable_ = std::max(stable_, write.last_index);
    outstanding_.pop_front();
  }
  while (!held_.empty() && held_.front().sequence <= sequence) {
    messages_.push_back(std::move(held_.front().message));
    held_.pop_front();
  }
  // The own vote, or the own copy of an entry, is durable now and may have been the last that was
  // missing.
  if (role_ == RaftRole::kCandidate) tally_votes();
  advance_commit();
}

bool RaftCore::has_actions() const {
  return append_wanted_ || read_round_wanted_ || may_persist() || !messages_.empty() ||
         !snapshot_sends_.empty() || !read_states_.empty() || applicable() > applied_ ||
         reported_role_ != RaftRoleChange{role_, term_, leader_};
}

RaftActions RaftCore::take_actions() {
  check_invariants();
  RaftActions actions;
  if (role_ == RaftRole::kLeader) {
    // Appends first: they carry the commit index that the reads of the round wait for.
    if (append_wanted_) send_appends();
    if (read_round_wanted_) {
      ++read_round_;
      send_heartbeats();
    }
  }
  append_wanted_ = false;
  read_round_wanted_ = false;
  const RaftRoleChange role{role_, term_, leader_};
  if (role != reported_role_) {
    reported_role_ = role;
    actions.role_change = role;
  }
  if (may_persist()) actions.persist = make_persist();
  actions.messages.swap(messages_);
  actions.snapshots.swap(snapshot_sends_);
  // Committed and durable here, so that what was applied is never lost. At most `apply_bytes_max`
  // at once: a long backlog is applied in several steps of the driver.
  if (applicable() > applied_) {
    actions.committed = log_.copy(applied_ + 1, applicable(), options_.apply_bytes_max);
    TETRAD_ASSERT(!actions.committed.empty());
    applied_ += actions.committed.size();
    TETRAD_ASSERT(applied_ <= applicable());
  }
  actions.reads.swap(read_states_);
  return actions;
}

Result<RaftSnapshotMeta> RaftCore::snapshot_meta(RaftIndex index) const {
  if (index > applied_ || index < log_.snapshot().index) {
    return fail(ErrorCode::kInvalid, "raft snapshot at {}, applied is {}, newest snapshot at {}",
                index, applied_, log_.snapshot().index);
  }
  if (index == 0) return fail(ErrorCode::kInvalid, "raft has nothing to make a snapshot of");
  return RaftSnapshotMeta{index, log_.term_at(index).value(), log_.configuration_at(index)};
}

Result<void> RaftCore::snapshot_taken(const RaftSnapshotMeta& meta) {
  if (meta.index < log_.snapshot().index || pending_snapshot_) {
    return fail(ErrorCode::kConflict, "raft snapshot at {}, the newest one is at {}", meta.index,
                log_.snapshot().index);
  }
  TETRAD_ASSERT(meta.index <= applied_);
  TETRAD_ASSERT(log_.term_at(meta.index) == meta.term);
  const RaftIndex before = log_.base_index();
  // Some entries before the image stay, and spare followers that are a little behind the whole
  // image.
  log_.compact(meta, options_.trailing_entries);
  if (log_.base_index() > before) pending_drop_ = log_.base_index();
  return {};
}

}  // namespace tetrad::replication
