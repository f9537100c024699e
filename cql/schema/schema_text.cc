// SPDX-License-Identifier: Apache-2.0
// Objects of the schema as JSON, the values of `schema_objects` in the metadata group. The texts
// are stored and read by all nodes of a cluster, of older and newer programs:
//
// - Names of members never change their meaning.
// - A new member must be optional when it is read (value(), contains()), and is written only when
//   it has another value than its default, so that texts without it stay byte for byte the same:
//   programs compare texts.
// - A member that older programs must not pass over goes through replication/meta/cluster_format.h.
//
// Types stand as CQL text, bytes as hexadecimal.
#include "cql/schema/schema_text.h"

#include <utility>

#include "cql/grammar/parser.h"
#include "cql/schema/object_text.h"
#include "cql/types/literal.h"
#include "cql/types/type_size.h"

namespace tetrad::cql {
namespace {

using nlohmann::json;

// Raised only if older programs must refuse the object.
constexpr int kFormat = 1;
// By ColumnKind; they are stored.
constexpr const char* kKindNames[] = {"partition_key", "clustering", "static", "regular"};

// Errors: kCorruption; a newer kind is read by no older program.
Result<ColumnKind> kind_named(const std::string& name) {
  for (int i = 0; i < 4; ++i) {
    if (name == kKindNames[i]) return static_cast<ColumnKind>(i);
  }
  return fail(ErrorCode::kCorruption, "column kind '{}'", name);
}

/// More columns than all ALTER TABLE ADD of a table's life make.
constexpr uint32_t kColumnIdMax = 1u << 24;

/// As read_object_text().
template <class Read>
auto guarded(const std::string& text, Read read) {
  return read_object_text(text, "schema object", kFormat, std::move(read));
}

void write_throughput(const ThroughputSetting& throughput, json& out) {
  if (throughput.provisioned != 0) out[kProvisionedThroughput] = throughput.provisioned;
  if (throughput.autoscale_max != 0) out[kAutoscaleMaxThroughput] = throughput.autoscale_max;
}

// 0 where nothing is set.
ThroughputSetting read_throughput(const json& in) {
  return {in.value(kProvisionedThroughput, uint32_t{0}),
          in.value(kAutoscaleMaxThroughput, uint32_t{0})};
}

// Names of the options in CQL. What an option does not have is left out where older programs wrote
// nothing.
json options_json(const TableOptions& options) {
  json out;
  out["comment"] = options.comment;
  out["default_time_to_live"] = options.default_time_to_live_s;
  if (options.gc_grace_seconds) out["gc_grace_seconds"] = *options.gc_grace_seconds;
  out["tetrad_max_partition_mb"] = options.max_partition_mb;
  if (options.initial_partitions != 0)
    out["tetrad_initial_partitions"] = options.initial_partitions;
  write_throughput(options.throughput, out);
  out["bloom_filter_fp_chance"] = options.bloom_filter_fp_chance;
  out["crc_check_chance"] = options.crc_check_chance;
  out["cdc"] = options.cdc;
  out["allow_auto_snapshot"] = options.allow_auto_snapshot;
  out["incremental_backups"] = options.incremental_backups;
  out["max_index_interval"] = options.max_index_interval;
  out["min_index_interval"] = options.min_index_interval;
  out["memtable_flush_period_in_ms"] = options.memtable_flush_period_in_ms;
  out["speculative_retry"] = options.speculative_retry;
  out["additional_write_policy"] = options.additional_write_policy;
  out["read_repair"] = options.read_repair;
  out["memtable"] = options.memtable;
  out["caching"] = options.caching;
  out["compaction"] = options.compaction;
  out["compression"] = options.compression;
  json extensions = json::object();
  for (const auto& [name, value] : options.extensions) extensions[name] = base::to_hex(value);
  out["extensions"] = extensions;
  return out;
}

// at() for keys that every text has, value() for newer ones that an older text lacks.
TableOptions read_options(const json& in) {
  TableOptions out;
  out.comment = in.at("comment");
  out.default_time_to_live_s = in.at("default_time_to_live");
  if (in.contains("gc_grace_seconds")) out.gc_grace_seconds = in["gc_grace_seconds"].get<int32_t>();
  out.max_partition_mb = in.at("tetrad_max_partition_mb");
  out.initial_partitions = in.value("tetrad_initial_partitions", uint32_t{0});
  out.throughput = read_throughput(in);
  out.bloom_filter_fp_chance = in.at("bloom_filter_fp_chance");
  out.crc_check_chance = in.at("crc_check_chance");
  out.cdc = in.at("cdc");
  out.allow_auto_snapshot = in.at("allow_auto_snapshot");
  out.incremental_backups = in.at("incremental_backups");
  out.max_index_interval = in.at("max_index_interval");
  out.min_index_interval = in.at("min_index_interval");
  out.memtable_flush_period_in_ms = in.at("memtable_flush_period_in_ms");
  out.speculative_retry = in.at("speculative_retry");
  out.additional_write_policy = in.at("additional_write_policy");
  out.read_repair = in.at("read_repair");
  out.memtable = in.at("memtable");
  out.caching = in.at("caching").get<std::map<std::string, std::string>>();
  out.compaction = in.at("compaction").get<std::map<std::string, std::string>>();
  out.compression = in.at("compression").get<std::map<std::string, std::string>>();
  for (const auto& [name, hex] : in.at("extensions").items()) {
    const std::string digits = hex.get<std::string>();
    Bytes bytes;
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
    out.extensions.emplace(name, std::move(bytes));
  }
  return out;
}

// Constants in hexadecimal, each beside its type; null is JSON's null.
json mask_json(const ColumnMask& mask) {
  json types = json::array(), values = json::array();
  for (size_t i = 0; i < mask.arguments.size(); ++i) {
    types.push_back(mask.argument_types[i]->cql_text());
    const OptionalBytes& value = mask.arguments[i];
    values.push_back(value ? json(base::to_hex(*value)) : json());
  }
  return {{"keyspace", mask.keyspace},
          {"function", mask.function},
          {"argument_types", types},
          {"arguments", values}};
}

Result<ColumnMaskPtr> read_mask(const json& in, const std::string& keyspace,
                                const UdtResolver& resolve_udt) {
  auto mask = std::make_shared<ColumnMask>();
  mask->keyspace = in.at("keyspace");
  mask->function = in.at("function");
  // A function of another keyspace could be dropped without this table's knowledge.
  if (!mask->is_native() && mask->keyspace != keyspace)
    return fail(ErrorCode::kCorruption, "a mask with a function of keyspace {}", mask->keyspace);
  for (const json& text : in.at("argument_types")) {
    TETRAD_TRY(TypePtr type, parse_type(text.get<std::string>(), resolve_udt));
    mask->argument_types.push_back(std::move(type));
  }
  for (const json& value : in.at("arguments")) {
    if (value.is_null()) {
      mask->arguments.emplace_back();
      continue;
    }
    auto bytes = parse_hex(value.get<std::string>());
    if (!bytes) return fail(ErrorCode::kCorruption, "argument of mask {}", mask->function);
    mask->arguments.emplace_back(std::move(*bytes));
  }
  if (mask->arguments.size() != mask->argument_types.size())
    return fail(ErrorCode::kCorruption, "arguments of mask {}", mask->function);
  return ColumnMaskPtr(std::move(mask));
}

// By IndexClass and by IndexTarget; texts keep them, so none may change.
constexpr const char* kIndexClassNames[] = {"legacy", "sasi", "sai"};
constexpr const char* kTargetNames[] = {"simple", "keys", "values", "entries", "full"};

// Class, target and options by name, so that the order of enumerators may change.
json indexes_json(const TableSchema& table) {
  json out = json::array();
  for (const IndexSchema& index : table.indexes) {
    out.push_back({{"name", index.name},
                   {"class", kIndexClassNames[static_cast<int>(index.index_class)]},
                   {"target", kTargetNames[static_cast<int>(index.target)]},
                   {"column", index.column},
                   {"options", index.options},
                   {"id", index.id}});
  }
  return out;
}

// The inverse of names[value].
template <class Enum, size_t n>
Result<Enum> word_of(const char* const (&names)[n], const std::string& name) {
  for (size_t i = 0; i < n; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  return fail(ErrorCode::kCorruption, "'{}' of an index", name);
}

Result<void> read_indexes(const json& in, TableSchema& table) {
  table.next_index_id = in.value("next_index_id", uint16_t{1});
  if (!in.contains("indexes")) return {};
  for (const json& item : in.at("indexes")) {
    IndexSchema index;
    index.name = item.at("name");
    TETRAD_TRY(index.index_class, word_of<IndexClass>(kIndexClassNames, item.at("class")));
    TETRAD_TRY(index.target, word_of<IndexTarget>(kTargetNames, item.at("target")));
    index.column = item.at("column");
    index.options = item.at("options").get<std::map<std::string, std::string>>();
    index.id = item.at("id");
    // Claims on disk have these ids in their keys: one that could be given again would find another
    // index's claims.
    if (index.id == 0 || index.id >= table.next_index_id)
      return fail(ErrorCode::kCorruption, "id {} of index {}", index.id, index.name);
    // system_schema.indexes shows the options, which always have it in Cassandra.
    if (!index.options.contains("target"))
      return fail(ErrorCode::kCorruption, "index {} without a target", index.name);
    table.indexes.push_back(std::move(index));
  }
  return {};
}

// The base's id as well as its name: a table that is made anew under the name is another one.
Result<void> read_view(const json& in, TableSchema& table) {
  ViewDefinition& view = table.view.emplace();
  view.base_table = in.at("base_table");
  const auto id = Uuid::parse(in.at("base_id").get<std::string>());
  if (!id) return fail(ErrorCode::kCorruption, "base table id of view {}", table.name);
  view.base_id = TableId{*id};
  view.include_all_columns = in.at("include_all_columns");
  view.where = in.at("where");
  // Whether it fits the base is for those that know both (prepare/view_condition.h).
  TETRAD_TRY([[maybe_unused]] const auto relations, parse_where(view.where));
  return {};
}

}  // namespace

std::string keyspace_key(std::string_view keyspace) { return fmt::format("keyspace/{}", keyspace); }
std::string table_key(std::string_view keyspace, std::string_view table) {
  return fmt::format("table/{}/{}", keyspace, table);
}
std::string type_key(std::string_view keyspace, std::string_view type) {
  return fmt::format("type/{}/{}", keyspace, type);
}

namespace {

// The argument types are part of the key: overloads are objects of their own.
std::string overload_key(std::string_view kind, std::string_view keyspace, std::string_view name,
                         std::span<const TypePtr> argument_types) {
  std::string types;
  for (const TypePtr& type : argument_types) {
    types += (types.empty() ? "" : ", ") + type->cql_text();
  }
  return fmt::format("{}/{}/{}({})", kind, keyspace, name, types);
}

// Types as CQL writes them, user types by name.
json type_list(const std::vector<TypePtr>& types) {
  json out = json::array();
  for (const TypePtr& type : types) out.push_back(type->cql_text());
  return out;
}

// Errors: of the first type that does not read.
Result<std::vector<TypePtr>> read_type_list(const json& in, const UdtResolver& resolve_udt) {
  std::vector<TypePtr> out;
  for (const json& text : in) {
    TETRAD_TRY(TypePtr type, parse_type(text.get<std::string>(), resolve_udt));
    out.push_back(std::move(type));
  }
  return out;
}

}  // namespace

std::string function_key(std::string_view keyspace, std::string_view name,
                         std::span<const TypePtr> argument_types) {
  return overload_key("function", keyspace, name, argument_types);
}
std::string aggregate_key(std::string_view keyspace, std::string_view name,
                          std::span<const TypePtr> argument_types) {
  return overload_key("aggregate", keyspace, name, argument_types);
}

std::string keyspace_text(const KeyspaceSchema& keyspace) {
  json out = {{"format", kFormat},
              {"name", keyspace.name},
              {"replication", keyspace.replication},
              {"durable_writes", keyspace.durable_writes}};
  write_throughput(keyspace.throughput, out);
  return object_text(out);
}

Result<KeyspaceSchema> read_keyspace_text(const std::string& text) {
  return guarded(text, [](const json& in) -> Result<KeyspaceSchema> {
    KeyspaceSchema out;
    out.name = in.at("name");
    out.replication = in.at("replication").get<std::map<std::string, std::string>>();
    out.durable_writes = in.at("durable_writes");
    out.throughput = read_throughput(in);
    return out;
  });
}

// Columns with everything that statements need; the ids of dropped columns as well.
std::string table_text(const TableSchema& table) {
  json columns = json::array();
  for (const ColumnSchema& column : table.columns()) {
    columns.push_back({{"name", column.name},
                       {"type", column.type->cql_text()},
                       {"kind", kKindNames[static_cast<int>(column.kind)]},
                       {"position", column.position},
                       {"descending", column.descending},
                       {"id", column.id}});
    if (column.hidden) columns.back()["hidden"] = true;
    if (column.mask) columns.back()["mask"] = mask_json(*column.mask);
  }
  json dropped = json::array();
  for (const DroppedColumn& column : table.dropped_columns) {
    dropped.push_back({{"name", column.name},
                       {"type", column.type_text},
                       {"kind", kKindNames[static_cast<int>(column.kind)]},
                       {"dropped_time_us", column.dropped_time_us},
                       {"id", column.id}});
  }
  json out = json{{"format", kFormat},
                  {"keyspace", table.keyspace},
                  {"name", table.name},
                  {"id", table.id.to_string()},
                  {"version", table.version.value},
                  {"compact_storage", table.is_compact_storage},
                  {"next_column_id", table.next_column_id},
                  {"columns", columns},
                  {"dropped_columns", dropped},
                  {"options", options_json(table.options)}};
  // Programs that do not know these pass them over: replication/meta/cluster_format.h.
  if (table.next_index_id != 1) out["next_index_id"] = table.next_index_id;
  if (!table.indexes.empty()) out["indexes"] = indexes_json(table);
  if (!table.views.empty()) out["views"] = table.views;
  if (table.view) {
    out["view"] = {{"base_table", table.view->base_table},
                   {"base_id", table.view->base_id.to_string()},
                   {"include_all_columns", table.view->include_all_columns},
                   {"where", table.view->where}};
  }
  return object_text(out);
}

Result<std::shared_ptr<TableSchema>> read_table_text(const std::string& text,
                                                     const UdtResolver& resolve_udt) {
  return guarded(text, [&](const json& in) -> Result<std::shared_ptr<TableSchema>> {
    auto out = std::make_shared<TableSchema>();
    out->keyspace = in.at("keyspace");
    out->name = in.at("name");
    const auto id = Uuid::parse(in.at("id").get<std::string>());
    if (!id) return fail(ErrorCode::kCorruption, "table id of {}.{}", out->keyspace, out->name);
    out->id = TableId{*id};
    out->version = SchemaVersion{in.at("version").get<uint64_t>()};
    out->is_compact_storage = in.at("compact_storage");
    out->next_column_id = in.at("next_column_id");
    std::vector<ColumnSchema> columns;
    for (const json& item : in.at("columns")) {
      ColumnSchema column;
      column.name = item.at("name");
      TETRAD_TRY(column.type, parse_type(item.at("type").get<std::string>(), resolve_udt));
      TETRAD_TRY(column.kind, kind_named(item.at("kind")));
      column.position = item.at("position");
      column.descending = item.at("descending");
      column.hidden = item.value("hidden", false);
      if (item.contains("mask")) {
        TETRAD_TRY(column.mask, read_mask(item.at("mask"), out->keyspace, resolve_udt));
      }
      column.id = item.at("id");
      // They index an array.
      if (column.id != 0 && (column.id >= out->next_column_id || column.id > kColumnIdMax))
        return fail(ErrorCode::kCorruption, "id {} of column {}", column.id, column.name);
      columns.push_back(std::move(column));
    }
    for (const json& item : in.at("dropped_columns")) {
      DroppedColumn column;
      column.name = item.at("name");
      column.type_text = item.at("type");
      TETRAD_TRY(column.kind, kind_named(item.at("kind")));
      column.dropped_time_us = item.at("dropped_time_us");
      column.id = item.at("id");
      out->dropped_columns.push_back(std::move(column));
    }
    out->set_columns(std::move(columns));
    out->options = read_options(in.at("options"));
    TETRAD_TRY_VOID(read_indexes(in, *out));
    if (in.contains("views")) out->views = in.at("views").get<std::vector<std::string>>();
    if (in.contains("view")) {
      TETRAD_TRY_VOID(read_view(in.at("view"), *out));
    }
    return out;
  });
}

// Types of fields by name: read_type_text() needs those first.
std::string type_text(const DataType& udt) {
  json fields = json::array();
  for (size_t i = 0; i < udt.field_names().size(); ++i) {
    fields.push_back({{"name", udt.field_names()[i]}, {"type", udt.components()[i]->cql_text()}});
  }
  return object_text(json{
      {"format", kFormat}, {"keyspace", udt.keyspace()}, {"name", udt.name()}, {"fields", fields}});
}

Result<TypePtr> read_type_text(const std::string& text, const UdtResolver& resolve_udt) {
  return guarded(text, [&](const json& in) -> Result<TypePtr> {
    std::vector<std::string> names;
    std::vector<TypePtr> types;
    for (const json& field : in.at("fields")) {
      names.push_back(field.at("name"));
      auto type = parse_type(field.at("type").get<std::string>(), resolve_udt);
      // Not corrupt: SchemaSnapshot::read_types() comes back when the type that it needs has been
      // read.
      if (!type) return fail(ErrorCode::kNotFound, "{}", type.error().message);
      types.push_back(std::move(*type));
    }
    TypePtr type =
        make_udt(in.at("keyspace"), in.at("name"), std::move(names), std::move(types), false);
    // Types hold each other, so their bounds are checked where one is put together.
    TETRAD_TRY_VOID(check_type_size(*type));
    return type;
  });
}

std::string function_text(const FunctionSchema& function) {
  return object_text(json{{"format", kFormat},
                          {"keyspace", function.keyspace},
                          {"name", function.name},
                          {"argument_names", function.argument_names},
                          {"argument_types", type_list(function.argument_types)},
                          {"return_type", function.return_type->cql_text()},
                          {"called_on_null_input", function.called_on_null_input},
                          {"language", function.language},
                          {"body", function.body}});
}

Result<FunctionPtr> read_function_text(const std::string& text, const UdtResolver& resolve_udt) {
  return guarded(text, [&](const json& in) -> Result<FunctionPtr> {
    auto out = std::make_shared<FunctionSchema>();
    out->keyspace = in.at("keyspace");
    out->name = in.at("name");
    out->argument_names = in.at("argument_names").get<std::vector<std::string>>();
    TETRAD_TRY(out->argument_types, read_type_list(in.at("argument_types"), resolve_udt));
    TETRAD_TRY(out->return_type, parse_type(in.at("return_type").get<std::string>(), resolve_udt));
    out->called_on_null_input = in.at("called_on_null_input");
    out->language = in.at("language");
    out->body = in.at("body");
    return out;
  });
}

std::string aggregate_text(const AggregateSchema& aggregate) {
  json out = {{"format", kFormat},
              {"keyspace", aggregate.keyspace},
              {"name", aggregate.name},
              {"argument_types", type_list(aggregate.argument_types)},
              {"state_function", aggregate.state_function},
              {"final_function", aggregate.final_function},
              {"state_type", aggregate.state_type->cql_text()},
              {"return_type", aggregate.return_type->cql_text()}};
  // Bytes of the state's type; without one the state begins as null.
  if (aggregate.initial_condition) {
    out["initial_condition"] = base::to_hex(*aggregate.initial_condition);
  }
  return object_text(out);
}

Result<AggregatePtr> read_aggregate_text(const std::string& text, const UdtResolver& resolve_udt) {
  return guarded(text, [&](const json& in) -> Result<AggregatePtr> {
    auto out = std::make_shared<AggregateSchema>();
    out->keyspace = in.at("keyspace");
    out->name = in.at("name");
    TETRAD_TRY(out->argument_types, read_type_list(in.at("argument_types"), resolve_udt));
    out->state_function = in.at("state_function");
    out->final_function = in.at("final_function");
    TETRAD_TRY(out->state_type, parse_type(in.at("state_type").get<std::string>(), resolve_udt));
    TETRAD_TRY(out->return_type, parse_type(in.at("return_type").get<std::string>(), resolve_udt));
    if (in.contains("initial_condition")) {
      auto bytes = parse_hex(in["initial_condition"].get<std::string>());
      if (!bytes) return fail(ErrorCode::kCorruption, "initial condition of {}", out->name);
      out->initial_condition = std::move(*bytes);
    }
    return out;
  });
}

}  // namespace tetrad::cql
