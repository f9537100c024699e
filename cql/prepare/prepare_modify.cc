// SPDX-License-Identifier: Apache-2.0
// INSERT, UPDATE, DELETE and BATCH from the tree to a ModifyStatement or a BatchStatement: checked
// against one snapshot of the schema, values as expressions.
//
// 1. open(): the table, which must be one that can be written.
// 2. Conditions (IF), then what is written: each assignment or deletion becomes a ColumnOperation.
// 3. WHERE, or the key values of an INSERT.
// 4. USING: timestamp, TTL, timeout.
// 5. Checks that need all of it: conditional statements, counters.
// 6. finish(): operations are sorted by column id, as a row record has them, so that execution
//    appends cells in order.
//
// The order of the steps differs between the statements: it is Cassandra's, and it decides which of
// several errors is reported. The parts of a batch share one BindMarkers, so their markers are
// numbered through.
#include "cql/prepare/prepare_modify.h"

#include <algorithm>
#include <utility>

#include "cql/prepare/column_operation.h"
#include "cql/prepare/prepared_modify.h"
#include "cql/types/ordered_encoding.h"

namespace tetrad::cql {

namespace {

using Operation = ColumnOperation;

}  // namespace

// Also used for BATCH requests of the protocol, whose parts are prepared one by one.
void BatchCheck::add(const ModifyStatement& statement) {
  if (first_ == nullptr) first_ = &statement;
  const TableSchema& table = statement.table();
  has_conditions_ = has_conditions_ || statement.has_conditions();
  has_timestamps_ = has_timestamps_ || statement.has_timestamp();
  has_several_tables_ = has_several_tables_ || table.incarnation != first_->table().incarnation;
  (table.is_counter ? has_counters_ : has_others_) = true;
}

// The order of the tests is Cassandra's (BatchStatement.validate).
Result<void> BatchCheck::check(BatchType type, bool has_timestamp) const {
  if (has_timestamp && has_conditions_) {
    return fail(ErrorCode::kInvalid, "Cannot provide custom timestamp for conditional BATCH");
  }
  if (has_timestamp && type == BatchType::kCounter) {
    return fail(ErrorCode::kInvalid, "Cannot provide custom timestamp for counter BATCH");
  }
  if (has_timestamp && has_timestamps_) {
    return fail(ErrorCode::kInvalid,
                "Timestamp must be set either on BATCH or individual statements");
  }
  if (has_timestamp && has_counters_) {
    return fail(ErrorCode::kInvalid,
                "Cannot provide custom timestamp for a BATCH containing counters");
  }
  if (type == BatchType::kCounter && has_others_) {
    return fail(ErrorCode::kInvalid, "Cannot include non-counter statement in a counter batch");
  }
  if (has_counters_ && has_others_) {
    return fail(ErrorCode::kInvalid,
                "Counter and non-counter mutations cannot exist in the same batch");
  }
  if (type == BatchType::kLogged && has_counters_) {
    return fail(ErrorCode::kInvalid, "Cannot include a counter statement in a logged batch");
  }
  if (has_conditions_ && has_several_tables_) {
    return fail(ErrorCode::kInvalid, "Batch with conditions cannot span multiple tables");
  }
  return {};
}

/// Fills a ModifyStatement or a BatchStatement.
class ModifyPreparer {
 public:
  ModifyPreparer(const PrepareContext& context, BindMarkers& markers)
      : context_(context), markers_(markers) {}

  using Made = std::shared_ptr<ModifyStatement>;

