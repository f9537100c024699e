// SPDX-License-Identifier: Apache-2.0
// Raft as a pure state machine: events go in, actions come out. No clock, no thread, no randomness
// but the seed, no I/O; the driver brings those.
//
// The driver's duties:
//   1. After any call that changes something, take_actions() until has_actions() is false, and do
//      what they say in the order of RaftActions' members.
//   2. Writes (RaftPersist) go to disk in the order given, each atomic and synced, then
//      persisted(sequence). A failed write is never retried: end the process.
//   3. Messages in RaftActions may leave at once: what promises something durable is held back
//      inside the core until persisted() reports the write that it rests on. Messages may be lost,
//      doubled and reordered at will.
//   4. `committed` entries are handed out once, in order, and only when they are durable here.
//      After a restart they start after the stored snapshot (or RaftStored::applied).
//
// Where a rule comes from: Raft means Ongaro's thesis and paper. Rules taken as given: a term opens
// with a no-op; only entries of the current term are committed by counting (§5.4.2); one membership
// change at a time, after the term has a commit (Ongaro 2015); pre-vote compares logs; a server
// that hears its leader refuses campaigns, a leader that does not hear a majority steps down.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/random.h"
#include "replication/meta/raft_log.h"
#include "replication/meta/raft_messages.h"
#include "replication/meta/raft_mutants.h"
#include "replication/meta/raft_progress.h"

namespace tetrad::replication {

/// What a server of a group is made with. The flags are off in tests only.
struct RaftOptions {
  RaftServerId self;
  Uuid cluster_id;
  RaftGroupId group_id;
  uint64_t seed = 0;  // of the election timeouts; different on every server

  uint32_t election_ticks = 10;  // a timeout is drawn from [election_ticks, 2 * election_ticks)
  uint32_t heartbeat_ticks = 2;
  bool pre_vote = true;
  bool check_quorum = true;  // also: refuse campaigns while the leader is heard

  size_t entry_bytes_max = size_t{1} << 20;         // data of one proposal
  size_t uncommitted_bytes_max = size_t{16} << 20;  // proposals waiting for their commit
  size_t message_bytes_max = size_t{256} << 10;     // entries in one append, at least one
  size_t in_flight_max = 32;                        // unanswered appends to one follower
  size_t apply_bytes_max = size_t{4} << 20;         // committed entries in one RaftActions
  size_t persists_in_flight_max = 1;  // writes handed out and not reported; more is collected
  size_t pending_reads_max = 4096;
  size_t trailing_entries = 1000;    // kept before a snapshot for followers a little behind
  RaftIndex promotion_lag_max = 64;  // a learner further behind is not promoted
  uint32_t snapshot_timeout_ticks =
      600;  // a follower silent about its image that long is asked anew

#ifdef TETRAD_MUTANTS
  RaftMutants mutants;
#endif
};

/// What storage held when the server started.
struct RaftStored {
  RaftHardState hard_state;
  RaftSnapshotMeta snapshot;       // of the newest image; index 0 where none came yet
  std::vector<RaftEntry> entries;  // all entries kept, also those before the snapshot
  RaftIndex applied = 0;           // what the state machine holds, if more than the snapshot

