// SPDX-License-Identifier: Apache-2.0
// Bytes of Paxos registers, and how two copies join. The promised ballot is written once if it is
// that of the accepted or committed proposal.
#include "storage/row/paxos_registers.h"

#include <algorithm>
#include <tuple>

#include "base/assert.h"

namespace tetrad::storage {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kPromised = 0x01, kPromisedIsAccepted = 0x02, kPromisedIsCommitted = 0x04,
                  kAccepted = 0x08, kCommitted = 0x10, kSettled = 0x20, kFlags = 0x3f;
constexpr uint8_t kOtherOrigin = 0x01, kFollows = 0x02, kHasValue = 0x04, kProposalFlags = 0x07;
constexpr size_t kHostBytes = 16;

Result<Ballot> read_present_ballot(base::ByteReader& in) {
  TETRAD_TRY(const Ballot ballot, read_ballot(in));
  if (!ballot.present()) return fail(ErrorCode::kCorruption, "a ballot is none");
  return ballot;
}

/// Where the promised ballot stands.
uint8_t place_of_promised(const PaxosRegisters& registers) {
  if (!registers.promised.present()) return 0;
  if (registers.accepted && registers.accepted->ballot == registers.promised)
    return kPromisedIsAccepted;
  if (registers.committed && registers.committed->ballot == registers.promised)
    return kPromisedIsCommitted;
  return kPromised;
}

auto order_of(const Proposal& p) { return std::tie(p.ballot, p.origin, p.follows, p.value); }

/// `a`, `b`: of one register each, with whether it is settled.
bool is_below(const std::optional<Proposal>& a, bool a_settled, const std::optional<Proposal>& b,
              bool b_settled) {
  if (!a || !b) return !a && b;
  if (a->ballot != b->ballot) return a->ballot < b->ballot;
  if (a_settled != b_settled) return b_settled;
  return order_of(*a) < order_of(*b);
}

}  // namespace

Ballot PaxosRegisters::last() const {
  Ballot last = promised;
  if (accepted) last = std::max(last, accepted->ballot);
  if (committed) last = std::max(last, committed->ballot);
  return last;
}

// Each register by itself: a promise may be newer than the proposal that was accepted, and a commit
// that one copy has learned is no reason to forget what the other has accepted.
PaxosRegisters join_registers(const PaxosRegisters& a, const PaxosRegisters& b) {
  PaxosRegisters joined;
  joined.promised = std::max(a.promised, b.promised);
  joined.accepted = is_below(a.accepted, false, b.accepted, false) ? b.accepted : a.accepted;
  const PaxosRegisters& newer = is_below(a.committed, a.settled, b.committed, b.settled) ? b : a;
  joined.committed = newer.committed;
  joined.settled = newer.settled;
  return joined;
}

void write_ballot(base::ByteWriter& out, const Ballot& ballot) {
  out.zigzag(ballot.us);
  if (!ballot.present()) return;
  out.raw(ballot.host.value.view());
  out.varint(ballot.start_number);
  out.varint(ballot.shard);
}

Result<Ballot> read_ballot(base::ByteReader& in) {
  Ballot ballot;
  TETRAD_TRY(ballot.us, in.read_zigzag());
  if (!ballot.present()) return ballot;
  TETRAD_TRY(const BytesView host, in.read_raw(kHostBytes));
  ballot.host.value = Uuid::from_bytes(host);
  TETRAD_TRY(ballot.start_number, in.read_varint());
  TETRAD_TRY(const uint64_t shard, in.read_varint());
  if (shard > UINT32_MAX) return fail(ErrorCode::kCorruption, "a ballot of shard {}", shard);
  ballot.shard = static_cast<uint32_t>(shard);
  return ballot;
}

