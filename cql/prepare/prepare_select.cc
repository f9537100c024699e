// SPDX-License-Identifier: Apache-2.0
// SELECT from the tree to a SelectStatement, against one snapshot of the schema.
//
// 1. Guardrails on ALLOW FILTERING and GROUP BY; rules of the change feed.
// 2. select_list(): each item becomes an expression. Columns that are used get slots of the row
//    layout (ExpressionBuilder::slot_of).
// 3. ORDER BY is read, since an ANN ordering takes part in the checks of WHERE.
// 4. WHERE (Restrictions::build).
// 5. Errors of the select list that Cassandra finds after WHERE are reported now
//    (selection_error_).
// 6. DISTINCT, GROUP BY, ORDER BY, limits, and whether ALLOW FILTERING is missing.
// 7. Masks of columns; then finish() fixes the layout and chooses short ways of execution:
//    plain_slots_, counts_only_, folds_.
//
// The order is Cassandra's: of several errors the same one is reported.
#include "cql/prepare/prepare_select.h"

#include <algorithm>
#include <utility>

#include "cql/grammar/ast_print.h"
#include "cql/index/index_options.h"
#include "cql/prepare/column_masks.h"
#include "cql/prepare/expression_parts.h"
#include "cql/prepare/metadata_size.h"
#include "cql/prepare/prepare_modify.h"
#include "cql/prepare/prepared_select.h"
#include "cql/system/virtual_tables.h"
#include "cql/types/json.h"
#include "cql/types/keyword.h"
#include "cql/types/ordered_encoding.h"

namespace tetrad::cql {

namespace {

// Bounds the work for one row.
constexpr size_t kSelectorsMax = 10'000;

bool has_times(const RawExpression& raw) {
  return raw.kind == RawExpression::Kind::kTimes || std::ranges::any_of(raw.children, has_times);
}

/// A native aggregate of a column whose values are native, or of rows.
// Such aggregates are folded by replicas (execute/aggregate_fold.h); others need the rows here.
bool folds(const AggregateCall& call) {
  if (call.function->folding == Folding::kNever) return false;
  if (call.arguments.empty()) return true;
  const Expression& argument = *call.arguments.front();
  return argument.slot() >= 0 && argument.type()->is_native();
}

}  // namespace

// Says for each part of a stored row which slot gets it: by position for key columns, by column id
// for cells. kUnread: the column exists but is not used; kUnknown: no column has this id now.
RowLayout RowLayout::make(TablePtr table, std::vector<const ColumnSchema*> slots,
                          bool wants_times) {
  RowLayout layout;
  layout.wants_times = wants_times;
  layout.partition_slots.assign(table->partition_key().size(), kUnread);
  layout.clustering_slots.assign(table->clustering().size(), kUnread);
  for (const ColumnSchema& column : table->clustering()) {
    layout.lossy_clustering = layout.lossy_clustering || can_be_lossy(*column.type);
  }
  for (const ColumnSchema& column : table->columns()) {
    if (column.is_primary_key()) continue;
    if (layout.slot_by_id.size() <= column.id) layout.slot_by_id.resize(column.id + 1, kUnknown);
    layout.slot_by_id[column.id] = kUnread;
  }
  // A column that was dropped and added again with the same id: cells from before the drop must not
  // show again.
  for (const DroppedColumn& dropped : table->dropped_columns) {
    const ColumnSchema* column = table->find(dropped.name);
    if (column == nullptr || column->id != dropped.id) continue;
    layout.dropped_until_us.resize(layout.slot_by_id.size(), INT64_MIN);
    layout.dropped_until_us[column->id] = dropped.dropped_time_us;
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const ColumnSchema& column = *slots[i];
    const auto slot = static_cast<int32_t>(i);
    // A counter has a cell for each of its shards.
    layout.is_multi_cell.push_back(column.type->is_multi_cell() || column.type->is_counter());
    switch (column.kind) {
      case ColumnKind::kPartitionKey:
        layout.partition_slots[column.position] = slot;
        break;
      case ColumnKind::kClustering:
        layout.clustering_slots[column.position] = slot;
        layout.clustering_read_count =
            std::max<size_t>(layout.clustering_read_count, column.position + 1);
        break;
      case ColumnKind::kStatic:
        layout.static_slots.push_back(slot);
        layout.slot_by_id[column.id] = slot;
        break;
      case ColumnKind::kRegular:
        layout.regular_slots.push_back(slot);
        layout.slot_by_id[column.id] = slot;
        break;
    }
  }
  layout.table = std::move(table);
  layout.slots = std::move(slots);
  return layout;
}

/// Fills a SelectStatement.
class SelectPreparer {
 public:
  SelectPreparer(const ast::Select& source, const PrepareContext& context, TablePtr table)
      : source_(source),
        context_(context),
        table_(std::move(table)),
        markers_(context.marker_names.size()),
        builder_(context, *table_, markers_),
        made_(std::make_shared<SelectStatement>()) {}

