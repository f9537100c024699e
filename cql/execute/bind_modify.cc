// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE and DELETE before anything is made: the keys of the partitions and rows that a
// statement names, and the values of INSERT JSON.
//
// Two forms of a target: an INSERT has one expression for each key column and names one row at
// most; UPDATE and DELETE have restrictions (WHERE), which name the product of their INs or ranges.
// Errors come in Cassandra's order and with its texts: a key part by itself (null, unset), then the
// length of the key.
#include <algorithm>
#include <array>
#include <utility>

#include "cql/prepare/prepared_modify.h"
#include "cql/types/json.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"

namespace tetrad::cql {

namespace {

std::unexpected<Error> key_too_long(size_t size) {
  return fail(ErrorCode::kInvalid, "Key length of {} is longer than maximum of {}", size,
              partitioner::kKeyComponentBytesMax);
}

/// A key part of an INSERT.
// Null and UNSET are errors, the empty value is allowed here (Cassandra allows it in composite
// keys); callers that refuse it check themselves. The texts are Cassandra's.
Result<BytesView> key_value(const ExpressionPtr& expression, const ColumnSchema& column,
                            EvalContext& context) {
  TETRAD_TRY(const BoundValue value, expression->evaluate(context));
  if (value.has_bytes()) return value.bytes;
  if (value.is_unset()) {
    return fail(ErrorCode::kInvalid, "Invalid unset value for column {}", column.name);
  }
  return fail(ErrorCode::kInvalid, "Invalid null value in condition for column {}", column.name);
}

/// The text `null`, white space around it or not.
bool is_json_null(BytesView json) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = json.find_first_not_of(kSpace);
  return first != BytesView::npos &&
         json.substr(first, json.find_last_not_of(kSpace) + 1 - first) == "null";
}

/// A compact table with one clustering column takes no empty value in it, as Cassandra.
Result<void> check_empty(const TableSchema& table, BytesView value) {
  const auto clustering = table.clustering();
  if (!value.empty() || !table.is_compact_storage || clustering.size() != 1) return {};
  return fail(ErrorCode::kInvalid, "Invalid empty or null value for column {}",
              clustering.front().name);
}

}  // namespace

// Some values lose bytes in the ordered encoding (for example decimals 1.0 and 1.00, which compare
// equal). For those the original bytes of all clustering columns are kept in a cell of the row, so
// that a read shows what was written. Unset: the encoding loses nothing.
std::optional<Bytes> ModifyStatement::key_cell_value(std::span<const BytesView> values) const {
  bool lossy = false;
  const auto clustering = table_->clustering();
  for (size_t i = 0; i < values.size(); ++i) {
    lossy =
        lossy || (can_be_lossy(*clustering[i].type) && is_lossy(*clustering[i].type, values[i]));
  }
  if (!lossy) return std::nullopt;
  const std::vector<OptionalView> originals(values.begin(), values.end());
  return join_tuple(originals);
}

// Cassandra stores lengths of keys in 16 bits, so a key is at most 65,535 bytes; the limit is on
// the sum of the clustering values.
Result<void> ModifyStatement::check_row_keys(std::span<const Bytes> values) const {
  size_t size = 0;
  for (const Bytes& value : values) size += value.size();
  if (size > partitioner::kKeyComponentBytesMax) return key_too_long(size);
  return values.size() == 1 ? check_empty(*table_, values.front()) : Result<void>();
}

// Only the order of errors: Cassandra looks at the keys before the timestamp and the TTL. So this
// runs where one of those has failed, to find an error in the keys that must be reported instead.
// `product_max` bounds the rows of several INs.
Result<void> ModifyStatement::check_keys(EvalContext& context, uint32_t product_max) const {
  if (json_) return {};
  if (kind_ == Kind::kInsert) {
    const auto check = [&](std::span<const ColumnSchema> columns,
                           const std::vector<ExpressionPtr>& values) -> Result<void> {
      for (size_t i = 0; i < columns.size() && i < values.size(); ++i) {
        if (values[i]) TETRAD_TRY_VOID(key_value(values[i], columns[i], context));
      }
      return {};
    };
    TETRAD_TRY_VOID(check(table_->partition_key(), partition_values_));
    return check(table_->clustering(), clustering_values_);
  }
  TETRAD_TRY(const BoundPartitions partitions, where_.bind_partitions(context, product_max));
  TETRAD_TRY_VOID(partitions.check_keys());
  TETRAD_TRY_VOID(where_.bind_clustering(context, product_max));
  return {};
}

// One component is stored as it is, several with their lengths (partitioner::append_partition_key),
// as Cassandra's CompositeType, since drivers compute tokens of the same bytes.
Result<void> ModifyStatement::insert_partition_key(EvalContext& context, Bytes& key) const {
  const auto partition = table_->partition_key();
  if (partition.size() == 1) {
    TETRAD_TRY(const BytesView value, key_value(partition_values_[0], partition[0], context));
    if (value.size() > partitioner::kKeyComponentBytesMax) return key_too_long(value.size());
    key.assign(value);
  } else {
    // No allocation for the usual keys: this runs for each row of a load.
    std::array<BytesView, 8> few;
    std::vector<BytesView> many;
    if (partition.size() > few.size()) many.resize(partition.size());
    const std::span<BytesView> components =
        many.empty() ? std::span(few).first(partition.size()) : std::span(many);
    for (size_t i = 0; i < partition.size(); ++i) {
      TETRAD_TRY(components[i], key_value(partition_values_[i], partition[i], context));
    }
    TETRAD_TRY_VOID(partitioner::append_partition_key(key, components));
  }
  // Only a single component can make an empty key.
  if (key.empty()) return fail(ErrorCode::kInvalid, "Key may not be empty");
  return {};
}