  /// A new group, given the same configuration on each of its first servers. Persist hard state and
  /// snapshot before use. It starts from an image of the empty state machine at index 1 of term 1,
  /// so that servers that join later get to know the first configuration, with that image.
  static RaftStored founding(RaftConfiguration configuration) {
    RaftStored stored;
    stored.hard_state = {1, std::nullopt, 1};
    stored.snapshot = {1, 1, std::move(configuration)};
    return stored;
  }
  /// A server that waits until a leader has added it and speaks to it.
  static RaftStored joining() { return {}; }
};

/// What a server is in its term (Raft §5.1); a pre-candidate asks whether a campaign would succeed,
/// and leaves its term as it is.
enum class RaftRole : uint8_t { kFollower, kPreCandidate, kCandidate, kLeader };

/// One atomic, synced write. In this order: `snapshot` (install the image that came with its
/// message: replace state machine and image, delete ALL log entries), `truncate_from` (delete
/// entries at and after it), `entries` (contiguous, overwrite), `drop_through` (delete entries up
/// to it), `hard_state` (always).
struct RaftPersist {
  uint64_t sequence = 0;
  RaftHardState hard_state;
  std::optional<RaftSnapshotMeta> snapshot;
  std::optional<RaftIndex> truncate_from;
  std::vector<RaftEntry> entries;
  std::optional<RaftIndex> drop_through;
};

/// Ship the newest image and this message (its body a RaftInstallSnapshot) to message.to; the
/// receiving driver calls receive() when it has the whole image. When the driver holds a newer
/// image than `meta` names, it may send that and change meta. Report with snapshot_sent().
struct RaftSnapshotSend {
  RaftMessage message;
};

/// The answer to read_index(context). When confirmed: a state machine that has applied `index`
/// shows everything that was committed when the read was asked. Contexts never asked for, or
/// answered before, may come; ignore those.
struct RaftReadState {
  uint64_t context = 0;
  bool confirmed = false;
  RaftIndex index = 0;
};

/// What the server is from now on, for whoever watches.
struct RaftRoleChange {
  RaftRole role = RaftRole::kFollower;
  RaftTerm term = 0;
  std::optional<RaftServerId> leader;
  friend bool operator==(const RaftRoleChange&, const RaftRoleChange&) = default;
};

/// What the driver must do next, in the order of the members. Messages may leave at once: what
/// rests on a write is held back by the core until persisted().
struct RaftActions {
  std::optional<RaftRoleChange> role_change;  // when any of its fields differs from the last one
  std::optional<RaftPersist> persist;
  std::vector<RaftMessage> messages;
  std::vector<RaftSnapshotSend> snapshots;
  std::vector<RaftEntry> committed;  // all kinds; the state machine skips what is not a command
  std::vector<RaftReadState> reads;
};

/// Where a proposal went. It is committed when `committed` brings an entry of this index and term;
/// when it brings this index with another term, it is lost; when leadership ends first, either.
struct RaftPosition {
  RaftTerm term = 0;
  RaftIndex index = 0;
};

/// A leader's view of one other server.
struct RaftPeerStatus {
  RaftServerId server;
  bool voter = false;
  RaftProgress::State state = RaftProgress::State::kProbe;
  RaftIndex match = 0;
  uint32_t ticks_since_heard = 0;
};

/// One server of one group. Belongs to one thread.
class RaftCore {
 public:
  /// Errors: kInvalid (options), kCorruption (stored state that contradicts itself).
  static Result<RaftCore> make(RaftOptions options, RaftStored stored);

  // Events.
  void tick();
  /// Errors, for the log: kInvalid (another cluster, group or addressee), kCorruption (breaks the
  /// protocol). The message then had no effect. After a RaftInstallSnapshot take_actions() at once:
  /// unless they hold `persist->snapshot` equal to its meta, the image is not needed.
  Result<void> receive(RaftMessage message);
  /// `sequence` of a RaftPersist that is durable, with all before it.
  void persisted(uint64_t sequence);
  /// Errors: kNotLeader (see leader()), kLimit (entry too large), kOverloaded (too much waiting, or
  /// leadership being handed over).
  Result<RaftPosition> propose(Bytes command);
  /// Errors as propose() and change_membership(); kConflict (a change is under way, or this term
  /// has no commit yet: retry), kBehind (a learner to promote that has not caught up).
  Result<RaftPosition> change_configuration(RaftMembershipChange change);
  /// Ends in a role change, or in nothing after an election timeout. Errors: kNotLeader, kInvalid
  /// (not another voter).
  Result<void> transfer_leadership(RaftServerId to);
  /// Gives up leading: the driver cannot write what a leader must. Others elect one of them.
  void resign();
  /// No rule of Raft: by an operator's word this server is the only voter, since most of the others
  /// are gone for good. All that is in its log is committed with that; what others had beyond it is
  /// lost. If those come back that were gone, there are two groups. Errors: kLimit (no term is left).
  Result<void> take_over();
  /// Asks, on the leader or through it, up to where to apply for a linearizable read; the answer is
  /// a RaftReadState, or nothing when a message is lost: retry after a while. Contexts are never
  /// reused, across restarts neither. Errors: kNotLeader (none known), kOverloaded.
  Result<void> read_index(uint64_t context);
  /// Describes an image of the state machine as of `index`, which was handed out as committed.
  /// Images are written in one queue with the RaftPersists, and one that is older than
  /// log().snapshot() by then is not written. Errors: kInvalid (not applied yet, or older than the
  /// newest snapshot).
  Result<RaftSnapshotMeta> snapshot_meta(RaftIndex index) const;
  /// The image that snapshot_meta() described is durable, so its log may go. Errors: kConflict (a
  /// newer one came meanwhile; keep that).
  Result<void> snapshot_taken(const RaftSnapshotMeta& meta);
  /// Whether an image reached the other driver.
  void snapshot_sent(RaftServerId to, bool delivered);
  /// Another server, whichever, has applied the entry `index` of `term`, so it is committed. Where
  /// this log holds that very entry it holds all before it too (log matching), and has it committed
  /// without having heard so from a leader. An entry of another term tells nothing; a server that
  /// lacks the entry and hears no leader asks `from` for what is committed.
  void learn_committed(RaftIndex index, RaftTerm term, RaftServerId from);
  /// The connection to a peer broke: what was on it may be lost.
  void peer_unreachable(RaftServerId server);

