// SPDX-License-Identifier: Apache-2.0
// CREATE, ALTER and DROP MATERIALIZED VIEW, with Cassandra 5.0's checks in their order.
//
// A view is a table with a definition (TableSchema::view); its base names it (views). Both change
// in one plan: the base's version is raised, so that no replica takes a write that does not know
// the view.
//
// Rules of Cassandra: all key columns of the base are in the view's key, with at most one other
// column; every key column is IS NOT NULL, or one of the base's key with a condition
// (view_condition.h).
#include <algorithm>
#include <set>

#include "base/uuid.h"
#include "cql/grammar/ast_print.h"
#include "cql/prepare/guardrails.h"
#include "cql/prepare/option_effects.h"
#include "cql/prepare/table_checks.h"
#include "cql/prepare/table_properties.h"
#include "cql/prepare/throughput_properties.h"
#include "cql/prepare/view_condition.h"
#include "cql/schema/schema_text.h"

namespace tetrad::cql {
namespace {

using Kind = SchemaChange::Kind;

/// Of a view's WHERE as the schema has it.
constexpr size_t kViewWhereBytesMax = 256 << 10;

/// The names with `between` between them, as errors show them.
std::string joined(const std::vector<std::string>& names, const char* between = ", ") {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : between) + name;
  return out;
}

// The set has at least 16 buckets and doubles when it is three quarters full; within a bucket names
// keep their order.
/// In the order in which a Java HashSet of column names gives them, which Cassandra's messages
/// have.
std::vector<std::string> in_hash_order(const std::vector<std::string>& names) {
  constexpr size_t kBucketsLeast = 16;
  size_t buckets = kBucketsLeast;
  while (names.size() * 4 > buckets * 3) buckets *= 2;
  const auto bucket_of = [&](const std::string& name) {
    // As Java's ByteBuffer.hashCode() of the name.
    uint32_t hash = 1;
    for (size_t i = name.size(); i > 0; --i)
      hash = 31 * hash + static_cast<uint32_t>(static_cast<signed char>(name[i - 1]));
    return (hash ^ (hash >> 16)) & (buckets - 1);
  };
  std::vector<std::string> out = names;
  std::ranges::stable_sort(out, {}, bucket_of);
  return out;
}

/// The columns that are selected; all of them for SELECT *. The view gets these and no others, so
/// an alias or a function has no place here.
Result<std::set<std::string>> selected_columns(const ast::CreateView& statement,
                                               const TableSchema& base) {
  std::set<std::string> selected;
  std::vector<std::string> names;  // the same, as they came
  const auto select = [&](const std::string& name) {
    if (selected.insert(name).second) names.push_back(name);
  };
  if (statement.items.empty())
    for (const ColumnSchema& column : base.columns()) select(column.name);
  for (const ast::SelectItem& item : statement.items) {
    if (item.alias) {
      return fail(ErrorCode::kInvalid,
                  "Cannot use aliases when defining a materialized view (got {} AS {})",
                  ast::to_string(item.selector), item.alias->text);
    }
    const auto* column = item.selector.get_if<ast::ColumnSelector>();
    if (column == nullptr) {
      return fail(ErrorCode::kInvalid,
                  "Can only select columns by name when defining a materialized view (got {})",
                  ast::to_string(item.selector));
    }
    if (base.find(column->name.text) == nullptr) {
      return undefined_column(column->name.text, base);
    }
    select(column->name.text);
  }
  for (const std::string& name : in_hash_order(names)) {
    if (base.find(name)->kind != ColumnKind::kStatic) continue;
    return fail(ErrorCode::kInvalid, "Cannot include static column '{}' in materialized view '{}'",
                name, statement.name.name.text);
  }
  return selected;
}

/// Where a column stands in the view's key.
struct KeyPlace {
  ColumnKind kind;
  size_t position;
};

/// Adds a copy of the base's column as one of the view's key. `in_key`: the names that are in it.
Result<void> add_key_column(const ast::CreateView& statement, const TableSchema& base,
                            const std::set<std::string>& selected, const ast::Identifier& name,
                            KeyPlace place, std::set<std::string>& in_key,
                            std::vector<ColumnSchema>& columns) {
  const std::string& view = statement.name.name.text;
  const ColumnSchema* const column = base.find(name.text);
  if (column == nullptr || !selected.contains(name.text)) {
    return fail(ErrorCode::kInvalid,
                "Unknown column '{}' referenced in PRIMARY KEY for materialized view '{}'",
                name.text, view);
  }
  if (!in_key.insert(name.text).second) {
    return fail(ErrorCode::kInvalid,
                "Duplicate column '{}' in PRIMARY KEY clause for materialized view '{}'", name.text,
                view);
  }
  const DataType& type = *column->type;
  if (type.is_multi_cell()) {
    return fail(ErrorCode::kInvalid, "Invalid non-frozen {} type '{}' for PRIMARY KEY column '{}'",
                type.is_collection() ? "collection" : "user-defined", type.class_name(), name.text);
  }
  if (type.is_counter()) {
    return fail(ErrorCode::kInvalid, "counter type is not supported for PRIMARY KEY column '{}'",
                name.text);
  }
  if (type.references_duration()) {
    return fail(ErrorCode::kInvalid, "duration type is not supported for PRIMARY KEY column '{}'",
                name.text);
  }
  ColumnSchema& added = columns.emplace_back();
  added.name = column->name;
  added.type = column->type;
  added.mask = column->mask;
  added.kind = place.kind;
  added.position = static_cast<uint32_t>(place.position);
  // As Cassandra: ordered as in the base where CLUSTERING ORDER BY does not say otherwise.
  added.descending = place.kind == ColumnKind::kClustering && column->descending;
  return {};
}

/// CLUSTERING ORDER BY names all clustering columns in their order, or is left out.
Result<void> apply_order(const std::vector<ast::ClusteringOrder>& orders,
                         const ast::PrimaryKey& key, std::vector<ColumnSchema>& columns) {
  if (orders.empty()) return {};
  const bool same = std::ranges::equal(
      orders, key.clustering, [](const ast::ClusteringOrder& order, const ast::Identifier& name) {
        return order.column.text == name.text;
      });
  if (!same) {
    return fail(ErrorCode::kInvalid,
                "Clustering key columns must exactly match columns in CLUSTERING ORDER BY "
                "directive");
  }
  for (size_t i = 0; i < orders.size(); ++i)
    columns[key.partition.size() + i].descending = orders[i].descending;
  return {};
}

/// The view's key has the base's whole key, so that each row of the base is one row of the view,
/// and at most one column more, as Cassandra has it.
Result<void> check_key(const std::string& view, const TableSchema& base,
                       const std::vector<ColumnSchema>& key) {
  std::vector<std::string> missing, extra;
  for (const ColumnSchema& column : base.columns())
    if (column.is_primary_key() && std::ranges::count(key, column.name, &ColumnSchema::name) == 0)
      missing.push_back(column.name);
  if (!missing.empty()) {
    return fail(ErrorCode::kInvalid,
                "Cannot create materialized view '{}' without primary key columns {} from base "
                "table '{}'",
                view, joined(missing), base.name);
  }
  for (const ColumnSchema& column : key)
    if (!base.find(column.name)->is_primary_key()) extra.push_back(column.name);
  if (extra.size() > 1) {
    return fail(ErrorCode::kInvalid,
                "Cannot include more than one non-primary key column in materialized view primary "
                "key (got {})",
                joined(in_hash_order(extra)));
  }
  return {};
}

/// The columns of the view, those of its key with their kinds.
Result<std::vector<ColumnSchema>> columns_of(const ast::CreateView& statement,
                                             const TableSchema& base,
                                             const std::set<std::string>& selected) {
  const std::string& view = statement.name.name.text;
  if (statement.primary_keys.empty()) {
    return fail(ErrorCode::kSyntax, "No PRIMARY KEY specifed for view '{}' (exactly one required)",
                view);
  }
  if (statement.primary_keys.size() > 1) {
    return fail(ErrorCode::kSyntax,
                "Multiple PRIMARY KEY specified for view '{}' (exactly one required)", view);
  }
  const ast::PrimaryKey& key = statement.primary_keys.front();
  std::vector<ColumnSchema> columns;
  std::set<std::string> in_key;
  // The key first, in its order; apply_order() counts on it.
  const auto place = [&](const ast::Identifier& name, ColumnKind kind, size_t position) {
    return add_key_column(statement, base, selected, name, {kind, position}, in_key, columns);
  };
  for (size_t i = 0; i < key.partition.size(); ++i)
    TETRAD_TRY_VOID(place(key.partition[i], ColumnKind::kPartitionKey, i));
  for (size_t i = 0; i < key.clustering.size(); ++i)
    TETRAD_TRY_VOID(place(key.clustering[i], ColumnKind::kClustering, i));
  TETRAD_TRY_VOID(apply_order(statement.options.clustering_order, key, columns));
  TETRAD_TRY_VOID(check_key(view, base, columns));
  for (const ColumnSchema& column : base.regular_columns()) {
    if (!selected.contains(column.name) || in_key.contains(column.name)) continue;
    ColumnSchema& added = columns.emplace_back();
    added.name = column.name;
    added.type = column.type;
    added.mask = column.mask;
  }
  return columns;
}

/// The text of WHERE: conditions on the base's key, and IS NOT NULL of all columns of the view's key
/// that have none.
// In Cassandra's order: what no view may say, what SELECT would refuse, key columns that nothing
// restricts, other columns that something does.
Result<std::string> where_of(const ast::CreateView& statement, const TablePtr& base,
                             const std::vector<ColumnSchema>& columns, const PlanInput& input) {
  for (const ast::Relation& relation : statement.where) {
    if (relation.target == ast::Relation::Target::kToken)
      return fail(ErrorCode::kInvalid,
                  "Cannot use token relation when defining a materialized view");
    if (relation.target == ast::Relation::Target::kCustomIndex) {
      return fail(ErrorCode::kInvalid,
                  "WHERE clause for materialized view '{}' cannot contain custom index expressions",
                  statement.name.name.text);
    }
  }
  // What DESCRIBE has printed is taken back.
  std::vector<ast::Relation> where = statement.where;
  restore_operators(where);
  // Every node reads it whenever the schema changes.
  std::string text = view_where_text(where);
  if (text.size() > kViewWhereBytesMax) {
    return fail(ErrorCode::kInvalid,
                "The WHERE of materialized view {} has {} bytes, more than the {} that it may have",
                statement.name.name.text, text.size(), kViewWhereBytesMax);
  }
  TETRAD_TRY_VOID(check_view_relations(where, *base, input.schema));
  std::set<std::string> restricted, others;  // of the base's key and of others
  for (const ast::Relation& relation : statement.where) {
    for (const ast::Identifier& name : relation.columns) {
      restricted.insert(name.text);
      if (relation.op != ast::RelationOperator::kIsNotNull &&
          !base->find(name.text)->is_primary_key())
        others.insert(name.text);
    }
  }
  std::vector<std::string> free;
  for (const ColumnSchema& column : columns)
    if (column.is_primary_key() && !restricted.contains(column.name)) free.push_back(column.name);
  if (!free.empty()) {
    return fail(ErrorCode::kInvalid,
                "Primary key columns {} must be restricted with 'IS NOT NULL' or otherwise",
                joined(in_hash_order(free)));
  }
  if (!others.empty()) {
    return fail(ErrorCode::kInvalid,
                "Non-primary key columns can only be restricted with 'IS NOT NULL' (got: {} "
                "restricted illegally)",
                joined({others.begin(), others.end()}, ","));
  }
  // As the nodes will read it. Cassandra takes conditions without a value, such as k = null, and
  // fails to write to the base from then on.
  TETRAD_TRY(const ViewConditionPtr condition, ViewCondition::read(text, base, input.schema));
  if (condition != nullptr && input.meta.format < replication::kFormatViewConditions) {
    return fail(ErrorCode::kInvalid,
                "conditions of a materialized view other than IS NOT NULL wait until all nodes run "
                "a program that knows them");
  }
  return text;
}

/// Whether the table may have one more view. That compact tables may not is Tetrad's own limit, the
/// other checks are Cassandra's.
Result<void> check_base(const std::string& view, const TableSchema& base, const PlanInput& input) {
  if (base.is_counter)
    return fail(ErrorCode::kInvalid, "Materialized views are not supported on counter tables");
  TETRAD_TRY_VOID(check_threshold(
      input.settings.guardrails.materialized_views_per_table, base.views.size() + 1,
      "materialized_views_per_table", input.warnings, [&](uint64_t limit, bool fails) {
        return fails ? fmt::format(
                           "Tables cannot have more than {} materialized views, aborting the "
                           "creation of materialized view {}",
                           limit, view)
                     : fmt::format(
                           "Creating materialized view {} on table {}, current number of views {} "
                           "exceeds warning threshold of {}.",
                           view, base.name, base.views.size() + 1, limit);
      }));
  if (base.options.gc_grace_seconds == 0) {
    return fail(ErrorCode::kInvalid,
                "Cannot create materialized view '{}' for base table '{}' with gc_grace_seconds of "
                "0, since this value is used to TTL undelivered updates. Setting gc_grace_seconds "
                "too low might cause undelivered updates to expire before being replayed.",
                view, base.name);
  }
  if (base.is_compact_storage) {
    return fail(ErrorCode::kInvalid,
                "not supported yet: materialized views of COMPACT STORAGE tables");
  }
  return {};
}

/// A column that came back shows only what is newer than its drop; its old values would be names.
Result<void> check_key_column_is_new(const TableSchema& base,
                                     const std::vector<ColumnSchema>& columns) {
  for (const ColumnSchema& column : columns) {
    const ColumnSchema& of_base = *base.find(column.name);
    if (!column.is_primary_key() || of_base.is_primary_key()) continue;
    if (std::ranges::count(base.dropped_columns, of_base.id, &DroppedColumn::id) == 0) continue;
    return fail(ErrorCode::kInvalid,
                "not supported yet: a materialized view by column {}, which was dropped and added "
                "again",
                column.name);
  }
  return {};
}

/// The view, but for its id.
Result<TableSchema> view_of(const ast::CreateView& statement, const TablePtr& of,
                            const PlanInput& input) {
  const TableSchema& base = *of;
  TETRAD_TRY(const std::set<std::string> selected, selected_columns(statement, base));
  TETRAD_TRY(std::vector<ColumnSchema> columns, columns_of(statement, base, selected));
  TableSchema view;
  view.keyspace = base.keyspace;
  view.name = statement.name.name.text;
  view.version = SchemaVersion{1};
  ViewDefinition& definition = view.view.emplace();
  definition.base_table = base.name;
  definition.base_id = base.id;
  definition.include_all_columns = statement.items.empty();
  TETRAD_TRY(definition.where, where_of(statement, of, columns, input));
  TETRAD_TRY_VOID(check_key_column_is_new(base, columns));
  TETRAD_TRY(const auto properties, guarded_properties(statement.options.properties, input));
  view.options = default_table_options();
  std::optional<Uuid> id;
  TETRAD_TRY_VOID(apply_table_properties(properties, view.options, id));
  if (view.options.default_time_to_live_s != 0) {
    return fail(ErrorCode::kInvalid,
                "Cannot set default_time_to_live for a materialized view. Data in a materialized "
                "view always expire at the same time than the corresponding data in the parent "
                "table.");
  }
  if (view.options.cdc)
    return fail(ErrorCode::kInvalid, "not supported yet: cdc of a materialized view");
  if (auto warning = no_effect_warning(properties, view.options, default_table_options()))
    input.warnings.push_back(std::move(*warning));
  follow_compaction(properties, view.options);
  if (id) view.id = TableId{*id};
  for (ColumnSchema& column : columns)
    if (!column.is_primary_key()) column.id = view.next_column_id++;
  view.set_columns(std::move(columns));
  return view;
}

}  // namespace

