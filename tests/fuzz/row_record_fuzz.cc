// SPDX-License-Identifier: Apache-2.0
// Fuzz target: whatever bytes arrive as a row record, a mutation, Paxos registers, a read command,
// a read result or a set of range tombstones. What decodes must encode to something that decodes to
// the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.h"
#include "storage/engine/value_merge.h"
#include "storage/row/mutation.h"
#include "storage/row/paxos_registers.h"
#include "storage/row/range_tombstones.h"
#include "storage/row/read_command.h"
#include "storage/row/reconcile.h"
#include "storage/row/row_record.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace tetrad;
using namespace tetrad::storage;

void try_record(BytesView bytes) {
  const auto record = decode_row_record(bytes);
  TETRAD_ASSERT(record.has_value() == check_row_record(bytes).has_value());
  if (!record) return;
  Bytes again;
  encode_row_record(*record, again);
  TETRAD_ASSERT(decode_row_record(again) == *record);
  const RowRecord canonical = reconcile(*record, RowRecord());
  TETRAD_ASSERT(reconcile(canonical, *record) == canonical);
}

void try_mutation(BytesView bytes) {
  const auto mutation = decode_mutation(bytes);
  if (!mutation) return;
  Bytes again, third;
  encode_mutation(*mutation, again);
  const auto same = decode_mutation(again);
  TETRAD_ASSERT(same.has_value());
  encode_mutation(*same, third);
  TETRAD_ASSERT(again == third);
}

void try_streamed(BytesView bytes) {
  const auto mutation = decode_streamed_mutation(bytes);
  if (!mutation) return;
  Bytes again;
  encode_streamed_mutation(*mutation, again);
  const auto same = decode_streamed_mutation(again);
  TETRAD_ASSERT(same.has_value() && same->registers == mutation->registers);
  TETRAD_ASSERT(mutation->registers.empty() == decode_mutation(bytes).has_value());
  if (!mutation->registers.empty()) (void)decode_imported(*mutation);
}

void try_registers(BytesView bytes) {
  const auto registers = decode_registers(bytes);
  if (!registers) return;
  Bytes again;
  encode_registers(*registers, again);
  TETRAD_ASSERT(decode_registers(again) == *registers);
  TETRAD_ASSERT(again.size() <= bytes.size());
  TETRAD_ASSERT(join_registers(*registers, *registers) == *registers);
}

void try_read(BytesView bytes) {
  if (const auto command = decode_read_command(bytes)) {
    Bytes again;
    encode_read_command(*command, again);
    TETRAD_ASSERT(decode_read_command(again).has_value());
  }
  auto result = decode_read_result(Bytes(bytes));
  if (!result) return;
  Bytes again;
  encode_read_result(*result, again);
  auto same = decode_read_result(again);
  TETRAD_ASSERT(same.has_value());
  TETRAD_ASSERT(digest_of(*same) == digest_of(*result));
  // A hostile reply must not hurt the merge.
  std::vector<ReplicaReply> replies;
  replies.push_back({{}, std::move(*result)});
  replies.push_back({{}, std::move(*same)});
  ReadCommand command;
  command.is_range = true;
  command.reversed = bytes.size() % 2 == 1;
  command.per_partition_limit = 3;
  (void)merge_replies(command, replies);
}

void try_values(BytesView bytes) {
  std::vector<TombstoneEnd> set;
  (void)decode_tombstone_set(bytes, set);
  for (const KeyKind kind : {KeyKind::kRow, KeyKind::kRangeTombstone, KeyKind::kRegisters}) {
    const BytesView values[] = {bytes.substr(0, bytes.size() / 2), bytes, bytes};
    Bytes joined, again;
    (void)merge_values(kind, values, joined);
    const BytesView both[] = {joined, joined};
    (void)merge_values(kind, both, again);
    TETRAD_ASSERT(joined == again);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const BytesView bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 5) {
    case 0:
      try_record(bytes);
      break;
    case 1:
      try_mutation(bytes);
      try_streamed(bytes);
      break;
    case 2:
      try_read(bytes);
      break;
    case 3:
      try_registers(bytes);
      break;
    default:
      try_values(bytes);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  Ballot ballot{100, {}, 3, 1};
  Mutation mutation;
  mutation.incarnation = {7};
  mutation.partition_key = "p";
  PaxosRegisters registers;
  registers.promised = ballot;
  registers.committed = Proposal{ballot, ballot, {90, {}, 2, 0}, {}};
  encode_mutation(mutation, registers.committed->value);
  ballot.us = 120;
  registers.accepted = Proposal{ballot, registers.promised, {}, "value"};
  encode_registers(registers, mutation.registers);
  Bytes streamed;
  encode_streamed_mutation(mutation, streamed);
  return {"\x03" + mutation.registers, "\x04" + mutation.registers, "\x01" + streamed};
}
