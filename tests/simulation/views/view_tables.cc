// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/views/view_tables.h"

#include "partitioner/token.h"

namespace tetrad::simulation {
namespace {

/// The clustering key of the view by colour: no row's text has a slash.
Bytes joined(BytesView key, BytesView row) { return Bytes(key) + "/" + Bytes(row); }

class TestView final : public storage::ViewMaker {
 public:
  TestView(uint8_t number, bool has_condition, TableIncarnation incarnation)
      : number_(number), has_condition_(has_condition), incarnation_(incarnation) {
    columns_.push_back({kValueColumn, 1, false});
    if (number == kRowView) columns_.push_back({kColourColumn, 2, false});
  }
  TableIncarnation incarnation() const override { return incarnation_; }
  SchemaVersion schema_version() const override { return {1}; }
  std::optional<uint32_t> key_column() const override {
    if (number_ == kRowView) return std::nullopt;
    return kColourColumn;
  }
  const std::vector<storage::ViewColumn>& columns() const override { return columns_; }
  std::optional<storage::ViewPlace> place_of(const storage::BaseRowName& row,
                                             BytesView key_value) const override {
    if (has_condition_ && row.clustering_key == kLeftOut) return std::nullopt;
    storage::ViewPlace place;
    if (number_ == kRowView) {
      place.partition_key = row.clustering_key;
      place.clustering_key = row.partition_key;
    } else {
      if (key_value.empty()) return std::nullopt;
      place.partition_key = key_value;
      place.clustering_key = joined(row.partition_key, row.clustering_key);
    }
    place.position = partitioner::position_of(place.partition_key);
    return place;
  }
  std::optional<storage::ViewOrigin> origin_of(
      const storage::BaseRowName& view_row) const override {
    storage::ViewOrigin origin;
    if (number_ == kRowView) {
      origin.partition_key = view_row.clustering_key;
      origin.clustering_key = view_row.partition_key;
    } else {
      const size_t slash = view_row.clustering_key.find('/');
      if (slash == BytesView::npos) return std::nullopt;
      origin.partition_key = view_row.clustering_key.substr(0, slash);
      origin.clustering_key = view_row.clustering_key.substr(slash + 1);
      origin.key_value = view_row.partition_key;
    }
    origin.position = partitioner::position_of(origin.partition_key);
    return origin;
  }

 private:
  const uint8_t number_;
  const bool has_condition_;
  const TableIncarnation incarnation_;
  std::vector<storage::ViewColumn> columns_;
};

}  // namespace

TableId view_table_id(uint8_t number) {
  TableId id;
  id.value.octets[0] = number;
  return id;
}

replication::SchemaChange::NewTable view_table(uint8_t number) {
  replication::SchemaChange::NewTable table;
  table.id = view_table_id(number);
  table.keyspace = "ks";
  table.name = number == kBaseTable ? "t" : number == kColourView ? "c" : "r";
  table.max_partition_mb = 1;
  return table;
}

std::optional<TableIncarnation> incarnation_of(const replication::MetaState& state,
                                               uint8_t number) {
  const replication::TableInfo* table = state.table(view_table_id(number));
  if (table == nullptr) return std::nullopt;
  return table->incarnation;
}

storage::ViewMakersPtr view_makers_of(const replication::MetaState& state,
                                      const replication::TableInfo& table) {
  if (table.name != "t") return nullptr;
  const auto text = state.schema_objects.find(kBaseObject);
  if (text == state.schema_objects.end() || text->second == kNoViews) return nullptr;
  const bool has_condition = text->second == kConditionalViews;
  auto makers = std::make_shared<storage::ViewMakers>();
  for (const uint8_t view : {kColourView, kRowView})
    if (const auto incarnation = incarnation_of(state, view))
      makers->push_back(std::make_shared<TestView>(view, has_condition, *incarnation));
  std::ranges::sort(*makers, {}, &storage::ViewMaker::incarnation);
  if (makers->empty()) return nullptr;
  return makers;
}

void add_shown(const storage::ReadResult& result, int64_t now_s, ShownRows& out) {
  for (const auto& partition : result.partitions) {
    for (const auto& row : partition.rows) {
      const auto record = storage::decode_row_record(row.record);
      TETRAD_ASSERT(record.has_value());
      std::map<uint32_t, Bytes> values;
      for (const storage::Cell& cell : record->cells)
        if (cell.live_at(now_s)) values[cell.column_id] = cell.value;
      if (values.empty() && !record->liveness.live_at(now_s)) continue;
      out[{Bytes(partition.partition_key), Bytes(row.clustering_key)}] = std::move(values);
    }
  }
}

ShownRows shown_by_view(uint8_t view, bool has_condition, const ShownRows& base) {
  ShownRows out;
  for (const auto& [place, values] : base) {
    const auto& [key, row] = place;
    if (has_condition && row == kLeftOut) continue;
    if (view == kRowView) {
      out[{row, key}] = values;
      continue;
    }
    const auto colour = values.find(kColourColumn);
    if (colour == values.end()) continue;
    std::map<uint32_t, Bytes> shown;
    if (const auto value = values.find(kValueColumn); value != values.end())
      shown[1] = value->second;
    out[{colour->second, joined(key, row)}] = std::move(shown);
  }
  return out;
}

}  // namespace tetrad::simulation