// 1. What the statement alone shows. 2. The base: a table and no view. 3. The name. 4. check_base().
// 5. view_of(): the definition. 6. The id, given or new. 7. Base and view change in one plan.
Result<SchemaPlan> plan(const ast::CreateView& statement, const PlanInput& input) {
  const std::string& name = statement.name.name.text;
  TETRAD_TRY_VOID(check_ordered_once(statement.options.clustering_order, "view", name));
  std::string keyspace_name;
  TETRAD_TRY(const KeyspaceSchema* const keyspace,
             keyspace_for_table(statement.name, input, keyspace_name));
  if (statement.from.keyspace && statement.from.keyspace->text != keyspace_name) {
    return fail(ErrorCode::kInvalid,
                "Cannot create a materialized view on a table in a different keyspace");
  }
  TETRAD_TRY_VOID(check_no_view_markers(statement.where));
  if (keyspace == nullptr)
    return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", keyspace_name);
  const std::string& base_name = statement.from.name.text;
  TETRAD_TRY_VOID(input.schema.check_readable(table_key(keyspace_name, base_name)));
  const TablePtr base = find_table(keyspace, base_name);
  if (base == nullptr || base->view)
    return fail(ErrorCode::kInvalid, "Base table '{}' doesn't exist", base_name);
  SchemaPlan out;
  if (const TablePtr same = find_table(keyspace, name); same != nullptr) {
    if (!same->view) {
      return fail(
          ErrorCode::kInvalid,
          "Cannot create materialized view '{}' - a table with the same name already exists", name);
    }
    if (statement.if_not_exists) {
      out.nothing_to_do = true;
      return out;
    }
    return std::unexpected(
        Error(ErrorCode::kAlreadyExists,
              fmt::format("Cannot add already existing table \"{}\" to keyspace \"{}\"", name,
                          keyspace_name),
              base::AlreadyExistsDetail{keyspace_name, name}));
  }
  TETRAD_TRY_VOID(input.schema.check_readable(table_key(keyspace_name, name)));
  if (!is_valid_object_name(name)) {
    return fail(ErrorCode::kConfig,
                "{}.{}: Table name must not be empty or not contain non-alphanumeric-underscore "
                "characters (got \"{}\")",
                keyspace_name, name, name);
  }
  TETRAD_TRY_VOID(check_base(name, *base, input));
  // The format rises when every node runs a program that knows it.
  if (input.meta.format < replication::kFormatViews) {
    return fail(ErrorCode::kInvalid,
                "materialized views wait until all nodes run a program that knows them");
  }
  TETRAD_TRY(TableSchema view, view_of(statement, base, input));
  if (input.meta.tables.contains(view.id)) {
    return fail(ErrorCode::kInvalid, "A table with the id {} exists already", view.id.to_string());
  }
  if (view.id.value.is_nil()) {
    view.id = TableId{
        base::make_time_uuid(base::uuid_ticks_of_unix_us(input.now_us) + input.random.below(10),
                             static_cast<uint16_t>(input.random.next()), input.random.next())};
  }
  TableSchema changed = *base;
  changed.views.insert(std::ranges::upper_bound(changed.views, name), name);
  changed.version.value += 1;  // replicas that have not heard of the view refuse newer writes
  out.change.objects.emplace_back(table_key(keyspace_name, name), table_text(view));
  out.change.objects.emplace_back(table_key(keyspace_name, base_name), table_text(changed));
  // Tablets of its own; it is filled from the base afterwards (replication/views).
  out.change.new_tables.push_back({view.id, keyspace_name, name, view.options.max_partition_mb,
                                   view.options.initial_partitions, false,
                                   throughput_of(view.options, *keyspace)});
  out.answer = table_changed(Kind::kCreated, keyspace_name, name);
  return out;
}

