// SPDX-License-Identifier: Apache-2.0
// Joining the values of one key, in both engines. It never fails (rule 16): what does not decode is
// kept beside what does, in a bundle that no reader takes for data, so that the corruption is
// reported whenever the key is read.
//
//   bundle := u8 0xFF, bytes what could be joined ("" if nothing), varint count, (bytes undecodable)*
//             the undecodable ones ascending, each once
//   example: ff 00 02 01 61 03 626164   nothing decodes; "a" and "bad" are kept
#pragma once

#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/engine/store.h"
#include "storage/row/mutation.h"
#include "storage/row/paxos_registers.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {

/// Appends the join of `values` (of a key of that kind, at least one) to `out`. Returns how many
/// undecodable values are in it.
size_t merge_values(KeyKind kind, std::span<const BytesView> values, Bytes& out);

/// Whether every part of a mutation decodes and its keys are within bounds. Errors: kCorruption,
/// kInvalid.
Result<void> check_mutation(const Mutation& mutation);

/// Errors: kInvalid.
Result<void> check_partition(const PartitionName& partition);
/// Whether the rows, if any, are of the partition. Errors: kInvalid.
Result<void> check_registers_write(const RegistersWrite& write);

/// What a mutation from a stream brings besides its own rows.
struct ImportedRegisters {
  PaxosRegisters registers;
  /// The committed value, while it may be on fewer than W: its rows are written with the registers.
  std::optional<Mutation> committed;
};
/// Of a mutation with registers. Errors: kCorruption.
Result<ImportedRegisters> decode_imported(const Mutation& mutation);
/// The range tombstones of a mutation as values of keys: (place, encoded set), each place once,
/// ascending. Ranges without a key are left out.
std::vector<std::pair<Bytes, Bytes>> tombstone_values(const Mutation& mutation);

}  // namespace tetrad::storage
