// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE and DELETE: values bound, one mutation for each partition.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/byte_io.h"
#include "cql/execute/statement_environment.h"
#include "cql/prepare/prepared_modify.h"
#include "cql/types/compare.h"
#include "cql/types/json.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"

namespace tetrad::cql {

namespace {

using storage::Cell;
using storage::CellKind;
using storage::RowRecord;
using Operation = ColumnOperation;

constexpr int32_t kTtlMax = 630'720'000;  // 20 years
constexpr size_t kElementBytesMax = 65'535;

bool is_same_table(const SchemaSnapshot& schema, const TableSchema& table) {
  const TablePtr now = schema.table(table.keyspace, table.name);
  return now && now->id == table.id && now->version == table.version &&
         now->incarnation == table.incarnation;
}

}  // namespace

/// Makes the cells of one row or header.
class CellMaker {
 public:
  CellMaker(EvalContext& context, const WriteMoment& moment, int32_t ttl_s, ListCellIds& ids)
      : context_(context), moment_(moment), ttl_s_(ttl_s), ids_(ids) {}

  struct Place {
    BytesView partition_key, clustering_key;
    const ListContents* lists;
  };

  /// Appends the cells of an operation, sorted by path. Returns false when nothing was set (unset).
  Result<bool> add(const Operation& operation, const Place& place, std::vector<Cell>& cells) {
    const size_t first = cells.size();
    TETRAD_TRY(const bool set, add_unsorted(operation, place, cells));
    if (cells.size() - first > 1)
      sort_paths(cells.begin() + static_cast<ptrdiff_t>(first), cells.end());
    return set;
  }

  /// For rows where several operations touch one column: orders the cells and keeps one of each
  /// place, as reconciliation of equal timestamps would.
  static void tidy(std::vector<Cell>& cells) {
    sort_paths(cells.begin(), cells.end());
    size_t kept = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (kept != 0) {
        Cell& last = cells[kept - 1];
        const Cell& cell = cells[i];
        const bool same =
            last.column_id == cell.column_id && last.has_path == cell.has_path &&
            last.path == cell.path &&
            (last.kind == CellKind::kColumnDeletion) == (cell.kind == CellKind::kColumnDeletion);
        if (same) {
          const bool replaces = last.timestamp_us < cell.timestamp_us ||
                                (last.kind == CellKind::kValue &&
                                 (cell.kind != CellKind::kValue || last.value < cell.value));
          if (replaces) last = cell;
          continue;
        }
      }
      cells[kept++] = cells[i];
    }
    cells.resize(kept);
  }

 private:
  static void sort_paths(std::vector<Cell>::iterator from, std::vector<Cell>::iterator to) {
    std::stable_sort(from, to, [](const Cell& a, const Cell& b) {
      if (a.column_id != b.column_id) return a.column_id < b.column_id;
      const bool a_deletion = a.kind == CellKind::kColumnDeletion;
      const bool b_deletion = b.kind == CellKind::kColumnDeletion;
      if (a_deletion != b_deletion) return a_deletion;
      if (a.has_path != b.has_path) return !a.has_path;
      return a.path < b.path;
    });
  }

  Cell value_cell(uint32_t column_id, BytesView value) const {
    Cell cell;
    cell.column_id = column_id;
    cell.timestamp_us = moment_.timestamp_us;
    cell.value = value;
    if (ttl_s_ != 0) {
      cell.ttl_s = ttl_s_;
      cell.expiry_s = moment_.now_s + ttl_s_;
    }
    return cell;
  }
  Cell tombstone(uint32_t column_id) const {
    Cell cell;
    cell.column_id = column_id;
    cell.kind = CellKind::kTombstone;
    cell.timestamp_us = moment_.timestamp_us;
    cell.expiry_s = moment_.now_s;
    return cell;
  }
  Cell column_deletion(uint32_t column_id, int64_t timestamp_us) const {
    Cell cell;
    cell.column_id = column_id;
    cell.kind = CellKind::kColumnDeletion;
    cell.timestamp_us = timestamp_us;
    cell.expiry_s = moment_.now_s;
    return cell;
  }
  Cell at_path(Cell cell, BytesView path) const {
    cell.has_path = true;
    cell.path = path;
    return cell;
  }