  Result<StatementPtr> run() {
    made_->table_ = table_;
    made_->is_json_ = source_.json;
    made_->distinct_ = source_.distinct;
    const Guardrails& guardrails = context_.settings.guardrails;
    TETRAD_TRY_VOID(
        check_enabled(guardrails.allow_filtering || !source_.allow_filtering || table_->is_virtual,
                      "allow_filtering", "Querying with ALLOW FILTERING",
                      "ALLOW FILTERING can potentially visit all the data in the table "
                      "and have unpredictable performance."));
    TETRAD_TRY_VOID(check_enabled(guardrails.group_by || source_.group_by.empty(), "group_by",
                                  "GROUP BY functionality"));
    TETRAD_TRY_VOID(check_change_feed());
    TETRAD_TRY_VOID(select_list());
    TETRAD_TRY_VOID(read_orderings());
    TETRAD_TRY(
        made_->where_,
        Restrictions::build(source_.where, builder_, WhereOf::kSelect,
                            source_.allow_filtering || is_listed_as_virtual(table_->keyspace),
                            only_static_, made_->nearest_ ? made_->nearest_->column : nullptr));
    if (selection_error_) return std::unexpected(*std::move(selection_error_));
    if (source_.distinct) {
      if (source_.per_partition_limit) {
        return fail(ErrorCode::kInvalid,
                    "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries");
      }
      TETRAD_TRY_VOID(check_distinct());
    }
    if (made_->where_.change_feed() != nullptr && made_->is_aggregate_) {
      return not_with_change_feed("Aggregates");
    }
    TETRAD_TRY_VOID(group_by());
    if (source_.per_partition_limit && made_->is_aggregate_ && !made_->is_grouped_) {
      return fail(ErrorCode::kInvalid,
                  "PER PARTITION LIMIT is not allowed with aggregate queries.");
    }
    if (made_->nearest_) {
      TETRAD_TRY_VOID(order_by_distance());
    } else if (!source_.order_by.empty()) {
      TETRAD_TRY_VOID(order_by());
    }
    TETRAD_TRY_VOID(limits());
    TETRAD_TRY_VOID(made_->where_.check_filtering_allowed());
    TETRAD_TRY_VOID(masks());
    finish();
    return made_;
  }