// Options alone; columns follow the base (add_to_views and mask_in_views of plan_alter_table.cc).
Result<SchemaPlan> plan(const ast::AlterView& statement, const PlanInput& input) {
  std::string keyspace_name;
  TETRAD_TRY(const KeyspaceSchema* const keyspace,
             keyspace_for_table(statement.name, input, keyspace_name));
  const std::string& name = statement.name.name.text;
  const TablePtr old = find_table(keyspace, name);
  SchemaPlan out;
  if (old == nullptr || !old->view) {
    if (!statement.if_exists) {
      return fail(ErrorCode::kInvalid, "Materialized view '{}.{}' doesn't exist", keyspace_name,
                  name);
    }
    out.nothing_to_do = true;
    return out;
  }
  TETRAD_TRY(const auto properties, guarded_properties(statement.options.properties, input));
  if (properties.empty()) {
    return fail(ErrorCode::kInvalid,
                "ALTER MATERIALIZED VIEW WITH invoked, but no parameters found");
  }
  TableSchema view = *old;
  std::optional<Uuid> id;
  TETRAD_TRY_VOID(apply_table_properties(properties, view.options, id));
  if (id) return fail(ErrorCode::kConfig, "Cannot alter table id.");
  if (view.options.gc_grace_seconds == 0) {
    return fail(ErrorCode::kInvalid,
                "Cannot alter gc_grace_seconds of a materialized view to 0, since this value is "
                "used to TTL undelivered updates. Setting gc_grace_seconds too low might cause "
                "undelivered updates to expire before being replayed.");
  }
  if (view.options.default_time_to_live_s != 0) {
    return fail(ErrorCode::kInvalid,
                "Forbidden default_time_to_live detected for a materialized view. Data in a "
                "materialized view always expire at the same time than the corresponding data in "
                "the parent table. default_time_to_live must be set to zero, see CASSANDRA-12868 "
                "for more information");
  }
  if (view.options.cdc)
    return fail(ErrorCode::kInvalid, "not supported yet: cdc of a materialized view");
  if (auto warning = no_effect_warning(properties, view.options, default_table_options()))
    input.warnings.push_back(std::move(*warning));
  out.answer = table_changed(Kind::kUpdated, keyspace_name, name);  // its rights are asked anyway
  if (view.options == old->options) {
    out.nothing_to_do = true;
    return out;
  }
  view.version.value += 1;
  out.change.objects.emplace_back(table_key(keyspace_name, name), table_text(view));
  if (view.options.max_partition_mb != old->options.max_partition_mb ||
      view.options.throughput.ru_per_s() != old->options.throughput.ru_per_s())
    out.change.altered_tables.push_back(altered_table(view, *keyspace));
  return out;
}