  // Each returns the statement without its markers and functions; alone() and batch() add them.
  Result<Made> insert(const ast::Insert& source) {
    TETRAD_TRY_VOID(open(source.table, ModifyStatement::Kind::kInsert));
    if (table_->is_counter) {
      return fail(ErrorCode::kInvalid,
                  "INSERT statements are not allowed on counter tables, use UPDATE instead");
    }
    if (source.columns.size() != source.values.size()) {
      return fail(ErrorCode::kInvalid, "Unmatched column names/values");
    }
    if (source.columns.empty()) return fail(ErrorCode::kInvalid, "No columns provided to INSERT");
    std::vector<const ColumnSchema*> columns;
    for (const ast::Identifier& name : source.columns) {
      TETRAD_TRY(const ColumnSchema* column, builder_->column(name));
      if (std::ranges::find(columns, column) != columns.end()) {
        return fail(ErrorCode::kInvalid, "The column names contains duplicates");
      }
      columns.push_back(column);
    }
    Made& made = made_;
    made->partition_values_.resize(table_->partition_key().size());
    made->clustering_values_.resize(table_->clustering().size());
    // Other columns first, then keys.
    for (const bool keys : {false, true}) {  // as Cassandra checks them
      for (size_t i = 0; i < columns.size(); ++i) {
        const ColumnSchema& column = *columns[i];
        if (column.is_primary_key() != keys) continue;
        TETRAD_TRY(ExpressionPtr value, builder_->term(source.values[i], Receiver::of(column)));
        if (!keys) {
          add_whole(column, std::move(value));
        } else if (column.kind == ColumnKind::kPartitionKey) {
          made->partition_values_[column.position] = std::move(value);
        } else {
          made->clustering_values_[column.position] = std::move(value);
        }
      }
    }
    TETRAD_TRY_VOID(check_insert_keys());
    TETRAD_TRY_VOID(attributes(source.attributes));
    if (source.if_not_exists) made_->conditions_.kind = Conditions::Kind::kNotExists;
    TETRAD_TRY_VOID(check_conditional());
    finish_insert();
    return std::move(made_);
  }

  Result<Made> insert_json(const ast::InsertJson& source) {
    TETRAD_TRY_VOID(open(source.table, ModifyStatement::Kind::kInsert));
    if (table_->is_counter) {
      return fail(ErrorCode::kInvalid,
                  "INSERT statements are not allowed on counter tables, use UPDATE instead");
    }
    TETRAD_TRY(made_->json_, builder_->term(source.value, {"[json]", text_type(), nullptr}));
    made_->json_default_unset_ = source.default_unset;
    if (const auto* json = source.value.get_if<ast::Literal>()) {  // read once, to refuse it early
      base::Arena arena;
      // An error in a literal text is reported when the statement is prepared, as in Cassandra.
      TETRAD_TRY([[maybe_unused]] const auto values,
                 made_->decode_json(BoundValue::of(json->text), arena, 0));
    }
    TETRAD_TRY_VOID(attributes(source.attributes));
    if (source.if_not_exists) made_->conditions_.kind = Conditions::Kind::kNotExists;
    TETRAD_TRY_VOID(check_conditional());
    // Every column gets its value by its place.
    made_->partition_values_.resize(table_->partition_key().size());
    made_->clustering_values_.resize(table_->clustering().size());
    int32_t index = 0;
    made_->writes_rows_ = !table_->has_hidden_clustering();
    for (const ColumnSchema& column : table_->columns()) {
      // decode_json() makes the values that these markers stand for, one for each column.
      ExpressionPtr value = make_marker(column.type, index++);
      if (column.hidden && !made_->writes_rows_) continue;
      switch (column.kind) {
        case ColumnKind::kPartitionKey:
          made_->partition_values_[column.position] = std::move(value);
          break;
        case ColumnKind::kClustering:
          made_->clustering_values_[column.position] = std::move(value);
          break;
        default:
          add_whole(column, std::move(value));
          break;
      }
    }
    finish_insert();
    return std::move(made_);
  }

  Result<Made> update(const ast::Update& source) {
    TETRAD_TRY_VOID(open(source.table, ModifyStatement::Kind::kUpdate));
    TETRAD_TRY_VOID(check_assignments(source.assignments));
    TETRAD_TRY_VOID(conditions(source.if_exists, source.conditions, source.attributes));
    for (const ast::Assignment& assignment : source.assignments) {
      TETRAD_TRY(const ColumnSchema* column, builder_->column(assignment.column));
      if (column->is_primary_key()) {
        return fail(ErrorCode::kInvalid, "PRIMARY KEY part {} found in SET part", column->name);
      }
      TETRAD_TRY(Operation operation,
                 operation_of(assignment, *column, *builder_, made_->has_conditions()));
      add(std::move(operation));
    }
    made_->writes_rows_ = !made_->regular_operations_.empty();
    // Then WHERE must not name clustering columns: static columns belong to the partition.
    const bool only_static = !made_->writes_rows_ && !made_->conditions_.on_regular;
    TETRAD_TRY(made_->where_,
               Restrictions::build(source.where, *builder_, WhereOf::kUpdate, false, only_static));
    TETRAD_TRY_VOID(attributes(source.attributes));
    TETRAD_TRY_VOID(check_conditional());
    TETRAD_TRY_VOID(check_counter());
    finish();
    return std::move(made_);
  }

