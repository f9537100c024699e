// SPDX-License-Identifier: Apache-2.0
// The highest timestamp of what is stored of some rows of a partition.
#include "storage/engine/latest_timestamp.h"

#include <algorithm>

#include "storage/row/range_tombstones.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

/// Looks at everything that may concern the rows: no deletion or expiry is applied, since what is
/// hidden has a timestamp, too.
class LatestReader {
 public:
  LatestReader(KeyView& view, const ReadCommand& command) : view_(view), command_(command) {
    append_partition_prefix(prefix_, command.incarnation, command.position, command.partition_key);
  }

  Result<int64_t> run() {
    TETRAD_TRY_VOID(see_key(key_of(KeyKind::kHeader, {})));
    TETRAD_TRY_VOID(see_range_tombstones());
    for (const Bytes& row : command_.rows) TETRAD_TRY_VOID(see_key(key_of(KeyKind::kRow, row)));
    if (command_.rows.empty()) TETRAD_TRY_VOID(see_slices());
    return latest_us_;
  }

 private:
  Bytes key_of(KeyKind kind, BytesView clustering_key) const {
    Bytes key = prefix_;
    key.push_back(static_cast<char>(kind));
    key.append(clustering_key);
    return key;
  }

  void see(int64_t timestamp_us) { latest_us_ = std::max(latest_us_, timestamp_us); }

  // Cell by cell, without building a record.
  Result<void> see_record(BytesView value) {
    RowRecordReader reader;
    TETRAD_TRY_VOID(reader.open(value));
    see(reader.liveness().timestamp_us);
    see(reader.deletion().timestamp_us);
    Cell cell;
    while (reader.next(cell)) see(cell.timestamp_us);
    return reader.status();
  }

  Result<void> see_key(BytesView key) {
    TETRAD_TRY(const auto value, view_.get(key));
    if (!value) return {};
    return see_record(*value);
  }

  bool concerns(BytesView start, BytesView end) const {
    if (!command_.rows.empty())
      return std::ranges::any_of(command_.rows,
                                 [&](const Bytes& row) { return start <= row && row < end; });
    if (command_.clustering_ranges.empty()) return true;
    return std::ranges::any_of(command_.clustering_ranges, [&](const ClusteringRange& range) {
      return start < range.end && range.start < end;
    });
  }

  Result<void> see_range_tombstones() {
    const Bytes first = key_of(KeyKind::kRangeTombstone, {});
    // All of the partition: a range tombstone that begins before a row may reach over it.
    const auto it = view_.iterate({first, key_of(KeyKind::kRow, {}), true, false});
    std::vector<TombstoneEnd> set;
    for (it->seek(first); it->valid(); it->next()) {
      set.clear();
      TETRAD_TRY_VOID(decode_tombstone_set(it->value(), set));
      TETRAD_TRY(const BytesView start, start_at_place(it->key().substr(first.size())));
      for (const TombstoneEnd& e : set)
        if (concerns(start, e.end)) see(e.deletion.timestamp_us);
    }
    return it->status();
  }

  Result<void> see_slices() {
    // One range with its defaults: from the first key to the last.
    static const std::vector<ClusteringRange> everything(1);
    const auto& wanted = command_.clustering_ranges;
    for (const ClusteringRange& range : wanted.empty() ? everything : wanted) {
      if (range.empty()) continue;
      const Bytes first = key_of(KeyKind::kRow, range.start);
      const auto it = view_.iterate({first, key_of(KeyKind::kRow, range.end), true, false});
      for (it->seek(first); it->valid(); it->next()) TETRAD_TRY_VOID(see_record(it->value()));
      TETRAD_TRY_VOID(it->status());
    }
    return {};
  }

  KeyView& view_;
  const ReadCommand& command_;
  Bytes prefix_;
  int64_t latest_us_ = kNoTimestamp;
};

}  // namespace

Result<int64_t> latest_timestamp_of(KeyView& view, const ReadCommand& command) {
  return LatestReader(view, command).run();
}

}  // namespace tetrad::storage
