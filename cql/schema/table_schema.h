// SPDX-License-Identifier: Apache-2.0
// A table as CQL sees it: its columns with types, kinds and ids. Immutable, shared by snapshots
// until it changes.
//
// Statements, the store's keys and the metadata meet here: names are for CQL, ids for rows on disk,
// the incarnation for the keys of a store. Neither an id nor an incarnation is ever given to
// something else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "cql/schema/column_mask.h"
#include "cql/schema/index_schema.h"
#include "cql/schema/view_schema.h"
#include "cql/types/data_type.h"

namespace tetrad::cql {

/// The numbers travel in folds of aggregates (execute/aggregate_fold.h), the names in schema texts.
enum class ColumnKind : uint8_t { kPartitionKey, kClustering, kStatic, kRegular };

/// A column of a table or a view.
struct ColumnSchema {
  std::string name;
  TypePtr type;
  ColumnKind kind = ColumnKind::kRegular;
  /// Place among the partition key or clustering columns; among static and regular ones their place
  /// in columns().
  uint32_t position = 0;
  bool descending = false;  // of a clustering column
  /// Of a table WITH COMPACT STORAGE: statements do not know it, DROP COMPACT STORAGE shows it.
  bool hidden = false;
  /// What row records call it: from 1, never given to another column. One that is added again after
  /// a DROP, with a type that fits, gets its own back (plan_alter_table.cc). 0 for key columns.
  uint32_t id = 0;
  ColumnMaskPtr mask = nullptr;  // null: its values are shown to all who may read them

  bool is_primary_key() const {
    return kind == ColumnKind::kPartitionKey || kind == ColumnKind::kClustering;
  }
};

/// A column that was dropped: its cells up to dropped_time_us are no longer read. Kept for good, so
/// that its id stays taken and an ADD of the same name can be compared with what it was.
struct DroppedColumn {
  std::string name;
  std::string type_text;  // CQL, with user types expanded to tuples
  ColumnKind kind = ColumnKind::kRegular;
  int64_t dropped_time_us = 0;
  uint32_t id = 0;
};

// Names of the options in CQL and in schema texts, as Azure Cosmos DB calls them.
inline constexpr const char* kProvisionedThroughput = "cosmosdb_provisioned_throughput";
inline constexpr const char* kAutoscaleMaxThroughput = "cosmosdb_autoscale_max_throughput";

/// Request units per second for the clients of a table or keyspace; at most one of the two is not
/// 0.
struct ThroughputSetting {
  uint32_t provisioned = 0;    // 0: no limit
  uint32_t autoscale_max = 0;  // all of it is there always
  uint32_t ru_per_s() const { return provisioned != 0 ? provisioned : autoscale_max; }
  bool operator==(const ThroughputSetting&) const = default;
};

/// Options as Cassandra 5.0 has them, validated; kept and returned. Numbers that Tetrad acts on
/// have fields.
/// What Tetrad does not act on is kept so that drivers and tools that set it read it back.
struct TableOptions {
  std::string comment;
  int32_t default_time_to_live_s = 0;
  std::optional<int32_t>
      gc_grace_seconds;             // unset: 864000 is echoed, the purge horizon alone decides
  uint32_t max_partition_mb = 0;    // tetrad_max_partition_mb; 0: the cluster's setting
  uint32_t initial_partitions = 0;  // tetrad_initial_partitions; 0: as placement decides
  ThroughputSetting throughput;     // the table's own
  /// Everything else by name, in the text form of system_schema.tables ("caching" → its map and so
  /// on).
  double bloom_filter_fp_chance = 0.01, crc_check_chance = 1.0;
  bool cdc = false, allow_auto_snapshot = true, incremental_backups = true;
  int32_t max_index_interval = 2048, min_index_interval = 128, memtable_flush_period_in_ms = 0;
  std::string speculative_retry = "99p", additional_write_policy = "99p", read_repair = "BLOCKING",
              memtable;
  std::map<std::string, std::string> caching, compaction, compression;
  std::map<std::string, Bytes> extensions;
  bool operator==(const TableOptions&) const = default;
};

/// A table or a materialized view. Built once, then shared as TablePtr and never changed: a change
/// makes another one with a higher version.
class TableSchema {
 public:
  std::string keyspace, name;
  TableId id;
  TableIncarnation incarnation;
  /// Schema version of the last change of this table: what mutations and reads name.
  SchemaVersion version;
  TableOptions options;
  // In the order in which they were dropped.
  std::vector<DroppedColumn> dropped_columns;
  bool is_virtual = false;  // computed: system, system_schema, system_virtual_schema, tetrad …
  /// Rows have no marker: one without a value is not there. Without clustering columns what was
  /// declared is static and a clustering column and a value are hidden; with them and no value
  /// declared a value of the type empty is.
  bool is_compact_storage = false;
  bool is_counter = false;  // also when all its counters were dropped
  // Each above all ids that were ever given, dropped ones included.
  uint32_t next_column_id = 1;
  std::vector<IndexSchema> indexes;  // by name
  uint16_t next_index_id = 1;
  std::optional<ViewDefinition> view;  // set: it is a view
  std::vector<std::string> views;      // of this table, by name

  /// In Cassandra's order: partition key, clustering, then static, then regular columns, each of
  /// the last two by name.
  const std::vector<ColumnSchema>& columns() const { return columns_; }
  // Parts of columns(), each in its own order: key columns by position.
  std::span<const ColumnSchema> partition_key() const {
    return {columns_.data(), partition_key_count_};
  }
  std::span<const ColumnSchema> clustering() const {
    return {columns_.data() + partition_key_count_, clustering_count_};
  }
  std::span<const ColumnSchema> static_columns() const {
    return {columns_.data() + partition_key_count_ + clustering_count_, static_count_};
  }
  std::span<const ColumnSchema> regular_columns() const {
    return std::span(columns_).subspan(partition_key_count_ + clustering_count_ + static_count_);
  }
  bool has_static() const { return static_count_ != 0; }
  // Of a compact table without clustering columns (is_compact_storage).
  bool has_hidden_clustering() const {
    return clustering_count_ != 0 && clustering().front().hidden;
  }
  /// Null if there is none, or it is hidden.
  const ColumnSchema* find(std::string_view column_name) const;
  /// Null: no column has the id now. Of static and regular columns only.
  const ColumnSchema* find_by_id(uint32_t column_id) const;
  std::string qualified_name() const { return keyspace + "." + name; }
  /// Whether what was made for the other one is good for this one: the same table in the same
  /// version, and its user types are what they were. (ALTER TYPE changes no version of a table.)
  bool is_as(const TableSchema& other) const;

  /// Sorts into the order of columns() and sets positions of static and regular ones; key columns
  /// keep theirs. What was dropped is in dropped_columns already.
  void set_columns(std::vector<ColumnSchema> columns);

 private:
  std::vector<ColumnSchema> columns_;
  // columns_ is cut in four by the three counts; what is left is regular. by_name_ leaves out
  // hidden columns.
  size_t partition_key_count_ = 0, clustering_count_ = 0, static_count_ = 0;
  std::unordered_map<std::string, size_t> by_name_;
  std::vector<uint32_t> index_by_id_;  // column id → index + 1
};

/// The order of DESCRIBE, which is that of Cassandra's storage.
bool described_before(const ColumnSchema& a, const ColumnSchema& b);

using TablePtr = std::shared_ptr<const TableSchema>;

}  // namespace tetrad::cql
