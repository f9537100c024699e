// SPDX-License-Identifier: Apache-2.0
// What compactions drop: keys of retired incarnations, and values of cells that expired long ago.
#include "storage/engine/tombstone_filter.h"

#include <algorithm>

#include <rocksdb/compaction_filter.h>

#include "storage/row/row_record.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

/// Of one compaction: it sees the state of when that began. Runs on RocksDB's threads.
class TombstoneFilter final : public rocksdb::CompactionFilter {
 public:
  TombstoneFilter(std::shared_ptr<FilterState> state, std::set<uint32_t> retired)
      : state_(std::move(state)),
        retired_(std::move(retired)),
        without_views_(state_->without_views()),
        makers_(state_->makers()),
        expired_before_s_(state_->now_s() - kExpiredValueMargin_s) {}

  const char* Name() const override { return "tetrad.tombstones"; }

  Decision FilterV2(int, const rocksdb::Slice& key, ValueType type, const rocksdb::Slice& value,
                    std::string* new_value, std::string*) const override {
    const BytesView stored(key.data(), key.size());
    if (is_claim_key(stored)) return is_wanted(stored, {value.data(), value.size()});
    if (is_view_task_key(stored)) return is_of_view(stored);
    // What is not understood stays: a key of the store's own, or of a newer program.
    const auto view = decode_storage_key(stored);
    if (!view) return Decision::kKeep;
    if (retired_.contains(view->incarnation.value)) return Decision::kRemove;
    const bool is_record = view->kind == KeyKind::kHeader || view->kind == KeyKind::kRow;
    // Merge operands are left alone; they are joined first.
    if (type != ValueType::kValue || !is_record) return Decision::kKeep;
    const BytesView record({value.data(), value.size()});
    return needs_change(record) ? change(record, *new_value) : Decision::kKeep;
  }

 private:
  /// Of a claim.
  Decision is_wanted(BytesView key, BytesView value) const {
    const auto claim = decode_claim(key, value);
    if (!claim) return Decision::kKeep;
    if (retired_.contains(claim->incarnation.value)) return Decision::kRemove;
    const auto maker = makers_.find(claim->incarnation.value);
    // What is not below next_index_id() is of an index that this schema is too old for.
    if (maker == makers_.end() || claim->index_id >= maker->second->next_index_id())
      return Decision::kKeep;
    return std::ranges::binary_search(maker->second->index_ids(), claim->index_id)
               ? Decision::kKeep
               : Decision::kRemove;
  }
  /// Of a task or a note.
  Decision is_of_view(BytesView key) const {
    const auto place = decode_view_task_key(key);
    // Tasks of a base table that was dropped, or that has no views any more.
    const bool gone = place && (retired_.contains(place->base.value) ||
                                without_views_.contains(place->base.value));
    return gone ? Decision::kRemove : Decision::kKeep;
  }
  bool expired_for_long(const Cell& cell) const {
    return cell.kind == CellKind::kValue && cell.ttl_s > 0 && cell.expiry_s < expired_before_s_;
  }
  bool needs_change(BytesView record) const {
    RowRecordReader reader;
    if (!reader.open(record)) return false;
    Cell cell;
    bool change = false;
    // Read without building a record: most values need no change.
    while (!change && reader.next(cell)) change = expired_for_long(cell) && !cell.value.empty();
    return change;
  }
  Decision change(BytesView value, std::string& new_value) const {
    auto record = decode_row_record(value);
    if (!record) return Decision::kKeep;
    for (Cell& cell : record->cells)
      // Its times stay, as a tombstone of the cell: it still hides older values elsewhere. The
      // sweep takes it away (rule 18).
      if (expired_for_long(cell)) cell.value = {};
    new_value.clear();
    encode_row_record(*record, new_value);
    return Decision::kChangeValue;
  }

  const std::shared_ptr<FilterState> state_;
  const std::set<uint32_t> retired_, without_views_;
  const FilterState::Makers makers_;
  const int64_t expired_before_s_;
};

class TombstoneFilterFactory final : public rocksdb::CompactionFilterFactory {
 public:
  explicit TombstoneFilterFactory(std::shared_ptr<FilterState> state) : state_(std::move(state)) {}
  const char* Name() const override { return "tetrad.tombstones"; }

  bool ShouldFilterTableFileCreation(rocksdb::TableFileCreationReason reason) const override {
    return reason == rocksdb::TableFileCreationReason::kCompaction ||
           // A flush is filtered only for retired tables, so that what was dropped never comes to a
           // file.
           (reason == rocksdb::TableFileCreationReason::kFlush && !state_->retired().empty());
  }
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context&) override {
    return std::make_unique<TombstoneFilter>(state_, state_->retired());
  }

 private:
  const std::shared_ptr<FilterState> state_;
};

}  // namespace

std::shared_ptr<rocksdb::CompactionFilterFactory> make_tombstone_filter(
    std::shared_ptr<FilterState> state) {
  return std::make_shared<TombstoneFilterFactory>(std::move(state));
}

}  // namespace tetrad::storage