 private:
  Result<void> select_list() {
    if (source_.items.size() > kSelectorsMax) {
      return fail(ErrorCode::kInvalid, "A SELECT may have {} selectors at most, not {}",
                  kSelectorsMax, source_.items.size());
    }
    std::vector<ColumnSpec> specs;
    if (source_.items.empty()) {
      for (const ColumnSchema& column : table_->columns()) {
        if (column.hidden) continue;
        specs.push_back({table_->keyspace, table_->name, column.name, column.type});
        made_->outputs_.push_back(make_column(column.type, builder_.slot_of(column)));
        // selected_ is what the checks of DISTINCT and of static columns look at.
        selected_.push_back(&column);
      }
    }
    // Cassandra looks at the items before WHERE where there are static columns, as long as it does
    // not know whether only such are selected; at others after WHERE. The columns of a compact table
    // are none.
    bool looks_at_all = table_->has_static() && !table_->has_hidden_clustering();
    for (const ast::SelectItem& item : source_.items) {
      const RawExpression raw = raw_of(item.selector);
      Result<void> undefined;
      for_each_column(raw, [&](const ast::Identifier& name) {
        const ColumnSchema* column = table_->find(name.text);
        if (column != nullptr) selected_.push_back(column);
      });
      wants_times_ = wants_times_ || has_times(raw);
      auto made = builder_.selector(item.selector);
      if (!made) {
        if (looks_at_all && !builder_.failed_late())
          return std::unexpected(std::move(made).error());
        if (!selection_error_) selection_error_ = std::move(made).error();
      }
      const auto has = [&](bool wanted) {
        return std::ranges::any_of(selected_, [&](const ColumnSchema* column) {
          return column->kind == ColumnKind::kStatic
                     ? wanted
                     : !wanted && column->kind != ColumnKind::kPartitionKey;
        });
      };
      // Once both kinds of columns are selected the question is decided, and Cassandra stops
      // looking early.
      looks_at_all = looks_at_all && !(has(true) && has(false));
      if (selection_error_) continue;
      ExpressionPtr output = std::move(*made);
      std::string name = item.alias ? item.alias->text : name_of(item.selector);
      specs.push_back({table_->keyspace, table_->name, std::move(name), output->type()});
      made_->outputs_.push_back(std::move(output));
    }
    bool any_static = false, any_other = false;
    for (const ColumnSchema* column : selected_) {
      any_static = any_static || column->kind == ColumnKind::kStatic;
      any_other = any_other || (column->kind != ColumnKind::kStatic &&
                                column->kind != ColumnKind::kPartitionKey);
    }
    // WHERE may then not restrict clustering columns.
    only_static_ = any_static && !any_other && !source_.items.empty();
    if (selection_error_) return {};
    if (source_.json) {
      for (const ColumnSpec& spec : specs) {
        made_->json_names_.push_back(quote_json_column_name(spec.name));
      }
      // SELECT JSON answers one column; the names above become members of its objects.
      specs = {{table_->keyspace, table_->name, "[json]", text_type()}};
    }
    TETRAD_TRY_VOID(check_metadata_size(specs));
    made_->result_metadata_ = std::make_shared<const ResultMetadata>(std::move(specs));
    made_->is_aggregate_ = builder_.has_aggregates();
    return {};
  }

  static std::unexpected<Error> not_with_change_feed(std::string_view what) {
    return fail(ErrorCode::kInvalid, "{} cannot be used with {}()", what, kChangeFeedFunction);
  }

  /// What has no meaning for a feed without an end.
  Result<void> check_change_feed() const {
    if (std::ranges::none_of(source_.where, [](const ast::Relation& relation) {
          return relation.target == ast::Relation::Target::kChangeFeed;
        }))
      return {};
    if (source_.distinct) return not_with_change_feed("DISTINCT");
    if (!source_.group_by.empty()) return not_with_change_feed("GROUP BY");
    if (!source_.order_by.empty()) return not_with_change_feed("ORDER BY");
    if (source_.per_partition_limit) return not_with_change_feed("PER PARTITION LIMIT");
    if (source_.limit) return not_with_change_feed("LIMIT");
    if (source_.allow_filtering) return not_with_change_feed("ALLOW FILTERING");
    if (table_->options.cdc) return {};
    if (table_->is_virtual || table_->keyspace == kTracesKeyspace) {
      return fail(ErrorCode::kInvalid, "Tables of system keyspaces have no change feed");
    }
    const std::string name =
        quote_identifier(table_->keyspace) + "." + quote_identifier(table_->name);
    return fail(ErrorCode::kInvalid,
                "Table {} keeps no log of its changes: switch it on with ALTER TABLE {} WITH "
                "cdc = true",
                name, name);
  }

