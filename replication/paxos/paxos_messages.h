// SPDX-License-Identifier: Apache-2.0
// What proposers and acceptors say to each other (design, rule 27).
//
//   prepare  := u8 version (1), varint set epoch, ballot, u8 rows (0: none, 1: data, 2: digest),
//               read command to the end
//   promised := u8 (1: promised, 0: refused), zigzag floor; refused: ballot that is not below;
//               promised: zigzag bucket mark, varint size, registers, u8 rows as asked for,
//               read result or digest reply to the end
//   propose  := u8 version (1), varint set epoch, varint incarnation, varint schema version,
//               i64 token, u64 hash, partition key with its size, proposal to the end
//               of accept, commit and settled (one-way, without its value)
//   vote     := u8 (1: yes, 0: refused), of a refusal the ballot that is not below
#pragma once

#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "replication/paxos/acceptor.h"
#include "replication/replica/replica_messages.h"
#include "storage/row/paxos_registers.h"
#include "storage/row/read_command.h"

namespace tetrad::replication {

/// What a promise brings of the rows; numbers on the wire, never reused.
enum class PaxosRows : uint8_t { kNone = 0, kData = 1, kDigest = 2 };

/// Asks a member to promise a ballot, and for the rows as they are after the promise.
struct PrepareRequest {
  SetEpoch epoch;
  storage::Ballot ballot;
  PaxosRows rows = PaxosRows::kData;
  storage::ReadCommand command;  // of one partition
};

/// A promise, or a refusal with the ballot that is in the way. What it tells was on the disk before
/// it was sent.
struct PrepareAnswer {
  bool promised = false;
  PaxosFloor floor_us = storage::kNoTimestamp;
  storage::Ballot last;  // of a refusal: the ballot asked for is not above it
  /// Of the partition's bucket (rule 28).
  int64_t mark_us = storage::kNoTimestamp;
  storage::PaxosRegisters registers;  // as they were
  PaxosRows rows = PaxosRows::kNone;
  storage::ReadResult data;
  DigestReply digest;
};

/// An accept or a commit; a settled one has no value.
struct ProposeRequest {
  SetEpoch epoch;
  TableIncarnation incarnation;
  SchemaVersion schema_version;
  RingPosition position;
  Bytes partition_key;
  storage::Proposal proposal;
};

/// The answer to an accept or a commit. A yes was on the disk before it was sent.
struct PaxosVote {
  bool yes = false;
  storage::Ballot last;  // of a refusal
};

/// Errors of decoding: kCorruption.
Bytes encode_prepare(const PrepareRequest& request);
Result<PrepareRequest> decode_prepare(BytesView body);
Bytes encode_prepare_answer(const PrepareAnswer& answer);
Result<PrepareAnswer> decode_prepare_answer(Bytes body);
Bytes encode_propose(const ProposeRequest& request);
Result<ProposeRequest> decode_propose(BytesView body);
Bytes encode_vote(const PaxosVote& vote);
Result<PaxosVote> decode_vote(BytesView body);

}  // namespace tetrad::replication
