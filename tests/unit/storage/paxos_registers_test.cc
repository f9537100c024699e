// SPDX-License-Identifier: Apache-2.0
#include "storage/row/paxos_registers.h"

#include <catch2/catch.hpp>

#include "base/hash.h"
#include "base/random.h"

namespace tetrad::storage {
namespace {

HostId host_of(uint8_t n) {
  HostId host;
  host.value.octets[15] = n;
  return host;
}

Ballot ballot_of(int64_t us, uint8_t host = 1) { return {us, host_of(host), 1, 0}; }

Bytes encoded(const PaxosRegisters& registers) {
  Bytes out;
  encode_registers(registers, out);
  return out;
}

/// Few ballots, so that some are equal; what belongs to a ballot is always the same.
Proposal random_proposal(base::Random& random) {
  Proposal proposal;
  const int64_t us = 10 + static_cast<int64_t>(random.below(6));
  proposal.ballot = ballot_of(us);
  proposal.origin = us % 2 == 0 ? proposal.ballot : ballot_of(us - 1);
  if (us % 3 == 0) proposal.follows = ballot_of(1);
  proposal.value = us % 4 == 0 ? Bytes() : Bytes("value ") + std::to_string(proposal.origin.us);
  return proposal;
}

PaxosRegisters random_registers(base::Random& random) {
  PaxosRegisters registers;
  if (random.below(4) != 0)
    registers.promised = ballot_of(8 + static_cast<int64_t>(random.below(9)));
  if (random.below(2) != 0) registers.accepted = random_proposal(random);
  if (random.below(2) != 0) {
    registers.committed = random_proposal(random);
    registers.settled = random.below(2) != 0;
    if (registers.settled) registers.committed->value.clear();
  }
  return registers;
}

TEST_CASE("ballots are ordered by time, host, start and shard, and none is below all") {
  const Ballot least{0, host_of(0), 0, 0};
  const std::vector<Ballot> ascending = {{},
                                         {-5, host_of(9), 9, 9},
                                         least,
                                         {0, host_of(0), 0, 1},
                                         {0, host_of(0), 1, 0},
                                         {0, host_of(1), 0, 0},
                                         {1, host_of(0), 0, 0}};
  for (size_t i = 1; i < ascending.size(); ++i) CHECK(ascending[i - 1] < ascending[i]);
  CHECK(!Ballot().present());
  CHECK(least.present());
}

TEST_CASE("the last ballot of registers is the highest of the three") {
  PaxosRegisters registers;
  CHECK(registers.empty());
  CHECK(registers.last() == Ballot());
  registers.promised = ballot_of(5);
  CHECK(registers.last() == ballot_of(5));
  registers.accepted = Proposal{ballot_of(7), ballot_of(7), {}, {}};
  CHECK(registers.last() == ballot_of(7));
  registers.committed = Proposal{ballot_of(6), ballot_of(6), {}, "v"};
  CHECK(registers.last() == ballot_of(7));
  registers.committed->ballot = ballot_of(8);
  CHECK(registers.last() == ballot_of(8));
}

TEST_CASE("the bytes of Paxos registers are as their grammar says") {
  const Bytes host = base::to_hex(host_of(1).value.view());
  PaxosRegisters registers;
  CHECK(base::to_hex(encoded(registers)) == "0100");
  registers.promised = {100, host_of(1), 3, 2};
  // zigzag 100 is 200, a varint of two bytes
  CHECK(base::to_hex(encoded(registers)) ==
        "0101"
        "c801" +
            host + "0302");

  registers.promised = {101, host_of(1), 3, 2};
  registers.accepted = Proposal{registers.promised, {100, host_of(1), 3, 2}, {}, "ab"};
  registers.committed =
      Proposal{{99, host_of(1), 3, 2}, {99, host_of(1), 3, 2}, {4, host_of(1), 1, 0}, {}};
  registers.settled = true;
  const Bytes accepted = "ca01" + host +
                         "0302"
                         "05"
                         "c801" +
                         host +
                         "0302"
                         "026162";
  const Bytes committed = "c601" + host +
                          "0302"
                          "02"
                          "08" +
                          host + "0100";
  CHECK(base::to_hex(encoded(registers)) == "013a" + accepted + committed);
  const auto decoded = decode_registers(encoded(registers));
  REQUIRE(decoded.has_value());
  CHECK(*decoded == registers);
}

TEST_CASE("registers that a finished statement leaves are small") {
  PaxosRegisters registers;
  const Ballot ballot{1'700'000'000'000'000, host_of(1), 12, 3};
  registers.promised = ballot;
  registers.committed = Proposal{ballot, ballot, {1'699'999'999'000'000, host_of(2), 9, 1}, {}};
  registers.settled = true;
  CHECK(encoded(registers).size() <= 60);
}

TEST_CASE("registers come back from their bytes, and every byte counts") {
  base::Random random(7);
  for (int i = 0; i < 500; ++i) {
    const PaxosRegisters registers = random_registers(random);
    const Bytes bytes = encoded(registers);
    const auto decoded = decode_registers(bytes);
    REQUIRE(decoded.has_value());
    CHECK(*decoded == registers);
    for (size_t cut = 0; cut < bytes.size(); ++cut)
      CHECK(!decode_registers(BytesView(bytes).substr(0, cut)));
    CHECK(!decode_registers(bytes + '\0'));
    Bytes wrong = bytes;
    wrong[random.below(wrong.size())] ^= static_cast<char>(1 << random.below(8));
    if (const auto other = decode_registers(wrong)) {
      CHECK(*other != registers);
    } else {
      CHECK(other.error().code == ErrorCode::kCorruption);
    }
  }
}

TEST_CASE("registers that contradict themselves do not decode") {
  const Ballot b = ballot_of(5), a = ballot_of(4);
  const auto decodes = [](uint8_t flags, const std::vector<Proposal>& proposals) {
    Bytes bytes;
    base::ByteWriter w(bytes);
    w.u8(1);
    w.u8(flags);
    for (const Proposal& proposal : proposals) write_proposal(w, proposal);
    return decode_registers(bytes).has_value();
  };
  CHECK(decodes(0x10, {{b, b, a, "v"}}));
  CHECK(!decodes(0x30, {{b, b, a, "v"}}));  // settled, and a value
  CHECK(decodes(0x30, {{b, b, a, {}}}));
  CHECK(!decodes(0x20, {}));                // nothing that could be settled
  CHECK(!decodes(0x02, {}));                // a promise that is nowhere
  CHECK(!decodes(0x12, {{b, b, a, "v"}}));  // it is the committed one's, not the accepted one's
  CHECK(decodes(0x14, {{b, b, a, "v"}}));
  CHECK(!decodes(0x1c, {{b, b, a, "v"}, {b, b, a, "v"}}));  // of two equal ones the first is named
  CHECK(decodes(0x1a, {{b, b, a, "v"}, {b, b, a, "v"}}));
  CHECK(!decodes(0x40, {}));
  CHECK(!decodes(0x10, {{a, b, {}, "v"}}));  // an origin after the ballot
  CHECK(!decodes(0x10, {{b, a, a, "v"}}));   // it follows itself
  CHECK(!decode_registers("\x02\x00"));
}

TEST_CASE("joining registers keeps the highest of each, in any order") {
  base::Random random(11);
  for (int i = 0; i < 2000; ++i) {
    const PaxosRegisters a = random_registers(random), b = random_registers(random),
                         c = random_registers(random);
    CHECK(join_registers(a, a) == a);
    CHECK(join_registers(a, {}) == a);
    CHECK(join_registers(a, b) == join_registers(b, a));
    CHECK(join_registers(join_registers(a, b), c) == join_registers(a, join_registers(b, c)));
    const PaxosRegisters joined = join_registers(a, b);
    CHECK(joined.last() == std::max(a.last(), b.last()));
    CHECK(joined.promised == std::max(a.promised, b.promised));
    encoded(joined);  // keeps what encoding asks for
  }
  const Ballot ballot = ballot_of(5);
  PaxosRegisters open, settled;
  open.committed = Proposal{ballot, ballot, {}, "v"};
  settled.committed = Proposal{ballot, ballot, {}, {}};
  settled.settled = true;
  CHECK(join_registers(open, settled) == settled);
  PaxosRegisters later;
  later.committed = Proposal{ballot_of(6), ballot_of(6), ballot, "w"};
  CHECK(join_registers(settled, later) == later);
}

}  // namespace
}  // namespace tetrad::storage
