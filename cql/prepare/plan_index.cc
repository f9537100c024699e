// SPDX-License-Identifier: Apache-2.0
// CREATE INDEX, DROP INDEX: a change of the table that has it. Checks and texts are Cassandra's, in
// its order.
//
// CREATE INDEX, in this order: the class and its options, the table, a name that is taken, the
// targets by themselves, each target against its column, an equal index, what the class demands.
// Only then the limits that are Tetrad's own, so that Cassandra's errors come first.
//
// An index has a number in its table that is never used again: entries of a dropped index may still
// lie on the disk under its number.
#include <algorithm>
#include <set>

#include "cql/index/index_options.h"
#include "cql/prepare/option_values.h"
#include "cql/prepare/table_checks.h"
#include "cql/schema/schema_text.h"
#include "cql/types/keyword.h"
#include "replication/meta/cluster_format.h"

namespace tetrad::cql {
namespace {

using Kind = SchemaChange::Kind;

constexpr const char* kLegacyName = "legacy_local_table";
constexpr const char* kSasiClassName = "org.apache.cassandra.index.sasi.SASIIndex";
/// Each is work for every write of the table.
constexpr size_t kIndexesMax = 100;

/// What WITH says. Errors: kSyntax for what is no option of indexes, kInvalid.
Result<IndexOptions> options_of(const ast::CreateIndex& statement) {
  IndexOptions options;
  const ast::Property* given = nullptr;
  for (const ast::Property& property : statement.properties) {
    if (property.name.text != "options") {
      return fail(ErrorCode::kSyntax, "Unknown property '{}'", property.name.text);
    }
    given = &property;
  }
  if (given == nullptr) return options;
  const auto* map = std::get_if<ast::PropertyValue::Map>(&given->value.value);
  if (map == nullptr) {
    return fail(ErrorCode::kSyntax, "Invalid value for property 'options'. It should be a map.");
  }
  for (const auto& [name, value] : *map) {
    // Stored among the options by the server itself.
    for (const char* const own : {"target", "class_name"}) {
      if (name.text == own) {
        return fail(ErrorCode::kInvalid, "Cannot specify {} as a CUSTOM option", own);
      }
    }
    options[name.text] = value.text;
  }
  return options;
}

/// Names of indexes are unique in a keyspace, not in a table.
bool has_index(const KeyspaceSchema& keyspace, std::string_view name) {
  return std::ranges::any_of(keyspace.tables, [&](const auto& table) {
    return std::ranges::count(table.second->indexes, name, &IndexSchema::name) != 0;
  });
}

constexpr size_t kIndexNameMax = 222;  // as Cassandra: what a file may be called

/// `table_column_idx` without what no name may have, and a number where that is taken. Long names of
/// tables and columns are cut, so that there is room for both.
std::string default_name(const KeyspaceSchema& keyspace, const std::string& table,
                         std::span<const ast::IndexTarget> targets) {
  std::string base = table + "_";
  if (targets.size() == 1) base += targets.front().column.text + "_";
  std::erase_if(base, [](char c) {
    return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_');
  });
  constexpr size_t kSuffixMax = 10;
  base.resize(std::min(base.size(), kIndexNameMax - kSuffixMax));
  base += base.ends_with('_') ? "idx" : "_idx";
  std::string name = base;
  for (int i = 1; has_index(keyspace, name); ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

/// ASCII letters, digits and underscores, at least one.
bool is_word(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// The target that is meant: of a collection without a word it is its values.
IndexTarget target_of(const ast::IndexTarget& written, const DataType& type) {
  switch (written.kind) {
    case ast::IndexTarget::Kind::kKeys:
      return IndexTarget::kKeys;
    case ast::IndexTarget::Kind::kValues:
      return IndexTarget::kValues;
    case ast::IndexTarget::Kind::kEntries:
      return IndexTarget::kEntries;
    case ast::IndexTarget::Kind::kFull:
      return IndexTarget::kFull;
    case ast::IndexTarget::Kind::kSimple:
      break;
  }
  return type.is_collection() ? IndexTarget::kValues : IndexTarget::kSimple;
}

std::string_view target_word(IndexTarget target) {
  constexpr std::string_view kWords[] = {"simple", "keys", "values", "entries", "full"};
  return kWords[static_cast<size_t>(target)];
}

/// Durations have no order, and none of the indexes can hold them.
Result<void> check_durations(const DataType& type) {
  if (!type.references_duration()) return {};
  const char* what = type.is_collection()              ? "collections containing durations"
                     : type.kind() == TypeKind::kTuple ? "tuples containing durations"
                     : type.kind() == TypeKind::kUdt   ? "UDTs containing durations"
                                                       : "duration columns";
  return fail(ErrorCode::kInvalid, "Secondary indexes are not supported on {}", what);
}

/// What holds for indexes of every class.
Result<void> check_target(const TableSchema& table, const ColumnSchema& column, IndexTarget target,
                          bool is_custom) {
  const DataType& type = *column.type;
  const std::string& name = column.name;
  if (is_custom && !is_word(name)) {
    return fail(ErrorCode::kInvalid, "Column '{}' contains non-alphanumeric-underscore characters",
                name);
  }
  constexpr size_t kNameMax = 48;
  if (is_custom && name.size() > kNameMax) {
    return fail(ErrorCode::kInvalid,
                "Column '{}' is longer than the permissible name length of {} characters", name,
                kNameMax);
  }
  TETRAD_TRY_VOID(check_durations(type));
  if (table.is_compact_storage && column.is_primary_key()) {
    return fail(ErrorCode::kInvalid,
                "Secondary indexes are not supported on PRIMARY KEY columns in COMPACT STORAGE "
                "tables");
  }
  // Where there are clustering columns of its own, the one other column is the compact value.
  if (table.is_compact_storage && !table.clustering().empty() && !table.has_hidden_clustering()) {
    return fail(ErrorCode::kInvalid,
                "Secondary indexes are not supported on compact value column of COMPACT STORAGE "
                "tables");
  }
  if (column.kind == ColumnKind::kPartitionKey && table.partition_key().size() == 1) {
    return fail(ErrorCode::kInvalid,
                "Cannot create secondary index on the only partition key column {}", name);
  }
  const bool frozen_collection = type.is_collection() && type.is_frozen();
  if (frozen_collection && target != IndexTarget::kFull) {
    return fail(ErrorCode::kInvalid,
                "Cannot create {}() index on frozen column {}. Frozen collections are immutable "
                "and must be fully indexed by using the 'full({})' modifier",
                target_word(target), name, quote_identifier(name));
  }
  if (!frozen_collection && target == IndexTarget::kFull) {
    return fail(ErrorCode::kInvalid, "full() indexes can only be created on frozen collections");
  }
  if (!type.is_collection() && target != IndexTarget::kSimple) {
    return fail(ErrorCode::kInvalid,
                "Cannot create {}() index on {}. Non-collection columns only support simple "
                "indexes",
                target_word(target), name);
  }
  const bool of_map = target == IndexTarget::kKeys || target == IndexTarget::kEntries;
  if (of_map && type.kind() != TypeKind::kMap) {
    return fail(ErrorCode::kInvalid, "Cannot create index on {} of column {} with non-map type",
                target_word(target), name);
  }
  if (type.kind() == TypeKind::kUdt && type.is_multi_cell()) {
    return fail(ErrorCode::kInvalid, "Cannot create index on non-frozen UDT column {}", name);
  }
  return {};
}

/// The targets by themselves: their columns are there, and how many there may be.
Result<std::vector<const ColumnSchema*>> target_columns(const ast::CreateIndex& statement,
                                                        const TableSchema& table, bool is_custom) {
  std::vector<const ColumnSchema*> columns;
  for (const ast::IndexTarget& target : statement.targets) {
    const ColumnSchema* column = table.find(target.column.text);
    if (column == nullptr) {
      return undefined_column(target.column.text, table);
    }
    columns.push_back(column);
  }
  if (columns.empty() && !is_custom) {
    return fail(ErrorCode::kInvalid,
                "Only CUSTOM indexes can be created without specifying a target column");
  }
  if (columns.size() > 1 && !is_custom) {
    return fail(ErrorCode::kInvalid, "Only CUSTOM indexes support multiple columns");
  }
  std::set<std::string> named;
  for (const ColumnSchema* column : columns) {
    if (columns.size() < 2 || named.insert(column->name).second) continue;
    return fail(ErrorCode::kInvalid, "Duplicate column '{}' in index target list", column->name);
  }
  return columns;
}

/// What only the class knows. `index` is complete but for its id.
Result<void> check_class(const TableSchema& table, const IndexSchema& index,
                         std::span<const ColumnSchema* const> columns, const std::string& targets,
                         const IndexOptions& options) {
  if (!is_word(index.name) || index.name.size() > kIndexNameMax) {
    return fail(ErrorCode::kConfig, "Illegal index name {}", index.name);
  }
  // The native index has no rules beyond check_target().
  if (index.index_class == IndexClass::kLegacy) return {};
  const bool is_sai = index.index_class == IndexClass::kSai;
  if (columns.empty()) {
    if (is_sai) return fail(ErrorCode::kInvalid, "Failed to retrieve target column for: ");
    return fail(ErrorCode::kConfig, "failed to retrieve target column for: ");
  }
  if (columns.size() > 1) {
    if (!is_sai)
      return fail(ErrorCode::kConfig, "failed to retrieve target column for: {}", targets);
    return fail(ErrorCode::kInvalid,
                "A storage-attached index cannot be created over multiple columns: {}", targets);
  }
  if (is_sai) return check_sai_index(table, *columns.front(), index.target, options);
  return check_sasi_index(table, *columns.front(), options);
}

/// Of SASI; others keep texts as one term.
bool has_words(const IndexSchema& index, const DataType& type) {
  if (index.index_class != IndexClass::kSasi) return false;
  const auto options = sasi_options(type, index.options);
  return options && options->analysis.has_words();
}

/// What a statement says of the class.
struct ClassRequest {
  std::string name;
  bool is_custom = false;  // any class but the native one
  IndexOptions options;
};

/// USING, CUSTOM and WITH, with the guardrails on classes. Whether there is such a class is checked
/// later, as in Cassandra.
Result<ClassRequest> class_of(const ast::CreateIndex& statement, const Guardrails& guardrails) {
  ClassRequest request;
  // The class that stands for none is the native index, unless CUSTOM asks for a class.
  request.name = statement.using_class.value_or(kLegacyName);
  request.is_custom = statement.custom || upper(request.name) != upper(kLegacyName);
  TETRAD_TRY(request.options, options_of(statement));
  if (!request.is_custom && !statement.properties.empty()) {
    return fail(ErrorCode::kInvalid, "Cannot specify options for a non-CUSTOM index");
  }
  TETRAD_TRY_VOID(check_enabled(guardrails.secondary_indexes, "secondary_indexes",
                                "Creating secondary indexes"));
  if (request.name == kSasiClassName && !guardrails.sasi_indexes) {
    return fail(ErrorCode::kInvalid,
                "SASI indexes are disabled. Enable them with the option sasi_indexes_enabled.");
  }
  return request;
}

/// The guardrail on the indexes of one table.
Result<void> check_index_count(const ast::CreateIndex& statement, const TableSchema& table,
                               const PlanInput& input) {
  const std::string title = statement.name ? statement.name->name.text + " on" : "on";
  const size_t count = table.indexes.size() + 1;
  return check_threshold(
      input.settings.guardrails.secondary_indexes_per_table, count, "secondary_indexes_per_table",
      input.warnings, [&](uint64_t limit, bool fails) {
        return fails ? fmt::format(
                           "Tables cannot have more than {} secondary indexes, aborting "
                           "the creation of secondary index {} table {}",
                           limit, title, table.name)
                     : fmt::format(
                           "Creating secondary index {} table {}, current number of "
                           "indexes {} exceeds warning threshold of {}.",
                           title, table.name, count, limit);
      });
}

/// The index that the statement asks for, but for its id, and whether it may be: its class comes
/// last. Unset: there is the same one already, which IF NOT EXISTS is content with.
Result<std::optional<IndexSchema>> index_of(const ast::CreateIndex& statement,
                                            const ClassRequest& request,
                                            const KeyspaceSchema& keyspace,
                                            const TableSchema& table) {
  TETRAD_TRY(const auto columns, target_columns(statement, table, request.is_custom));
  std::string targets;
  IndexSchema index;
  for (size_t i = 0; i < columns.size(); ++i) {
    index.target = target_of(statement.targets[i], *columns[i]->type);
    TETRAD_TRY_VOID(check_target(table, *columns[i], index.target, request.is_custom));
    index.column = columns[i]->name;
    targets += (targets.empty() ? "" : ", ") + target_text(index.target, columns[i]->name);
  }
  index.name = statement.name ? statement.name->name.text
                              : default_name(keyspace, table.name, statement.targets);
  index.options = request.options;
  index.options["target"] = targets;
  if (request.is_custom) index.options["class_name"] = request.name;
  // Options hold the target and the class: two indexes with equal options are the same but for the
  // name.
  const auto same = std::ranges::find(table.indexes, index.options, &IndexSchema::options);
  if (same != table.indexes.end()) {
    if (statement.if_not_exists) return std::nullopt;
    return fail(ErrorCode::kInvalid, "Index {} is a duplicate of existing index {}", index.name,
                same->name);
  }
  if (request.is_custom) {
    const auto known = index_class_named(request.name);
    if (!known) {
      return fail(ErrorCode::kConfig, "Unable to find custom indexer class '{}'", request.name);
    }
    index.index_class = *known;
  }
  TETRAD_TRY_VOID(check_class(table, index, columns, targets, request.options));
  return index;
}

}  // namespace

// The table changes at once; stores build the entries of the rows that they have afterwards
// (storage/index/table_indexes.h).
Result<SchemaPlan> plan(const ast::CreateIndex& statement, const PlanInput& input) {
  std::string keyspace_name;
  TETRAD_TRY(const KeyspaceSchema* const keyspace,
             keyspace_for_table(statement.table, input, keyspace_name));
  TETRAD_TRY(const ClassRequest request, class_of(statement, input.settings.guardrails));
  const std::string& table_name = statement.table.name.text;
  const TablePtr old = find_table(keyspace, table_name);
  if (old == nullptr) {
    TETRAD_TRY_VOID(input.schema.check_readable(table_key(keyspace_name, table_name)));
    if (keyspace == nullptr) {
      return fail(ErrorCode::kInvalid, "Keyspace '{}' doesn't exist", keyspace_name);
    }
    return fail(ErrorCode::kInvalid, "Table '{}' doesn't exist", table_name);
  }
  const bool is_there = statement.name && has_index(*keyspace, statement.name->name.text);
  if (is_there && !statement.if_not_exists) {
    return fail(ErrorCode::kInvalid, "Index '{}' already exists", statement.name->name.text);
  }
  if (old->is_counter && !is_there) {
    return fail(ErrorCode::kInvalid, "Secondary indexes on counter tables aren't supported");
  }
  if (old->view && !is_there)
    return fail(ErrorCode::kInvalid, "Secondary indexes on materialized views aren't supported");
  std::optional<IndexSchema> index;
  if (!is_there) {
    TETRAD_TRY_VOID(check_index_count(statement, *old, input));
    TETRAD_TRY(index, index_of(statement, request, *keyspace, *old));
  }
  if (request.name == kSasiClassName) {
    input.warnings.push_back(
        "SASI indexes are experimental and are not recommended for production use.");
  }
  SchemaPlan out;
  if (!index) {
    out.nothing_to_do = true;
    return out;
  }
  // A node that does not know indexes cannot maintain them.
  if (input.meta.format < replication::kFormatIndexes) {
    return fail(ErrorCode::kInvalid, "indexes wait until all nodes run a program that knows them");
  }
  if (is_vector_index(*index, *old->find(index->column)->type) &&
      input.meta.format < replication::kFormatNearest) {
    return fail(ErrorCode::kInvalid,
                "indexes on vectors wait until all nodes run a program that knows them");
  }
  // Such a node would take a whole text for one word. Words came with the format of vectors.
  if (has_words(*index, *old->find(index->column)->type) &&
      input.meta.format < replication::kFormatNearest) {
    return fail(ErrorCode::kInvalid,
                "indexes on words wait until all nodes run a program that knows them");
  }
  if (old->indexes.size() >= kIndexesMax || old->next_index_id == UINT16_MAX) {
    return fail(ErrorCode::kInvalid,
                "Table {} can have {} indexes at most at a time, and {} in its life",
                old->qualified_name(), kIndexesMax, UINT16_MAX - 1);
  }
  TableSchema table = *old;
  index->id = table.next_index_id++;
  // Ordered by name.
  const auto place = std::ranges::upper_bound(table.indexes, index->name, {}, &IndexSchema::name);
  table.indexes.insert(place, *std::move(index));
  table.version.value += 1;
  out.change.objects.emplace_back(table_key(keyspace_name, table_name), table_text(table));
  out.answer = table_changed(Kind::kUpdated, keyspace_name, table_name);
  return out;
}

// The statement names no table: the index is looked for in all tables of the keyspace.
Result<SchemaPlan> plan(const ast::DropIndex& statement, const PlanInput& input) {
  TETRAD_TRY(const std::string keyspace_name, keyspace_of(statement.name, input));
  const std::string& name = statement.name.name.text;
  const KeyspaceSchema* const keyspace = input.schema.keyspace(keyspace_name);
  if (keyspace != nullptr && is_system(*keyspace)) {
    return fail(ErrorCode::kInvalid, "System keyspace '{}' is not user-modifiable", keyspace_name);
  }
  TETRAD_TRY_VOID(check_modifiable(input.schema, keyspace_name));
  SchemaPlan out;
  if (keyspace == nullptr || !has_index(*keyspace, name)) {
    // The stray apostrophe is Cassandra's.
    if (!statement.if_exists)
      return fail(ErrorCode::kInvalid, "Index '{}.{}' doesn't exist'", keyspace_name, name);
    out.nothing_to_do = true;
    return out;
  }
  const auto found = std::ranges::find_if(keyspace->tables, [&](const auto& table) {
    return std::ranges::count(table.second->indexes, name, &IndexSchema::name) != 0;
  });
  TableSchema table = *found->second;
  std::erase_if(table.indexes, [&](const IndexSchema& index) { return index.name == name; });
  table.version.value += 1;
  out.change.objects.emplace_back(table_key(keyspace_name, table.name), table_text(table));
  out.answer = table_changed(Kind::kUpdated, keyspace_name, table.name);
  return out;
}

}  // namespace tetrad::cql