// `originals`, if given, gets the values before they are encoded, for key_cell_value().
Result<void> ModifyStatement::insert_clustering_key(EvalContext& context, Bytes& key,
                                                    std::vector<BytesView>* originals) const {
  const auto clustering = table_->clustering();
  size_t key_bytes = 0;
  for (size_t i = 0; i < clustering.size(); ++i) {
    if (!clustering_values_[i]) {  // of a compact table: the key ends here
      TETRAD_TRY_VOID(
          append_ordered(key, *clustering[i].type, std::nullopt, clustering[i].descending));
      continue;
    }
    TETRAD_TRY(const BytesView value, key_value(clustering_values_[i], clustering[i], context));
    if (value.empty()) TETRAD_TRY_VOID(check_empty(*table_, value));
    key_bytes += value.size();
    TETRAD_TRY_VOID(append_ordered(key, *clustering[i].type, value, clustering[i].descending));
    if (originals != nullptr) originals->push_back(value);
  }
  if (key_bytes > partitioner::kKeyComponentBytesMax) return key_too_long(key_bytes);
  return {};
}

bool ModifyStatement::names_rows() const {
  if (kind_ == Kind::kInsert) return writes_rows_;
  return table_->clustering().empty() || where_.has_clustering();
}

bool ModifyStatement::has_clustering_in() const {
  return std::ranges::any_of(table_->clustering(),
                             [this](const ColumnSchema& column) { return where_.is_in(column); });
}

Result<void> ModifyStatement::check_partitions(EvalContext& context, uint32_t product_max) const {
  TETRAD_TRY(const BoundPartitions partitions, where_.bind_partitions(context, product_max));
  return partitions.check_keys();
}

Result<BoundTarget> ModifyStatement::bind_insert_target(EvalContext& context) const {
  BoundTarget bound;
  PartitionTarget& partition = bound.partitions.emplace_back();
  TETRAD_TRY_VOID(insert_partition_key(context, partition.key));
  partition.position = partitioner::position_of(partition.key);
  if (!writes_rows_) return bound;
  std::vector<BytesView> originals;
  bound.clustering.exact = true;
  TETRAD_TRY_VOID(insert_clustering_key(context, bound.clustering.rows.emplace_back(), &originals));
  bound.clustering.row_values.emplace_back(originals.begin(), originals.end());
  return bound;
}

// The keys of the statement without its values. Conditional statements need them before they know
// their timestamp, and give them back to add_mutations.
Result<BoundTarget> ModifyStatement::bind_target(EvalContext& context, uint32_t product_max) const {
  if (json_) {
    TETRAD_TRY(const BoundValue text, json_->evaluate(context));
    TETRAD_TRY(const std::vector<BoundValue> values,
               decode_json(text, context.arena, context.functions.now_ms));
    EvalContext inner{values, context.arena, context.functions, context.now_s, nullptr, {}};
    return bind_insert_target(inner);
  }
  if (kind_ == Kind::kInsert) return bind_insert_target(context);
  BoundTarget bound;
  TETRAD_TRY(BoundPartitions partitions, where_.bind_partitions(context, product_max));
  TETRAD_TRY_VOID(partitions.check_keys());
  bound.partitions = std::move(partitions.partitions);
  TETRAD_TRY(bound.clustering, where_.bind_clustering(context, product_max));
  return bound;
}

// INSERT JSON: one value for each column of the table, in the order of TableSchema::columns(); the
// statement's expressions take them by that index, as others take bound values. Columns that the
// text does not name are null, or unset with DEFAULT UNSET. Bytes live in `arena`.
Result<std::vector<BoundValue>> ModifyStatement::decode_json(const BoundValue& text,
                                                             base::Arena& arena,
                                                             int64_t now_ms) const {
  if (text.is_unset()) {
    return fail(ErrorCode::kInvalid, "Could not decode JSON string as a map: it is unset");
  }
  if (text.is_null() || is_json_null(text.bytes))
    return fail(ErrorCode::kInvalid, "Got null for INSERT JSON values");
  const auto split = split_json_object(text.bytes);
  if (!split) {
    return fail(ErrorCode::kInvalid, "Could not decode JSON string as a map: {}",
                split.error().message);
  }
  const auto& members = *split;
  const auto& columns = table_->columns();
  std::vector<BoundValue> values(columns.size(),
                                 json_default_unset_ ? BoundValue::unset() : BoundValue::null());
  std::vector<const JsonValue*> given(columns.size());
  std::optional<std::string> unknown;
  for (const auto& [member, json] : members) {
    std::string name = json_column_name(member);
    if (const ColumnSchema* column = table_->find(name)) {
      // Named twice, it has the value of the name that is written otherwise: "A" or "\"a\"".
      const JsonValue*& place = given[static_cast<size_t>(column - columns.data())];
      if (place == nullptr || name != member) place = &json;
    } else if (!unknown) {
      unknown = std::move(name);
    }
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    if (given[i] == nullptr) continue;
    auto value = from_json(*columns[i].type, *given[i], now_ms);
    if (!value) {
      return fail(ErrorCode::kInvalid, "Error decoding JSON value for {}: {}", columns[i].name,
                  value.error().message);
    }
    values[i] = *value ? BoundValue::of(arena.adopt(std::move(**value))) : BoundValue::null();
  }
  if (unknown)
    return fail(ErrorCode::kInvalid, "JSON values map contains unrecognized column: {}", *unknown);
  return values;
}

}  // namespace tetrad::cql