  Result<BytesView> key_path(const DataType& type, BytesView key) {
    Bytes path;
    TETRAD_TRY_VOID(append_ordered(path, type, key, false));
    return path.size() <= 64 ? context_.arena.copy(path) : context_.arena.adopt(std::move(path));
  }
  BytesView field_path(size_t index) {
    char path[2];
    base::store_big_endian(path, static_cast<uint16_t>(index));
    return context_.arena.copy({path, 2});
  }

  Result<void> add_element(const DataType& type, uint32_t id, BytesView element,
                           std::vector<Cell>& cells) {
    if (element.size() > kElementBytesMax) {
      return fail(ErrorCode::kInvalid,
                  "Set value is too long. Set values are limited to {} bytes but {} bytes value "
                  "provided",
                  kElementBytesMax, element.size());
    }
    TETRAD_TRY(const BytesView path, key_path(*type.element(), element));
    // The original bytes stand beside the path where that would not give them back.
    const bool lossy = can_be_lossy(*type.element()) && is_lossy(*type.element(), element);
    cells.push_back(at_path(value_cell(id, lossy ? element : BytesView()), path));
    return {};
  }
  Result<void> add_entry(const DataType& type, uint32_t id, BytesView key, BytesView value,
                         std::vector<Cell>& cells) {
    if (key.size() > kElementBytesMax) {
      return fail(ErrorCode::kInvalid,
                  "Map key is too long. Map keys are limited to {} bytes but {} bytes keys "
                  "provided",
                  kElementBytesMax, key.size());
    }
    TETRAD_TRY(const BytesView path, key_path(*type.key(), key));
    cells.push_back(at_path(value_cell(id, value), path));
    return {};
  }

  /// The elements of a collection's or user type's value.
  Result<void> add_elements(const Operation& operation, BytesView value, std::vector<Cell>& cells) {
    const DataType& type = *operation.column->type;
    const uint32_t id = operation.column->id;
    switch (type.kind()) {
      case TypeKind::kSet: {
        TETRAD_TRY(CollectionReader reader, CollectionReader::open(value, 1));
        while (!reader.at_end()) {
          TETRAD_TRY(const OptionalView element, reader.next());
          if (!element) return null_inside();
          TETRAD_TRY_VOID(add_element(type, id, *element, cells));
        }
        return {};
      }
      case TypeKind::kMap: {
        TETRAD_TRY(CollectionReader reader, CollectionReader::open(value, 2));
        while (!reader.at_end()) {
          TETRAD_TRY(const OptionalView key, reader.next());
          TETRAD_TRY(const OptionalView entry, reader.next());
          if (!key || !entry) return null_inside();
          TETRAD_TRY_VOID(add_entry(type, id, *key, *entry, cells));
        }
        return {};
      }
      case TypeKind::kList: {
        TETRAD_TRY(const auto elements, split_list(value));
        const auto paths = operation.kind == Operation::Kind::kPrepend
                               ? ids_.prepend(elements.size())
                               : ids_.append(elements.size());
        for (size_t i = 0; i < elements.size(); ++i) {
          cells.push_back(at_path(value_cell(id, elements[i]), context_.arena.copy(paths[i])));
        }
        return {};
      }
      default: {
        TETRAD_TRY(const auto fields, split_tuple(type, value));
        for (size_t i = 0; i < fields.size(); ++i) {
          const Cell cell = fields[i] ? value_cell(id, *fields[i]) : tombstone(id);
          if (fields[i] || operation.kind != Operation::Kind::kSetWhole) {
            cells.push_back(at_path(cell, field_path(i)));
          }
        }
        return {};
      }
    }
  }
  static std::unexpected<Error> null_inside() {
    return fail(ErrorCode::kInvalid, "null is not supported inside collections");
  }

