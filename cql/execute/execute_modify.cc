// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE and DELETE: values bound, one mutation for each partition.
//
// ModifyStatement::execute, without conditions and counters:
//
// 1. Timestamp: USING TIMESTAMP, the protocol's default timestamp, or the coordinator's clock, in
//    this order. It is taken before anything waits, so that statements of one connection keep their
//    order.
// 2. Guardrails and the consistency level, then the timeout and the limit of the work.
// 3. Lists: operations that depend on what is there (set by index, removal of elements, `c = c + x`
//    of a number or a text) read the rows first (read_lists). As in Cassandra the read and the
//    write are not atomic.
// 4. add_mutations makes one mutation for each partition; large ones are made on a worker thread.
// 5. Checks of the whole: sizes, the replicas' disks; then admission, where the table has a
//    throughput limit.
// 6. The coordinator writes. Nothing is written when any step before has failed.
//
// Conditional statements go through execute_conditional.cc, counters through execute_counter.cc,
// parts of a batch through execute_batch.cc. All make their mutations with add_mutations.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cql/execute/cell_maker.h"
#include "cql/execute/disk_guard.h"
#include "cql/execute/execute_conditional.h"
#include "cql/execute/execute_counter.h"
#include "cql/execute/off_loop.h"
#include "cql/execute/statement_environment.h"
#include "cql/execute/throughput.h"
#include "cql/prepare/prepared_modify.h"
#include "cql/types/json.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"
#include "replication/consistency.h"

