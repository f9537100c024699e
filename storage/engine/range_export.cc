// SPDX-License-Identifier: Apache-2.0
// Reading everything of a range: pages of mutations for streams, sizes for split points.
#include "storage/engine/range_export.h"

#include "base/assert.h"
#include "storage/row/paxos_registers.h"
#include "storage/row/range_tombstones.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

std::unique_ptr<KeyIterator> iterate_range(KeyView& view, TableIncarnation incarnation,
                                           const RingRange& range) {
  KeyRange keys = keys_of_range(incarnation, range);
  return view.iterate({std::move(keys.start), std::move(keys.end), false, false});
}

constexpr uint64_t kRegistersPageBytes = 4 << 20;

}  // namespace

Result<void> add_to_mutation(Mutation& mutation, const StorageKeyView& key, BytesView value) {
  switch (key.kind) {
    case KeyKind::kHeader:
      TETRAD_TRY_VOID(check_row_record(value));
      mutation.header = Bytes(value);
      return {};
    case KeyKind::kRangeTombstone: {
      std::vector<TombstoneEnd> set;
      TETRAD_TRY_VOID(decode_tombstone_set(value, set));
      TETRAD_TRY(const BytesView start, start_at_place(key.clustering_key));
      for (const TombstoneEnd& e : set)
        mutation.range_tombstones.push_back({{Bytes(start), Bytes(e.end)}, e.deletion});
      return {};
    }
    case KeyKind::kRow:
      TETRAD_TRY_VOID(check_row_record(value));
      // Not complete: the receiver merges it (rule 15).
      mutation.rows.push_back({Bytes(key.clustering_key), Bytes(value), false});
      return {};
    case KeyKind::kRegisters:
      TETRAD_TRY_VOID(decode_registers(value));
      mutation.registers = Bytes(value);
      return {};
  }
  return {};
}

Result<Store::ExportPage> export_page(KeyView& view, TableIncarnation incarnation,
                                      SchemaVersion schema_version, const RingRange& range,
                                      BytesView after, uint64_t bytes_max, ExportParts parts) {
  Store::ExportPage page;
  if (range.empty()) return page;
  const std::unique_ptr<KeyIterator> it = iterate_range(view, incarnation, range);
  it->seek(after.empty() ? keys_of_range(incarnation, range).start : Bytes(after) + '\0');
  uint64_t bytes = 0;
  Bytes prefix;  // of the partition being collected
  for (; it->valid(); it->next()) {
    // After at least one key, as a limit is never 0; a partition may be cut between its keys.
    if (bytes >= bytes_max) {
      page.exhausted = false;
      break;
    }
    const auto key = decode_storage_key(it->key());
    if (!key)
      return fail(ErrorCode::kCorruption, "a key of {} bytes is no row's", it->key().size());
    if (key->kind == KeyKind::kRegisters && parts == ExportParts::kRows) continue;
    // All keys of a partition lie together and become one mutation.
    if (page.mutations.empty() || prefix != key->partition_prefix) {
      prefix.assign(key->partition_prefix);
      Mutation& mutation = page.mutations.emplace_back();
      mutation.incarnation = incarnation;
      mutation.schema_version = schema_version;
      mutation.position = key->position;
      mutation.partition_key = Bytes(key->partition_key);
    }
    TETRAD_ASSERT(page.next < it->key());  // the next page goes on, never back
    TETRAD_TRY_VOID(add_to_mutation(page.mutations.back(), *key, it->value()));
    bytes += it->key().size() + it->value().size();
    page.next.assign(it->key());
  }
  TETRAD_TRY_VOID(it->status());
  return page;
}

Result<Store::RegistersPage> registers_page(KeyView& view, TableIncarnation incarnation,
                                            const RingRange& range, BytesView after,
                                            size_t partitions_max) {
  Store::RegistersPage page;
  if (range.empty()) return page;
  const std::unique_ptr<KeyIterator> it = iterate_range(view, incarnation, range);
  it->seek(after.empty() ? keys_of_range(incarnation, range).start : Bytes(after) + '\0');
  uint64_t bytes = 0;
  Bytes place;
  for (size_t partitions = 0; it->valid(); ++partitions) {
    if (partitions >= partitions_max || bytes >= kRegistersPageBytes) {
      page.exhausted = false;
      break;
    }
    const auto key = decode_storage_key(it->key());
    if (!key)
      return fail(ErrorCode::kCorruption, "a key of {} bytes is no row's", it->key().size());
    place.assign(key->partition_prefix);
    place.push_back(static_cast<char>(KeyKind::kRegisters));
    // Straight to where the registers of this partition would be: rows are not walked.
    if (key->kind != KeyKind::kRegisters) it->seek(place);
    page.next = place;
    // It has none: the iterator stands on the next partition already.
    if (!it->valid() || it->key() != place) continue;
    const auto found = decode_storage_key(it->key());
    TETRAD_TRY(PaxosRegisters registers, decode_registers(it->value()));
    bytes += it->value().size();
    page.entries.push_back({found->position, Bytes(found->partition_key), std::move(registers)});
    it->next();
  }
  TETRAD_TRY_VOID(it->status());
  return page;
}

Result<std::vector<SizeSample>> scan_sizes(KeyView& view, TableIncarnation incarnation,
                                           const RingRange& range, size_t count) {
  std::vector<SizeSample> partitions;
  if (range.empty()) return partitions;
  const std::unique_ptr<KeyIterator> it = iterate_range(view, incarnation, range);
  uint64_t total = 0;
  for (it->seek(keys_of_range(incarnation, range).start); it->valid(); it->next()) {
    const auto key = decode_storage_key(it->key());
    if (!key)
      return fail(ErrorCode::kCorruption, "a key of {} bytes is no row's", it->key().size());
    if (key->kind == KeyKind::kRegisters) continue;
    const uint64_t bytes = it->key().size() + it->value().size();
    total += bytes;
    if (partitions.empty() || partitions.back().position != key->position) {
      partitions.push_back({key->position, bytes});
    } else {
      partitions.back().bytes += bytes;
    }
  }
  TETRAD_TRY_VOID(it->status());
  if (count == 0 || partitions.size() <= count) return partitions;
  std::vector<SizeSample> samples;
  uint64_t pending = 0;
  for (const SizeSample& partition : partitions) {
    pending += partition.bytes;
    // Samples of about equal size; each ends with a whole partition, and the last takes the rest.
    if (pending < total / count && &partition != &partitions.back()) continue;
    samples.push_back({partition.position, pending});
    pending = 0;
  }
  return samples;
}

}  // namespace tetrad::storage
