// SPDX-License-Identifier: Apache-2.0
// The collector of table properties and the reading of what it wrote.
//
//   tetrad.tables      := varint count, (u32 incarnation, varint headers, varint range tombstones,
//                         varint rows, varint bytes)*     counts of keys, with all their versions
//   tetrad.dead        := varint count, (u32 incarnation, varint dead)*    absent in older files
//   tetrad.table_marks := varint count, (u32 incarnation, varint scattered, bytes marks)*
//                         scattered: range tombstones at their start that are not of one prefix;
//                         marks: see table_marks.cc
//   example: 01 00000007 00 00 02 d804   tetrad.tables: table 7 has two rows of 600 bytes
//   example: 01 00000007 03              tetrad.dead: three tombstones, or values with a TTL
//   example: 01 00000007 00 0c 06 01 01 0001 14 01 00 01 00 01 00   tetrad.table_marks
//
// Older files have tetrad.marks and tetrad.row_tombstones for all tables together in place of
// tetrad.table_marks, and all their range tombstones are where they start.
#include "storage/engine/table_summary.h"

#include <limits>

#include <rocksdb/table_properties.h>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "storage/index/claim.h"
#include "storage/row/range_tombstones.h"

namespace tetrad::storage {
namespace {

constexpr char kMarksOfAllProperty[] = "tetrad.marks";
constexpr char kRowTombstonesOfAllProperty[] = "tetrad.row_tombstones";
constexpr char kTablesProperty[] = "tetrad.tables";
constexpr char kDeadProperty[] = "tetrad.dead";
constexpr char kTableMarksProperty[] = "tetrad.table_marks";

using Properties = std::map<std::string, std::string>;

/// What a file has of one table.
struct InFile {
  uint64_t headers = 0, range_tombstones = 0, rows = 0, bytes = 0;
  uint64_t dead = 0;  // tombstones, and what has a TTL
  uint64_t scattered = 0;
  TableMarks marks;
};

class Collector final : public rocksdb::TablePropertiesCollector {
 public:
  const char* Name() const override { return "tetrad.summary"; }

  rocksdb::Status AddUserKey(const rocksdb::Slice& key, const rocksdb::Slice& value,
                             rocksdb::EntryType, rocksdb::SequenceNumber, uint64_t) override {
    const BytesView stored(key.data(), key.size());
    if (is_claim_key(stored) || is_view_task_key(stored)) return rocksdb::Status::OK();
    const auto view = decode_storage_key({key.data(), key.size()});
    if (!view || view->kind == KeyKind::kRegisters) return rocksdb::Status::OK();
    if (table_ == nullptr || table_incarnation_ != view->incarnation.value) {
      table_incarnation_ = view->incarnation.value;
      table_ = &tables_[table_incarnation_];
    }
    TETRAD_ASSERT(table_ != nullptr);
    table_->bytes += key.size() + value.size();
    const uint16_t bucket = bucket_of(view->incarnation, view->position);
    const BytesView bytes(value.data(), value.size());
    if (view->kind == KeyKind::kRangeTombstone) {
      ++table_->range_tombstones;
      if (!bytes.empty()) ++table_->dead;
      see_range_tombstones(bucket, view->clustering_key, bytes);
      return rocksdb::Status::OK();
    }
    ++(view->kind == KeyKind::kHeader ? table_->headers : table_->rows);
    if (const auto facts = facts_of(bytes)) {
      table_->marks.raise(bucket, facts->latest_us, budget_);
      table_->dead += facts->dead;
      if (facts->has_deletion && view->kind == KeyKind::kRow)
        table_->marks.see(bucket, TableMarks::kRowTombstones, budget_);
    } else if (!bytes.empty()) {  // a bundle, or a removed key's empty value
      see_unknown(bucket);
    }
    return rocksdb::Status::OK();
  }

  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    Bytes tables, dead, marks, encoded;
    base::ByteWriter t(tables), d(dead), m(marks);
    for (base::ByteWriter* w : {&t, &d, &m}) w->varint(tables_.size());
    for (const auto& [incarnation, table] : tables_) {
      t.u32(incarnation);
      t.varint(table.headers);
      t.varint(table.range_tombstones);
      t.varint(table.rows);
      t.varint(table.bytes);
      d.u32(incarnation);
      d.varint(table.dead);
      m.u32(incarnation);
      m.varint(table.scattered);
      encoded.clear();
      table.marks.encode(encoded);
      m.bytes(encoded);
    }
    properties->insert({kTablesProperty, tables});
    properties->insert({kDeadProperty, dead});
    properties->insert({kTableMarksProperty, marks});
    return rocksdb::Status::OK();
  }

  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }

