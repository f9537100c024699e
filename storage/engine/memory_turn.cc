// SPDX-License-Identifier: Apache-2.0
// The values of a turn: joined with what this turn has made of a key, else with what is stored.
#include "storage/engine/memory_turn.h"

#include <utility>

#include "base/data_mutants.h"
#include "storage/engine/value_merge.h"

namespace tetrad::storage {

void MemoryTurn::add(const WaitingWrite& waiting) {
  const Mutation& m = waiting.mutation;
  add_rows(m);
  if (!TETRAD_MUTANT(claims_not_kept)) add_claims(waiting);
  if (m.registers.empty()) return;
  add_registers(m, waiting.puts_registers);
  if (waiting.committed) add_rows(*waiting.committed);
}

void MemoryTurn::add_registers(const Mutation& m, bool puts) {
  if (!puts) return merge(m, KeyKind::kRegisters, {}, m.registers);
  changed_.insert_or_assign(registers_key({m.incarnation, m.position, m.partition_key}),
                            m.registers);
}

void MemoryTurn::add_rows(const Mutation& m) {
  if (!m.header.empty()) merge(m, KeyKind::kHeader, {}, m.header);
  for (const auto& [start, set] : tombstone_values(m))
    merge(m, KeyKind::kRangeTombstone, start, set);
  for (const RowChange& row : m.rows) merge(m, KeyKind::kRow, row.clustering_key, row.record);
}

void MemoryTurn::add_claims(const WaitingWrite& waiting) {
  for (const auto& [key, value] : waiting.claims) changed_.insert_or_assign(key, value);
  for (const auto& [key, value] : waiting.view_tasks) changed_.insert_or_assign(key, value);
  erased_.insert(erased_.end(), waiting.forgotten.begin(), waiting.forgotten.end());
}

std::vector<MemoryArea::Operation> MemoryTurn::take_batch() {
  std::vector<MemoryArea::Operation> batch;
  // Erasures first: a key of the store's own may be forgotten and written again in one turn.
  batch.reserve(changed_.size() + erased_.size());
  for (Bytes& key : std::exchange(erased_, {})) batch.emplace_back(std::move(key), std::nullopt);
  for (auto& [key, value] : changed_) batch.emplace_back(key, std::move(value));
  changed_.clear();
  return batch;
}

void MemoryTurn::merge(const Mutation& m, KeyKind kind, BytesView clustering_key, BytesView value) {
  Bytes key;
  append_storage_key(key, m.incarnation, m.position, m.partition_key, kind, clustering_key);
  std::vector<BytesView> values;
  const auto pending = changed_.find(key);
  const auto stored = stored_.find(key);
  // A value of this turn contains the stored one already.
  if (pending != changed_.end()) {
    values.push_back(pending->second);
  } else if (stored != stored_.end()) {
    values.push_back(stored->second);
  }
  values.push_back(value);
  Bytes joined;
  merge_values(kind, values, joined);
  changed_.insert_or_assign(std::move(key), std::move(joined));
}

}  // namespace tetrad::storage