  std::string name_of(const ast::Selector& selector) const {
    if (const auto* column = selector.get_if<ast::ColumnSelector>()) return column->name.text;
    return ast::result_name(
        selector, [&](const ast::FunctionName& name) { return builder_.function_full_name(name); },
        [&](const ast::CastSelector& cast) { return builder_.casts_nothing(cast); },
        table_->keyspace);
  }

  Result<void> check_distinct() {
    const bool by_regular =
        made_->nearest_ && made_->nearest_->column->kind == ColumnKind::kRegular;
    if (made_->where_.has_clustering() || made_->where_.has_regular() || by_regular) {
      return fail(ErrorCode::kInvalid,
                  "SELECT DISTINCT with WHERE clause only supports restriction by partition key "
                  "and/or static columns.");
    }
    for (const ColumnSchema* column : selected_) {
      if (column->kind != ColumnKind::kPartitionKey && column->kind != ColumnKind::kStatic) {
        return fail(ErrorCode::kInvalid,
                    "SELECT DISTINCT queries must only request partition key columns and/or static "
                    "columns (not {})",
                    column->name);
      }
    }
    // To sort the rows of several partitions Cassandra selects the columns of ORDER BY as well.
    if (made_->where_.has_partition_key_in()) {
      for (const ast::Ordering& ordering : source_.order_by) {
        const ColumnSchema* column = table_->find(ordering.column.text);
        if (column->kind == ColumnKind::kPartitionKey || column->kind == ColumnKind::kStatic) {
          continue;
        }
        return fail(ErrorCode::kInvalid,
                    "SELECT DISTINCT queries must only request partition key columns and/or static "
                    "columns (not {})",
                    column->name);
      }
    }
    if (made_->where_.is_key_range() || made_->where_.on_token()) {
      for (const ColumnSchema& column : table_->partition_key()) {
        if (std::ranges::find(selected_, &column) == selected_.end()) {
          return fail(ErrorCode::kInvalid,
                      "SELECT DISTINCT queries must request all the partition key columns (missing "
                      "{})",
                      column.name);
        }
      }
    }
    return {};
  }

  // Columns must follow the order of the primary key, without gaps but where a column left out has
  // `=`. So rows of one group lie together, and grouping needs no memory beyond the group that is
  // open. The last item may be a function of its column.
  Result<void> group_by() {
    if (source_.group_by.empty()) return {};
    made_->is_grouped_ = made_->is_aggregate_ = true;
    std::vector<const ColumnSchema*> key;
    for (const auto& column : table_->partition_key()) key.push_back(&column);
    for (const auto& column : table_->clustering()) key.push_back(&column);
    size_t next = 0;
    bool had_function = false, groups_rows = false;
    for (const ast::Selector& selector : source_.group_by) {
      const ColumnSchema* column = nullptr;
      ExpressionPtr function;
      if (const auto* plain = selector.get_if<ast::ColumnSelector>()) {
        TETRAD_TRY(column, builder_.column(plain->name));
        if (!column->is_primary_key()) {
          return fail(ErrorCode::kInvalid,
                      "Group by is currently only supported on the columns of the PRIMARY KEY, got "
                      "{}",
                      column->name);
        }
        if (had_function) {
          return fail(ErrorCode::kInvalid,
                      "Functions are only supported on the last element of the GROUP BY clause");
        }
      } else {
        TETRAD_TRY(GroupFunction called, builder_.group_function(selector));
        column = called.column;
        function = std::move(called.value);
        made_->group_error_ = std::move(called.refused);
        had_function = true;
      }
      while (true) {
        if (next == key.size()) return wrong_group_order();
        const ColumnSchema* expected = key[next++];
        if (expected == column) break;
        if (!made_->where_.is_equal(*expected)) return wrong_group_order();
      }
      groups_rows = groups_rows || column->kind == ColumnKind::kClustering;
      if (groups_rows) {
        made_->group_columns_ = next - table_->partition_key().size() - (function ? 1 : 0);
        made_->group_function_ = std::move(function);
      }
    }
    if (next < table_->partition_key().size()) {
      return fail(ErrorCode::kInvalid,
                  "Group by is not supported on only a part of the partition key");
    }
    if (source_.distinct && groups_rows) {
      return fail(ErrorCode::kInvalid,
                  "Grouping on clustering columns is not allowed for SELECT DISTINCT queries");
    }
    return {};
  }
  static std::unexpected<Error> wrong_group_order() {
    return fail(ErrorCode::kInvalid,
                "Group by currently only support groups of columns following their declared order "
                "in the PRIMARY KEY");
  }