  Result<bool> add_unsorted(const Operation& operation, const Place& place,
                            std::vector<Cell>& cells) {
    const ColumnSchema& column = *operation.column;
    const uint32_t id = column.id;
    if (operation.kind == Operation::Kind::kRemove) {
      cells.push_back(column.type->is_multi_cell() ? column_deletion(id, moment_.timestamp_us)
                                                   : tombstone(id));
      return true;
    }
    if (operation.kind == Operation::Kind::kRemoveField) {
      cells.push_back(at_path(tombstone(id), field_path(operation.field)));
      return true;
    }
    BoundValue key;
    if (operation.key) {
      TETRAD_TRY(key, operation.key->evaluate(context_));
      TETRAD_TRY_VOID(check_key(column, key));
    }
    BoundValue value;
    if (operation.value) {
      TETRAD_TRY(value, operation.value->evaluate(context_));
      if (value.is_unset()) return false;
    }
    switch (operation.kind) {
      case Operation::Kind::kSet:
        cells.push_back(value.has_bytes() ? value_cell(id, value.bytes) : tombstone(id));
        return true;
      case Operation::Kind::kSetWhole:
        cells.push_back(column_deletion(id, moment_.timestamp_us - 1));
        if (value.has_bytes()) TETRAD_TRY_VOID(add_elements(operation, value.bytes, cells));
        return true;
      case Operation::Kind::kAdd:
      case Operation::Kind::kPrepend:
        if (value.has_bytes()) TETRAD_TRY_VOID(add_elements(operation, value.bytes, cells));
        return true;
      case Operation::Kind::kRemoveKeys: {
        if (!value.has_bytes()) return true;
        TETRAD_TRY(const auto keys, split_list(value.bytes));
        for (const BytesView taken : keys) {
          TETRAD_TRY(const BytesView path, key_path(*column.type->components()[0], taken));
          cells.push_back(at_path(tombstone(id), path));
        }
        return true;
      }
      case Operation::Kind::kSetElement: {
        if (value.has_bytes()) {
          TETRAD_TRY_VOID(add_entry(*column.type, id, key.bytes, value.bytes, cells));
        } else {
          TETRAD_TRY(const BytesView path, key_path(*column.type->key(), key.bytes));
          cells.push_back(at_path(tombstone(id), path));
        }
        return true;
      }
      case Operation::Kind::kRemoveElement: {
        TETRAD_TRY(const BytesView path, key_path(*column.type->components()[0], key.bytes));
        cells.push_back(at_path(tombstone(id), path));
        return true;
      }
      case Operation::Kind::kSetField:
        cells.push_back(at_path(value.has_bytes() ? value_cell(id, value.bytes) : tombstone(id),
                                field_path(operation.field)));
        return true;
      case Operation::Kind::kDiscard: {
        if (!value.has_bytes()) return true;
        const auto* list = place.lists->find(place.partition_key, place.clustering_key, column);
        if (list == nullptr) return true;
        TETRAD_TRY(const auto discarded, split_list(value.bytes));
        for (const auto& element : *list) {
          const bool hit = std::ranges::any_of(discarded, [&](BytesView d) {
            return compare(*column.type->element(), d, element.value) == 0;
          });
          if (hit) cells.push_back(at_path(tombstone(id), context_.arena.copy(element.path)));
        }
        return true;
      }
      case Operation::Kind::kSetIndex:
      case Operation::Kind::kRemoveIndex: {
        const bool is_set = operation.kind == Operation::Kind::kSetIndex;
        const int32_t index = read_int(key.bytes).value_or(0);
        const auto* list = place.lists->find(place.partition_key, place.clustering_key, column);
        if (list == nullptr || list->empty()) {
          if (is_set) {
            return fail(ErrorCode::kInvalid, "Attempted to set an element on a list which is null");
          }
          return fail(ErrorCode::kInvalid,
                      "Attempted to delete an element from a list which is null");
        }
        if (index < 0 || static_cast<size_t>(index) >= list->size()) {
          return fail(ErrorCode::kInvalid, "List index {} out of bound, list has size {}", index,
                      list->size());
        }
        const BytesView path = context_.arena.copy((*list)[static_cast<size_t>(index)].path);
        cells.push_back(at_path(
            is_set && value.has_bytes() ? value_cell(id, value.bytes) : tombstone(id), path));
        return true;
      }
      default:
        TETRAD_ASSERT(false);
        return false;
    }
  }

