// SPDX-License-Identifier: Apache-2.0
// Joining the values of one key: see value_merge.h.
#include "storage/engine/value_merge.h"

#include <algorithm>
#include <map>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "storage/row/paxos_registers.h"
#include "storage/row/range_tombstones.h"
#include "storage/row/reconcile.h"

namespace tetrad::storage {
namespace {

// No record, set of tombstones or registers begins with this byte.
constexpr uint8_t kBundle = 0xFF;

/// Values of one key: those that may decode, and those that are known not to. Views into the
/// values.
struct Pieces {
  std::vector<BytesView> good, broken;
};

bool is_bundle(BytesView value) {
  return !value.empty() && static_cast<uint8_t>(value[0]) == kBundle;
}

Result<Pieces> take_bundle_apart(BytesView value) {
  base::ByteReader r(value.substr(1));
  Pieces pieces;
  TETRAD_TRY(const BytesView good, r.read_bytes());
  if (!good.empty()) pieces.good.push_back(good);
  TETRAD_TRY(const uint64_t count, r.read_varint());
  // Compared before memory is taken.
  if (count > r.remaining()) return fail(ErrorCode::kCorruption, "bundle of {} values", count);
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const BytesView broken, r.read_bytes());
    pieces.broken.push_back(broken);
  }
  if (!r.at_end()) return fail(ErrorCode::kCorruption, "bytes after a bundle");
  return pieces;
}

/// Bundles are taken apart; every other value stays as it is.
Pieces flatten(std::span<const BytesView> values) {
  Pieces pieces;
  for (const BytesView value : values) {
    if (!is_bundle(value)) {
      pieces.good.push_back(value);
      continue;
    }
    const auto inner = take_bundle_apart(value);
    // Not even the bundle reads: it is kept whole as one broken piece.
    if (!inner) {
      pieces.broken.push_back(value);
      continue;
    }
    pieces.good.insert(pieces.good.end(), inner->good.begin(), inner->good.end());
    pieces.broken.insert(pieces.broken.end(), inner->broken.begin(), inner->broken.end());
  }
  return pieces;
}

/// At least one. The two with the fewest cells first, again and again. One after another a large row
/// would be copied for each of the updates of single elements behind it.
RowRecord join(std::vector<RowRecord> records) {
  const auto has_more_cells = [](const RowRecord& a, const RowRecord& b) {
    return a.cells.size() > b.cells.size();
  };
  std::ranges::make_heap(records, has_more_cells);
  const auto take_least = [&] {
    std::ranges::pop_heap(records, has_more_cells);
    RowRecord least = std::move(records.back());
    records.pop_back();
    return least;
  };
  while (records.size() > 1) {
    const RowRecord a = take_least(), b = take_least();
    records.push_back(reconcile(a, b));
    std::ranges::push_heap(records, has_more_cells);
  }
  return std::move(records.front());
}

/// Joins the good pieces that decode; the others become broken ones. Empty if none decodes.
void join_records(Pieces& pieces, Bytes& out) {
  std::vector<RowRecord> records;
  records.reserve(pieces.good.size());
  for (const BytesView value : pieces.good) {
    auto record = decode_row_record(value);
    if (!record) {
      pieces.broken.push_back(value);
      continue;
    }
    drop_hidden(*record);  // as reconcile() does
    records.push_back(std::move(*record));
  }
  if (!records.empty()) encode_row_record(join(std::move(records)), out);
}

void join_tombstones(Pieces& pieces, Bytes& out) {
  std::vector<TombstoneEnd> set;
  bool any = false;
  for (const BytesView value : pieces.good) {
    const size_t size_before = set.size();
    if (!decode_tombstone_set(value, set)) {
      // A set may have been read in part.
      set.resize(size_before);
      pieces.broken.push_back(value);
      continue;
    }
    any = true;
  }
  if (!any) return;
  reduce_tombstone_set(set);
  encode_tombstone_set(set, out);
}

void join_all_registers(Pieces& pieces, Bytes& out) {
  PaxosRegisters joined;
  bool any = false;
  for (const BytesView value : pieces.good) {
    const auto registers = decode_registers(value);
    if (!registers) {
      pieces.broken.push_back(value);
      continue;
    }
    joined = join_registers(joined, *registers);
    any = true;
  }
  if (any) encode_registers(joined, out);
}

void join(KeyKind kind, Pieces& pieces, Bytes& out) {
  switch (kind) {
    case KeyKind::kHeader:
    case KeyKind::kRow:
      return join_records(pieces, out);
    case KeyKind::kRangeTombstone:
      return join_tombstones(pieces, out);
    case KeyKind::kRegisters:
      return join_all_registers(pieces, out);
  }
}

