// SPDX-License-Identifier: Apache-2.0
// ALTER TABLE.
//
// Each action changes a copy of the table's columns; at the end the version is raised, so that
// statements prepared before are prepared anew and replicas know which shape a request means.
#include <algorithm>
#include <set>

#include "cql/prepare/column_masks.h"
#include "cql/prepare/compact_storage.h"
#include "cql/prepare/option_effects.h"
#include "cql/prepare/table_checks.h"
#include "cql/prepare/table_properties.h"
#include "cql/prepare/throughput_properties.h"
#include "cql/prepare/view_condition.h"
#include "cql/schema/schema_text.h"

namespace tetrad::cql {
namespace {

using Kind = SchemaChange::Kind;

/// User types as tuples: a dropped column must stay readable when its type is gone.
// As Cassandra's expandUserTypes.
std::string expanded_text(const DataType& type) {
  if (!type.references_udt()) return type.cql_text();
  if (type.kind() == TypeKind::kUdt || type.kind() == TypeKind::kTuple) {
    std::string inside;
    for (const auto& field : type.components())
      inside += (inside.empty() ? "" : ", ") + expanded_text(*field);
    return "frozen<tuple<" + inside + ">>";
  }
  std::string inside;
  for (const auto& part : type.components())
    inside += (inside.empty() ? "" : ", ") + expanded_text(*part);
  const char* name = type.kind() == TypeKind::kList  ? "list"
                     : type.kind() == TypeKind::kSet ? "set"
                     : type.kind() == TypeKind::kMap ? "map"
                                                     : "vector";
  if (type.kind() == TypeKind::kVector) inside += ", " + std::to_string(type.dimension());
  const std::string text = fmt::format("{}<{}>", name, inside);
  return type.is_collection() && !type.is_multi_cell() ? "frozen<" + text + ">" : text;
}

/// Whether a column of this kind and type may join the table, and whether it agrees with a dropped
/// column of its name.
Result<void> check_added_column(const ColumnSchema& column, const TableSchema& table) {
  if (column.kind == ColumnKind::kStatic && table.clustering().empty()) {
    return fail(ErrorCode::kInvalid,
                "Static columns are only useful (and thus allowed) if the table has at least one "
                "clustering column");
  }
  if (column.type->is_counter() && !table.is_counter) {
    return fail(ErrorCode::kConfig,
                "{}: Cannot have a counter column (\"{}\") in a non counter table",
                table.qualified_name(), column.name);
  }
  if (!column.type->is_counter() && table.is_counter) {
    return fail(ErrorCode::kConfig,
                "{}: Cannot have a non counter column (\"{}\") in a counter table",
                table.qualified_name(), column.name);
  }
  // Cells of the dropped column may still be stored, and those newer than the drop would show
  // under the new type.
  for (const DroppedColumn& dropped : table.dropped_columns) {
    if (dropped.name != column.name) continue;
    TETRAD_TRY(const TypePtr old_type, parse_type(dropped.type_text));
    if (!is_value_compatible(*column.type, *old_type) ||
        column.type->is_multi_cell() != old_type->is_multi_cell()) {
      return fail(ErrorCode::kInvalid,
                  "Cannot add a column '{}' of type {}, incompatible with previously dropped "
                  "column '{}' of type {}",
                  column.name, column.type->cql_text(), column.name, dropped.type_text);
    }
    if (dropped.kind != column.kind) {
      const auto word = [](ColumnKind kind) {
        return kind == ColumnKind::kStatic ? "STATIC" : "REGULAR";
      };
      return fail(ErrorCode::kInvalid,
                  "Cannot re-add previously dropped column '{}' of kind {}, incompatible with "
                  "previous kind {}",
                  column.name, word(column.kind), word(dropped.kind));
    }
    if (column.type->is_counter()) {
      return fail(ErrorCode::kInvalid, "Cannot re-add previously dropped counter column {}",
                  column.name);
    }
  }
  return {};
}

/// ADD. A column that was dropped gets its old id back where its old cells can be read with the new
/// type, else a new one.
Result<void> add_columns(const ast::AddColumns& action, const KeyspaceSchema& keyspace,
                         const PlanInput& input, TableSchema& table,
                         std::vector<ColumnSchema>& columns, bool& changed) {
  for (const auto& definition : action.columns) {
    const std::string& name = definition.name.text;
    ColumnSchema column;
    column.name = name;
    if (definition.mask) {
      TETRAD_TRY(column.type, resolve_type(definition.type, keyspace));
      TETRAD_TRY(column.mask,
                 resolve_mask(*definition.mask, column, keyspace.name, table.name, input));
    }
    if (std::any_of(columns.begin(), columns.end(),
                    [&](const auto& c) { return c.name == name; })) {
      if (action.if_not_exists) continue;
      return fail(ErrorCode::kInvalid, "Column with name '{}' already exists", name);
    }
    TETRAD_TRY(column.type, resolve_type(definition.type, keyspace));
    if (table.is_compact_storage) {
      return fail(ErrorCode::kInvalid, "Cannot add new column to a COMPACT STORAGE table");
    }
    TETRAD_TRY_VOID(check_nesting(*column.type));
    column.kind = definition.is_static ? ColumnKind::kStatic : ColumnKind::kRegular;
    TETRAD_TRY_VOID(check_added_column(column, table));
    // A column that comes back as it was shows the cells that are newer than the drop; where the
    // type is another the bytes of many cells could not be read.
    const auto before = std::ranges::find(table.dropped_columns, name, &DroppedColumn::name);
    const bool as_before =
        before != table.dropped_columns.end() &&
        (!column.type->is_multi_cell() || before->type_text == expanded_text(*column.type));
    column.id = as_before ? before->id : table.next_column_id++;
    columns.push_back(std::move(column));
    changed = true;
  }
  return {};
}

/// The names of the indexes that need the column.
std::string indexes_on(const TableSchema& table, std::string_view column) {
  std::string names;
  for (const IndexSchema& index : table.indexes) {
    if (index.column == column) names += (names.empty() ? "" : ", ") + index.name;
  }
  return names;
}

/// DROP. The column goes into dropped_columns with the time of its drop: rows may keep
/// its cells, and reads leave out those up to that time (RowLayout::dropped_until_us).
Result<void> drop_columns(const ast::DropColumns& action, const PlanInput& input,
                          TableSchema& table, std::vector<ColumnSchema>& columns, bool& changed) {
  int64_t dropped_at_us = input.now_us;
  if (action.timestamp) {
    const auto* literal = action.timestamp->get_if<ast::Literal>();
    if (literal == nullptr || literal->kind != ast::Literal::Kind::kInteger ||
        literal->text.size() > 19) {
      return fail(ErrorCode::kInvalid,
                  "Invalid timestamp in ALTER TABLE DROP: it must be an integer");
    }
    // USING TIMESTAMP: cells newer than that show again when the column comes back.
    dropped_at_us = std::strtoll(literal->text.c_str(), nullptr, 10);
  }
  std::set<std::string> named;
  for (const auto& name : action.columns) {
    if (!named.insert(name.text).second) continue;  // named twice, dropped once
    const auto column = std::find_if(columns.begin(), columns.end(), [&](const auto& c) {
      return c.name == name.text && !c.hidden;
    });
    if (column == columns.end()) {
      if (action.if_exists) continue;
      return fail(ErrorCode::kInvalid, "Column {} was not found in table '{}'", name.text,
                  shown_name(table.keyspace, table.name));
    }
    if (column->is_primary_key())
      return fail(ErrorCode::kInvalid, "Cannot drop PRIMARY KEY column {}", name.text);
    if (table.is_compact_storage && column->kind == ColumnKind::kRegular) {
      return fail(ErrorCode::kInvalid, "Cannot drop the value {} of a COMPACT STORAGE table",
                  name.text);
    }
    if (column->type->kind() == TypeKind::kUdt && column->type->is_multi_cell()) {
      return fail(ErrorCode::kInvalid, "Cannot drop non-frozen column {} of user type {}",
                  name.text, column->type->cql_text());
    }
    if (!table.views.empty()) {
      return fail(ErrorCode::kInvalid,
                  "Cannot drop column {} on base table {} with materialized views", name.text,
                  table.name);
    }
    if (const std::string names = indexes_on(table, name.text); !names.empty()) {
      return fail(ErrorCode::kInvalid,
                  "Cannot drop column {} because it has dependent secondary indexes ({})",
                  name.text, names);
    }
    DroppedColumn dropped = {column->name, expanded_text(*column->type), column->kind,
                             dropped_at_us, column->id};
    const auto before = std::ranges::find(table.dropped_columns, name.text, &DroppedColumn::name);
    if (before == table.dropped_columns.end())
      table.dropped_columns.push_back(std::move(dropped));
    else
      *before = std::move(dropped);
    columns.erase(column);
    changed = true;
  }
  return {};
}

/// RENAME, of key columns alone: they are stored by position, so no row changes.
Result<void> rename_columns(const ast::RenameColumns& action, TableSchema& table,
                            std::vector<ColumnSchema>& columns, bool& changed) {
  for (const auto& [from, to] : action.renames) {
    const auto column = std::find_if(columns.begin(), columns.end(), [&](const auto& c) {
      return c.name == from.text && !c.hidden;
    });
    // With IF EXISTS too, as Cassandra does. A name of this statement's own is none yet.
    if (column == columns.end() || table.find(from.text) == nullptr) {
      return undefined_column(from.text, table);
    }
    if (!column->is_primary_key()) {
      return fail(ErrorCode::kInvalid, "Cannot rename non PRIMARY KEY column {}", from.text);
    }
    if (table.find(to.text) != nullptr ||
        std::any_of(columns.begin(), columns.end(),
                    [&](const auto& c) { return c.name == to.text; })) {
      return fail(ErrorCode::kInvalid,
                  "Cannot rename column {} to {} in table '{}'; another column with that name "
                  "already exists",
                  from.text, to.text, shown_name(table.keyspace, table.name));
    }
    if (const std::string names = indexes_on(table, from.text); !names.empty()) {
      return fail(ErrorCode::kInvalid,
                  "Can't rename column {} because it has dependent secondary indexes ({})",
                  from.text, names);
    }
    column->name = to.text;
    changed = true;
  }
  return {};
}

/// ALTER column MASKED WITH …, or DROP MASKED. The guardrail on masks stops new ones only.
Result<void> mask_column(const ast::MaskColumn& action, const PlanInput& input,
                         const TableSchema& table, std::vector<ColumnSchema>& columns,
                         bool& changed) {
  if (action.mask) TETRAD_TRY_VOID(check_masks_enabled(input));
  const auto column = std::ranges::find_if(columns, [&](const ColumnSchema& candidate) {
    return candidate.name == action.column.text && !candidate.hidden;
  });
  if (column == columns.end()) {
    if (action.if_exists) return {};
    return fail(ErrorCode::kInvalid, "Column with name '{}' doesn't exist on table '{}'",
                action.column.text, table.name);
  }
  const ColumnMaskPtr before = column->mask;
  column->mask = nullptr;
  if (action.mask) {
    TETRAD_TRY(column->mask,
               resolve_mask(*action.mask, *column, table.keyspace, table.name, input));
  }
  changed = !equal_masks(before, column->mask);
  return {};
}

/// ALTER TABLE ... WITH. The properties are checked as those of CREATE TABLE, then those that
/// cannot be changed later are refused.
Result<void> alter_options(const ast::TableOptions& action, const PlanInput& input,
                           TableSchema& table) {
  std::optional<Uuid> id;
  TETRAD_TRY(const auto properties,
             guarded_properties(with_payload(action.properties, input.throughput_payload), input));
  if (std::ranges::any_of(properties, [](const ast::Property& property) {
        return property.name.text == "tetrad_initial_partitions";
      })) {
    return fail(ErrorCode::kConfig,
                "Cannot alter tetrad_initial_partitions: it counts when a table is created, "
                "afterwards physical partitions split by themselves");
  }
  TETRAD_TRY_VOID(apply_table_properties(properties, table.options, id));
  if (auto warning = no_effect_warning(properties, table.options, default_table_options()))
    input.warnings.push_back(std::move(*warning));
  TETRAD_TRY_VOID(check_compressed(table.options, input));
  if (id) return fail(ErrorCode::kConfig, "Cannot alter table id.");
  if (!action.clustering_order.empty()) {
    return fail(ErrorCode::kInvalid, "Cannot alter the clustering order of table {}.{}",
                table.keyspace, table.name);
  }
  if (table.is_counter && table.options.default_time_to_live_s != 0) {
    return fail(ErrorCode::kInvalid, "Cannot set default_time_to_live on a table with counters");
  }
  if (!table.views.empty() && table.options.gc_grace_seconds == 0) {
    return fail(ErrorCode::kInvalid,
                "Cannot alter gc_grace_seconds of the base table of a materialized view to 0, "
                "since this value is used to TTL undelivered updates. Setting gc_grace_seconds "
                "too low might cause undelivered updates to expire before being replayed.");
  }
  return {};
}

/// Whether DROP COMPACT STORAGE is allowed, and the table is a compact one.
Result<void> check_drop_compact(const TableSchema& table, const PlanInput& input) {
  if (!input.settings.guardrails.drop_compact_storage) {
    return fail(ErrorCode::kInvalid,
                "DROP COMPACT STORAGE is disabled. Enable it with the option "
                "drop_compact_storage_enabled.");
  }
  if (!table.is_compact_storage) {
    return fail(ErrorCode::kInvalid,
                "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE");
  }
  return {};
}

/// Does one action to `table` and `columns`, which begin as copies of those of `old`. False: the
/// action changes nothing (IF [NOT] EXISTS).
Result<bool> apply_action(const decltype(ast::AlterTable::action)& action,
                          const KeyspaceSchema& keyspace, const TableSchema& old,
                          const PlanInput& input, TableSchema& table,
                          std::vector<ColumnSchema>& columns) {
  bool changed = false;
  if (const auto* add = std::get_if<ast::AddColumns>(&action)) {
    TETRAD_TRY_VOID(add_columns(*add, keyspace, input, table, columns, changed));
  } else if (const auto* drop = std::get_if<ast::DropColumns>(&action)) {
    TETRAD_TRY_VOID(drop_columns(*drop, input, table, columns, changed));
  } else if (const auto* rename = std::get_if<ast::RenameColumns>(&action)) {
    TETRAD_TRY_VOID(rename_columns(*rename, table, columns, changed));
  } else if (const auto* options = std::get_if<ast::TableOptions>(&action)) {
    TETRAD_TRY_VOID(alter_options(*options, input, table));
    changed = table_text(table) != table_text(old);
  } else if (std::holds_alternative<ast::AlterColumnType>(action)) {
    return fail(ErrorCode::kInvalid, "Altering column types is no longer supported");
  } else if (const auto* mask = std::get_if<ast::MaskColumn>(&action)) {
    TETRAD_TRY_VOID(mask_column(*mask, input, table, columns, changed));
  } else {
    TETRAD_TRY_VOID(check_drop_compact(table, input));
    drop_compact(table, columns);
    changed = true;
  }
  return changed;
}

/// The column of that name has the same mask in the table's views.
void mask_in_views(const KeyspaceSchema& keyspace, const TableSchema& table,
                   const std::string& name, replication::SchemaChange& change) {
  const ColumnMaskPtr& mask = table.find(name)->mask;
  for (const std::string& view_name : table.views) {
    const TablePtr known = find_table(&keyspace, view_name);
    if (known == nullptr || known->find(name) == nullptr) continue;
    TableSchema view = *known;
    std::vector<ColumnSchema> columns = known->columns();
    std::ranges::find(columns, name, &ColumnSchema::name)->mask = mask;
    view.set_columns(std::move(columns));
    view.version.value += 1;
    change.objects.emplace_back(table_key(view.keyspace, view.name), table_text(view));
  }
}

/// Views of SELECT * have the columns, too, that the table is given.
void add_to_views(const KeyspaceSchema& keyspace, const TableSchema& before,
                  const TableSchema& table, replication::SchemaChange& change) {
  for (const std::string& name : table.views) {
    const TablePtr known = find_table(&keyspace, name);
    if (known == nullptr || !known->view || !known->view->include_all_columns) continue;
    TableSchema view = *known;
    std::vector<ColumnSchema> columns = known->columns();
    for (const ColumnSchema& column : table.regular_columns()) {
      if (before.find(column.name) != nullptr) continue;
      ColumnSchema& added = columns.emplace_back();
      added.name = column.name;
      added.type = column.type;
      added.mask = column.mask;
      added.id = view.next_column_id++;
    }
    if (columns.size() == known->columns().size()) continue;
    view.set_columns(std::move(columns));
    view.version.value += 1;
    change.objects.emplace_back(table_key(view.keyspace, view.name), table_text(view));
  }
}

/// The names are the same in the table's views, and in their conditions.
Result<void> rename_in_views(const KeyspaceSchema& keyspace, const TableSchema& table,
                             const ast::RenameColumns& action, replication::SchemaChange& change) {
  for (const std::string& view_name : table.views) {
    const TablePtr known = find_table(&keyspace, view_name);
    if (known == nullptr || !known->view) continue;
    TableSchema view = *known;
    std::vector<ColumnSchema> columns = known->columns();
    for (const auto& [from, to] : action.renames) {
      // All key columns of the table are in the view.
      std::ranges::find(columns, from.text, &ColumnSchema::name)->name = to.text;
      TETRAD_TRY(view.view->where, renamed_in_where(view.view->where, from.text, to.text));
    }
    view.set_columns(std::move(columns));
    view.version.value += 1;
    change.objects.emplace_back(table_key(view.keyspace, view.name), table_text(view));
  }
  return {};
}

}  // namespace

// 1. The table, which must be no view. 2. The guardrail on changing columns. 3. apply_action() on a
// copy.
// 4. Version, limits on columns and vectors. 5. What follows for views and for stores.
Result<SchemaPlan> plan(const ast::AlterTable& statement, const PlanInput& input) {
  std::string keyspace_name;
  TETRAD_TRY(const KeyspaceSchema* const keyspace,
             keyspace_for_table(statement.name, input, keyspace_name));
  const std::string& name = statement.name.name.text;
  const TablePtr old = find_table(keyspace, name);
  SchemaPlan out;
  if (old == nullptr) {
    TETRAD_TRY_VOID(input.schema.check_readable(table_key(keyspace_name, name)));
    if (!statement.if_exists)
      return fail(ErrorCode::kInvalid, "Table '{}.{}' doesn't exist", keyspace_name, name);
    out.nothing_to_do = true;
    return out;
  }
  if (old->view) {
    return fail(ErrorCode::kInvalid,
                "Cannot use ALTER TABLE on a materialized view; use ALTER MATERIALIZED VIEW "
                "instead");
  }
  TableSchema table = *old;
  std::vector<ColumnSchema> columns = old->columns();
  TETRAD_TRY_VOID(
      check_enabled(input.settings.guardrails.alter_table ||
                        std::holds_alternative<ast::TableOptions>(statement.action) ||
                        std::holds_alternative<ast::DropCompactStorage>(statement.action),
                    "alter_table", "ALTER TABLE changing columns"));
  TETRAD_TRY(const bool changed,
             apply_action(statement.action, *keyspace, *old, input, table, columns));
  if (!changed) {
    out.nothing_to_do = true;
    return out;
  }
  out.answer = table_changed(Kind::kUpdated, keyspace_name, name);
  table.version.value += 1;
  table.set_columns(std::move(columns));
  // Only a table that grows is checked: one that is beyond a lowered limit can still lose columns.
  if (table.columns().size() > old->columns().size()) {
    TETRAD_TRY_VOID(check_column_count(name, table.columns().size(), input));
  }
  for (const ColumnSchema& column : table.columns()) {
    if (old->find(column.name) != nullptr) continue;
    TETRAD_TRY_VOID(
        check_vectors(input.settings.guardrails, *column.type, column.name, input.warnings));
  }
  out.change.objects.emplace_back(table_key(keyspace_name, name), table_text(table));
  add_to_views(*keyspace, *old, table, out.change);
  if (const auto* mask = std::get_if<ast::MaskColumn>(&statement.action))
    mask_in_views(*keyspace, table, mask->column.text, out.change);
  if (const auto* rename = std::get_if<ast::RenameColumns>(&statement.action))
    TETRAD_TRY_VOID(rename_in_views(*keyspace, table, *rename, out.change));
  // What stores and tablets need to know apart from the text; an index, a mask or a comment is not.
  if (table.options.max_partition_mb != old->options.max_partition_mb ||
      table.options.cdc != old->options.cdc ||
      table.options.throughput.ru_per_s() != old->options.throughput.ru_per_s()) {
    out.change.altered_tables.push_back(altered_table(table, *keyspace));
  }
  return out;
}

}  // namespace tetrad::cql