  static Result<void> check_key(const ColumnSchema& column, const BoundValue& key) {
    if (key.has_bytes()) return {};
    const std::string_view what = column.type->kind() == TypeKind::kList  ? "list index"
                                  : column.type->kind() == TypeKind::kMap ? "map key"
                                                                          : "set element";
    if (key.is_unset()) return fail(ErrorCode::kInvalid, "Invalid unset value for {}", what);
    if (column.type->kind() == TypeKind::kList) {
      return fail(ErrorCode::kInvalid, "Invalid null value for {}", what);
    }
    return fail(ErrorCode::kInvalid, "Invalid null {}", what);
  }

  EvalContext& context_;
  const WriteMoment& moment_;
  const int32_t ttl_s_;
  ListCellIds& ids_;
};

// --- ids of list elements ---

Bytes ListCellIds::make(uint64_t ticks, uint32_t sequence) {
  // Version 1 with the variant bits, then 30 bits of sequence so that the signed bytes of a
  // timeuuid's low half rise with it, then randomness: two coordinators never make the same id.
  Uuid uuid = base::make_time_uuid(ticks, 0, 0);
  uuid.octets[8] = static_cast<uint8_t>(0x80 | ((sequence >> 24) & 0x3f));
  for (int i = 0; i < 3; ++i) {
    uuid.octets[static_cast<size_t>(9 + i)] =
        static_cast<uint8_t>(((sequence >> (16 - 8 * i)) & 0xff) ^ 0x80);
  }
  const uint64_t noise = random_.next();
  for (size_t i = 0; i < 4; ++i) uuid.octets[12 + i] = static_cast<uint8_t>(noise >> (8 * i));
  Bytes path;
  const auto encoded = append_ordered(path, *timeuuid_type(), uuid.view(), false);
  TETRAD_ASSERT(encoded.has_value());
  return path;
}

std::vector<Bytes> ListCellIds::append(size_t count) {
  std::vector<Bytes> paths;
  paths.reserve(count);
  const uint64_t ticks = base::uuid_ticks_of_unix_us(now_us_);
  for (size_t i = 0; i < count; ++i) paths.push_back(make(ticks, next_append_++));
  return paths;
}

std::vector<Bytes> ListCellIds::prepend(size_t count) {
  // Time runs backwards before this moment, so that what is prepended later sorts first and all of
  // it before what is appended. 2010-01-01, as Cassandra has it.
  constexpr int64_t kReferenceUs = 1'262'304'000'000'000;
  const uint64_t ticks = base::uuid_ticks_of_unix_us(2 * kReferenceUs - now_us_);
  next_prepend_ -= static_cast<uint32_t>(count);
  std::vector<Bytes> paths;
  paths.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    paths.push_back(make(ticks, next_prepend_ + static_cast<uint32_t>(i)));
  }
  return paths;
}

const std::vector<ListContents::Element>* ListContents::find(BytesView partition_key,
                                                             BytesView clustering_key,
                                                             const ColumnSchema& column) const {
  for (const Entry& entry : entries) {
    if (entry.column_id != column.id || entry.partition_key != partition_key) continue;
    if (column.kind == ColumnKind::kStatic ? entry.is_static
                                           : entry.clustering_key == clustering_key) {
      return &entry.elements;
    }
  }
  return nullptr;
}

// --- the statement ---

bool ModifyStatement::is_current(const SchemaSnapshot& schema) const {
  return is_same_table(schema, *table_);
}