PartitionName name_of(const Mutation& mutation) {
  return {mutation.incarnation, mutation.position, mutation.partition_key};
}

bool is_of(const Mutation& mutation, const PartitionName& partition) {
  return mutation.incarnation == partition.incarnation && mutation.position == partition.position &&
         mutation.partition_key == partition.partition_key;
}

}  // namespace

// Joins what decodes; what does not is kept beside it. Idempotent, and independent of how merges
// are grouped.
size_t merge_values(KeyKind kind, std::span<const BytesView> values, Bytes& out) {
  TETRAD_ASSERT(!values.empty());
  Pieces pieces;
  if (std::any_of(values.begin(), values.end(), is_bundle)) {
    pieces = flatten(values);
  } else {
    pieces.good.assign(values.begin(), values.end());
  }
  const size_t start = out.size();
  join(kind, pieces, out);
  if (pieces.broken.empty()) return 0;
  TETRAD_ASSERT(out.size() >= start);
  // Sorted and single, so that the bundle does not depend on the order or grouping of merges.
  std::sort(pieces.broken.begin(), pieces.broken.end());
  pieces.broken.erase(std::unique(pieces.broken.begin(), pieces.broken.end()), pieces.broken.end());
  // Copied, since the bundle puts its own head before it.
  const Bytes joined = out.substr(start);
  TETRAD_ASSERT(joined.empty() || !is_bundle(joined));  // bundles do not nest
  out.resize(start);
  base::ByteWriter w(out);
  w.u8(kBundle);
  w.bytes(joined);
  w.varint(pieces.broken.size());
  for (const BytesView broken : pieces.broken) w.bytes(broken);
  return pieces.broken.size();
}

Result<void> check_partition(const PartitionName& partition) {
  if (partition.incarnation == kStoreIncarnation)
    return fail(ErrorCode::kInvalid, "table incarnation {} is reserved",
                partition.incarnation.value);
  if (partition.partition_key.size() > kPartitionKeyBytesMax)
    return fail(ErrorCode::kInvalid, "Key length of {} is longer than maximum of {}",
                partition.partition_key.size(), kPartitionKeyBytesMax);
  return {};
}

Result<void> check_registers_write(const RegistersWrite& write) {
  TETRAD_TRY_VOID(check_partition(write.partition));
  if (write.rows == nullptr || is_of(*write.rows, write.partition)) return {};
  return fail(ErrorCode::kInvalid, "rows and Paxos registers of two partitions");
}

// A settled commit has no value any more: it is on W members, its rows come with the stream's own.
// Until then the rows of a commit may be on fewer than W members, so they travel with the registers
// (rule 27).
Result<ImportedRegisters> decode_imported(const Mutation& mutation) {
  ImportedRegisters imported;
  TETRAD_TRY(imported.registers, decode_registers(mutation.registers));
  const auto& committed = imported.registers.committed;
  if (!committed || committed->value.empty()) return imported;
  TETRAD_TRY(imported.committed, decode_mutation(committed->value));
  if (!is_of(*imported.committed, name_of(mutation)))
    return fail(ErrorCode::kCorruption, "a committed value of another partition");
  if (TETRAD_MUTANT(imported_commit_alone)) imported.committed.reset();
  return imported;
}

Result<void> check_mutation(const Mutation& mutation) {
  TETRAD_TRY_VOID(check_partition(name_of(mutation)));
  if (!mutation.header.empty()) TETRAD_TRY_VOID(check_row_record(mutation.header));
  for (const RangeTombstone& tombstone : mutation.range_tombstones)
    if (!tombstone.deletion.present())
      return fail(ErrorCode::kCorruption, "range tombstone without a timestamp");
  for (const RowChange& row : mutation.rows) TETRAD_TRY_VOID(check_row_record(row.record));
  return {};
}

std::vector<std::pair<Bytes, Bytes>> tombstone_values(const Mutation& mutation) {
  std::map<Bytes, std::vector<TombstoneEnd>> sets;
  for (const RangeTombstone& tombstone : mutation.range_tombstones) {
    const ClusteringRange& range = tombstone.range;
    // Empty, or at a place that no key can have.
    if (range.empty() || range.start.starts_with(kStraddlingPlace)) continue;
    Bytes place;
    append_tombstone_place(range.start, range.end, place);
    sets[std::move(place)].push_back({range.end, tombstone.deletion});
  }
  std::vector<std::pair<Bytes, Bytes>> values;
  // One value for each place: a Merge of the batch for each.
  for (auto& [place, set] : sets) {
    TETRAD_ASSERT(!set.empty());
    reduce_tombstone_set(set);
    Bytes value;
    encode_tombstone_set(set, value);
    values.emplace_back(place, std::move(value));
  }
  return values;
}

}  // namespace tetrad::storage