void write_proposal(base::ByteWriter& out, const Proposal& proposal) {
  TETRAD_ASSERT(proposal.ballot.present());
  TETRAD_ASSERT(proposal.origin.present());
  uint8_t flags = 0;
  if (proposal.origin != proposal.ballot) flags |= kOtherOrigin;
  if (proposal.follows.present()) flags |= kFollows;
  if (!proposal.value.empty()) flags |= kHasValue;
  write_ballot(out, proposal.ballot);
  out.u8(flags);
  if ((flags & kOtherOrigin) != 0) write_ballot(out, proposal.origin);
  if ((flags & kFollows) != 0) write_ballot(out, proposal.follows);
  if ((flags & kHasValue) != 0) out.bytes(proposal.value);
}

Result<Proposal> read_proposal(base::ByteReader& in) {
  Proposal proposal;
  TETRAD_TRY(proposal.ballot, read_present_ballot(in));
  TETRAD_TRY(const uint8_t flags, in.read_u8());
  if ((flags & ~kProposalFlags) != 0)
    return fail(ErrorCode::kCorruption, "a proposal with the flags {}", flags);
  proposal.origin = proposal.ballot;
  if ((flags & kOtherOrigin) != 0) {
    TETRAD_TRY(proposal.origin, read_present_ballot(in));
    if (!(proposal.origin < proposal.ballot))
      return fail(ErrorCode::kCorruption, "a proposal with an origin after its ballot");
  }
  if ((flags & kFollows) != 0) {
    TETRAD_TRY(proposal.follows, read_present_ballot(in));
    if (!(proposal.follows < proposal.origin))
      return fail(ErrorCode::kCorruption, "a proposal that follows a later one");
  }
  if ((flags & kHasValue) != 0) {
    TETRAD_TRY(proposal.value, in.read_bytes());
    if (proposal.value.empty())
      return fail(ErrorCode::kCorruption, "a proposal with a value of no bytes");
  }
  return proposal;
}

void encode_registers(const PaxosRegisters& registers, Bytes& out) {
  TETRAD_ASSERT(!registers.settled || (registers.committed && registers.committed->value.empty()));
  const uint8_t promised = place_of_promised(registers);
  uint8_t flags = promised;
  if (registers.accepted) flags |= kAccepted;
  if (registers.committed) flags |= kCommitted;
  if (registers.settled) flags |= kSettled;
  base::ByteWriter w(out);
  w.u8(kVersion);
  w.u8(flags);
  if (promised == kPromised) write_ballot(w, registers.promised);
  if (registers.accepted) write_proposal(w, *registers.accepted);
  if (registers.committed) write_proposal(w, *registers.committed);
}

Result<PaxosRegisters> decode_registers(BytesView encoded) {
  base::ByteReader r(encoded);
  TETRAD_TRY(const uint8_t version, r.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "Paxos registers of format {}, this program reads {}",
                version, kVersion);
  TETRAD_TRY(const uint8_t flags, r.read_u8());
  if ((flags & ~kFlags) != 0)
    return fail(ErrorCode::kCorruption, "Paxos registers with the flags {}", flags);
  PaxosRegisters registers;
  const uint8_t promised = flags & (kPromised | kPromisedIsAccepted | kPromisedIsCommitted);
  if (promised == kPromised) {
    TETRAD_TRY(registers.promised, read_present_ballot(r));
  }
  if ((flags & kAccepted) != 0) {
    TETRAD_TRY(registers.accepted, read_proposal(r));
  }
  if ((flags & kCommitted) != 0) {
    TETRAD_TRY(registers.committed, read_proposal(r));
  }
  registers.settled = (flags & kSettled) != 0;
  if (registers.settled && !(registers.committed && registers.committed->value.empty()))
    return fail(ErrorCode::kCorruption, "Paxos registers settled with a value");
  if (promised == kPromisedIsAccepted && registers.accepted)
    registers.promised = registers.accepted->ballot;
  if (promised == kPromisedIsCommitted && registers.committed)
    registers.promised = registers.committed->ballot;
  if (place_of_promised(registers) != promised)
    return fail(ErrorCode::kCorruption, "Paxos registers with a promise out of place");
  if (!r.at_end())
    return fail(ErrorCode::kCorruption, "{} bytes after the Paxos registers", r.remaining());
  return registers;
}

}  // namespace tetrad::storage
