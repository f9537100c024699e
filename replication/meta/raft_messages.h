// SPDX-License-Identifier: Apache-2.0
// What Raft servers write down and say to each other: entries, hard state, snapshot descriptions,
// messages; and their bytes.
//
//   entry      := varint term | varint index | u8 kind | bytes data
//   hard state := u8 version (1) | varint term | u8 voted [16 bytes vote] | varint commit
//   snapshot   := u8 version (1) | varint index | varint term | configuration
//   message    := u8 version (1) | u8 type | 16 bytes cluster | varint group | 16 bytes from
//                 | 16 bytes to | varint term | body by type, see raft_messages.cc
// Terms and indexes are at most kRaftNumberMax, so that adding to one never overflows. Types and
// kinds are on disk and on the wire: never renumber.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "replication/meta/raft_configuration.h"

namespace tetrad::replication {

using RaftGroupId = base::Id<struct RaftGroupIdTag, uint64_t>;

inline constexpr uint64_t kRaftNumberMax = uint64_t{1} << 62;
/// At most this many entries in one message.
inline constexpr size_t kRaftMessageEntriesMax = 65536;

/// What an entry is, by its number on disk and on the wire.
enum class RaftEntryKind : uint8_t {
  kNoop = 0,           // what a leader opens its term with; data is empty
  kCommand = 1,        // data is the state machine's
  kConfiguration = 2,  // data is an encoded RaftConfiguration
};

/// One entry of the log. Two entries with one index and one term are the same (Raft §5.3).
struct RaftEntry {
  RaftTerm term = 0;
  RaftIndex index = 0;
  RaftEntryKind kind = RaftEntryKind::kCommand;
  Bytes data;
  friend bool operator==(const RaftEntry&, const RaftEntry&) = default;
};

/// What must be on disk before it is acted upon. `commit` is a hint that saves a restarted server
/// from waiting: never more than what the log on disk holds.
struct RaftHardState {
  RaftTerm term = 0;
  std::optional<RaftServerId> vote;
  RaftIndex commit = 0;
  friend bool operator==(const RaftHardState&, const RaftHardState&) = default;
};

/// Names a state machine image: everything up to `index` applied, and who was a member there.
struct RaftSnapshotMeta {
  RaftIndex index = 0;
  RaftTerm term = 0;
  RaftConfiguration configuration;
  friend bool operator==(const RaftSnapshotMeta&, const RaftSnapshotMeta&) = default;
};

/// Would you vote for me in `campaign_term`? Changes nothing on either side.
struct RaftPreVoteRequest {
  RaftTerm campaign_term = 0;
  RaftIndex last_index = 0;
  RaftTerm last_term = 0;
  friend bool operator==(const RaftPreVoteRequest&, const RaftPreVoteRequest&) = default;
};
/// Whether a campaign for that term would get this server's vote.
struct RaftPreVoteReply {
  RaftTerm campaign_term = 0;
  bool granted = false;
  friend bool operator==(const RaftPreVoteReply&, const RaftPreVoteReply&) = default;
};
/// `transfer`: the leader itself asked for this campaign, so being loyal to it is no reason to
/// refuse.
struct RaftVoteRequest {
  RaftIndex last_index = 0;
  RaftTerm last_term = 0;
  bool transfer = false;
  friend bool operator==(const RaftVoteRequest&, const RaftVoteRequest&) = default;
};
/// Whether the vote was given; sent once it is on disk.
struct RaftVoteReply {
  bool granted = false;
  friend bool operator==(const RaftVoteReply&, const RaftVoteReply&) = default;
};
/// Entries follow (previous_index, previous_term) without a gap.
struct RaftAppendRequest {
  RaftIndex previous_index = 0;
  RaftTerm previous_term = 0;
  RaftIndex commit = 0;
  std::vector<RaftEntry> entries;
  friend bool operator==(const RaftAppendRequest&, const RaftAppendRequest&) = default;
};
/// Accepted: `index` is the last one that the follower holds durably and as the leader does.
/// Rejected: `index` echoes previous_index, (hint_index, hint_term) is the follower's entry from
/// which on the two may agree.
struct RaftAppendReply {
  bool accepted = false;
  RaftIndex index = 0;
  RaftIndex hint_index = 0;
  RaftTerm hint_term = 0;
  friend bool operator==(const RaftAppendReply&, const RaftAppendReply&) = default;
};
/// `commit` is never past what this follower has acknowledged. `read_round` comes back in the
/// reply.
struct RaftHeartbeat {
  RaftIndex commit = 0;
  uint64_t read_round = 0;
  friend bool operator==(const RaftHeartbeat&, const RaftHeartbeat&) = default;
};
/// The round of reads that the follower has confirmed.
struct RaftHeartbeatReply {
  uint64_t read_round = 0;
  friend bool operator==(const RaftHeartbeatReply&, const RaftHeartbeatReply&) = default;
};
/// The image itself travels beside this message, as the driver likes. Answered by RaftAppendReply.
struct RaftInstallSnapshot {
  RaftSnapshotMeta meta;
  friend bool operator==(const RaftInstallSnapshot&, const RaftInstallSnapshot&) = default;
};
/// The leader hands over: campaign at once.
struct RaftTimeoutNow {
  friend bool operator==(const RaftTimeoutNow&, const RaftTimeoutNow&) = default;
};
/// A follower asks the leader from which index on a read is up to date.
struct RaftReadRequest {
  uint64_t context = 0;
  friend bool operator==(const RaftReadRequest&, const RaftReadRequest&) = default;
};
/// The index, if the leader has been confirmed.
struct RaftReadReply {
  uint64_t context = 0;
  bool confirmed = false;
  RaftIndex index = 0;
  friend bool operator==(const RaftReadReply&, const RaftReadReply&) = default;
};

/// Which entries after `after`, which is committed at the sender's, does the receiver hold as
/// committed? Asked of any server by one that hears no leader.
struct RaftFetchRequest {
  RaftIndex after = 0;
  friend bool operator==(const RaftFetchRequest&, const RaftFetchRequest&) = default;
};
/// Committed entries, which follow `after` without a gap; as many as one message holds. The sender
/// has applied up to the entry `applied` of `applied_term`.
struct RaftFetchReply {
  RaftIndex after = 0;
  RaftIndex applied = 0;
  RaftTerm applied_term = 0;
  std::vector<RaftEntry> entries;
  friend bool operator==(const RaftFetchReply&, const RaftFetchReply&) = default;
};

/// In the order of the type byte, which counts from 0.
using RaftMessageBody =
    std::variant<RaftPreVoteRequest, RaftPreVoteReply, RaftVoteRequest, RaftVoteReply,
                 RaftAppendRequest, RaftAppendReply, RaftHeartbeat, RaftHeartbeatReply,
                 RaftInstallSnapshot, RaftTimeoutNow, RaftReadRequest, RaftReadReply,
                 RaftFetchRequest, RaftFetchReply>;

/// `term` is the sender's current one.
struct RaftMessage {
  Uuid cluster_id;
  RaftGroupId group_id;
  RaftServerId from, to;
  RaftTerm term = 0;
  RaftMessageBody body;
  friend bool operator==(const RaftMessage&, const RaftMessage&) = default;
};

/// "append request" and so on, for logs.
const char* name_of(const RaftMessageBody& body);

void encode(const RaftEntry& entry, base::ByteWriter& out);
void encode(const RaftHardState& state, base::ByteWriter& out);
void encode(const RaftSnapshotMeta& meta, base::ByteWriter& out);
void encode(const RaftMessage& message, base::ByteWriter& out);

/// All of these fail with kCorruption on bytes that are no such thing, and take no more memory than
/// a small multiple of the bytes. The views form wants nothing left over; the reader form reads on.
Result<RaftEntry> decode_raft_entry(base::ByteReader& in);
Result<RaftEntry> decode_raft_entry(BytesView bytes);
Result<RaftHardState> decode_raft_hard_state(BytesView bytes);
Result<RaftSnapshotMeta> decode_raft_snapshot_meta(base::ByteReader& in);
Result<RaftSnapshotMeta> decode_raft_snapshot_meta(BytesView bytes);
Result<RaftMessage> decode_raft_message(BytesView bytes);

/// A configuration entry's data, and back. A decoded one has at least one voter.
Bytes encode_configuration_data(const RaftConfiguration& configuration);
Result<RaftConfiguration> decode_configuration_data(BytesView data);

}  // namespace tetrad::replication