Result<int64_t> ModifyStatement::timestamp(EvalContext& context, int64_t otherwise) const {
  if (!attributes_.timestamp) return otherwise;
  return evaluate_timestamp(*attributes_.timestamp, context, otherwise);
}

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
void add_key_cell(const TableSchema& table, std::span<const BytesView> values,
                  const WriteMoment& moment, EvalContext& context, std::vector<Cell>& cells) {
  bool lossy = false;
  const auto clustering = table.clustering();
  for (size_t i = 0; i < values.size(); ++i) {
    lossy =
        lossy || (can_be_lossy(*clustering[i].type) && is_lossy(*clustering[i].type, values[i]));
  }
  if (!lossy) return;
  const std::vector<OptionalView> originals(values.begin(), values.end());
  Cell cell;
  cell.column_id = storage::kKeyCellColumnId;
  cell.timestamp_us = moment.timestamp_us;
  cell.value = context.arena.adopt(join_tuple(originals));
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
Result<BytesView> key_value(const ExpressionPtr& expression, const ColumnSchema& column,
                            EvalContext& context) {
  TETRAD_TRY(const BoundValue value, expression->evaluate(context));
  if (value.has_bytes()) return value.bytes;
  if (value.is_unset()) {
    return fail(ErrorCode::kInvalid, "Invalid unset value for column {}", column.name);
  }
  return fail(ErrorCode::kInvalid, "Invalid null value in condition for column {}", column.name);
}

}  // namespace

Result<void> ModifyStatement::check_row_keys(std::span<const Bytes> values) const {
  size_t size = 0;
  for (const Bytes& value : values) size += value.size();
  if (size > partitioner::kKeyComponentBytesMax) return key_too_long(size);
  return {};
}

Result<void> ModifyStatement::add_insert(EvalContext& context, const WriteMoment& moment,
                                         ListCellIds& ids,
                                         std::vector<storage::Mutation>& out) const {
  TETRAD_TRY(const int32_t ttl_s, ttl(context));
  storage::Mutation& mutation = out.emplace_back(make_mutation(*table_));
  const auto partition = table_->partition_key();
  if (partition.size() == 1) {
    TETRAD_TRY(const BytesView value, key_value(partition_values_[0], partition[0], context));
    if (value.size() > partitioner::kKeyComponentBytesMax) return key_too_long(value.size());
    mutation.partition_key.assign(value);
  } else {
    std::array<BytesView, 8> few;
    std::vector<BytesView> many;
    if (partition.size() > few.size()) many.resize(partition.size());
    const std::span<BytesView> components =
        many.empty() ? std::span(few).first(partition.size()) : std::span(many);
    for (size_t i = 0; i < partition.size(); ++i) {
      TETRAD_TRY(components[i], key_value(partition_values_[i], partition[i], context));
    }
    TETRAD_TRY_VOID(partitioner::append_partition_key(mutation.partition_key, components));
  }
  if (mutation.partition_key.empty()) return fail(ErrorCode::kInvalid, "Key may not be empty");
  mutation.position = partitioner::position_of(mutation.partition_key);

  CellMaker maker(context, moment, ttl_s, ids);
  const CellMaker::Place nowhere{mutation.partition_key, {}, nullptr};
  RowRecord record;
  if (!static_operations_.empty()) {
    for (const Operation& operation : static_operations_) {
      TETRAD_TRY_VOID(maker.add(operation, nowhere, record.cells));
    }
    if (!record.cells.empty()) storage::encode_row_record(record, mutation.header);
    record.cells.clear();
  }
  if (!writes_rows_) return {};

  const auto clustering = table_->clustering();
  storage::RowChange& row = mutation.rows.emplace_back();
  size_t key_bytes = 0;
  std::vector<BytesView> originals;
  for (size_t i = 0; i < clustering.size(); ++i) {
    TETRAD_TRY(const BytesView value, key_value(clustering_values_[i], clustering[i], context));
    key_bytes += value.size();
    TETRAD_TRY_VOID(
        append_ordered(row.clustering_key, *clustering[i].type, value, clustering[i].descending));
    if (lossy_clustering_) originals.push_back(value);
  }
  if (key_bytes > partitioner::kKeyComponentBytesMax) return key_too_long(key_bytes);

  record.cells.reserve(regular_operations_.size() + 1);
  record.liveness.timestamp_us = moment.timestamp_us;
  if (ttl_s != 0) {
    record.liveness.ttl_s = ttl_s;
    record.liveness.expiry_s = moment.now_s + ttl_s;
  }
  bool all_set = true;
  for (const Operation& operation : regular_operations_) {
    TETRAD_TRY(const bool set, maker.add(operation, nowhere, record.cells));
    all_set = all_set && set;
  }
  if (lossy_clustering_) add_key_cell(*table_, originals, moment, context, record.cells);
  storage::encode_row_record(record, row.record);
  row.complete = may_be_complete_ && all_set;
  return {};
}