 private:
  void see_range_tombstones(uint16_t bucket, BytesView place, BytesView value) {
    std::vector<TombstoneEnd> set;
    const auto start = start_at_place(place);
    if (!start || !decode_tombstone_set(value, set)) {
      if (!value.empty()) see_unknown(bucket);
      return;
    }
    const bool is_apart = place.starts_with(kStraddlingPlace);
    table_->marks.see(bucket,
                      is_apart ? TableMarks::kStraddlingTombstones : TableMarks::kRangeTombstones,
                      budget_);
    for (const TombstoneEnd& element : set) {
      table_->marks.raise(bucket, element.deletion.timestamp_us, budget_);
      if (!is_apart && !is_of_one_prefix(*start, element.end)) ++table_->scattered;
    }
  }
  /// What does not decode may hold anything: no Put over it, and every read looks for tombstones.
  void see_unknown(uint16_t bucket) {
    table_->marks.raise(bucket, std::numeric_limits<int64_t>::max(), budget_);
    for (const auto what : {TableMarks::kRowTombstones, TableMarks::kRangeTombstones,
                            TableMarks::kStraddlingTombstones})
      table_->marks.see(bucket, what, budget_);
    ++table_->scattered;
  }

  std::map<uint32_t, InFile> tables_;  // by incarnation
  MarkBudget budget_;
  uint32_t table_incarnation_ = 0;
  InFile* table_ = nullptr;
};

class CollectorFactory final : public rocksdb::TablePropertiesCollectorFactory {
 public:
  const char* Name() const override { return "tetrad.summary"; }
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context) override {
    return new Collector;  // RocksDB takes it over
  }
};

/// Null: the file has none.
const std::string* find(const Properties& properties, const char* name) {
  const auto found = properties.find(name);
  return found == properties.end() ? nullptr : &found->second;
}

Result<void> join_table_marks(BytesView encoded, TablesKnown& tables) {
  base::ByteReader r(encoded);
  TETRAD_TRY(const uint64_t count, r.read_varint());
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint32_t incarnation, r.read_u32());
    TETRAD_TRY(const uint64_t scattered, r.read_varint());
    TETRAD_TRY(const BytesView marks, r.read_bytes());
    TableKnowledge& table = tables.at({incarnation});
    table.contents.scattered_tombstones |= scattered > 0;
    if (TETRAD_MUTANT(marks_not_restored)) continue;
    TETRAD_TRY_VOID(table.marks.join(marks, tables.budget()));
  }
  return {};
}

}  // namespace

Result<void> join_summary(const Properties& properties, TablesKnown& tables) {
  const std::string* tables_property = find(properties, kTablesProperty);
  const std::string* marks = find(properties, kTableMarksProperty);
  const std::string* marks_of_all = find(properties, kMarksOfAllProperty);
  const std::string* row_tombstones_of_all = find(properties, kRowTombstonesOfAllProperty);
  const bool is_of_before = marks == nullptr;
  if (tables_property == nullptr ||
      (is_of_before && (marks_of_all == nullptr || row_tombstones_of_all == nullptr)))
    return fail(ErrorCode::kCorruption, "table file without its summary");
  const std::string* dead = find(properties, kDeadProperty);
  base::ByteReader r(*tables_property);
  TETRAD_TRY(const uint64_t count, r.read_varint());
  for (uint64_t i = 0; i < count; ++i) {
    TETRAD_TRY(const uint32_t incarnation, r.read_u32());
    TETRAD_TRY(const uint64_t headers, r.read_varint());
    TETRAD_TRY(const uint64_t range_tombstones, r.read_varint());
    for (int rows_and_bytes = 0; rows_and_bytes < 2; ++rows_and_bytes)
      TETRAD_TRY_VOID(r.read_varint());
    TableKnowledge& table = tables.at({incarnation});
    table.contents.headers |= headers > 0;
    if (dead == nullptr) ++table.dead;  // perhaps
    if (!is_of_before) continue;
    if (range_tombstones > 0)
      table.contents.range_tombstones = table.contents.scattered_tombstones = true;
    TETRAD_TRY_VOID(table.marks.join_marks_of_all(*marks_of_all, tables.budget()));
    TETRAD_TRY_VOID(
        table.marks.join_row_tombstones_of_all(*row_tombstones_of_all, tables.budget()));
  }
  if (!is_of_before) TETRAD_TRY_VOID(join_table_marks(*marks, tables));
  if (dead == nullptr) return {};
  base::ByteReader d(*dead);
  TETRAD_TRY(const uint64_t dead_count, d.read_varint());
  for (uint64_t i = 0; i < dead_count; ++i) {
    TETRAD_TRY(const uint32_t incarnation, d.read_u32());
    TETRAD_TRY(const uint64_t value, d.read_varint());
    tables.at({incarnation}).dead += value;
  }
  return {};
}

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_table_summary_collector() {
  return std::make_shared<CollectorFactory>();
}

}  // namespace tetrad::storage
