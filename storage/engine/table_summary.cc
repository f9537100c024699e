// SPDX-License-Identifier: Apache-2.0
// The collector of table properties and the reading of what it wrote.
//
//   tetrad.tables := varint count, (u32 incarnation, varint headers, varint range tombstones,
//                    varint rows, varint bytes)*
//   tetrad.dead   := varint count, (u32 incarnation, varint dead)*    absent in files of before
#include "storage/engine/table_summary.h"

#include <limits>

#include <rocksdb/table_properties.h>

#include "base/byte_io.h"
#include "storage/row/range_tombstones.h"

namespace tetrad::storage {
namespace {

constexpr char kMarksProperty[] = "tetrad.marks";
constexpr char kRowTombstonesProperty[] = "tetrad.row_tombstones";
constexpr char kTablesProperty[] = "tetrad.tables";
constexpr char kDeadProperty[] = "tetrad.dead";

class Collector final : public rocksdb::TablePropertiesCollector {
 public:
  const char* Name() const override { return "tetrad.summary"; }

  rocksdb::Status AddUserKey(const rocksdb::Slice& key, const rocksdb::Slice& value,
                             rocksdb::EntryType, rocksdb::SequenceNumber, uint64_t) override {
    const auto view = decode_storage_key({key.data(), key.size()});
    if (!view) return rocksdb::Status::OK();
    if (table_ == nullptr || table_incarnation_ != view->incarnation.value) {
      table_incarnation_ = view->incarnation.value;
      table_ = &summary_.tables[table_incarnation_];
    }
    table_->bytes += key.size() + value.size();
    const uint16_t bucket = bucket_of(view->incarnation, view->position);
    const BytesView bytes(value.data(), value.size());
    if (view->kind == KeyKind::kRangeTombstone) {
      ++table_->range_tombstones;
      if (!bytes.empty()) ++table_->dead;
      see_range_tombstones(bucket, bytes);
      return rocksdb::Status::OK();
    }
    ++(view->kind == KeyKind::kHeader ? table_->headers : table_->rows);
    if (const auto facts = facts_of(bytes)) {
      summary_.marks.raise(bucket, facts->latest_us);
      table_->dead += facts->dead;
      if (facts->has_deletion && view->kind == KeyKind::kRow)
        summary_.marks.see_row_tombstone(bucket);
    } else if (!bytes.empty()) {  // a bundle, or a removed key's empty value
      see_unknown(bucket);
    }
    return rocksdb::Status::OK();
  }

  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    properties->insert({kMarksProperty, summary_.marks.encode_marks()});
    properties->insert({kRowTombstonesProperty, summary_.marks.encode_row_tombstones()});
    Bytes tables;
    base::ByteWriter w(tables);
    w.varint(summary_.tables.size());
    for (const auto& [incarnation, counts] : summary_.tables) {
      w.u32(incarnation);
      w.varint(counts.headers);
      w.varint(counts.range_tombstones);
      w.varint(counts.rows);
      w.varint(counts.bytes);
    }
    properties->insert({kTablesProperty, tables});
    Bytes dead;
    base::ByteWriter d(dead);
    d.varint(summary_.tables.size());
    for (const auto& [incarnation, counts] : summary_.tables) {
      d.u32(incarnation);
      d.varint(counts.dead);
    }
    properties->insert({kDeadProperty, dead});
    return rocksdb::Status::OK();
  }

  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }

 private:
  void see_range_tombstones(uint16_t bucket, BytesView value) {
    std::vector<TombstoneEnd> set;
    if (!decode_tombstone_set(value, set)) {
      if (!value.empty()) see_unknown(bucket);
      return;
    }
    for (const TombstoneEnd& element : set)
      summary_.marks.raise(bucket, element.deletion.timestamp_us);
  }
  void see_unknown(uint16_t bucket) {
    summary_.marks.raise(bucket, std::numeric_limits<int64_t>::max());
    summary_.marks.see_row_tombstone(bucket);
  }

  TableSummary summary_;
  uint32_t table_incarnation_ = 0;
  TableCounts* table_ = nullptr;
};

class CollectorFactory final : public rocksdb::TablePropertiesCollectorFactory {
 public:
  const char* Name() const override { return "tetrad.summary"; }
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context) override {
    return new Collector;  // RocksDB takes it over
  }
};

}  // namespace

Result<void> TableSummary::join(const std::map<std::string, std::string>& properties) {
  const auto marks_property = properties.find(kMarksProperty);
  const auto tombstones_property = properties.find(kRowTombstonesProperty);
  const auto tables_property = properties.find(kTablesProperty);
  if (marks_property == properties.end() || tombstones_property == properties.end() ||
      tables_property == properties.end())
    return fail(ErrorCode::kCorruption, "table file without its summary");
  TETRAD_TRY_VOID(marks.join_marks(marks_property->second));
  TETRAD_TRY_VOID(marks.join_row_tombstones(tombstones_property->second));
  base::ByteReader r(tables_property->second);
  TETRAD_TRY(const uint64_t count, r.read_varint());
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint32_t incarnation, r.read_u32());
    TableCounts& counts = tables[incarnation];
    for (uint64_t* field :
         {&counts.headers, &counts.range_tombstones, &counts.rows, &counts.bytes}) {
      TETRAD_TRY(const uint64_t value, r.read_varint());
      *field += value;
    }
  }
  const auto dead_property = properties.find(kDeadProperty);
  if (dead_property == properties.end()) {  // perhaps
    for (auto& [incarnation, counts] : tables) ++counts.dead;
    return {};
  }
  base::ByteReader d(dead_property->second);
  TETRAD_TRY(const uint64_t dead_count, d.read_varint());
  for (uint64_t i = 0; i < dead_count; ++i) {
    TETRAD_TRY(const uint32_t incarnation, d.read_u32());
    TETRAD_TRY(const uint64_t value, d.read_varint());
    tables[incarnation].dead += value;
  }
  return {};
}

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_table_summary_collector() {
  return std::make_shared<CollectorFactory>();
}

}  // namespace tetrad::storage