namespace {

/// The table that names the view; null: there is none.
TablePtr base_of_view(const KeyspaceSchema* keyspace, const std::string& view) {
  if (keyspace == nullptr) return nullptr;
  for (const auto& [name, table] : keyspace->tables)
    if (std::ranges::count(table->views, view) != 0) return table;
  return nullptr;
}

}  // namespace

// The base is written in the same change: no version of the schema names a view that is not there.
Result<SchemaPlan> plan(const ast::DropView& statement, const PlanInput& input) {
  std::string keyspace_name;
  TETRAD_TRY(const KeyspaceSchema* const keyspace,
             keyspace_for_table(statement.name, input, keyspace_name));
  const std::string& name = statement.name.name.text;
  const TablePtr view = find_table(keyspace, name), base = base_of_view(keyspace, name);
  SchemaPlan out;
  // Either text may not read.
  if (base == nullptr && (view == nullptr || !view->view)) {
    if (!statement.if_exists) {
      return fail(ErrorCode::kInvalid, "Materialized view '{}.{}' doesn't exist", keyspace_name,
                  name);
    }
    out.nothing_to_do = true;
    return out;
  }
  out.change.objects.emplace_back(table_key(keyspace_name, name), std::nullopt);
  drop_tables(keyspace_name, name, input.meta, out.change);
  if (base != nullptr) {
    TableSchema changed = *base;
    std::erase(changed.views, name);
    changed.version.value += 1;
    out.change.objects.emplace_back(table_key(keyspace_name, base->name), table_text(changed));
  }
  out.answer = table_changed(Kind::kDropped, keyspace_name, name);
  return out;
}

}  // namespace tetrad::cql
