// SPDX-License-Identifier: Apache-2.0
//
//   1. propose() appends to the own log. The own copy is written while the others get theirs: it
//      counts when it is on disk, like any other.
//   2. Each member has a progress: probing (one append at a time until the logs agree), replicating
//      (a window of appends in flight), or taking an image, where the log does not reach back far
//      enough.
//   3. An entry is committed when a majority has it on disk, and it is of this term (Raft §5.4.2).
//   4. A read is answered with the commit index of when it came, once a majority has answered a
//      round of heartbeats that began later.
//   5. A leader that has not heard a majority for a timeout steps down: nobody could be answered
//      anyhow, and clients find the new one sooner.
// What a leader does: replication, commit, reads, membership, handing over.
#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "replication/meta/raft_core.h"

namespace tetrad::replication {

void RaftCore::tick_leader() {
  // Ages of members, in ticks.
  for (auto& [server, progress] : progress_) {
    if (progress.ticks_since_heard != std::numeric_limits<uint32_t>::max()) {
      ++progress.ticks_since_heard;
    }
    // The image, or the word that it arrived, was lost: find out where the member is.
    if (progress.state == RaftProgress::State::kSnapshot &&
        ++progress.snapshot_ticks >= options_.snapshot_timeout_ticks) {
      progress.probe();
    }
  }
  // The heir did not campaign in time: this server goes on leading and takes proposals again.
  if (transferee_ && ++transfer_elapsed_ >= options_.election_ticks) transferee_.reset();
  if (election_elapsed_ >= options_.election_ticks) {
    election_elapsed_ = 0;
    const bool heard = configuration().majority([&](RaftServerId server) {
      const auto progress = progress_.find(server);
      return server == options_.self ||
             (progress != progress_.end() && progress->second.recently_active);
    });
    for (auto& [server, progress] : progress_) progress.recently_active = false;
    if (options_.check_quorum && !heard && !TETRAD_RAFT_MUTANT(options_, kNoCheckQuorum)) {
      become_follower(term_, std::nullopt);
      return;
    }
  }
  if (++heartbeat_elapsed_ >= options_.heartbeat_ticks) {
    heartbeat_elapsed_ = 0;
    send_heartbeats();
  }
}

// Proposals.

// Tested before anything is appended. kOverloaded bounds the memory of entries that no majority
// has.
Result<void> RaftCore::check_may_propose(size_t bytes) const {
  if (role_ != RaftRole::kLeader) {
    return leader_ ? fail(ErrorCode::kNotLeader, "raft leader is {}", leader_->to_string())
                   : fail(ErrorCode::kNotLeader, "raft leader is not known");
  }
  // What is proposed now would come too late for the heir's log to be complete.
  if (transferee_) {
    return fail(ErrorCode::kOverloaded, "raft leadership is being handed over to {}",
                transferee_->to_string());
  }
  if (bytes > options_.entry_bytes_max) {
    return fail(ErrorCode::kLimit, "raft entry of {} bytes, at most {}", bytes,
                options_.entry_bytes_max);
  }
  // One entry is always let in, however large it is within its own bound.
  if (uncommitted_bytes_ > 0 && uncommitted_bytes_ + bytes > options_.uncommitted_bytes_max) {
    return fail(ErrorCode::kOverloaded, "raft has {} bytes waiting to be committed, at most {}",
                uncommitted_bytes_, options_.uncommitted_bytes_max);
  }
  if (log_.last_index() >= kRaftNumberMax) return fail(ErrorCode::kLimit, "raft log is full");
  return {};
}

RaftPosition RaftCore::append_own(RaftEntryKind kind, Bytes data) {
  TETRAD_ASSERT(role_ == RaftRole::kLeader);
  RaftEntry entry{term_, log_.last_index() + 1, kind, std::move(data)};
  uncommitted_bytes_ += RaftLog::size_of(entry);
  log_.append(std::move(entry));
  append_wanted_ = true;
  return {term_, log_.last_index()};
}

// The position tells the caller how to find out what became of it (RaftPosition).
Result<RaftPosition> RaftCore::propose(Bytes command) {
  TETRAD_TRY_VOID(check_may_propose(command.size()));
  const RaftPosition position = append_own(RaftEntryKind::kCommand, std::move(command));
  advance_commit();
  return position;
}

// One server at a time: then the old and the new majority have a member in common (Raft §6, thesis
// §4.1).
Result<RaftPosition> RaftCore::change_configuration(RaftMembershipChange change) {
  TETRAD_TRY_VOID(check_may_propose(0));
  TETRAD_TRY(const RaftConfiguration next, change_membership(configuration(), change));
  // Two changes in one go, or one before this term has a commit, can leave two majorities that do
  // not meet (Ongaro, raft-dev, 2015).
  if (!configuration_committed() && !TETRAD_RAFT_MUTANT(options_, kOverlappingChanges)) {
    return fail(ErrorCode::kConflict, "a raft membership change is under way");
  }
  if (commit_ < term_start_ && !TETRAD_RAFT_MUTANT(options_, kChangeBeforeCommit) &&
      !TETRAD_RAFT_MUTANT(options_, kOverlappingChanges)) {
    return fail(ErrorCode::kConflict, "raft term {} has no commit yet", term_);
  }
  // A learner that lags would hold up every commit once its vote is needed.
  if (change.kind == RaftMembershipChange::Kind::kPromote) {
    const auto learner = progress_.find(change.server);
    TETRAD_ASSERT(change.server == options_.self || learner != progress_.end());
    const RaftIndex match = learner == progress_.end() ? stable_ : learner->second.match;
    const bool silent =
        learner != progress_.end() && learner->second.ticks_since_heard >= options_.election_ticks;
    if (silent || match + options_.promotion_lag_max < log_.last_index()) {
      return fail(ErrorCode::kBehind, "raft learner {} is at {} of {}", change.server.to_string(),
                  match, log_.last_index());
    }
  }
  Bytes data = encode_configuration_data(next);
  if (data.size() > options_.entry_bytes_max) {
    return fail(ErrorCode::kLimit, "raft configuration of {} bytes, at most {}", data.size(),
                options_.entry_bytes_max);
  }
  const RaftPosition position = append_own(RaftEntryKind::kConfiguration, std::move(data));
  // In force as soon as it is in the log, not when it is committed (thesis §4.1).
  match_progress_to_configuration();
  confirm_reads();
  advance_commit();
  return position;
}

/// Progress for exactly the other members of the configuration in force.
void RaftCore::match_progress_to_configuration() {
  TETRAD_ASSERT(role_ == RaftRole::kLeader);
  std::map<RaftServerId, RaftProgress> progress;
  for (const RaftServerId server : configuration().servers()) {
    // Members that stay keep their window; a new one is probed from the end of the log.
    if (server == options_.self) continue;
    const auto known = progress_.find(server);
    if (known != progress_.end()) {
      progress.emplace(server, std::move(known->second));
      continue;
    }
    RaftProgress fresh;
    fresh.next = log_.last_index() + 1;
    fresh.recently_active = true;  // until the next check of the majority
    progress.emplace(server, std::move(fresh));
  }
  progress_ = std::move(progress);
  // A majority may be smaller now: entries and reads that waited may be settled.
  if (transferee_ && !configuration().is_voter(*transferee_)) transferee_.reset();
  append_wanted_ = true;
}

// Replication.

void RaftCore::send_appends() {
  for (auto& [server, progress] : progress_) {
    while (send_append(server, progress, false)) {
    }
  }
}

/// Sends one append if the window allows; true if more may follow. Without entries it goes only
/// when the follower does not know the commit index, or when asked (`even_empty`).
bool RaftCore::send_append(RaftServerId to, RaftProgress& progress, bool even_empty) {
  // The entry before the next one was compacted away: only an image helps.
  if (!progress.may_send(options_.in_flight_max)) return false;
  const std::optional<RaftTerm> previous_term = log_.term_at(progress.next - 1);
  if (!previous_term) {
    send_snapshot(to, progress);
    return false;
  }
  RaftAppendRequest request;
  request.previous_index = progress.next - 1;
  request.previous_term = *previous_term;
  request.commit = commit_;
  if (progress.next <= log_.last_index()) {
    request.entries = log_.copy(progress.next, log_.last_index(), options_.message_bytes_max);
  } else if (!even_empty && progress.commit_sent >= commit_) {
    return false;
  }
  const RaftIndex last = request.previous_index + request.entries.size();
  TETRAD_ASSERT(progress.next > progress.match);
  TETRAD_ASSERT(last <= log_.last_index());
  // What this message tells the member to be committed: never beyond the entries that it has by
  // then.
  progress.commit_sent = std::min(commit_, last);
  // While probing nothing is assumed: `next` moves with the answer.
  if (progress.state == RaftProgress::State::kProbe) {
    progress.probe_sent = true;
  } else if (!request.entries.empty()) {
    // While replicating it moves at once; a refusal sets it back.
    progress.next = last + 1;
    progress.in_flight.push_back(last);
  }
  const bool more = progress.state == RaftProgress::State::kReplicate && last < log_.last_index();
  send(to, std::move(request));
  return more;
}

void RaftCore::send_snapshot(RaftServerId to, RaftProgress& progress) {
  if (!progress.recently_active) {  // nobody there to take it
    progress.probe_sent = true;
    return;
  }
  // An image that ends at or before what the member has would be of no use.
  TETRAD_ASSERT(log_.snapshot().index > progress.match);
  progress.await_snapshot(log_.snapshot().index);
  snapshot_sends_.push_back({make_message(to, RaftInstallSnapshot{log_.snapshot()})});
}

// Called by the driver: whether the image arrived is known by the answer to the append that
// follows.
void RaftCore::snapshot_sent(RaftServerId to, bool delivered) {
  const auto peer = progress_.find(to);
  if (peer == progress_.end() || peer->second.state != RaftProgress::State::kSnapshot) return;
  RaftProgress& progress = peer->second;
  // Not delivered: where it stood before the image is where it stands.
  if (!delivered) progress.pending_snapshot = 0;
  progress.probe();
  progress.probe_sent = true;  // until it is heard again
}

void RaftCore::peer_unreachable(RaftServerId server) {
  const auto peer = progress_.find(server);
  if (peer == progress_.end() || peer->second.state != RaftProgress::State::kReplicate) return;
  // What was in flight is lost: probe from what it has acknowledged.
  peer->second.probe();
}

// A member gets no commit index beyond what it has acknowledged.
void RaftCore::send_heartbeats() {
  TETRAD_ASSERT(role_ == RaftRole::kLeader);
  for (auto& [server, progress] : progress_) {
    RaftIndex commit = std::min(commit_, progress.match);
    if (TETRAD_RAFT_MUTANT(options_, kCommitBeyondMatch)) commit = commit_;
    send(server, RaftHeartbeat{commit, read_round_});
  }
}

/// Only answers count as being heard: a server that asks for votes does not hear this leader.
RaftProgress* RaftCore::heard(RaftServerId server) {
  const auto peer = progress_.find(server);
  if (peer == progress_.end()) return nullptr;
  peer->second.recently_active = true;
  peer->second.ticks_since_heard = 0;
  return &peer->second;
}

void RaftCore::on_append_reply(const RaftMessage& message, const RaftAppendReply& body) {
  RaftProgress* const known = heard(message.from);
  if (known == nullptr) return;
  RaftProgress& progress = *known;
  using State = RaftProgress::State;
  if (!body.accepted) {
    // An answer to something that was answered better since is no news.
    if (progress.state == State::kSnapshot || body.index <= progress.match) return;
    if (progress.state == State::kProbe && body.index != progress.next - 1) return;
    // Where both logs agree at the latest, by the member's hint and this log; never below what it
    // has acknowledged.
    const RaftIndex agreement =
        log_.last_agreement(std::min(body.hint_index, body.index - 1), body.hint_term);
    if (progress.state == State::kReplicate) progress.probe();
    progress.next = std::max(progress.match, agreement) + 1;
    progress.probe_sent = false;
    send_append(message.from, progress, true);
    return;
  }
  // An index that this leader has not given: of a log before this term.
  if (body.index > log_.last_index()) return;  // never of this term
  TETRAD_ASSERT(progress.match <= log_.last_index());
  progress.acknowledge(body.index);
  if (body.index > progress.match) {
    progress.match = body.index;
    progress.next = std::max(progress.next, body.index + 1);
    advance_commit();
    if (role_ != RaftRole::kLeader) return;  // it committed its own removal
  }
  // The logs agree: from now on a window of appends may be in flight.
  if (progress.state == State::kProbe ||
      (progress.state == State::kSnapshot && progress.match >= log_.base_index())) {
    progress.replicate();
  }
  // The window has room again.
  while (send_append(message.from, progress, false)) {
  }
  hand_over_if_ready();
}

void RaftCore::on_heartbeat_reply(const RaftMessage& message, const RaftHeartbeatReply& body) {
  RaftProgress* const known = heard(message.from);
  if (known == nullptr) return;
  RaftProgress& progress = *known;
  // It answers, so another probe may be sent; no probe is sent before.
  progress.probe_sent = false;
  if (progress.match < log_.last_index()) {
    // A message may be lost: then the follower rejects the next append, which shows it.
    if (progress.state == RaftProgress::State::kReplicate &&
        !progress.may_send(options_.in_flight_max)) {
      progress.in_flight.pop_front();
    }
    send_append(message.from, progress, true);
  }
  // A round that was never begun, or an answer that is older than one before, confirms nothing.
  if (body.read_round <= read_round_ && body.read_round > progress.read_round) {
    progress.read_round = body.read_round;
    confirm_reads();
  }
}

// Commit.

/// Up to where a majority has the log on disk. A leader that has removed itself manages the group
/// until that is committed, and does not count.
RaftIndex RaftCore::majority_match() const {
  const RaftIndex own =
      TETRAD_RAFT_MUTANT(options_, kLeaderCountsUnpersisted) ? log_.last_index() : stable_;
  const auto match = [&](RaftServerId server) {
    if (server == options_.self) return own;
    const auto progress = progress_.find(server);
    return progress == progress_.end() ? RaftIndex{0} : progress->second.match;
  };
#ifdef TETRAD_MUTANTS
  const bool learners = TETRAD_RAFT_MUTANT(options_, kLearnersCount);
  const bool removed = TETRAD_RAFT_MUTANT(options_, kRemovedLeaderCounts) &&
                       !configuration().is_voter(options_.self);
  if (learners || removed) {
    std::vector<RaftIndex> matches;
    for (const RaftServerId server : configuration().servers()) {
      if (learners || configuration().is_voter(server)) matches.push_back(match(server));
    }
    if (removed) matches.push_back(own);
    std::sort(matches.rbegin(), matches.rend());
    return matches[configuration().voters.size() / 2];
  }
#endif
  // The largest index that a majority of voters has.
  return configuration().majority_value(match);
}

void RaftCore::advance_commit() {
  if (role_ != RaftRole::kLeader) return;
  // Called after everything that can raise a match: acks, own writes, changes of members.
  const RaftIndex index = majority_match();
  if (index <= commit_) return;
  // Copies of an earlier term's entry prove nothing (Raft §5.4.2, figure 8).
  if (log_.term_at(index) != term_ && !TETRAD_RAFT_MUTANT(options_, kCommitEarlierTerm)) return;
  const RaftIndex before = commit_;
  TETRAD_ASSERT(index <= log_.last_index());
  commit_to(index);
  after_leader_commit(before);
}

// Never falls.
void RaftCore::commit_to(RaftIndex index) {
  TETRAD_ASSERT(index <= log_.last_index());
  commit_ = std::max(commit_, index);
}

void RaftCore::after_leader_commit(RaftIndex before) {
  TETRAD_ASSERT(before < commit_);
  for (RaftIndex index = before + 1; index <= commit_; ++index) {
    const size_t bytes = RaftLog::size_of(log_.entry(index));
    uncommitted_bytes_ -= std::min(uncommitted_bytes_, bytes);
  }
  // Without it followers would learn of the commit by the next heartbeat.
  append_wanted_ = true;  // the followers apply it the sooner
  // The term has its first commit: reads that came before can be registered now.
  if (commit_ >= term_start_ && !early_reads_.empty()) {
    std::deque<PendingRead> reads;
    reads.swap(early_reads_);
    for (const PendingRead& read : reads) register_read(read.context, read.from);
  }
  if (configuration_committed() && !configuration().is_voter(options_.self)) leave_after_removal();
}

/// Tells everyone that the removal is committed, lets the voter that has most campaign, steps down.
void RaftCore::leave_after_removal() {
  if (TETRAD_RAFT_MUTANT(options_, kRemovedLeaderCounts)) return;
  TETRAD_ASSERT(role_ == RaftRole::kLeader);
  // Everyone hears of the commit before the heir may campaign.
  send_appends();
  std::optional<RaftServerId> heir;
  for (const auto& [server, progress] : progress_) {
    if (!configuration().is_voter(server) || progress.match < commit_) continue;
    if (!heir || progress.match > progress_.at(*heir).match) heir = server;
  }
  if (heir) send(*heir, RaftTimeoutNow{});
  become_follower(term_, std::nullopt);
}

// Reads.

Result<void> RaftCore::read_index(uint64_t context) {
  if (role_ == RaftRole::kLeader) {
    if (reads_.size() + early_reads_.size() >= options_.pending_reads_max) {
      return fail(ErrorCode::kOverloaded, "raft has {} reads waiting",
                  reads_.size() + early_reads_.size());
    }
    register_read(context, options_.self);
    return {};
  }
  if (!leader_) return fail(ErrorCode::kNotLeader, "raft leader is not known");
  send(*leader_, RaftReadRequest{context});
  return {};
}

// A follower's read, answered over the network; the follower asks again when the answer is lost.
void RaftCore::on_read_request(const RaftMessage& message, const RaftReadRequest& body) {
  if (role_ != RaftRole::kLeader ||
      reads_.size() + early_reads_.size() >= options_.pending_reads_max) {
    send(message.from, RaftReadReply{body.context, false, 0});
    return;
  }
  register_read(body.context, message.from);
}

/// The commit index now is the answer, once a majority has said, to a question asked later than
/// now, that this is still their leader. A new leader knows what is committed only after a commit.
void RaftCore::register_read(uint64_t context, RaftServerId from) {
  TETRAD_ASSERT(role_ == RaftRole::kLeader);
  if (commit_ < term_start_ && !TETRAD_RAFT_MUTANT(options_, kReadBeforeCommit)) {
    early_reads_.push_back({context, from, 0, 0});
    return;
  }
  // The next round, not one that is out: its answers may have been given before the read came.
  reads_.push_back({context, from, commit_, read_round_ + 1});
  read_round_wanted_ = true;
  confirm_reads();
}

void RaftCore::answer_read(const PendingRead& read, bool confirmed) {
  if (read.from == options_.self) {
    read_states_.push_back({read.context, confirmed, read.index});
  } else {
    send(read.from, RaftReadReply{read.context, confirmed, read.index});
  }
}

void RaftCore::confirm_reads() {
  uint64_t round = configuration().majority_value([&](RaftServerId server) {
    // The leader needs no answer of its own.
    if (server == options_.self) return std::numeric_limits<uint64_t>::max();
    const auto progress = progress_.find(server);
    return progress == progress_.end() ? uint64_t{0} : progress->second.read_round;
  });
  if (TETRAD_RAFT_MUTANT(options_, kReadWithoutRound)) round = std::numeric_limits<uint64_t>::max();
  while (!reads_.empty() && reads_.front().round <= round) {
    answer_read(reads_.front(), true);
    reads_.pop_front();
  }
}

void RaftCore::refuse_reads() {
  for (const PendingRead& read : early_reads_) answer_read(read, false);
  for (const PendingRead& read : reads_) answer_read(read, false);
  early_reads_.clear();
  reads_.clear();
}

// The heir campaigns at once, without pre-vote, when it has the whole log.
// Handing over.

Result<void> RaftCore::transfer_leadership(RaftServerId to) {
  if (role_ != RaftRole::kLeader) {
    return leader_ ? fail(ErrorCode::kNotLeader, "raft leader is {}", leader_->to_string())
                   : fail(ErrorCode::kNotLeader, "raft leader is not known");
  }
  if (to == options_.self || !configuration().is_voter(to)) {
    return fail(ErrorCode::kInvalid, "{} is not another raft voter", to.to_string());
  }
  transferee_ = to;
  transfer_elapsed_ = 0;
  append_wanted_ = true;
  hand_over_if_ready();
  return {};
}

void RaftCore::hand_over_if_ready() {
  if (role_ != RaftRole::kLeader || !transferee_) return;
  TETRAD_ASSERT(progress_.contains(*transferee_));
  // Sent each time that it acknowledges; a second one finds it campaigning or leading and is
  // ignored.
  if (progress_.at(*transferee_).match == log_.last_index()) send(*transferee_, RaftTimeoutNow{});
}

std::vector<RaftPeerStatus> RaftCore::peers() const {
  std::vector<RaftPeerStatus> peers;
  for (const auto& [server, progress] : progress_) {
    peers.push_back({server, configuration().is_voter(server), progress.state, progress.match,
                     progress.ticks_since_heard});
  }
  return peers;
}

}  // namespace tetrad::replication