  Result<Made> remove(const ast::Delete& source) {
    TETRAD_TRY_VOID(open(source.table, ModifyStatement::Kind::kDelete));
    TETRAD_TRY_VOID(conditions(source.if_exists, source.conditions, source.attributes));
    for (const ast::Deletion& deletion : source.deletions) {
      TETRAD_TRY(const ColumnSchema* column, builder_->column(deletion.column));
      if (column->is_primary_key()) {
        return fail(ErrorCode::kInvalid,
                    "Invalid identifier {} for deletion (should not be a PRIMARY KEY part)",
                    column->name);
      }
      TETRAD_TRY(Operation operation, operation_of(deletion, *column, *builder_));
      add(std::move(operation));
    }
    // DELETE without columns deletes whole rows, ranges of them, or the partition.
    made_->deletes_rows_ = source.deletions.empty();
    made_->writes_rows_ = made_->deletes_rows_ || !made_->regular_operations_.empty();
    const bool only_static = !made_->writes_rows_ && !made_->conditions_.on_regular;
    TETRAD_TRY(made_->where_,
               Restrictions::build(source.where, *builder_, WhereOf::kDelete, false, only_static));
    if (!made_->regular_operations_.empty()) {
      const Restrictions& where = made_->where_;
      size_t covered = 0;
      for (const ColumnSchema& column : table_->clustering()) {
        covered += where.is_equal(column) || where.is_in(column) ? 1 : 0;
      }
      // Cells can be deleted only in rows that are named; the error comes when it runs, as in
      // Cassandra.
      made_->lacks_rows_ = covered != table_->clustering().size();
    }
    if (source.attributes.ttl) {
      return fail(ErrorCode::kInvalid, "TTL attribute is not allowed for deletes");
    }
    TETRAD_TRY_VOID(attributes(source.attributes));
    TETRAD_TRY_VOID(check_conditional());
    TETRAD_TRY_VOID(check_counter());
    TETRAD_TRY_VOID(check_conditional_delete());
    finish();
    return std::move(made_);
  }

  Result<StatementPtr> batch(const ast::Batch& source) {
    auto made = std::make_shared<BatchStatement>();
    made->type_ = static_cast<BatchType>(source.type);
    if (source.attributes.ttl) {
      return fail(ErrorCode::kInvalid, "Global TTL on the BATCH statement is not supported.");
    }
    BatchCheck check;
    for (const ast::Modification& modification : source.statements) {
      TETRAD_TRY(Made statement, std::visit([&](const auto& m) { return any(m); }, modification));
      if (statement->has_timeout()) {
        return fail(ErrorCode::kInvalid,
                    "Timeout must be set on BATCH, not on individual statements");
      }
      check.add(*statement);
      made->statements_.push_back(std::move(statement));
    }
    TETRAD_TRY_VOID(check.check(made->type_, source.attributes.timestamp.has_value()));
    for (const auto& statement : made->statements_) TETRAD_TRY_VOID(check_is_no_view(*statement));
    if (source.attributes.timestamp) {
      TETRAD_TRY(made->timestamp_,
                 batch_term(*made, *source.attributes.timestamp, "[timestamp]", bigint_type()));
    }
    if (source.attributes.timeout) {
      TETRAD_TRY(made->timeout_,
                 batch_term(*made, *source.attributes.timeout, "[timeout]", duration_type()));
    }
    if (!made->statements_.empty()) {
      const TableSchema& first = made->statements_.front()->table();
      const bool one_table = std::ranges::all_of(
          made->statements_, [&](const auto& statement) { return &statement->table() == &first; });
      // As Cassandra, for which a marker of the batch's timestamp is of another table.
      if (one_table && !is_marker(source.attributes.timestamp))
        made->partition_key_indexes_ = markers_.partition_key_indexes(first);
    }
    made->bind_variables_ = std::move(markers_).take();
    return made;
  }

