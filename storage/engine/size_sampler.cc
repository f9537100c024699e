// SPDX-License-Identifier: Apache-2.0
// Samples of sizes: key by key in a small range, from file indexes in a large one.
#include "storage/engine/size_sampler.h"

#include <rocksdb/db.h>

#include "base/assert.h"
#include "storage/engine/range_export.h"
#include "storage/engine/rocks_view.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

// Estimates of memtables are wrong by some MiB, whatever the range: below this they are not
// trusted.
constexpr uint64_t kScannedBytesMax = 16u << 20;
constexpr size_t kSampleCountMax = 4096;
constexpr int kKeysPeeked = 16;

using Wide = unsigned __int128;

Wide wide_of(RingPosition p) {
  return (static_cast<Wide>(static_cast<uint64_t>(p.token) ^ (uint64_t{1} << 63)) << 64) | p.hash;
}
RingPosition position_of_wide(Wide w) {
  return {static_cast<int64_t>(static_cast<uint64_t>(w >> 64) ^ (uint64_t{1} << 63)),
          static_cast<uint64_t>(w)};
}

uint64_t estimated_bytes(rocksdb::DB& db, TableIncarnation incarnation, const RingRange& range) {
  if (range.empty()) return 0;
  const KeyRange keys = keys_of_range(incarnation, range);
  const rocksdb::Range wanted(keys.start, keys.end);
  rocksdb::SizeApproximationOptions options;
  options.include_memtables = true;
  options.include_files = true;
  options.files_size_error_margin = 0.1;  // of large ranges: then few index blocks are read
  uint64_t bytes = 0;
  if (!db.GetApproximateSizes(options, db.DefaultColumnFamily(), &wanted, 1, &bytes).ok()) return 0;
  return bytes;
}

struct Part {
  RingRange range;
  uint64_t bytes;
};

/// Halves parts until none is heavier than `bytes_max`, in ring order. A part of one position
/// cannot be halved.
std::vector<Part> halve(rocksdb::DB& db, TableIncarnation incarnation, const RingRange& range,
                        uint64_t total, uint64_t bytes_max) {
  std::vector<Part> open{{range, total}}, parts;
  while (!open.empty()) {
    const Part part = open.back();
    open.pop_back();
    const Wide start = wide_of(part.range.start), end = wide_of(part.range.end);
    if (part.bytes <= bytes_max || end - start <= 1 || parts.size() > kSampleCountMax) {
      parts.push_back(part);
      continue;
    }
    const RingPosition middle = position_of_wide(start + (end - start) / 2);
    TETRAD_ASSERT(part.range.start < middle && middle < part.range.end);
    const RingRange left{part.range.start, middle}, right{middle, part.range.end};
    open.push_back({right, estimated_bytes(db, incarnation, right)});
    open.push_back({left, estimated_bytes(db, incarnation, left)});
  }
  return parts;
}

}  // namespace

uint64_t approximate_bytes_of(rocksdb::DB& db, TableIncarnation incarnation,
                              const RingRange& range) {
  uint64_t bytes = estimated_bytes(db, incarnation, range);
  if (bytes > 0 || range.empty()) return bytes;
  // The estimate of a memtable is too coarse for a few keys among many.
  KeyRange keys = keys_of_range(incarnation, range);
  RocksView view(db, {.memory_only = true, .steps_max = kKeysPeeked, .fill_cache = false});
  const Bytes start = keys.start;
  const auto it = view.iterate({std::move(keys.start), std::move(keys.end), false, false});
  for (it->seek(start); it->valid(); it->next())
    if (!is_registers_key(it->key())) bytes += it->key().size() + it->value().size();
  return bytes;
}

Result<std::vector<SizeSample>> sample_sizes_of(rocksdb::DB& db, TableIncarnation incarnation,
                                                const RingRange& range, size_t count) {
  RocksView view(db, {.fill_cache = false});
  count = std::clamp<size_t>(count, 1, kSampleCountMax);
  const uint64_t total = estimated_bytes(db, incarnation, range);
  if (total <= kScannedBytesMax) return scan_sizes(view, incarnation, range, count);

  KeyRange keys = keys_of_range(incarnation, range);
  const auto it = view.iterate({std::move(keys.start), std::move(keys.end), false, true});
  std::vector<SizeSample> samples;
  uint64_t pending = 0;
  for (const Part& part : halve(db, incarnation, range, total, total / count)) {
    pending += part.bytes;
    it->seek_before(keys_of_range(incarnation, part.range).end);  // the part's last key
    if (!it->valid()) continue;
    const auto key = decode_storage_key(it->key());
    if (!key) return fail(ErrorCode::kCorruption, "a key that is no row's");
    if (!samples.empty() && samples.back().position >= key->position) {  // nothing in this part
      samples.back().bytes += std::exchange(pending, 0);
      continue;
    }
    TETRAD_ASSERT(samples.empty() || samples.back().position < key->position);
    samples.push_back({key->position, std::exchange(pending, 0)});
  }
  TETRAD_TRY_VOID(it->status());
  return samples;
}

}  // namespace tetrad::storage
