// SPDX-License-Identifier: Apache-2.0
// Terms, roles, elections, and what a follower does.
//
// How a server goes through roles:
//   1. Nothing heard from a leader for a timeout of one to two times `election_ticks`, drawn at
//      random so that servers seldom collide: ask for pre-votes, in the term as it is.
//   2. A majority would vote: raise the term, vote for oneself, ask for votes. The requests leave
//      when term and vote are on disk.
//   3. A majority has voted: leader; it appends a no-op, whose commit shows what is committed.
//   4. A message of a higher term, or one of the leader of this term: follower.
//
// A follower takes an append where its log has the entry before it, cuts off what contradicts,
// appends, and answers when that is on disk. It never cuts what it knows as committed: a leader
// that asks for that breaks the protocol, and is refused.
//
// Pure: no clock, no I/O. Events come in by tick(), receive(), persisted() and propose(); what is
// to be done leaves by take_actions() (raft_actions.cc).
#include "replication/meta/raft_core.h"

#include <algorithm>
#include <type_traits>

#include "base/assert.h"

namespace tetrad::replication {

// What storage held is checked against itself before anything is sent: a server with a torn log
// must not vote.
Result<RaftCore> RaftCore::make(RaftOptions options, RaftStored stored) {
  if (options.self.value.is_nil()) return fail(ErrorCode::kInvalid, "a raft server needs an id");
  if (options.heartbeat_ticks == 0 || options.election_ticks <= options.heartbeat_ticks) {
    return fail(ErrorCode::kInvalid, "raft election_ticks {} must be above heartbeat_ticks {}",
                options.election_ticks, options.heartbeat_ticks);
  }
  if (options.in_flight_max == 0 || options.persists_in_flight_max == 0) {
    return fail(ErrorCode::kInvalid, "raft in_flight_max and persists_in_flight_max start at 1");
  }
  TETRAD_TRY(RaftLog log, RaftLog::make(std::move(stored.snapshot), std::move(stored.entries)));
  if (stored.hard_state.term < log.last_term()) {
    return fail(ErrorCode::kCorruption, "raft log of term {}, hard state of term {}",
                log.last_term(), stored.hard_state.term);
  }
  if (stored.hard_state.commit > log.last_index()) {
    return fail(ErrorCode::kCorruption, "raft log ends at {}, committed is {}", log.last_index(),
                stored.hard_state.commit);
  }
  // The image may be newer than the hard state that was last written: what it holds is committed.
  const RaftIndex commit = std::max(stored.hard_state.commit, log.snapshot().index);
  if (stored.applied > commit) {
    return fail(ErrorCode::kCorruption, "raft entry {} applied, committed is {}", stored.applied,
                commit);
  }
  return RaftCore(std::move(options), std::move(log), stored);
}

RaftCore::RaftCore(RaftOptions options, RaftLog log, const RaftStored& stored)
    : options_(std::move(options)),
      random_(options_.seed),
      log_(std::move(log)),
      term_(stored.hard_state.term),
      vote_(stored.hard_state.vote),
      commit_(std::max(stored.hard_state.commit, log_.snapshot().index)),
      applied_(std::max(stored.applied, log_.snapshot().index)),
      stable_(log_.last_index()),
      emitted_(log_.last_index()),
      stable_term_(term_),
      emitted_term_(term_),
      stable_vote_(vote_),
      emitted_vote_(vote_) {
  reported_role_.term = term_;
  draw_timeout();
}

void RaftCore::draw_timeout() {
  // What was read from the disk counts as durable and as handed out.
  timeout_ =
      options_.election_ticks + static_cast<uint32_t>(random_.below(options_.election_ticks));
}

void RaftCore::tick() {
  ++election_elapsed_;
  // A tick is the only time that the core knows; the driver calls it every `tick_us`.
  if (ticks_to_fetch_ > 0) --ticks_to_fetch_;
  if (role_ == RaftRole::kLeader) {
    tick_leader();
  } else if (election_elapsed_ >= timeout_) {
    election_elapsed_ = 0;
    draw_timeout();
    if (may_campaign()) {
      campaign(options_.pre_vote ? Campaign::kPreVote : Campaign::kElection);
    } else {
      leader_.reset();  // nothing heard for a whole timeout
    }
  }
}

// Heard within the shortest timeout: such a server refuses votes, so that one that was away cannot
// disturb a group that works (Raft §6, thesis §4.2.3).
bool RaftCore::hears_leader() const {
  return options_.check_quorum && leader_ && election_elapsed_ < options_.election_ticks;
}

// Messages.

// Everything that comes from outside is tested here, before any of it has an effect.
Result<void> RaftCore::check(const RaftMessage& message) const {
  // A cluster or group of another id is a mistake of configuration, or a node that was moved; never
  // ours.
  if (message.cluster_id != options_.cluster_id) {
    return fail(ErrorCode::kInvalid, "raft {} of cluster {}, this is {}", name_of(message.body),
                message.cluster_id.to_string(), options_.cluster_id.to_string());
  }
  if (message.group_id != options_.group_id) {
    return fail(ErrorCode::kInvalid, "raft {} of group {}, this is {}", name_of(message.body),
                message.group_id.value, options_.group_id.value);
  }
  if (message.to != options_.self || message.from == options_.self) {
    return fail(ErrorCode::kInvalid, "raft {} from {} to {}, this is {}", name_of(message.body),
                message.from.to_string(), message.to.to_string(), options_.self.to_string());
  }
  if (message.term > kRaftNumberMax) {
    return fail(ErrorCode::kInvalid, "raft {} of term {}", name_of(message.body), message.term);
  }
  const auto check_entries = [&](RaftIndex index, RaftTerm term,
                                 const std::vector<RaftEntry>& entries) -> Result<void> {
    // Entries must follow each other without gaps, terms never fall, and none is of a term above
    // the sender's.
    for (const RaftEntry& entry : entries) {
      if (entry.index != index + 1 || entry.term < term || entry.term > message.term) {
        return fail(ErrorCode::kCorruption,
                    "raft {} of term {}: entry {} of term {} after {} of term {}",
                    name_of(message.body), message.term, entry.index, entry.term, index, term);
      }
      if (entry.kind == RaftEntryKind::kConfiguration) {
        TETRAD_TRY_VOID(decode_configuration_data(entry.data));
      }
      index = entry.index;
      term = entry.term;
    }
    return {};
  };
  if (const auto* append = std::get_if<RaftAppendRequest>(&message.body)) {
    TETRAD_TRY_VOID(check_entries(append->previous_index, append->previous_term, append->entries));
  }
  if (const auto* fetched = std::get_if<RaftFetchReply>(&message.body)) {
    TETRAD_TRY_VOID(check_entries(fetched->after, 0, fetched->entries));
  }
  if (const auto* install = std::get_if<RaftInstallSnapshot>(&message.body)) {
    if (install->meta.term > message.term || install->meta.configuration.voters.empty()) {
      return fail(ErrorCode::kCorruption, "raft snapshot at {} of term {} with {} voters",
                  install->meta.index, install->meta.term,
                  install->meta.configuration.voters.size());
    }
  }
  return {};
}

Result<void> RaftCore::receive(RaftMessage message) {
  TETRAD_TRY_VOID(check(message));
  const auto is = [&]<class Body>(std::type_identity<Body>) {
    return std::holds_alternative<Body>(message.body);
  };
  if (is(std::type_identity<RaftFetchRequest>()) || is(std::type_identity<RaftFetchReply>())) {
    return dispatch(std::move(message));  // what is committed is so whatever the sender's term
  }
  if (message.term > term_) {
    if (const auto* request = std::get_if<RaftVoteRequest>(&message.body)) {
      // Whoever hears a leader keeps it; a server that was away, or was removed, cannot depose it.
      if (!request->transfer && hears_leader()) return {};
    }
    const bool from_leader = is(std::type_identity<RaftAppendRequest>()) ||
                             is(std::type_identity<RaftHeartbeat>()) ||
                             is(std::type_identity<RaftInstallSnapshot>());
    if (!is(std::type_identity<RaftPreVoteRequest>())) {
      // A pre-vote changes nothing here, also where its sender is in a later term.
      become_follower(message.term,
                      from_leader ? std::optional<RaftServerId>(message.from) : std::nullopt);
    }
  } else if (message.term < term_ && !is(std::type_identity<RaftReadRequest>()) &&
             !is(std::type_identity<RaftReadReply>()) &&
             !is(std::type_identity<RaftPreVoteReply>())) {
    // (Those three do not depend on the sender's term; a server behind says yes to a pre-vote.)
    if (TETRAD_RAFT_MUTANT(options_, kStaleRepliesCount) &&
        (is(std::type_identity<RaftVoteReply>()) || is(std::type_identity<RaftAppendReply>()))) {
      return dispatch(std::move(message));
    }
    on_lower_term(message);
    return {};
  }
  return dispatch(std::move(message));
}

/// A leader or candidate of an earlier term learns that it is one. Without the answer a leader
/// whose follower got ahead by a failed campaign could never reach that follower again.
void RaftCore::on_lower_term(const RaftMessage& message) {
  if (const auto* append = std::get_if<RaftAppendRequest>(&message.body)) {
    send(message.from, RaftAppendReply{false, append->previous_index, 0, 0});
  } else if (std::holds_alternative<RaftHeartbeat>(message.body) ||
             std::holds_alternative<RaftInstallSnapshot>(message.body)) {
    send(message.from, RaftAppendReply{});
  } else if (std::holds_alternative<RaftVoteRequest>(message.body)) {
    send(message.from, RaftVoteReply{false});
  } else if (const auto* request = std::get_if<RaftPreVoteRequest>(&message.body)) {
    send(message.from, RaftPreVoteReply{request->campaign_term, false});
  }
}

// Replies go nowhere unless the role that asked still holds.
Result<void> RaftCore::dispatch(RaftMessage message) {
  if (auto* append = std::get_if<RaftAppendRequest>(&message.body)) {
    RaftAppendRequest body = std::move(*append);
    return on_append(message, std::move(body));
  }
  if (const auto* heartbeat = std::get_if<RaftHeartbeat>(&message.body)) {
    return on_heartbeat(message, *heartbeat);
  }
  if (const auto* install = std::get_if<RaftInstallSnapshot>(&message.body)) {
    return on_install_snapshot(message, *install);
  }
  if (const auto* append_reply = std::get_if<RaftAppendReply>(&message.body)) {
    if (role_ == RaftRole::kLeader) on_append_reply(message, *append_reply);
  } else if (const auto* heartbeat_reply = std::get_if<RaftHeartbeatReply>(&message.body)) {
    if (role_ == RaftRole::kLeader) on_heartbeat_reply(message, *heartbeat_reply);
  } else if (const auto* pre_vote = std::get_if<RaftPreVoteRequest>(&message.body)) {
    on_pre_vote_request(message, *pre_vote);
  } else if (const auto* vote = std::get_if<RaftVoteRequest>(&message.body)) {
    on_vote_request(message, *vote);
  } else if (const auto* pre_vote_reply = std::get_if<RaftPreVoteReply>(&message.body)) {
    if (role_ == RaftRole::kPreCandidate && pre_vote_reply->campaign_term == term_ + 1) {
      votes_.emplace(message.from, pre_vote_reply->granted);
      tally_votes();
    }
  } else if (const auto* vote_reply = std::get_if<RaftVoteReply>(&message.body)) {
    if (role_ == RaftRole::kCandidate) {
      votes_.emplace(message.from, vote_reply->granted);
      tally_votes();
    }
  } else if (std::holds_alternative<RaftTimeoutNow>(message.body)) {
    on_timeout_now(message);
  } else if (const auto* read = std::get_if<RaftReadRequest>(&message.body)) {
    on_read_request(message, *read);
  } else if (const auto* fetch = std::get_if<RaftFetchRequest>(&message.body)) {
    on_fetch_request(message, *fetch);
  } else if (auto* fetched = std::get_if<RaftFetchReply>(&message.body)) {
    return on_fetch_reply(message, std::move(*fetched));
  } else if (const auto* read_reply = std::get_if<RaftReadReply>(&message.body)) {
    read_states_.push_back({read_reply->context, read_reply->confirmed, read_reply->index});
  }
  return {};
}

/// The current term's leader was heard.
Result<void> RaftCore::follow(RaftServerId leader) {
  // Raft §5.2 gives a term one leader. Two mean that a disk has lost a vote.
  if (role_ == RaftRole::kLeader || (leader_ && leader_ != leader)) {
    return fail(ErrorCode::kCorruption, "raft term {} has two leaders, {} and {}", term_,
                leader_->to_string(), leader.to_string());
  }
  if (role_ != RaftRole::kFollower) become_follower(term_, leader);
  TETRAD_ASSERT(role_ == RaftRole::kFollower);
  leader_ = leader;
  election_elapsed_ = 0;
  return {};
}

/// Committed entries are the same everywhere, or most voters were lost with some of them and another
/// server has taken over (take_over): then this one must take nothing from there, and the other
/// nothing from here, or both would apply different entries under one index.
Result<void> RaftCore::check_committed(RaftServerId from, RaftIndex index, RaftTerm term) const {
  TETRAD_ASSERT(index <= commit_);
  const std::optional<RaftTerm> own = log_.term_at(index);
  if (!own || *own == term) return {};
  return fail(
      ErrorCode::kConflict,
      "raft entry {} is committed here with term {}, and {} has term {} there: the group was "
      "taken over without one of these servers, which must be removed and wiped",
      index, *own, from.to_string(), term);
}

Result<void> RaftCore::on_append(const RaftMessage& message, RaftAppendRequest body) {
  TETRAD_TRY_VOID(follow(message.from));
  const auto reply = [&](RaftAppendReply answer) {
    // Held until the entries are on disk: an ack lets the leader count this copy as durable (rule
    // 21).
    if (TETRAD_RAFT_MUTANT(options_, kAckBeforePersist)) {
      send(message.from, answer);
    } else {
      send_when_persisted(message.from, answer);
    }
  };
  if (body.previous_index < commit_) {
    // What is committed here the leader has too, unless a group was taken over without this server.
    TETRAD_TRY_VOID(check_committed(message.from, body.previous_index, body.previous_term));
    for (const RaftEntry& entry : body.entries)
      if (entry.index <= commit_)
        TETRAD_TRY_VOID(check_committed(message.from, entry.index, entry.term));
    const RaftIndex known = commit_ - body.previous_index;
    if (body.entries.size() <= known) {
      reply({true, commit_, 0, 0});
      return {};
    }
    // Entries below the commit index are skipped: they are equal.
    body.entries.erase(body.entries.begin(), body.entries.begin() + static_cast<ptrdiff_t>(known));
    body.previous_index = commit_;
    body.previous_term = log_.term_at(commit_).value();
    if (body.entries.front().term < body.previous_term) {
      return fail(ErrorCode::kCorruption, "raft leader {} has term {} after entry {} of term {}",
                  message.from.to_string(), body.entries.front().term, commit_, body.previous_term);
    }
  }
  const std::optional<RaftTerm> term = log_.term_at(body.previous_index);
  const bool agrees = term && (*term == body.previous_term ||
                               TETRAD_RAFT_MUTANT(options_, kAppendIgnoresPreviousTerm));
  if (!agrees) {
    // The hint is the last index at which both logs may agree, so a follower that is far behind
    // costs few rounds.
    const RaftIndex hint = log_.last_agreement(body.previous_index, body.previous_term);
    reply({false, body.previous_index, hint, log_.term_at(hint).value_or(0)});
    return {};
  }
  const RaftIndex last_new = body.previous_index + body.entries.size();
  auto next = body.entries.begin();
  // An append that arrives late must not cut off what came after it: only a real difference
  // truncates (Raft §5.3).
  if (!TETRAD_RAFT_MUTANT(options_, kAppendTruncatesAlways)) {
    while (next != body.entries.end() && log_.term_at(next->index) == next->term) ++next;
  }
  const RaftIndex keep_to = next == body.entries.end() ? last_new : next->index - 1;
  if (next != body.entries.end() || TETRAD_RAFT_MUTANT(options_, kAppendTruncatesAlways)) {
    if (keep_to < log_.last_index()) {
      if (keep_to < commit_) {
        return fail(ErrorCode::kCorruption, "raft leader {} contradicts entry {}, committed is {}",
                    message.from.to_string(), keep_to + 1, commit_);
      }
      truncate_from(keep_to + 1);
    }
  }
  for (; next != body.entries.end(); ++next) log_.append(std::move(*next));
  // The leader's commit index may lie beyond what this message has shown to be equal.
  const RaftIndex known =
      TETRAD_RAFT_MUTANT(options_, kCommitBeyondMatch) ? log_.last_index() : last_new;
  commit_to(std::min(body.commit, known));
  reply({true, last_new, 0, 0});
  return {};
}

Result<void> RaftCore::on_heartbeat(const RaftMessage& message, const RaftHeartbeat& body) {
  TETRAD_TRY_VOID(follow(message.from));
  // The leader sends at most what this server has acknowledged, so what is here up to it is the
  // leader's.
  commit_to(std::min(body.commit, log_.last_index()));
  // Promises nothing but that this term was current here, so it need not wait for the disk.
  send(message.from, RaftHeartbeatReply{body.read_round});
  return {};
}

// Another peer says what it has applied, while there may be no leader to say so (rule 29).
void RaftCore::learn_committed(RaftIndex index, RaftTerm term, RaftServerId from) {
  if (role_ == RaftRole::kLeader || index <= commit_) return;
  if (TETRAD_RAFT_MUTANT(options_, kLearnsAnyTerm)) {
    commit_to(std::min(index, log_.last_index()));
  } else if (log_.term_at(index) == term) {
    // Log matching: an entry of this index and term here means that all before it is equal, too.
    commit_to(index);
  } else if (!hears_leader() && ticks_to_fetch_ == 0) {
    // Not from two sides at once: a leader sends what is missing by itself.
    ticks_to_fetch_ = options_.heartbeat_ticks;
    // With the last one that is committed here, so that it shows whether the peer has the same; but
    // without it where it left no room for others.
    const bool compares = commit_ > log_.base_index() && fetch_agreed_ != commit_;
    send(from, RaftFetchRequest{compares ? commit_ - 1 : commit_});
  }
}

void RaftCore::on_fetch_request(const RaftMessage& message, const RaftFetchRequest& body) {
  // Only what is applied: that is committed for certain, and on disk.
  const RaftIndex last =
      TETRAD_RAFT_MUTANT(options_, kFetchUncommitted) ? log_.last_index() : applied_;
  if (body.after >= last || body.after < log_.base_index()) return;
  send(message.from, RaftFetchReply{body.after, last, log_.term_at(last).value(),
                                    log_.copy(body.after + 1, last, options_.message_bytes_max)});
}

/// Committed entries never change, so they may come from any server. Where this log has another
/// entry at that index, it was never committed, nor was anything behind it, and its term is
/// earlier: each later leader held the committed one. So the log only becomes more up to date, and
/// votes that were given by it stay right.
Result<void> RaftCore::on_fetch_reply(const RaftMessage& message, RaftFetchReply body) {
  // It must begin where this server's committed part ends or before, and reach beyond it.
  if (role_ == RaftRole::kLeader || body.after > commit_ || body.entries.empty()) return {};
  for (const RaftEntry& entry : body.entries)
    if (entry.index <= commit_)
      TETRAD_TRY_VOID(check_committed(message.from, entry.index, entry.term));
  fetch_agreed_ = commit_;
  if (body.entries.back().index <= commit_) return {};
  const RaftIndex last = body.entries.back().index;
  if (body.entries.back().term > term_) {
    become_follower(body.entries.back().term, std::nullopt);  // there is a leader of that term
  }
  for (RaftEntry& entry : body.entries) {
    if (entry.index <= commit_ || log_.term_at(entry.index) == entry.term) continue;
    // What is committed follows what is committed: a reply that says otherwise is none.
    if (entry.term < log_.term_at(entry.index - 1)) return {};
    if (entry.index <= log_.last_index()) {
      if (TETRAD_RAFT_MUTANT(options_, kFetchKeepsOwn)) continue;
      truncate_from(entry.index);
    }
    log_.append(std::move(entry));
  }
  commit_to(last);
  fetch_agreed_ = commit_;
  ticks_to_fetch_ = 0;
  learn_committed(body.applied, body.applied_term, message.from);
  return {};
}

Result<void> RaftCore::on_install_snapshot(const RaftMessage& message,
                                           const RaftInstallSnapshot& body) {
  TETRAD_TRY_VOID(follow(message.from));
  const RaftSnapshotMeta& meta = body.meta;
  // An image that is late would take back what is applied.
  if (meta.index <= commit_ && !TETRAD_RAFT_MUTANT(options_, kSnapshotBehindCommit)) {
    TETRAD_TRY_VOID(check_committed(message.from, meta.index, meta.term));
    send_when_persisted(message.from, RaftAppendReply{true, commit_, 0, 0});
    return {};
  }
  if (meta.index > commit_ && log_.term_at(meta.index) == meta.term) {
    // The log holds all of it: quicker than to install.
    commit_to(meta.index);
    send_when_persisted(message.from, RaftAppendReply{true, meta.index, 0, 0});
    return {};
  }
  // One is waiting to be written already.
  if (pending_snapshot_) return {};
  if (TETRAD_RAFT_MUTANT(options_, kSnapshotKeepsLog) && meta.index < log_.last_index()) {
    log_.compact(meta, options_.trailing_entries);
    commit_ = applied_ = meta.index;
    stable_ = emitted_ = log_.last_index();
  } else {
    // Nothing of the own log is kept: what lies beyond the image may contradict it.
    log_.reset(meta);
    commit_ = applied_ = meta.index;
    emitted_ = meta.index;
    stable_ = 0;
    // Writes under way are of the log that was thrown away; when they end they must not count as
    // entries of the new one.
    for (OutstandingPersist& write : outstanding_) write.last_index = 0;
  }
  pending_snapshot_ = meta;
  pending_truncate_.reset();
  pending_drop_.reset();
  send_when_persisted(message.from, RaftAppendReply{true, meta.index, 0, 0});
  return {};
}

void RaftCore::truncate_from(RaftIndex index) {
  TETRAD_ASSERT(role_ != RaftRole::kLeader);
  TETRAD_ASSERT(index > commit_);
  log_.truncate_from(index, TETRAD_RAFT_MUTANT(options_, kKeepTruncatedMembers));
  // What was handed out to be written must be cut on disk, too.
  if (index <= emitted_) {
    pending_truncate_ = pending_truncate_ ? std::min(*pending_truncate_, index) : index;
    emitted_ = index - 1;
  }
  if (TETRAD_RAFT_MUTANT(options_, kPersistedAba)) return;
  // Writes that are under way end with fewer entries than they were handed out with (ABA: other
  // entries may get the same indexes).
  stable_ = std::min(stable_, index - 1);
  for (OutstandingPersist& write : outstanding_) {
    write.last_index = std::min(write.last_index, index - 1);
  }
}

}  // namespace tetrad::replication