  /// Ends the preparation of a statement that stands alone.
  Result<StatementPtr> alone(Made made) {
    TETRAD_TRY_VOID(check_is_no_view(*made));
    // The columns of `[applied]` and of refused rows are known when the statement is prepared.
    if (made->has_conditions()) {
      made->shape_ = std::make_shared<const ConditionalShape>(
          table_, made->conditions_.on_existence() ? ConditionalShape::all_columns(*table_)
                                                   : made->conditions_.shown());
    }
    made->used_functions_ = builder_->take_used_functions();
    // Which markers are the partition key: drivers route requests by it.
    made->partition_key_indexes_ = markers_.partition_key_indexes(*made->table_);
    made->bind_variables_ = std::move(markers_).take();
    return made;
  }

 private:
  Result<Made> any(const ast::Insert& source) { return with_functions(insert(source)); }
  Result<Made> any(const ast::InsertJson& source) { return with_functions(insert_json(source)); }
  Result<Made> any(const ast::Update& source) { return with_functions(update(source)); }
  Result<Made> any(const ast::Delete& source) { return with_functions(remove(source)); }

  Result<Made> with_functions(Result<Made> made) {
    if (made) (*made)->used_functions_ = builder_->take_used_functions();
    return made;
  }

  /// As Cassandra: after all else that a statement is refused for when it is prepared.
  static Result<void> check_is_no_view(const ModifyStatement& statement) {
    if (!statement.table().view) return {};
    return fail(ErrorCode::kInvalid, "Cannot directly modify a materialized view");
  }

  /// What USING of a batch says. The batch has no table of its own: its markers are named after the
  /// first statement's.
  static bool is_marker(const std::optional<ast::Term>& term) {
    return term && term->get_if<ast::BindMarker>() != nullptr;
  }

  Result<ExpressionPtr> batch_term(const BatchStatement& made, const ast::Term& term,
                                   const char* name, const TypePtr& type) {
    if (const auto* marker = term.get_if<ast::BindMarker>()) {
      const TableSchema* table =
          made.statements_.empty() ? nullptr : &made.statements_.front()->table();
      markers_.record(*marker, table == nullptr ? "" : table->keyspace,
                      table == nullptr ? "" : table->name, {name, type, nullptr});
      return make_marker(type, marker->index);
    }
    static const TableSchema kNoTable;
    ExpressionBuilder builder(context_, kNoTable, markers_);
    return builder.term(term, {name, type, nullptr});
  }

  /// Step 1: finds the table and begins a new statement on it. Errors: kInvalid.
  Result<void> open(const ast::QualifiedName& name, ModifyStatement::Kind kind) {
    TETRAD_TRY(table_, find_table(name, context_));
    if (table_->is_virtual) {
      return fail(ErrorCode::kInvalid, "Modification is not supported by table {}",
                  table_->qualified_name());
    }
    builder_.emplace(context_, *table_, markers_);
    made_ = std::make_shared<ModifyStatement>();
    made_->table_ = table_;
    made_->kind_ = kind;
    // Such rows need a cell with the original key (bind_modify.cc, key_cell_value).
    made_->lossy_clustering_ =
        std::ranges::any_of(table_->clustering(),
                            [](const ColumnSchema& column) { return can_be_lossy(*column.type); });
    for (const ColumnSchema& column : table_->clustering())
      for (const IndexSchema& index : table_->indexes)
        if (index.column == column.name && index.index_class == IndexClass::kSasi)
          add_limit(index, column, made_->clustering_limits_);
    return {};
  }

  /// USING of a statement. The names in brackets are those of its markers, as drivers see them.
  Result<void> attributes(const ast::Attributes& source) {
    if (source.timestamp) {
      TETRAD_TRY_VOID(check_enabled(context_.settings.guardrails.user_timestamps, "user_timestamps",
                                    "User provided timestamps (USING TIMESTAMP)"));
      TETRAD_TRY(made_->attributes_.timestamp,
                 builder_->term(*source.timestamp, {"[timestamp]", bigint_type(), nullptr}));
    }
    if (source.ttl) {
      TETRAD_TRY(made_->attributes_.ttl,
                 builder_->term(*source.ttl, {"[ttl]", int_type(), nullptr}));
    }
    if (source.timeout) {
      TETRAD_TRY(made_->attributes_.timeout,
                 builder_->term(*source.timeout, {"[timeout]", duration_type(), nullptr}));
    }
    return {};
  }