  /// Looked at before WHERE.
  Result<void> read_orderings() {
    const ast::Ordering* nearest = nullptr;
    for (const ast::Ordering& ordering : source_.order_by) {
      TETRAD_TRY(const ColumnSchema* column, builder_.column(ordering.column));
      if (!ordering.ann_of) continue;
      TETRAD_TRY(ExpressionPtr vector, builder_.term(*ordering.ann_of, Receiver::of(*column)));
      if (nearest != nullptr) {
        return fail(ErrorCode::kInvalid, "Cannot specify more than one ANN ordering");
      }
      nearest = &ordering;
      made_->nearest_ = NearestOrder{column, -1, std::move(vector), {}, false};
    }
    if (nearest == nullptr) return {};
    if (source_.order_by.size() > 1) {
      return fail(ErrorCode::kInvalid, "ANN ordering does not support any other ordering");
    }
    if (nearest->descending) {
      return fail(ErrorCode::kInvalid, "Descending ANN ordering is not supported");
    }
    return {};
  }

  /// After WHERE, which has found the column's index.
  Result<void> order_by_distance() {
    if (made_->is_aggregate_) {
      return fail(ErrorCode::kInvalid, "Top-K queries can not be run with aggregation");
    }
    NearestOrder& nearest = *made_->nearest_;
    nearest.slot = builder_.slot_of(*nearest.column);
    for (const IndexSchema& index : table_->indexes) {
      if (index.column != nearest.column->name || !is_vector_index(index, *nearest.column->type))
        continue;
      nearest.index = &index;
      nearest.similarity = vector_similarity(index);
      nearest.favours_recall = favours_recall(index);
      return {};
    }
    // Another kind of index is on it: whatever WHERE allows, there is none to order by.
    return fail(ErrorCode::kInvalid, "ANN ordering by vector requires the column to be indexed");
  }

  // Rows of a partition are stored in one order and can be read forwards or backwards: each
  // direction must equal the table's, or each must be its opposite.
  Result<void> order_by() {
    const Restrictions& where = made_->where_;
    if (where.uses_index()) {
      return fail(ErrorCode::kInvalid,
                  "ORDER BY with 2ndary indexes is not supported, except for ANN queries.");
    }
    if (where.is_key_range() || where.on_token()) {
      return fail(ErrorCode::kInvalid,
                  "ORDER BY is only supported when the partition key is restricted by an EQ or an "
                  "IN.");
    }
    size_t next = 0;
    std::optional<bool> reversed;
    // Of a column that is named twice the last direction counts, in the place of the first.
    std::vector<ast::Ordering> order;
    for (const ast::Ordering& ordering : source_.order_by) {
      const auto named = std::ranges::find_if(order, [&](const ast::Ordering& other) {
        return other.column.text == ordering.column.text;
      });
      if (named == order.end()) {
        order.push_back(ordering);
      } else {
        named->descending = ordering.descending;
      }
    }
    for (const ast::Ordering& ordering : order) {
      TETRAD_TRY(const ColumnSchema* column, builder_.column(ordering.column));
      if (column->kind != ColumnKind::kClustering) {
        return fail(ErrorCode::kInvalid,
                    "Order by is currently only supported on the clustered columns of the PRIMARY "
                    "KEY, got {}",
                    column->name);
      }
      while (next != column->position) {
        if (next > column->position || !where.is_equal(table_->clustering()[next])) {
          return fail(ErrorCode::kInvalid,
                      "Order by currently only supports the ordering of columns following their "
                      "declared order in the PRIMARY KEY");
        }
        ++next;
      }
      ++next;
      const bool against = ordering.descending != column->descending;
      if (reversed && *reversed != against) {
        return fail(ErrorCode::kInvalid, "Unsupported order by relation");
      }
      reversed = against;
    }
    made_->reversed_ = *reversed;
    made_->order_columns_ = next;
    return {};
  }

