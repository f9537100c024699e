// SPDX-License-Identifier: Apache-2.0
// From a row of a base table to the place of its row in a view, and back. Both rows have the same
// values in their keys; the view has one column more in its key at most (key_column()), in another
// order. A key is taken apart into values (read_key) and put together in the other table's order.
//
// A view with conditions has no place for a base row that they leave out (view_condition.h).
//
// Clustering keys may lose bytes in the ordered encoding; a row that has lost some keeps its values
// in a key cell, which is read first here and made anew for the other table.
#include "cql/views/view_maker.h"

#include <algorithm>

#include "base/byte_io.h"
#include "cql/grammar/parser.h"
#include "cql/prepare/view_condition.h"
#include "cql/schema/schema_text.h"
#include "cql/schema/state_types.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"

namespace tetrad::cql {
namespace {

/// Values of a row's key columns, in the order of its table's key.
struct Key {
  std::vector<BytesView> values;
  Bytes decoded;  // of clustering values
};

/// Takes the values of a key cell apart: join_tuple().
bool split_key_cell(BytesView cell, size_t count, std::vector<BytesView>& out) {
  for (size_t i = 0; i < count; ++i) {
    if (cell.size() < sizeof(int32_t)) return false;
    const auto size = base::load_big_endian<int32_t>(cell.data());
    cell.remove_prefix(sizeof(int32_t));
    if (size < 0 || static_cast<size_t>(size) > cell.size()) return false;
    out.push_back(cell.substr(0, static_cast<size_t>(size)));
    cell.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

/// One view of one base table, made of the schemas of both; immutable. A place that is unset: the
/// row cannot be in the view, or its key does not decode.
class SchemaView final : public storage::ViewMaker {
 public:
  SchemaView(const TableSchema& base, const TableSchema& view, ViewConditionPtr condition,
             TableIncarnation incarnation)
      : incarnation_(incarnation),
        version_(view.version),
        condition_(std::move(condition)),
        partition_count_(base.partition_key().size()) {
    for (const ColumnSchema& column : base.clustering())
      base_clustering_.push_back({column.type, column.descending});
    for (const ColumnSchema& column : view.clustering())
      view_clustering_.push_back({column.type, column.descending});
    for (const ColumnSchema& column : view.partition_key())
      partition_.push_back(part_of(base, column));
    for (const ColumnSchema& column : view.clustering())
      clustering_.push_back(part_of(base, column));
    for (const ColumnSchema& column : view.columns()) {
      if (column.is_primary_key()) continue;
      const ColumnSchema* const of_base = base.find(column.name);
      if (of_base == nullptr) continue;
      storage::ViewColumn& added = columns_.emplace_back();
      added.base_id = of_base->id;
      added.view_id = column.id;
      added.has_elements = column.type->is_multi_cell();
      for (const DroppedColumn& dropped : base.dropped_columns)
        if (dropped.id == of_base->id) added.dropped_us = dropped.dropped_time_us;
    }
    std::ranges::sort(columns_, {}, &storage::ViewColumn::view_id);
  }

  TableIncarnation incarnation() const override { return incarnation_; }
  SchemaVersion schema_version() const override { return version_; }
  std::optional<uint32_t> key_column() const override { return key_column_; }
  bool may_have_key_cells() const override {
    return std::ranges::any_of(view_clustering_,
                               [](const auto& column) { return can_be_lossy(*column.type); });
  }
  const std::vector<storage::ViewColumn>& columns() const override { return columns_; }

  std::optional<storage::ViewPlace> place_of(const storage::BaseRowName& row,
                                             BytesView key_value) const override {
    Key key;
    if (!read_key(row, partition_count_, base_clustering_, key)) return std::nullopt;
    if (condition_ != nullptr && !condition_->matches(key.values)) return std::nullopt;
    const auto value_of = [&](const Part& part) {
      return part.from_base ? key.values[part.place] : key_value;
    };
    storage::ViewPlace place;
    std::vector<BytesView> components;
    for (const Part& part : partition_) components.push_back(value_of(part));
    auto partition_key = partitioner::serialize_partition_key(components);
    // Longer than a key may be. An empty one, which no client may write, is a view's: as Cassandra.
    if (!partition_key) return std::nullopt;
    place.partition_key = std::move(*partition_key);
    place.position = partitioner::position_of(place.partition_key);
    std::vector<OptionalView> originals;
    bool is_lossy_key = false;
    size_t size = 0;
    for (const Part& part : clustering_) {
      const BytesView value = value_of(part);
      size += value.size();
      if (!append_ordered(place.clustering_key, *part.type, value, part.descending))
        return std::nullopt;
      is_lossy_key = is_lossy_key || (can_be_lossy(*part.type) && is_lossy(*part.type, value));
      originals.emplace_back(value);
    }
    if (size > partitioner::kKeyComponentBytesMax) return std::nullopt;
    if (is_lossy_key) place.key_cell = join_tuple(originals);
    return place;
  }

  std::optional<storage::ViewOrigin> origin_of(
      const storage::BaseRowName& view_row) const override {
    Key key;
    if (!read_key(view_row, partition_.size(), view_clustering_, key)) return std::nullopt;
    std::vector<BytesView> of_base(partition_count_ + base_clustering_.size());
    storage::ViewOrigin origin;
    for (size_t i = 0; i < key.values.size(); ++i) {
      const Part& part = i < partition_.size() ? partition_[i] : clustering_[i - partition_.size()];
      if (part.from_base)
        of_base[part.place] = key.values[i];
      else
        origin.key_value = key.values[i];
    }
    const auto middle = of_base.begin() + static_cast<ptrdiff_t>(partition_count_);
    auto partition_key =
        partitioner::serialize_partition_key(std::vector<BytesView>(of_base.begin(), middle));
    if (!partition_key || partition_key->empty()) return std::nullopt;
    origin.partition_key = std::move(*partition_key);
    origin.position = partitioner::position_of(origin.partition_key);
    bool is_lossy_key = false;
    std::vector<OptionalView> originals;
    for (size_t i = 0; i < base_clustering_.size(); ++i) {
      const Clustering& column = base_clustering_[i];
      const BytesView value = of_base[partition_count_ + i];
      if (!append_ordered(origin.clustering_key, *column.type, value, column.descending))
        return std::nullopt;
      is_lossy_key = is_lossy_key || (can_be_lossy(*column.type) && is_lossy(*column.type, value));
      originals.emplace_back(value);
    }
    if (is_lossy_key) origin.key_cell = join_tuple(originals);
    return origin;
  }

 private:
  /// How one clustering column is encoded.
  struct Clustering {
    TypePtr type;
    bool descending;
  };
  /// A column of the view's key: one of the base's key, or the view's key column.
  struct Part {
    TypePtr type;
    bool descending = false;
    bool from_base = true;
    size_t place = 0;  // in Key::values of the base
  };

  Part part_of(const TableSchema& base, const ColumnSchema& column) {
    Part part;
    part.type = column.type;
    part.descending = column.descending;
    const ColumnSchema* const of_base = base.find(column.name);
    if (of_base == nullptr) return part;  // such a schema is not made
    if (of_base->kind == ColumnKind::kPartitionKey) {
      part.place = of_base->position;
    } else if (of_base->kind == ColumnKind::kClustering) {
      part.place = partition_count_ + of_base->position;
    } else {
      part.from_base = false;
      key_column_ = of_base->id;
    }
    return part;
  }

  /// Of a row of the base, or of the view.
  static bool read_key(const storage::BaseRowName& row, size_t partition_count,
                       const std::vector<Clustering>& clustering, Key& key) {
    auto components = partitioner::split_partition_key(row.partition_key, partition_count);
    if (partition_count == 1) {
      key.values.push_back(row.partition_key);
    } else if (components) {
      key.values = std::move(*components);
    } else {
      return false;
    }
    const size_t before = key.values.size();
    if (!row.key_cell.empty()) {
      if (split_key_cell(row.key_cell, clustering.size(), key.values)) return true;
      key.values.resize(before);
    }
    BytesView rest = row.clustering_key;
    std::vector<size_t> sizes;
    for (const Clustering& column : clustering) {
      const size_t begun = key.decoded.size();
      const auto present = decode_ordered_to(key.decoded, rest, *column.type, column.descending);
      if (!present || !*present) return false;
      sizes.push_back(key.decoded.size() - begun);
    }
    // Views are made once all is decoded: `decoded` may have moved while it grew.
    const char* at = key.decoded.data();
    for (const size_t size : sizes) {
      key.values.emplace_back(at, size);
      at += size;
    }
    return true;
  }

  const TableIncarnation incarnation_;
  const SchemaVersion version_;
  const ViewConditionPtr condition_;
  const size_t partition_count_;
  std::vector<Clustering> base_clustering_, view_clustering_;
  std::vector<Part> partition_, clustering_;
  std::vector<storage::ViewColumn> columns_;
  std::optional<uint32_t> key_column_;
};

/// Most views have none: IS NOT NULL says nothing here, and nothing else is read for it.
Result<ViewConditionPtr> condition_of(const TableSchema& view, const TablePtr& base,
                                      const replication::MetaState& state) {
  TETRAD_TRY(const auto relations, parse_where(view.view->where));
  if (std::ranges::all_of(relations, [](const ast::Relation& relation) {
        return relation.op == ast::RelationOperator::kIsNotNull;
      }))
    return nullptr;
  // Of the schema it needs the user types alone.
  replication::MetaState types;
  const std::string keyspace = keyspace_key(base->keyspace), first = type_key(base->keyspace, "");
  if (const auto found = state.schema_objects.find(keyspace); found != state.schema_objects.end())
    types.schema_objects.put(keyspace, found->second);
  for (auto type = state.schema_objects.lower_bound(first);
       type != state.schema_objects.end() && type->first.starts_with(first); ++type)
    types.schema_objects.put(type->first, type->second);
  return ViewCondition::read(view.view->where, base, *SchemaSnapshot::build(types, nullptr, {}));
}

}  // namespace

storage::ViewMakersPtr view_makers_of(const replication::MetaState& state,
                                      const replication::TableInfo& base) {
  const auto text = state.schema_objects.find(table_key(base.keyspace, base.name));
  // Most tables have no views: their texts, which do not say this, are not read.
  if (text == state.schema_objects.end() || text->second.find("\"views\"") == std::string::npos)
    return nullptr;
  const UdtResolver types = types_of(state, base.keyspace);
  const auto schema = read_table_text(text->second, types);
  if (!schema) return nullptr;
  auto makers = std::make_shared<storage::ViewMakers>();
  for (const std::string& name : (*schema)->views) {
    const auto view_text = state.schema_objects.find(table_key(base.keyspace, name));
    if (view_text == state.schema_objects.end()) continue;
    const auto view = read_table_text(view_text->second, types);
    const replication::TableInfo* info = view ? state.table((*view)->id) : nullptr;
    if (info == nullptr || !(*view)->view) continue;
    auto condition = condition_of(**view, *schema, state);
    if (!condition) continue;  // as a text that does not read
    makers->push_back(
        std::make_shared<SchemaView>(**schema, **view, std::move(*condition), info->incarnation));
  }
  if (makers->empty()) return nullptr;
  // By incarnation, so that the list does not depend on the order of names.
  std::ranges::sort(*makers, {}, &storage::ViewMaker::incarnation);
  return makers;
}

}  // namespace tetrad::cql