Result<void> ModifyStatement::add_mutations(EvalContext& context, const WriteMoment& moment,
                                            ListCellIds& ids, const ListContents* lists,
                                            uint32_t product_max,
                                            std::vector<storage::Mutation>& out) const {
  if (kind_ == Kind::kInsert) {
    if (!json_) return add_insert(context, moment, ids, out);
    // The attributes may have markers of their own, the columns take theirs from the JSON text.
    TETRAD_TRY(const std::vector<BoundValue> values, decode_json(context));
    EvalContext inner{values, context.arena, context.functions, context.now_s, nullptr, {}};
    if (attributes_.ttl && attributes_.ttl->marker_index() >= 0) {
      return fail(ErrorCode::kInvalid, "not supported yet: a bound TTL with INSERT JSON");
    }
    return add_insert(inner, moment, ids, out);
  }
  TETRAD_TRY(const int32_t ttl_s, kind_ == Kind::kUpdate ? ttl(context) : Result<int32_t>(0));
  TETRAD_TRY(BoundPartitions partitions, where_.bind_partitions(context, product_max));
  TETRAD_TRY(const BoundClustering clustering, where_.bind_clustering(context, product_max));
  CellMaker maker(context, moment, ttl_s, ids);
  for (PartitionTarget& target : partitions.partitions) {
    storage::Mutation mutation = make_mutation(*table_);
    mutation.position = target.position;
    mutation.partition_key = std::move(target.key);
    const storage::Deletion deletion{moment.timestamp_us, moment.now_s};
    CellMaker::Place place{mutation.partition_key, {}, lists};

    RowRecord header;
    if (deletes_rows_ && !where_.has_clustering()) header.deletion = deletion;
    for (const Operation& operation : static_operations_) {
      TETRAD_TRY_VOID(maker.add(operation, place, header.cells));
    }
    if (repeats_columns_) CellMaker::tidy(header.cells);
    if (!header.empty()) storage::encode_row_record(header, mutation.header);

    if (writes_rows_ && !header.deletion.present() && !clustering.nothing) {
      if (!clustering.exact && !clustering.ranges.empty()) {
        TETRAD_ASSERT(deletes_rows_);
        for (const auto& range : clustering.ranges) {
          mutation.range_tombstones.push_back({range, deletion});
        }
      } else {
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
              add_key_cell(*table_, originals, moment, context, record.cells);
            }
          }
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

Result<std::vector<BoundValue>> ModifyStatement::decode_json(EvalContext& context) const {
  TETRAD_TRY(const BoundValue text, json_->evaluate(context));
  if (text.is_unset()) {
    return fail(ErrorCode::kInvalid, "Cannot INSERT an unset JSON value");
  }
  if (text.is_null()) return fail(ErrorCode::kInvalid, "Got null for INSERT JSON values");
  TETRAD_TRY(const auto members, split_json_object(text.bytes));
  const auto& columns = table_->columns();
  std::vector<BoundValue> values(columns.size(),
                                 json_default_unset_ ? BoundValue::unset() : BoundValue::null());
  for (const auto& [member, json] : members) {
    const ColumnSchema* column = table_->find(json_column_name(member));
    if (column == nullptr) {
      return fail(ErrorCode::kInvalid, "JSON values map contains unrecognized column: {}",
                  json_column_name(member));
    }
    auto value = from_json(*column->type, json, context.functions.now_ms);
    if (!value) {
      return fail(ErrorCode::kInvalid, "Error decoding JSON value for {}: {}", column->name,
                  value.error().message);
    }
    BoundValue& bound = values[static_cast<size_t>(column - columns.data())];
    bound = *value ? BoundValue::of(context.arena.copy(**value)) : BoundValue::null();
  }
  // Key columns are never unset: an absent one is an error of its own.
  for (size_t i = 0; i < values.size(); ++i) {
    if (table_->columns()[i].is_primary_key() && values[i].is_unset())
      values[i] = BoundValue::null();
  }
  return values;
}

Task<Result<ListContents>> ModifyStatement::read_lists(ExecuteContext& context,
                                                       EvalContext& evaluation,
                                                       base::Deadline deadline) const {
  ListContents lists;
  TETRAD_CO_TRY(const BoundPartitions partitions,
                where_.bind_partitions(evaluation, context.settings.in_cartesian_product_max));
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
  const replication::ReadOptions options{context.options.consistency, deadline};
  auto results = co_await context.coordinator.read_many(std::move(commands), options);
  if (!results) co_return std::unexpected(std::move(results).error());
  for (const storage::ReadResult& result : *results) {
    for (const storage::PartitionData& partition : result.partitions) {
      const auto collect = [&](BytesView record, BytesView clustering_key,
                               const std::vector<Operation>& operations,
                               bool is_static) -> Result<void> {
        for (const Operation& operation : operations) {
          if (!operation.needs_read()) continue;
          ListContents::Entry entry{Bytes(partition.partition_key),
                                    Bytes(clustering_key),
                                    is_static,
                                    operation.column->id,
                                    {}};
          storage::RowRecordReader reader;
          TETRAD_TRY_VOID(reader.open(record));
          Cell cell;
          while (reader.next(cell)) {
            if (cell.column_id == operation.column->id && cell.has_path &&
                cell.live_at(context.now_s)) {
              entry.elements.push_back({Bytes(cell.path), Bytes(cell.value)});
            }
          }
          TETRAD_TRY_VOID(reader.status());
          lists.entries.push_back(std::move(entry));
        }
        return {};
      };
      if (!partition.header.empty()) {
        TETRAD_CO_TRY_VOID(collect(partition.header, {}, static_operations_, true));
      }
      for (const storage::RowData& row : partition.rows) {
        TETRAD_CO_TRY_VOID(collect(row.record, row.clustering_key, regular_operations_, false));
      }
    }
  }
  co_return lists;
}

Task<Result<StatementResult>> ModifyStatement::execute(ExecuteContext& context,
                                                       std::span<const BoundValue> values) const {
  base::Arena arena;
  const int64_t now_us = context.coordinator.next_timestamp_us();
  const FunctionEnvironment functions = make_function_environment(context);
  EvalContext evaluation{values, arena, functions, context.now_s, nullptr, {}};
  WriteMoment moment;
  moment.now_s = context.now_s;
  TETRAD_CO_TRY(moment.timestamp_us,
                timestamp(evaluation, context.options.timestamp_us.value_or(now_us)));
  TETRAD_CO_TRY_VOID(check_write_level(context.options.consistency));
  const base::Deadline deadline{context.reactor.now_us() + context.settings.write_timeout_us};
  ListCellIds ids(context.random, now_us);
  ListContents lists;
  if (needs_read_) {
    auto read = co_await read_lists(context, evaluation, deadline);
    if (!read) co_return std::unexpected(std::move(read).error());
    lists = std::move(*read);
  }
  std::vector<storage::Mutation> mutations;
  TETRAD_CO_TRY_VOID(add_mutations(evaluation, moment, ids, &lists,
                                   context.settings.in_cartesian_product_max, mutations));
  if (mutations.empty()) co_return StatementResult();
  TETRAD_CO_TRY_VOID(check_mutation_sizes(mutations, *table_, context.settings));
  const replication::WriteOptions options{
      context.options.consistency, deadline,
      mutations.size() == 1 ? base::WriteType::kSimple : base::WriteType::kUnloggedBatch,
      &context.warnings};
  auto written = co_await context.coordinator.write(std::move(mutations), options);
  if (!written) co_return std::unexpected(std::move(written).error());
  co_return StatementResult();
}

}  // namespace tetrad::cql
