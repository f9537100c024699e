// SPDX-License-Identifier: Apache-2.0
// Elections: who may campaign, what is asked for, who votes, and how roles change with terms. The
// steps are in raft_core.cc.
//
// A term has at most one leader (Raft §5.2): a server votes once in a term, its vote is on disk
// before it leaves, and a leader has the votes of a majority. The leader has every committed entry
// (§5.4): nobody votes for a log that is behind its own.
#include <algorithm>

#include "base/assert.h"
#include "replication/meta/raft_core.h"

namespace tetrad::replication {

/// A voter may; and one whose removal is in its log but not known to be committed must, since its
/// log may be the only one that a majority accepts (Raft thesis §4.2.2). It has no vote for itself.
bool RaftCore::may_campaign() const {
  return configuration().is_voter(options_.self) ||
         log_.configuration_at(commit_).is_voter(options_.self);
}

void RaftCore::become_follower(RaftTerm term, std::optional<RaftServerId> leader) {
  TETRAD_ASSERT(term >= term_);
  // A leader that steps down cannot confirm reads any more; who asked asks again.
  if (role_ == RaftRole::kLeader) refuse_reads();
  if (term > term_) {
    term_ = term;
    vote_.reset();
    held_.clear();  // promises to an earlier term's leader and candidates interest nobody
  }
  drop_held_campaign();
  role_ = RaftRole::kFollower;
  leader_ = leader;
  election_elapsed_ = 0;
  draw_timeout();
  votes_.clear();
  progress_.clear();
  // A role's own state goes with the role, so that nothing of an earlier leadership is used in a
  // later one.
  append_wanted_ = false;
  read_round_wanted_ = false;
  transferee_.reset();
  uncommitted_bytes_ = 0;
}

void RaftCore::resign() {
  if (role_ == RaftRole::kLeader) become_follower(term_, std::nullopt);
}

// As if it had led a term of its own, whose only entry makes it the only voter; then it campaigns, and
// has a majority when its vote is on disk. Whoever is left follows it, since its term is later.
Result<void> RaftCore::take_over() {
  // No majority has voted for the term, so others might give it, too: it is far from what elections
  // reach, and drawn. An entry's index and term say for good which entry it is.
  constexpr RaftTerm kApart = RaftTerm{1} << 32;
  const RaftTerm term = (term_ / kApart + 1) * kApart + random_.below(kApart / 2);
  if (term + 2 >= kRaftNumberMax) return fail(ErrorCode::kLimit, "no raft term is left");
  become_follower(term, std::nullopt);
  RaftConfiguration alone;
  alone.voters = {options_.self};
  log_.append({term_, log_.last_index() + 1, RaftEntryKind::kConfiguration,
               encode_configuration_data(alone)});
  campaign(Campaign::kElection);
  return {};
}

void RaftCore::campaign(Campaign kind) {
  TETRAD_ASSERT(role_ != RaftRole::kLeader);
  // The end of the number space is reached by no real cluster, but by a message that was made to
  // reach it.
  if (term_ >= kRaftNumberMax) return;
  votes_.clear();
  votes_[options_.self] = true;
  leader_.reset();
  election_elapsed_ = 0;
  if (kind == Campaign::kPreVote) {
    role_ = RaftRole::kPreCandidate;
    drop_held_campaign();
  } else {
    role_ = RaftRole::kCandidate;
    ++term_;
    vote_ = options_.self;
    held_.clear();
    draw_timeout();
  }
  // To voters only; whose vote it asks, a learner would not have.
  for (const RaftServerId server : configuration().servers()) {
    if (server == options_.self || !configuration().is_voter(server)) continue;
    if (kind == Campaign::kPreVote) {
      send(server, RaftPreVoteRequest{term_ + 1, log_.last_index(), log_.last_term()});
      continue;
    }
    RaftVoteRequest request{log_.last_index(), log_.last_term(), kind == Campaign::kTransfer};
    // After a crash this server would not know that it had asked in this term, nor with which log.
    if (TETRAD_RAFT_MUTANT(options_, kCampaignBeforePersist)) {
      send(server, std::move(request));
    } else {
      send_when_persisted(server, std::move(request));
    }
  }
  tally_votes();
}

/// Votes for a campaign that is over would not be counted.
void RaftCore::drop_held_campaign() {
  std::erase_if(held_, [](const HeldMessage& held) {
    return std::holds_alternative<RaftVoteRequest>(held.message.body);
  });
}

void RaftCore::tally_votes() {
  TETRAD_ASSERT(role_ == RaftRole::kCandidate || role_ == RaftRole::kPreCandidate);
  const auto voted = [&](RaftServerId server, bool granted) {
    const auto vote = votes_.find(server);
    return vote != votes_.end() && vote->second == granted;
  };
  const bool election = role_ == RaftRole::kCandidate;
  // The own vote counts like any other: when it is on disk (rule 21).
  const bool own_vote_is_durable = !election ||
                                   TETRAD_RAFT_MUTANT(options_, kCampaignBeforePersist) ||
                                   (stable_term_ == term_ && stable_vote_ == options_.self);
  const auto granted = [&](RaftServerId server) {
    return voted(server, true) && (server != options_.self || own_vote_is_durable);
  };
  const auto open = [&](RaftServerId server) { return !voted(server, false); };
  bool won = configuration().majority(granted);
  if (TETRAD_RAFT_MUTANT(options_, kLearnersCount)) {
    const auto servers = configuration().servers();
    won = static_cast<size_t>(std::count_if(servers.begin(), servers.end(), granted)) >=
          configuration().voters.size() / 2 + 1;
  }
  if (won) {
    if (election) {
      become_leader();
    } else {
      campaign(Campaign::kElection);
    }
  } else if (!configuration().majority(open)) {
    // So many have refused that no majority can come any more: wait for the next timeout.
    become_follower(term_, std::nullopt);
  }
}

// With a majority of votes of this term, of which there is at most one (Raft §5.2).
void RaftCore::become_leader() {
  TETRAD_ASSERT(role_ == RaftRole::kCandidate);
  TETRAD_ASSERT(vote_ == options_.self);
  role_ = RaftRole::kLeader;
  leader_ = options_.self;
  election_elapsed_ = 0;
  heartbeat_elapsed_ = 0;
  read_round_ = 0;
  read_round_wanted_ = false;
  transferee_.reset();
  votes_.clear();
  progress_.clear();
  match_progress_to_configuration();
  uncommitted_bytes_ = 0;
  // Entries of earlier terms that wait for this term's first commit count against the bound of what
  // may wait.
  for (RaftIndex index = commit_ + 1; index <= log_.last_index(); ++index) {
    uncommitted_bytes_ += RaftLog::size_of(log_.entry(index));
  }
  if (TETRAD_RAFT_MUTANT(options_, kNoNoop)) {
    term_start_ = log_.last_index() + 1;
    append_wanted_ = true;
  } else {
    // Entries of earlier terms are committed with an entry of this one, not before (Raft §5.4.2).
    term_start_ = append_own(RaftEntryKind::kNoop, {}).index;
  }
  advance_commit();
}

// Changes nothing here: not the term, not the vote, not the timer.
void RaftCore::on_pre_vote_request(const RaftMessage& message, const RaftPreVoteRequest& body) {
  const bool complete = log_.is_up_to_date(body.last_index, body.last_term) ||
                        TETRAD_RAFT_MUTANT(options_, kPreVoteIgnoresLog);
  const bool granted = body.campaign_term > term_ && complete && !hears_leader();
  send(message.from, RaftPreVoteReply{body.campaign_term, granted});
}

void RaftCore::on_vote_request(const RaftMessage& message, const RaftVoteRequest& body) {
  // One vote a term; and none to anybody else once a leader of the term is known.
  const bool free = vote_ ? vote_ == message.from : !leader_;
  const bool complete = log_.is_up_to_date(body.last_index, body.last_term) ||
                        TETRAD_RAFT_MUTANT(options_, kVoteIgnoresLog);
  const bool granted =
      complete && (free || TETRAD_RAFT_MUTANT(options_, kVoteTwice)) && role_ != RaftRole::kLeader;
  if (granted) {
    vote_ = message.from;
    // A vote restarts the timer: the candidate gets its time to win.
    election_elapsed_ = 0;
  }
  if (TETRAD_RAFT_MUTANT(options_, kVoteBeforePersist)) {
    send(message.from, RaftVoteReply{granted});
  } else {
    // Leaves when term and vote are on disk (rule 21); a vote that is forgotten could be given
    // twice.
    send_when_persisted(message.from, RaftVoteReply{granted});
  }
}

void RaftCore::on_timeout_now(const RaftMessage& message) {
  // Only from the leader that this server follows, which has found its log complete.
  if (role_ == RaftRole::kLeader || leader_ != message.from || !may_campaign()) return;
  campaign(Campaign::kTransfer);
}

}  // namespace tetrad::replication