  /// Those of an UPDATE or DELETE, which are looked at before what it does.
  Result<void> conditions(bool if_exists, const std::vector<ast::Condition>& source,
                          const ast::Attributes& using_) {
    if (if_exists) {
      made_->conditions_.kind = Conditions::Kind::kExists;
      return {};
    }
    TETRAD_TRY(made_->conditions_,
               prepare_conditions(source, *builder_, using_.timestamp.has_value()));
    if (!context_.settings.data_masking_enabled) return {};
    for (const ColumnSchema* column : made_->conditions_.shown())
      if (column->mask) made_->restricted_masks_.push_back(column->name);
    return {};
  }

  /// IF goes with neither counters nor a timestamp of the client: Paxos gives the timestamp.
  Result<void> check_conditional() const {
    if (!made_->has_conditions()) return {};
    if (table_->is_counter) {
      return fail(ErrorCode::kInvalid, "Conditional updates are not supported on counter tables");
    }
    if (made_->has_timestamp()) {
      return fail(ErrorCode::kInvalid, "Cannot provide custom timestamp for conditional updates");
    }
    return {};
  }

  Result<void> check_counter() const {
    if (!table_->is_counter) return {};
    if (made_->has_timestamp()) {
      return fail(ErrorCode::kInvalid, "Cannot provide custom timestamp for counter updates");
    }
    if (made_->attributes_.ttl) {
      return fail(ErrorCode::kInvalid, "Cannot provide custom TTL for counter updates");
    }
    return {};
  }

  /// A conditional DELETE names one row, or none.
  Result<void> check_conditional_delete() const {
    const Restrictions& where = made_->where_;
    const bool names_row = std::ranges::all_of(
        table_->clustering(),
        [&](const ColumnSchema& column) { return where.is_equal(column) || where.is_in(column); });
    if (!made_->has_conditions() || names_row) return {};
    const auto refused = [](std::string_view what) {
      return fail(ErrorCode::kInvalid,
                  "DELETE statements must restrict all PRIMARY KEY columns with equality relations "
                  "in order to {}",
                  what);
    };
    // Its columns are static ones, and Cassandra has no row of it to delete.
    if (table_->has_hidden_clustering() && !made_->deletes_rows_) return {};
    if (made_->writes_rows_) return refused("delete non static columns");
    if (made_->conditions_.on_regular) return refused("use IF condition on non static columns");
    return {};
  }

  /// Where the index takes values up to a size only.
  void add_limit(const IndexSchema& index, const ColumnSchema& column,
                 std::vector<IndexLimit>& limits) const {
    const auto bytes_max = written_bytes_max(index, *column.type);
    if (!bytes_max) return;
    IndexLimit& limit = limits.emplace_back(
        index.target, *bytes_max,
        fmt::format("{} on {}({})", index.name, table_->qualified_name(), index.column));
    if (index.index_class != IndexClass::kSasi) return;
    if (auto terms = IndexTerms::of(*table_, index)) limit.words = std::move(*terms);
  }

  void add(Operation operation) {
    made_->needs_read_ = made_->needs_read_ || operation.needs_read();
    // Limits of indexed values are checked with each write, since a value that an index cannot keep
    // must be refused before it is stored.
    for (const IndexSchema& index : table_->indexes) {
      if (index.column != operation.column->name) continue;
      if (is_vector_index(index, *operation.column->type))
        operation.vector_index = vector_similarity(index);
      add_limit(index, *operation.column, operation.index_limits);
    }
    // A column of a view's primary key has the limits of keys.
    for (const std::string& name : table_->views) {
      const TablePtr view = context_.schema->table(table_->keyspace, name);
      const ColumnSchema* const column =
          view == nullptr ? nullptr : view->find(operation.column->name);
      if (column != nullptr && column->is_primary_key()) operation.key_of_view = name;
    }
    auto& operations = operation.column->kind == ColumnKind::kStatic ? made_->static_operations_
                                                                     : made_->regular_operations_;
    operations.push_back(std::move(operation));
  }

  /// A value of an INSERT.
  void add_whole(const ColumnSchema& column, ExpressionPtr value) {
    Operation operation;
    operation.kind =
        column.type->is_multi_cell() ? Operation::Kind::kSetWhole : Operation::Kind::kSet;
    operation.column = &column;
    operation.value = std::move(value);
    add(std::move(operation));
  }