  bool has_actions() const;
  RaftActions take_actions();

  // What it knows.
  RaftRole role() const { return role_; }
  RaftTerm term() const { return term_; }
  std::optional<RaftServerId> leader() const { return leader_; }
  std::optional<RaftServerId> vote() const { return vote_; }
  RaftIndex commit_index() const { return commit_; }
  /// Last entry handed out as committed.
  RaftIndex applied_index() const { return applied_; }
  RaftIndex last_index() const { return log_.last_index(); }
  /// In force here; its entry may not be committed yet.
  const RaftConfiguration& configuration() const { return log_.configuration(); }
  bool configuration_committed() const { return log_.configuration_index() <= commit_; }
  /// A leader whose term has a commit: it knows all that is committed.
  bool ready_to_lead() const { return role_ == RaftRole::kLeader && commit_ >= term_start_; }
  const RaftLog& log() const { return log_; }
  const RaftOptions& options() const { return options_; }
  /// On a leader: the other members; elsewhere empty.
  std::vector<RaftPeerStatus> peers() const;

 private:
  /// Why votes are asked for.
  enum class Campaign { kPreVote, kElection, kTransfer };
  /// A write that the driver has been given and has not reported as done.
  struct OutstandingPersist {
    uint64_t sequence;
    RaftTerm term;
    std::optional<RaftServerId> vote;
    RaftIndex last_index;  // lowered when entries are cut off while it is under way
  };
  /// A message that may go only once a write is on disk.
  struct HeldMessage {
    uint64_t sequence;
    RaftMessage message;
  };
  /// A read that waits for a majority to confirm the leader (Raft §6.4).
  struct PendingRead {
    uint64_t context;
    RaftServerId from;
    RaftIndex index;
    uint64_t round;
  };

  RaftCore(RaftOptions options, RaftLog log, const RaftStored& stored);

  // raft_core.cc: terms, roles, elections, what a follower does
  Result<void> check(const RaftMessage& message) const;
  Result<void> dispatch(RaftMessage message);
  void on_lower_term(const RaftMessage& message);
  void on_pre_vote_request(const RaftMessage& message, const RaftPreVoteRequest& body);
  void on_vote_request(const RaftMessage& message, const RaftVoteRequest& body);
  Result<void> check_committed(RaftServerId from, RaftIndex index, RaftTerm term) const;
  Result<void> on_append(const RaftMessage& message, RaftAppendRequest body);
  Result<void> on_heartbeat(const RaftMessage& message, const RaftHeartbeat& body);
  Result<void> on_install_snapshot(const RaftMessage& message, const RaftInstallSnapshot& body);
  Result<void> follow(RaftServerId leader);
  void on_fetch_request(const RaftMessage& message, const RaftFetchRequest& body);
  Result<void> on_fetch_reply(const RaftMessage& message, RaftFetchReply body);
  void on_timeout_now(const RaftMessage& message);
  void become_follower(RaftTerm term, std::optional<RaftServerId> leader);
  void campaign(Campaign kind);
  void drop_held_campaign();
  void tally_votes();
  void become_leader();
  void draw_timeout();
  bool hears_leader() const;
  bool may_campaign() const;
  void truncate_from(RaftIndex index);

