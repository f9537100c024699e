// SPDX-License-Identifier: Apache-2.0
#include "replication/paxos/paxos_messages.h"

#include "base/byte_io.h"

namespace tetrad::replication {
namespace {

constexpr uint8_t kVersion = 1;

Result<void> read_version(base::ByteReader& reader) {
  TETRAD_TRY(const uint8_t version, reader.read_u8());
  if (version != kVersion)
    return fail(ErrorCode::kCorruption, "a Paxos message of version {}, known is {}", version,
                kVersion);
  return {};
}

Result<PaxosRows> read_rows(base::ByteReader& reader) {
  TETRAD_TRY(const uint8_t rows, reader.read_u8());
  if (rows > static_cast<uint8_t>(PaxosRows::kDigest))
    return fail(ErrorCode::kCorruption, "a Paxos message that wants rows as {}", rows);
  return static_cast<PaxosRows>(rows);
}

Result<storage::Ballot> read_own_ballot(base::ByteReader& reader) {
  TETRAD_TRY(const storage::Ballot ballot, storage::read_ballot(reader));
  if (!ballot.present()) return fail(ErrorCode::kCorruption, "a Paxos message without a ballot");
  return ballot;
}

Result<bool> read_yes(base::ByteReader& reader) {
  TETRAD_TRY(const uint8_t yes, reader.read_u8());
  if (yes > 1) return fail(ErrorCode::kCorruption, "a Paxos answer {}", yes);
  return yes == 1;
}

Result<void> at_end(const base::ByteReader& reader) {
  if (reader.remaining() == 0) return {};
  return fail(ErrorCode::kCorruption, "a Paxos message with {} bytes too many", reader.remaining());
}

}  // namespace

Bytes encode_prepare(const PrepareRequest& request) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.varint(request.epoch.value);
  storage::write_ballot(writer, request.ballot);
  writer.u8(static_cast<uint8_t>(request.rows));
  storage::encode_read_command(request.command, out);
  return out;
}

Result<PrepareRequest> decode_prepare(BytesView body) {
  base::ByteReader reader(body);
  TETRAD_TRY_VOID(read_version(reader));
  PrepareRequest out;
  TETRAD_TRY(out.epoch.value, reader.read_varint());
  TETRAD_TRY(out.ballot, read_own_ballot(reader));
  TETRAD_TRY(out.rows, read_rows(reader));
  TETRAD_TRY(out.command, storage::decode_read_command({reader.position(), reader.remaining()}));
  if (out.command.is_range || out.command.count_only || out.command.live_only)
    return fail(ErrorCode::kCorruption, "a Paxos message that reads no rows of one partition");
  return out;
}

Bytes encode_prepare_answer(const PrepareAnswer& answer) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(answer.promised ? 1 : 0);
  writer.zigzag(answer.floor_us);
  if (!answer.promised) {
    storage::write_ballot(writer, answer.last);
    return out;
  }
  writer.zigzag(answer.mark_us);
  Bytes registers;
  storage::encode_registers(answer.registers, registers);
  writer.bytes(registers);
  writer.u8(static_cast<uint8_t>(answer.rows));
  if (answer.rows == PaxosRows::kData) storage::encode_read_result(answer.data, out);
  if (answer.rows == PaxosRows::kDigest) out += encode_digest_reply(answer.digest);
  return out;
}

Result<PrepareAnswer> decode_prepare_answer(Bytes body) {
  base::ByteReader reader(body);
  PrepareAnswer out;
  TETRAD_TRY(out.promised, read_yes(reader));
  TETRAD_TRY(out.floor_us, reader.read_zigzag());
  if (!out.promised) {
    TETRAD_TRY(out.last, storage::read_ballot(reader));
    TETRAD_TRY_VOID(at_end(reader));
    return out;
  }
  TETRAD_TRY(out.mark_us, reader.read_zigzag());
  TETRAD_TRY(const BytesView registers, reader.read_bytes());
  TETRAD_TRY(out.registers, storage::decode_registers(registers));
  TETRAD_TRY(out.rows, read_rows(reader));
  const BytesView rest(reader.position(), reader.remaining());
  if (out.rows == PaxosRows::kData) {
    TETRAD_TRY(out.data, storage::decode_read_result(Bytes(rest)));
  } else if (out.rows == PaxosRows::kDigest) {
    TETRAD_TRY(out.digest, decode_digest_reply(rest));
  } else {
    TETRAD_TRY_VOID(at_end(reader));
  }
  return out;
}

Bytes encode_propose(const ProposeRequest& request) {
  Bytes out;
  out.reserve(request.partition_key.size() + request.proposal.value.size() + 128);
  base::ByteWriter writer(out);
  writer.u8(kVersion);
  writer.varint(request.epoch.value);
  writer.varint(request.incarnation.value);
  writer.varint(request.schema_version.value);
  writer.i64(request.position.token);
  writer.u64(request.position.hash);
  writer.bytes(request.partition_key);
  storage::write_proposal(writer, request.proposal);
  return out;
}

Result<ProposeRequest> decode_propose(BytesView body) {
  base::ByteReader reader(body);
  TETRAD_TRY_VOID(read_version(reader));
  ProposeRequest out;
  TETRAD_TRY(out.epoch.value, reader.read_varint());
  TETRAD_TRY(const uint64_t incarnation, reader.read_varint());
  if (incarnation > UINT32_MAX)
    return fail(ErrorCode::kCorruption, "a Paxos message for the table {}", incarnation);
  out.incarnation.value = static_cast<uint32_t>(incarnation);
  TETRAD_TRY(out.schema_version.value, reader.read_varint());
  TETRAD_TRY(out.position.token, reader.read_i64());
  TETRAD_TRY(out.position.hash, reader.read_u64());
  TETRAD_TRY(out.partition_key, reader.read_bytes());
  TETRAD_TRY(out.proposal, storage::read_proposal(reader));
  TETRAD_TRY_VOID(at_end(reader));
  return out;
}

Bytes encode_vote(const PaxosVote& vote) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.u8(vote.yes ? 1 : 0);
  if (!vote.yes) storage::write_ballot(writer, vote.last);
  return out;
}

Result<PaxosVote> decode_vote(BytesView body) {
  base::ByteReader reader(body);
  PaxosVote out;
  TETRAD_TRY(out.yes, read_yes(reader));
  if (!out.yes) {
    TETRAD_TRY(out.last, storage::read_ballot(reader));
  }
  TETRAD_TRY_VOID(at_end(reader));
  return out;
}

}  // namespace tetrad::replication
