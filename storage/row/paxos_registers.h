// SPDX-License-Identifier: Apache-2.0
// What a replica remembers of the conditional statements of one logical partition: the Paxos
// registers, stored beside its rows. Who changes them, and when, is replication's matter; here is
// what they are, how two copies join, and their bytes.
//
//   registers      := u8 version (1), u8 flags, [promised: ballot], [accepted: proposal], [committed: proposal]
//   flags          := 0x01 promised is here, 0x02 it is accepted's ballot, 0x04 it is committed's ballot
//                     (at most one of the three), 0x08 accepted, 0x10 committed, 0x20 committed is settled
//   proposal       := ballot, u8 proposal flags, [origin: ballot], [follows: ballot], [varint size, value]
//   proposal flags := 0x01 the origin is another ballot, 0x02 it follows one, 0x04 it has a value
//   ballot         := zigzag us, 16 bytes host, varint start, varint shard; none is its us alone
//   start, shard   := process start number, shard; or 1 << 63 | us of its making, low half of that number << 16 | shard
//   example: 01 01 c801 00000000000000000000000000000001 03 02
//            promised to the ballot of 100 us, host ...0001, process start 3, shard 2; nothing else
//
// Registers have one encoding. The numbers are on disk: never renumber.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "base/byte_io.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "storage/row/row_record.h"

namespace tetrad::storage {

/// Names one attempt of one proposer; no two attempts share a ballot. Ordered by its members, in
/// this order. As made it is none, which is below all others.
struct Ballot {
  int64_t us = kNoTimestamp;  // microseconds since 1970; what the proposal's cells carry
  HostId host;
  uint64_t start_number = 0;  // the process start number of the host; or see is_ahead()
  uint32_t shard = 0;

  /// In `start_number`: the rest of it is when the ballot was made, and the high half of `shard` is
  /// of the process start number.
  static constexpr uint64_t kAhead = uint64_t{1} << 63;

  bool present() const { return us != kNoTimestamp; }
  /// `us` is no time: it is just above a timestamp that a client has chosen.
  bool is_ahead() const { return (start_number & kAhead) != 0; }
  /// The time of its coordinator when it was made.
  int64_t made_us() const { return is_ahead() ? static_cast<int64_t>(start_number & ~kAhead) : us; }
  friend auto operator<=>(const Ballot&, const Ballot&) = default;
};

/// A value that is to be decided. A proposal that somebody else completes keeps all but its ballot.
struct Proposal {
  Ballot ballot;
  Ballot origin;   // it was first proposed with; at most `ballot`
  Ballot follows;  // origin of the newest value that its proposer knew as committed; below `origin`
  Bytes value;     // an encoded Mutation; "": the proposal changes nothing

  friend bool operator==(const Proposal&, const Proposal&) = default;
};

/// A value: the acceptor's state of one partition. Empty ones are the same as none.
struct PaxosRegisters {
  Ballot promised;
  std::optional<Proposal> accepted;
  /// The value is kept until the commit is settled (on W of all sets), then it goes for good.
  std::optional<Proposal> committed;
  bool settled = false;  // of `committed`

  bool empty() const { return !promised.present() && !accepted && !committed; }
  /// The highest ballot of all, but for that of the tablet's floor.
  Ballot last() const;
  friend bool operator==(const PaxosRegisters&, const PaxosRegisters&) = default;
};

/// Per register the one with the higher ballot; of one commit the settled one. Commutative,
/// associative, idempotent. For imports: what a replica has been asked itself it puts in the place
/// of what was there.
PaxosRegisters join_registers(const PaxosRegisters& a, const PaxosRegisters& b);

/// Appends. What is settled must have no value.
void encode_registers(const PaxosRegisters& registers, Bytes& out);
/// Errors: kCorruption. Whether the values are mutations is not looked at.
Result<PaxosRegisters> decode_registers(BytesView encoded);

/// Parts of the encoding, for messages. A ballot may be none; a proposal has ballot and origin.
void write_ballot(base::ByteWriter& out, const Ballot& ballot);
Result<Ballot> read_ballot(base::ByteReader& in);
void write_proposal(base::ByteWriter& out, const Proposal& proposal);
Result<Proposal> read_proposal(base::ByteReader& in);

}  // namespace tetrad::storage
