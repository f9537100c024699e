// SPDX-License-Identifier: Apache-2.0
// Which claims (storage/index/claim.h) a row or a partition has in the indexes of its table: the
// values that are live in the record, through IndexTerms. Indexes are grouped by the kind of their
// column, as each kind is found in another place: the partition's key, the clustering key, the
// partition's header, the row's record. A value that is not live has no claim.
#include "cql/index/claim_maker.h"

#include <algorithm>

#include "cql/index/index_options.h"
#include "cql/index/index_terms.h"
#include "cql/schema/schema_text.h"
#include "cql/schema/state_types.h"

namespace tetrad::cql {
namespace {

// The cell under kKeyCellColumnId stands for the row's key and is no value.
bool is_live_value(const storage::Cell& cell, int64_t now_s) {
  return cell.column_id != storage::kKeyCellColumnId && cell.live_at(now_s);
}

/// Whether a record has something live. False where it does not decode.
bool has_live(BytesView record, int64_t now_s) {
  storage::RowRecordReader reader;
  if (record.empty() || !reader.open(record)) return false;
  if (reader.liveness().live_at(now_s)) return true;
  storage::Cell cell;
  while (reader.next(cell))
    if (is_live_value(cell, now_s)) return true;
  return false;
}

class TableClaims final : public storage::ClaimMaker {
 public:
  TableClaims(const std::vector<IndexTerms>& terms, uint16_t next_index_id)
      : next_index_id_(next_index_id) {
    for (const IndexTerms& of_index : terms) {
      index_ids_.push_back(of_index.index_id());
      switch (of_index.column_kind()) {
        case ColumnKind::kPartitionKey:
          partition_key_.push_back(of_index);
          break;
        case ColumnKind::kClustering:
          clustering_.push_back(of_index);
          break;
        case ColumnKind::kStatic:
          static_.push_back(of_index);
          break;
        case ColumnKind::kRegular:
          regular_.push_back(of_index);
          break;
      }
    }
    std::ranges::sort(index_ids_);
  }

  const std::vector<uint16_t>& index_ids() const override { return index_ids_; }
  uint16_t next_index_id() const override { return next_index_id_; }

  void of_partition(BytesView partition_key, BytesView header, bool has_rows, int64_t now_s,
                    storage::ClaimSink& sink) const override {
    if (!partition_key_.empty() && (has_rows || has_live(header, now_s))) {
      for (const IndexTerms& terms : partition_key_) {
        std::vector<Bytes> components;
        (void)terms.add_partition_key(partition_key, components);
        give(terms, components, sink);
      }
    }
    if (!static_.empty() && !header.empty()) claim_cells(static_, header, now_s, sink);
  }

  void of_row(BytesView clustering_key, BytesView record, int64_t now_s,
              storage::ClaimSink& sink) const override {
    if (!clustering_.empty() && has_live(record, now_s)) {
      for (const IndexTerms& terms : clustering_) {
        std::vector<Bytes> components;
        (void)terms.add_clustering_key(clustering_key, components);
        give(terms, components, sink);
      }
    }
    if (!regular_.empty()) claim_cells(regular_, record, now_s, sink);
  }

 private:
  /// What has no term, such as a number of too many digits, has no claim: no query can name it.
  static void give(const IndexTerms& terms, const std::vector<Bytes>& components,
                   storage::ClaimSink& sink) {
    for (const Bytes& component : components) sink.take(terms.index_id(), component);
  }

  static void claim_cells(const std::vector<IndexTerms>& indexes, BytesView record, int64_t now_s,
                          storage::ClaimSink& sink) {
    storage::RowRecordReader reader;
    if (!reader.open(record)) return;
    storage::Cell cell;
    while (reader.next(cell)) {
      if (!is_live_value(cell, now_s)) continue;
      for (const IndexTerms& terms : indexes) {
        if (terms.column_id() != cell.column_id) continue;
        std::vector<Bytes> components;
        (void)terms.add_cell(cell, components);
        give(terms, components, sink);
      }
    }
  }

  std::vector<IndexTerms> partition_key_, clustering_, static_, regular_;
  std::vector<uint16_t> index_ids_;
  const uint16_t next_index_id_;
};

}  // namespace

storage::ClaimMakerPtr claim_maker_of(const replication::MetaState& state,
                                      const replication::TableInfo& table) {
  // Null: the table never had an index, so no claim of it can be there.
  const auto text = state.schema_objects.find(table_key(table.keyspace, table.name));
  // Most tables never had an index: their texts, which do not say this, are not read.
  if (text == state.schema_objects.end() || text->second.find("next_index_id") == std::string::npos)
    return nullptr;
  const auto schema = read_table_text(text->second, types_of(state, table.keyspace));
  if (!schema || (*schema)->next_index_id <= 1) return nullptr;
  std::vector<IndexTerms> terms;
  for (const IndexSchema& index : (*schema)->indexes) {
    const ColumnSchema* column = (*schema)->find(index.column);
    if (column != nullptr && is_vector_index(index, *column->type)) continue;
    auto of_index = IndexTerms::of(**schema, index);
    if (of_index) terms.push_back(std::move(*of_index));  // else reads look at all rows
  }
  return std::make_shared<TableClaims>(terms, (*schema)->next_index_id);
}

}  // namespace tetrad::cql