  Result<void> limits() {
    if (source_.limit) {
      TETRAD_TRY(made_->limit_, builder_.term(*source_.limit, {"[limit]", int_type(), nullptr}));
    }
    if (source_.per_partition_limit) {
      TETRAD_TRY(made_->per_partition_limit_,
                 builder_.term(*source_.per_partition_limit,
                               {"[per_partition_limit]", int_type(), nullptr}));
    }
    if (source_.timeout) {
      TETRAD_TRY(made_->timeout_,
                 builder_.term(*source_.timeout, {"[timeout]", duration_type(), nullptr}));
    }
    return {};
  }

  // restricted_masks_ are masked columns that WHERE or ORDER BY depends on: who may not unmask them
  // could find their values by asking.
  Result<void> masks() {
    if (!context_.settings.data_masking_enabled) return {};
    TETRAD_TRY(made_->masks_, make_masks(builder_.slots(), *context_.schema, context_.settings,
                                         made_->mask_functions_));
    for (const ColumnSchema& column : table_->columns()) {
      if (!column.mask) continue;
      if (column.is_primary_key()) made_->masks_keys_ = true;
      const bool is_order = made_->nearest_ && made_->nearest_->column == &column;
      if (is_order || made_->where_.is_restricted(column))
        made_->restricted_masks_.push_back(column.name);
    }
    return {};
  }

  void finish() {
    SelectStatement& made = *made_;
    made.aggregates_ = builder_.take_aggregates();
    made.selected_keys_ = builder_.take_selected_keys();
    made.used_functions_ = builder_.take_used_functions();
    made.layout_ = RowLayout::make(table_, builder_.slots(), wants_times_);
    // plain_slots_ is filled only if all outputs are columns: their values are copied without
    // evaluation.
    if (!made.is_json_ && !made.is_aggregate_) {
      for (const ExpressionPtr& output : made.outputs_) {
        if (output->slot() < 0) {
          made.plain_slots_.clear();
          break;
        }
        made.plain_slots_.push_back(output->slot());
      }
    }
    // Partitions without rows are none of the nearest.
    made.static_only_rows_ =
        table_->has_static() && !made.where_.has_clustering() && !made.nearest_;
    made.wants_static_ = made.static_only_rows_ || !made.layout_.static_slots.empty();
    // Replicas can count or fold only where each live row takes part: no filters, and no dropped
    // columns, of which stores know nothing.
    const bool may_fold = made.is_aggregate_ && !made.is_grouped_ && !made.distinct_ &&
                          !made.where_.needs_filtering() && table_->dropped_columns.empty();
    made.counts_only_ = may_fold && made.aggregates_.size() == 1 &&
                        made.aggregates_[0].counts_rows && made.layout_.slots.empty();
    made.folds_ = may_fold && !made.counts_only_ && !builder_.selects_columns() && !wants_times_ &&
                  std::ranges::all_of(made.aggregates_, folds);
    made.tells_filtering_ = source_.allow_filtering && made.where_.leaves_out_rows();
    made.partition_key_indexes_ = markers_.partition_key_indexes(*table_);
    made.bind_variables_ = std::move(markers_).take();
    made.table_id_ = table_->id;
  }

  const ast::Select& source_;
  const PrepareContext& context_;
  const TablePtr table_;
  BindMarkers markers_;
  ExpressionBuilder builder_;
  std::shared_ptr<SelectStatement> made_;
  std::vector<const ColumnSchema*> selected_;
  std::optional<Error> selection_error_;  // reported after errors of WHERE
  bool only_static_ = false, wants_times_ = false;
};

Result<StatementPtr> prepare_select(const ast::Select& statement, const PrepareContext& context) {
  TETRAD_TRY(TablePtr table, find_table(statement.from, context));
  return SelectPreparer(statement, context, std::move(table)).run();
}

}  // namespace tetrad::cql