  void finish() {
    for (auto* operations : {&made_->static_operations_, &made_->regular_operations_}) {
      std::ranges::stable_sort(*operations, {},
                               [](const Operation& operation) { return operation.column->id; });
      const auto repeated = std::ranges::adjacent_find(
          *operations, {}, [](const Operation& operation) { return operation.column->id; });
      if (repeated != operations->end()) made_->repeats_columns_ = true;
    }
  }

  void finish_insert() {
    finish();
    // See RowChange::complete (storage/row/mutation.h): only an INSERT of all regular columns.
    made_->may_be_complete_ = !made_->lossy_clustering_ && !table_->is_compact_storage &&
                              made_->regular_operations_.size() == table_->regular_columns().size();
  }

  /// An INSERT names the whole primary key; the partition key alone where it writes static columns
  /// only, and in a compact table the first clustering columns.
  Result<void> check_insert_keys() {
    std::string missing;
    const auto collect = [&](std::span<const ColumnSchema> columns,
                             const std::vector<ExpressionPtr>& values) {
      missing.clear();
      for (const ColumnSchema& column : columns) {
        if (values[column.position]) continue;
        if (!missing.empty()) missing += ", ";
        missing += column.name;
      }
    };
    collect(table_->partition_key(), made_->partition_values_);
    if (!missing.empty()) {
      return fail(ErrorCode::kInvalid, "Some partition key parts are missing: {}", missing);
    }
    collect(table_->clustering(), made_->clustering_values_);
    if (missing.empty()) return {};
    const bool none_given = std::ranges::none_of(
        made_->clustering_values_, [](const ExpressionPtr& value) { return value != nullptr; });
    // INSERT of the partition key and static columns alone.
    if (none_given && !made_->static_operations_.empty() && made_->regular_operations_.empty()) {
      made_->writes_rows_ = false;
      return {};
    }
    if (table_->is_compact_storage && !none_given) {  // a part of the clustering key is enough
      const auto& values = made_->clustering_values_;
      const auto is_given = [](const ExpressionPtr& value) { return value != nullptr; };
      const auto gap = std::ranges::find_if_not(values, is_given);
      const auto next = std::find_if(gap, values.end(), is_given);
      if (next == values.end()) return {};
      return fail(ErrorCode::kInvalid,
                  "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is "
                  "not restricted",
                  table_->clustering()[static_cast<size_t>(next - values.begin())].name,
                  table_->clustering()[static_cast<size_t>(gap - values.begin())].name);
    }
    return fail(ErrorCode::kInvalid, "Some clustering keys are missing: {}", missing);
  }

  // made_ is moved out when a statement is done; open() begins the next one of a batch.
  const PrepareContext& context_;
  BindMarkers& markers_;
  TablePtr table_;
  std::optional<ExpressionBuilder> builder_;
  Made made_;
};

Result<StatementPtr> prepare_insert(const ast::Insert& statement, const PrepareContext& context) {
  BindMarkers markers(context.marker_names.size());
  ModifyPreparer preparer(context, markers);
  TETRAD_TRY(auto made, preparer.insert(statement));
  return preparer.alone(std::move(made));
}

Result<StatementPtr> prepare_insert_json(const ast::InsertJson& statement,
                                         const PrepareContext& context) {
  BindMarkers markers(context.marker_names.size());
  ModifyPreparer preparer(context, markers);
  TETRAD_TRY(auto made, preparer.insert_json(statement));
  return preparer.alone(std::move(made));
}

Result<StatementPtr> prepare_update(const ast::Update& statement, const PrepareContext& context) {
  BindMarkers markers(context.marker_names.size());
  ModifyPreparer preparer(context, markers);
  TETRAD_TRY(auto made, preparer.update(statement));
  return preparer.alone(std::move(made));
}

Result<StatementPtr> prepare_delete(const ast::Delete& statement, const PrepareContext& context) {
  BindMarkers markers(context.marker_names.size());
  ModifyPreparer preparer(context, markers);
  TETRAD_TRY(auto made, preparer.remove(statement));
  return preparer.alone(std::move(made));
}

Result<StatementPtr> prepare_batch(const ast::Batch& statement, const PrepareContext& context) {
  BindMarkers markers(context.marker_names.size());
  ModifyPreparer preparer(context, markers);
  return preparer.batch(statement);
}

}  // namespace tetrad::cql