  // raft_leader.cc: replication, commit, reads, membership, handing over
  void on_append_reply(const RaftMessage& message, const RaftAppendReply& body);
  void on_heartbeat_reply(const RaftMessage& message, const RaftHeartbeatReply& body);
  void on_read_request(const RaftMessage& message, const RaftReadRequest& body);
  void tick_leader();
  Result<void> check_may_propose(size_t bytes) const;
  RaftPosition append_own(RaftEntryKind kind, Bytes data);
  void match_progress_to_configuration();
  RaftIndex majority_match() const;
  void advance_commit();
  void commit_to(RaftIndex index);
  void after_leader_commit(RaftIndex before);
  void leave_after_removal();
  bool send_append(RaftServerId to, RaftProgress& progress, bool even_empty);
  void send_appends();
  void send_heartbeats();
  void send_snapshot(RaftServerId to, RaftProgress& progress);
  void register_read(uint64_t context, RaftServerId from);
  void answer_read(const PendingRead& read, bool confirmed);
  void confirm_reads();
  void refuse_reads();
  void hand_over_if_ready();
  RaftProgress* heard(RaftServerId server);

  // raft_actions.cc: what leaves, and when
  RaftMessage make_message(RaftServerId to, RaftMessageBody body) const;
  void send(RaftServerId to, RaftMessageBody body);
  void send_when_persisted(RaftServerId to, RaftMessageBody body);
  void check_invariants() const;
  bool must_persist() const;
  bool may_persist() const;
  RaftPersist make_persist();
  RaftIndex applicable() const { return commit_ < stable_ ? commit_ : stable_; }

  RaftOptions options_;
  base::Random random_;
  RaftLog log_;

  RaftTerm term_ = 0;
  std::optional<RaftServerId> vote_;
  RaftIndex commit_ = 0;   // may be past what is durable here; what is applied never is
  RaftIndex applied_ = 0;  // invariant: applied_ <= commit_
  RaftRole role_ = RaftRole::kFollower;
  std::optional<RaftServerId> leader_;
  uint32_t election_elapsed_ = 0;  // since the leader was heard; on a leader since the last check
  uint32_t heartbeat_elapsed_ = 0;
  uint32_t timeout_ = 0;
  uint32_t ticks_to_fetch_ = 0;  // until committed entries may be asked for again
  RaftIndex fetch_agreed_ = 0;   // a peer that was asked had the same entry there
  std::map<RaftServerId, bool> votes_;

  // Leader.
  std::map<RaftServerId, RaftProgress> progress_;  // the other members
  RaftIndex term_start_ = 0;                       // the no-op that opened this term
  size_t uncommitted_bytes_ = 0;
  bool append_wanted_ = false;
  bool read_round_wanted_ = false;
  uint64_t read_round_ = 0;              // last one sent out
  std::deque<PendingRead> early_reads_;  // asked before this term had a commit
  std::deque<PendingRead> reads_;        // wait for their round; ascending by round
  std::optional<RaftServerId> transferee_;
  uint32_t transfer_elapsed_ = 0;

  // What is written, and what was handed out to be.
  RaftIndex stable_ = 0;   // entries up to here are durable
  RaftIndex emitted_ = 0;  // entries up to here were handed out
  RaftTerm stable_term_ = 0, emitted_term_ = 0;
  std::optional<RaftServerId> stable_vote_, emitted_vote_;
  std::optional<RaftIndex> pending_truncate_;
  std::optional<RaftSnapshotMeta> pending_snapshot_;
  std::optional<RaftIndex> pending_drop_;
  uint64_t next_sequence_ = 1;
  std::deque<OutstandingPersist> outstanding_;
  std::deque<HeldMessage> held_;

  // Collected for take_actions().
  std::vector<RaftMessage> messages_;
  std::vector<RaftSnapshotSend> snapshot_sends_;
  std::vector<RaftReadState> read_states_;
  RaftRoleChange reported_role_;
};

}  // namespace tetrad::replication