namespace tetrad::cql {

namespace {

using storage::Cell;
using storage::RowRecord;
using Operation = ColumnOperation;

// The maximum is Cassandra's. Expiry times are 32-bit seconds, so a longer TTL would pass their
// end.
constexpr int32_t kTtlMax = 630'720'000;           // 20 years
constexpr uint64_t kListBytesOnLoop = 256u << 10;  // of rows with lists that are read first

bool is_same_table(const SchemaSnapshot& schema, const TableSchema& table) {
  const TablePtr now = schema.table(table.keyspace, table.name);
  return now && now->id == table.id && now->version == table.version &&
         now->incarnation == table.incarnation;
}

}  // namespace

// --- the statement ---

bool ModifyStatement::is_current(const SchemaSnapshot& schema) const {
  return is_same_table(schema, *table_) && used_functions_.are_current(schema);
}

/// A condition tells what is there: it is a read as well. As in Cassandra what a table's views show
/// of a row is made of what is there, too.
void ModifyStatement::required_access(RequiredAccess& out) const {
  out.add(Permission::kModify, table_resource(table_->keyspace, table_->name));
  if (has_conditions() || !table_->views.empty())
    out.add(Permission::kSelect, table_resource(table_->keyspace, table_->name));
  used_functions_.add_required(out);
  if (!restricted_masks_.empty())
    out.restricted_masks.push_back({table_->keyspace, table_->name, restricted_masks_});
}

// Microseconds since 1970. `otherwise` is the request's default timestamp, or the coordinator's.
Result<int64_t> ModifyStatement::timestamp(EvalContext& context, int64_t otherwise) const {
  if (!attributes_.timestamp) return otherwise;
  return evaluate_timestamp(*attributes_.timestamp, context, otherwise);
}

// Seconds; 0: the cells never expire. As in Cassandra: UNSET leaves the table's default, NULL
// switches it off.
Result<int32_t> ModifyStatement::ttl(EvalContext& context) const {
  const int32_t fallback = table_->options.default_time_to_live_s;
  if (!attributes_.ttl) return fallback;
  TETRAD_TRY(const BoundValue value, attributes_.ttl->evaluate(context));
  if (value.is_unset()) return fallback;
  if (value.is_null()) return 0;
  const auto ttl = read_int(value.bytes);
  if (!ttl) return fail(ErrorCode::kInvalid, "Invalid TTL value: null");
  if (*ttl < 0) {
    return fail(ErrorCode::kInvalid, "A TTL must be greater or equal to 0, but was {}", *ttl);
  }
  if (*ttl > kTtlMax) {
    return fail(ErrorCode::kInvalid, "ttl is too large. requested ({}) maximum ({})", *ttl,
                kTtlMax);
  }
  return *ttl;
}

namespace {

/// The cell that keeps the original bytes of a lossy clustering key.
void add_key_cell(std::optional<Bytes> value, const WriteMoment& moment, EvalContext& context,
                  std::vector<Cell>& cells) {
  if (!value) return;
  Cell cell;
  cell.column_id = storage::kKeyCellColumnId;
  cell.timestamp_us = moment.timestamp_us;
  cell.value = context.arena.adopt(std::move(*value));
  // Cells of a record ascend by column id, and the key cell has the lowest one.
  cells.insert(cells.begin(), cell);
}

storage::Mutation make_mutation(const TableSchema& table) {
  storage::Mutation mutation;
  mutation.incarnation = table.incarnation;
  mutation.schema_version = table.version;
  return mutation;
}

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

// Appends one mutation with at most one row. `target`, if given, has the keys from bind_target().
Result<void> ModifyStatement::add_insert(EvalContext& context, const WriteMoment& moment,
                                         int32_t ttl_s, ListCellIds& ids,
                                         std::vector<storage::Mutation>& out,
                                         const BoundTarget* target) const {
  storage::Mutation& mutation = out.emplace_back(make_mutation(*table_));
  if (target != nullptr) {
    mutation.partition_key = target->partitions[0].key;
  } else {
    TETRAD_TRY_VOID(insert_partition_key(context, mutation.partition_key));
  }
  mutation.position = partitioner::position_of(mutation.partition_key);

  CellMaker maker(context, moment, ttl_s, ids);
  const CellMaker::Place nowhere{mutation.partition_key, {}, nullptr};
  RowRecord record;
  // Static cells go to the header of the partition. An INSERT of static columns alone names no
  // clustering key and makes no row (writes_rows_ is false).
  if (!static_operations_.empty()) {
    for (const Operation& operation : static_operations_) {
      TETRAD_TRY_VOID(maker.add(operation, nowhere, record.cells));
    }
    if (!record.cells.empty()) storage::encode_row_record(record, mutation.header);
    record.cells.clear();
  }
  if (!writes_rows_) return {};

  storage::RowChange& row = mutation.rows.emplace_back();
  std::vector<BytesView> originals;
  if (target != nullptr) {
    row.clustering_key = target->clustering.rows[0];
    if (lossy_clustering_) {
      const auto& values = target->clustering.row_values[0];
      originals.assign(values.begin(), values.end());
    }
  } else {
    TETRAD_TRY_VOID(insert_clustering_key(context, row.clustering_key,
                                          lossy_clustering_ ? &originals : nullptr));
  }

  record.cells.reserve(regular_operations_.size() + 1);
  // A row of a compact table has no liveness of its own: it lives as long as one of its cells, as
  // in Cassandra. Without a value column a hidden empty cell keeps it alive.
  if (table_->is_compact_storage) {
    if (regular_operations_.empty()) {
      TETRAD_TRY_VOID(add_empty_value(moment, ttl_s, record.cells));
    }
  } else {
    record.liveness.timestamp_us = moment.timestamp_us;
    if (ttl_s != 0) {
      const auto expiry = moment.expiry_of(ttl_s);
      record.liveness.ttl_s = expiry.ttl_s;
      record.liveness.expiry_s = expiry.expiry_s;
    }
  }
  bool all_set = true;
  for (const Operation& operation : regular_operations_) {
    TETRAD_TRY(const bool set, maker.add(operation, nowhere, record.cells));
    all_set = all_set && set;
  }
  if (lossy_clustering_ && !record.empty()) {
    add_key_cell(key_cell_value(originals), moment, context, record.cells);
  }
  if (record.empty()) {  // of a compact table, with nothing set
    mutation.rows.pop_back();
    if (mutation.header.empty()) out.pop_back();
    return {};
  }
  storage::encode_row_record(record, row.record);
  // An INSERT that sets every regular column: the store may Put the record in the place of what is
  // there instead of merging (RULES.md, rule 14). A value that is UNSET leaves its column as it
  // was, so it must make this false.
  row.complete = may_be_complete_ && all_set;
  return {};
}

Result<void> ModifyStatement::add_empty_value(const WriteMoment& moment, int32_t ttl_s,
                                              std::vector<Cell>& cells) const {
  const ColumnSchema& column = table_->regular_columns().front();
  if (!column.hidden) {
    return fail(ErrorCode::kInvalid, "Column {} is mandatory for this COMPACT STORAGE table",
                column.name);
  }
  Cell& cell = cells.emplace_back();
  cell.column_id = column.id;
  cell.timestamp_us = moment.timestamp_us;
  if (ttl_s != 0) {
    const auto expiry = moment.expiry_of(ttl_s);
    cell.ttl_s = expiry.ttl_s;
    cell.expiry_s = expiry.expiry_s;
  }
  return {};
}

// Appends the mutations of the statement to `out`, one for each partition that gets a change. It
// may run on a worker thread: it uses only its arguments. On an error `out` has unfinished
// mutations and must not be written.
Result<void> ModifyStatement::add_mutations(EvalContext& context, const WriteMoment& moment,
                                            ListCellIds& ids, const ListContents* lists,
                                            uint32_t product_max,
                                            std::vector<storage::Mutation>& out,
                                            const BoundTarget* target) const {
  if (kind_ == Kind::kInsert) {
    const auto insert_ttl_s = ttl(context);
    // As Cassandra: an error in the keys is reported before one in the TTL.
    if (!insert_ttl_s) {
      TETRAD_TRY_VOID(check_keys(context, product_max));
      return std::unexpected(insert_ttl_s.error());
    }
    if (!json_) return add_insert(context, moment, *insert_ttl_s, ids, out, target);
    // The attributes may have markers of their own, the columns take theirs from the JSON text.
    TETRAD_TRY(const BoundValue text, json_->evaluate(context));
    TETRAD_TRY(const std::vector<BoundValue> values,
               decode_json(text, context.arena, context.functions.now_ms));
    EvalContext inner{values, context.arena, context.functions, context.now_s, nullptr, {}};
    return add_insert(inner, moment, *insert_ttl_s, ids, out, target);
  }
  BoundTarget own;
  if (target == nullptr) {
    TETRAD_TRY(own, bind_target(context, product_max));
    target = &own;
  }
  const BoundClustering& clustering = target->clustering;
  TETRAD_TRY(const int32_t ttl_s, kind_ == Kind::kUpdate ? ttl(context) : Result<int32_t>(0));
  CellMaker maker(context, moment, ttl_s, ids);
  for (size_t p = 0; p < target->partitions.size(); ++p) {
    storage::Mutation mutation = make_mutation(*table_);
    mutation.position = target->partitions[p].position;
    if (target == &own) {
      mutation.partition_key = std::move(own.partitions[p].key);
    } else {
      mutation.partition_key = target->partitions[p].key;
    }
    const storage::Deletion deletion{moment.timestamp_us, moment.dated_s};
    CellMaker::Place place{mutation.partition_key, {}, lists};

    RowRecord header;
    // DELETE by the partition key alone: one tombstone for the partition, not one for each row.
    if (deletes_rows_ && !where_.has_clustering()) header.deletion = deletion;
    // As Cassandra: a row that is named has the static operations done once more, so that lists
    // grow by as many copies.
    const size_t times = clustering.exact ? std::max<size_t>(clustering.rows.size(), 1) : 1;
    for (const Operation& operation : static_operations_) {
      for (size_t i = 0; i < (operation.adds_to_list() ? times : 1); ++i) {
        TETRAD_TRY_VOID(maker.add(operation, place, header.cells));
      }
    }
    // A record has one cell for each place, in order; two operations on one column make two.
    if (repeats_columns_ || times > 1) CellMaker::tidy(header.cells);
    if (!header.empty()) storage::encode_row_record(header, mutation.header);

    if (lacks_rows_ && !clustering.nothing) {
      return fail(ErrorCode::kInvalid, "Range deletions are not supported for specific columns");
    }
    // `nothing`: the restrictions exclude each other (an empty IN, for example), so no row can be
    // meant. It is no error, as in Cassandra.
    if (writes_rows_ && !header.deletion.present() && !clustering.nothing) {
      // Only a DELETE can name a range; preparing refuses ranges of UPDATE.
      if (!clustering.exact && !clustering.ranges.empty()) {
        TETRAD_ASSERT(deletes_rows_);
        for (const auto& range : clustering.ranges) {
          mutation.range_tombstones.push_back({range, deletion});
        }
      } else {
        // Without clustering columns the partition has one row, whose key is empty.
        const size_t row_count = clustering.exact ? clustering.rows.size() : 1;
        for (size_t i = 0; i < row_count; ++i) {
          storage::RowChange row;
          RowRecord record;
          if (clustering.exact) {
            row.clustering_key = clustering.rows[i];
            TETRAD_TRY_VOID(check_row_keys(clustering.row_values[i]));
          }
          if (deletes_rows_) {
            record.deletion = deletion;
          } else {
            place.clustering_key = row.clustering_key;
            for (const Operation& operation : regular_operations_) {
              TETRAD_TRY_VOID(maker.add(operation, place, record.cells));
            }
            if (repeats_columns_) CellMaker::tidy(record.cells);
            if (lossy_clustering_ && clustering.exact && kind_ == Kind::kUpdate &&
                !record.cells.empty()) {
              const std::vector<BytesView> originals(clustering.row_values[i].begin(),
                                                     clustering.row_values[i].end());
              add_key_cell(key_cell_value(originals), moment, context, record.cells);
            }
          }
          // Every value was UNSET: nothing is written, as in Cassandra.
          if (record.empty()) continue;
          storage::encode_row_record(record, row.record);
          mutation.rows.push_back(std::move(row));
        }
      }
    }
    if (!mutation.header.empty() || !mutation.range_tombstones.empty() || !mutation.rows.empty()) {
      out.push_back(std::move(mutation));
    }
  }
  return {};
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

// The guardrail read_before_write_list_operations_enabled. `kAddToValue` reads as well but is no
// list operation.
Result<void> ModifyStatement::check_list_reads(const Guardrails& guardrails) const {
  if (guardrails.read_before_write_list_operations) return {};
  for (const auto* operations : {&static_operations_, &regular_operations_}) {
    for (const Operation& operation : *operations) {
      if (!operation.needs_read() || operation.kind == Operation::Kind::kAddToValue) continue;
      const char* what = operation.kind == Operation::Kind::kSetIndex
                             ? "Setting of list items by index requiring read before write"
                         : operation.kind == Operation::Kind::kDiscard
                             ? "Removal of list items requiring read before write"
                             : "Removal of list items by index requiring read before write";
      return check_enabled(false, "read_before_write_list_operations", what);
    }
  }
  return {};
}

Result<void> ModifyStatement::collect_lists(std::span<const storage::ReadResult> results,
                                            int64_t now_s, ListContents& lists,
                                            ReadWork& work) const {
  for (const storage::ReadResult& result : results) {
    for (const storage::PartitionData& partition : result.partitions) {
      work.weight += storage::row_weight(partition.header.size());
      TETRAD_TRY_VOID(collect_lists(partition, partition.header, {}, static_operations_, true,
                                    false, now_s, lists));
      for (const storage::RowData& row : partition.rows) {
        work.weight += storage::row_weight(row.clustering_key.size() + row.record.size());
        TETRAD_TRY_VOID(collect_lists(partition, row.record, row.clustering_key,
                                      regular_operations_, false, false, now_s, lists));
      }
    }
  }
  return {};
}

// Of one partition and, if given, one row of it. Lists that `lists` has already are kept: the parts
// of a batch that touch one list must see it as it was read, once.
Result<void> ModifyStatement::collect_lists(const storage::PartitionData& partition,
                                            const storage::RowData* row, int64_t now_s,
                                            ListContents& lists) const {
  TETRAD_TRY_VOID(
      collect_lists(partition, partition.header, {}, static_operations_, true, true, now_s, lists));
  if (row == nullptr) return {};
  return collect_lists(partition, row->record, row->clustering_key, regular_operations_, false,
                       true, now_s, lists);
}

Result<void> ModifyStatement::collect_lists(const storage::PartitionData& partition,
                                            BytesView record, BytesView clustering_key,
                                            const std::vector<Operation>& operations,
                                            bool is_static, bool may_be_known, int64_t now_s,
                                            ListContents& lists) const {
  if (record.empty()) return {};
  for (const Operation& operation : operations) {
    if (!operation.needs_read()) continue;
    // Only where several statements collect into one `lists`: the search is linear.
    if (may_be_known &&
        lists.find(partition.partition_key, clustering_key, *operation.column) != nullptr)
      continue;
    ListContents::Entry entry{
        Bytes(partition.partition_key), Bytes(clustering_key), is_static, operation.column->id, {}};
    storage::RowRecordReader reader;
    TETRAD_TRY_VOID(reader.open(record));
    Cell cell;
    while (reader.next(cell)) {
      // A multi-cell value is its cells with paths, a frozen one a single cell without.
      const bool has_path = operation.column->type->is_multi_cell();
      if (cell.column_id == operation.column->id && cell.has_path == has_path &&
          cell.live_at(now_s)) {
        entry.elements.push_back({Bytes(cell.path), Bytes(cell.value), cell.timestamp_us});
      }
    }
    TETRAD_TRY_VOID(reader.status());
    lists.entries.push_back(std::move(entry));
  }
  return {};
}

// Reads the rows that the statement names, at its own consistency level, with the rest of its time.
// Each live element comes with its path and timestamp, so that the write can name the very element.
Task<Result<ListContents>> ModifyStatement::read_lists(ExecuteContext& context,
                                                       EvalContext& evaluation,
                                                       base::Deadline deadline) const {
  ListContents lists;
  TETRAD_CO_TRY(const BoundPartitions partitions,
                where_.bind_partitions(evaluation, context.settings.in_cartesian_product_max));
  TETRAD_CO_TRY_VOID(partitions.check_keys());
  TETRAD_CO_TRY(const BoundClustering clustering,
                where_.bind_clustering(evaluation, context.settings.in_cartesian_product_max));
  if (context.options.consistency == ConsistencyLevel::kAny) {
    co_return fail(ErrorCode::kInvalid,
                   "Write operation require a read but consistency ANY is not supported on reads");
  }
  std::vector<storage::ReadCommand> commands;
  for (const PartitionTarget& target : partitions.partitions) {
    storage::ReadCommand command;
    command.incarnation = table_->incarnation;
    command.schema_version = table_->version;
    command.position = target.position;
    command.partition_key = target.key;
    command.rows = clustering.rows;
    command.now_s = context.now_s;
    commands.push_back(std::move(command));
  }
  const replication::ReadOptions options{context.options.consistency, deadline, false,
                                         context.trace};
  auto results = co_await context.coordinator.read_many(std::move(commands), options);
  if (!results) co_return std::unexpected(std::move(results).error());
  ReadWork work;
  work.partitions = results->size();
  Result<void> collected;
  const std::function<void()> collect = [&] {
    collected = collect_lists(*results, context.now_s, lists, work);
  };
  uint64_t bytes = 0;
  for (const storage::ReadResult& result : *results) bytes += result.arena.allocated_bytes();
  if (bytes > kListBytesOnLoop) {
    FunctionEnvironment functions = make_function_environment(context);
    co_await evaluate_off_loop(context, functions, collect);
  } else {
    collect();
  }
  TETRAD_CO_TRY_VOID(std::move(collected));
  context.charge.add_read(work, context.options.consistency);
  co_return lists;
}

// Whether add_mutations() may hold the loop for more than a piece of work (WorkMeter::kPieceNs):
// large values, a large JSON text (30 ns for each byte, estimated) or more than 4,096 list
// elements.
bool ModifyStatement::is_long_to_make(const ExecuteContext& context,
                                      std::span<const BoundValue> values,
                                      const ListContents* lists) const {
  if (context.off_loop == nullptr) return false;
  if (is_long_to_bind(context, *this, values)) return true;
  constexpr uint64_t kJsonNsPerByte = 30;
  if (json_ && kJsonNsPerByte * context.request_bytes > WorkMeter::kPieceNs) return true;
  constexpr size_t kElementsOnLoop = 4096;
  size_t elements = 0;
  for (const ListContents::Entry& entry : lists->entries) elements += entry.elements.size();
  return elements > kElementsOnLoop;
}

// The steps of the head of this file, in one piece: what it makes (evaluation, guard, ids, lists)
// must outlive every wait, so it lives in the frame of this one coroutine.
Task<Result<StatementResult>> ModifyStatement::execute(ExecuteContext& context,
                                                       std::span<const BoundValue> values) const {
  if (has_conditions()) {
    auto decided = co_await execute_conditional(context, *this, values);
    co_return decided;
  }
  base::Arena arena;
  if (table_->is_counter) {
    const FunctionEnvironment functions = make_function_environment(context);
    EvalContext evaluation{values, arena, functions, context.now_s, nullptr, {}};
    TETRAD_CO_TRY(const int64_t timeout_us,
                  evaluate_timeout_us(attributes_.timeout, evaluation,
                                      context.settings.counter_write_timeout_us));
    std::vector<StatementPart> parts{{this, values}};
    auto counted = co_await run_counters(context, std::move(parts), false, timeout_us);
    co_return counted;
  }
  // Unique and ascending on this shard, so two statements of one client that follow each other
  // never have equal timestamps.
  const int64_t now_us = context.coordinator.next_timestamp_us();
  FunctionEnvironment functions = make_function_environment(context);
  EvalContext evaluation{values, arena, functions, context.now_s, nullptr, {}};
  WriteMoment moment = moment_of(context);
  auto timestamp_us = timestamp(evaluation, context.options.timestamp_us.value_or(now_us));
  if (!timestamp_us) {
    // Not where it is no timestamp at all.
    // As Cassandra: a timestamp that is null is refused at once, one that is no valid number only
    // after the keys.
    TETRAD_CO_TRY(const BoundValue given, attributes_.timestamp->evaluate(evaluation));
    if (given.has_bytes()) {
      TETRAD_CO_TRY_VOID(check_keys(evaluation, context.settings.in_cartesian_product_max));
    }
    co_return std::unexpected(std::move(timestamp_us).error());
  }
  moment.timestamp_us = *timestamp_us;
  TETRAD_CO_TRY_VOID(replication::check_write_level(context.options.consistency));
  const Guardrails& guardrails = context.settings.guardrails;
  TETRAD_CO_TRY_VOID(check_consistency(guardrails.write_consistency_levels,
                                       context.options.consistency, true, context.warnings));
  if (has_timestamp()) {
    TETRAD_CO_TRY_VOID(check_timestamp(guardrails, moment.timestamp_us,
                                       context.coordinator.now_us(), table_->name,
                                       context.warnings));
  }
  const ValueGuard guard{guardrails, context.warnings};
  // Null when no guardrail on values is set, which spares a look at each of them.
  if (guardrails.on_values()) moment.guard = &guard;
  TETRAD_CO_TRY(const int64_t timeout_us, evaluate_timeout_us(attributes_.timeout, evaluation,
                                                              context.settings.write_timeout_us));
  const base::Deadline deadline{context.reactor.now_us() + timeout_us};
  set_work_limit(context, timeout_us);
  ListContents lists;
  if (needs_read_) {
    TETRAD_CO_TRY_VOID(check_list_reads(guardrails));
    auto read = co_await read_lists(context, evaluation, deadline);
    if (!read) co_return std::unexpected(std::move(read).error());
    lists = std::move(*read);
  }
  const bool is_long = is_long_to_make(context, values, &lists);
  // The shard's generator belongs to the shard's thread. The worker gets its own, seeded from it,
  // so that a simulation stays deterministic.
  base::Random own_random(is_long ? context.random.next() : 0);
  ListCellIds ids(is_long ? own_random : context.random, now_us);
  std::vector<storage::Mutation> mutations;
  const uint32_t product_max = context.settings.in_cartesian_product_max;
  Result<void> added;
  if (is_long) {
    const std::function<void()> add = [&] {
      added = add_mutations(evaluation, moment, ids, &lists, product_max, mutations);
    };
    co_await evaluate_off_loop(context, functions, add);
    if (context.reactor.now_us() > deadline.at_us)
      co_return std::unexpected(context.work.timed_out());
  } else {
    added = add_mutations(evaluation, moment, ids, &lists, product_max, mutations);
  }
  TETRAD_CO_TRY_VOID(std::move(added));
  // All values unset, or an empty IN: success without a write.
  if (mutations.empty()) co_return StatementResult();
  TETRAD_CO_TRY_VOID(check_mutation_sizes(mutations, *table_, context.settings));
  TETRAD_CO_TRY_VOID(check_replica_disks(context, mutations));
  if (is_limited(context, table_->incarnation)) {
    auto admitted = co_await admit_writes(context, mutations, deadline);
    if (!admitted) co_return std::unexpected(std::move(admitted).error());
  }
  context.charge.add_write(mutations);
  // The write type is only what a timeout names; the mutations of one statement are not atomic
  // across partitions, as in Cassandra. Only a timestamp of the coordinator's own clock may be
  // raised where a replica has seen a later one; a client's stands as it is.
  const replication::WriteOptions options{
      context.options.consistency,
      deadline,
      mutations.size() == 1 ? base::WriteType::kSimple : base::WriteType::kUnloggedBatch,
      &context.warnings,
      moment.timestamp_us == now_us ? std::optional(now_us) : std::nullopt,
      context.trace,
      moment.dated_s * 1'000'000};
  auto written = co_await context.coordinator.write(std::move(mutations), options);
  if (!written) co_return std::unexpected(std::move(written).error());
  co_return StatementResult();
}

}  // namespace tetrad::cql
