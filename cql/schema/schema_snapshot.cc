// SPDX-License-Identifier: Apache-2.0
#include "cql/schema/schema_snapshot.h"

#include <algorithm>

#include "cql/schema/schema_text.h"

namespace tetrad::cql {
namespace {

/// Splits "table/<keyspace>/<name>".
std::pair<std::string_view, std::string_view> split_key(std::string_view key,
                                                        std::string_view& rest) {
  const size_t first = key.find('/');
  const size_t second = key.find('/', first + 1);
  rest = second == std::string_view::npos ? std::string_view() : key.substr(second + 1);
  return {key.substr(0, first),
          key.substr(first + 1, second == std::string_view::npos ? second : second - first - 1)};
}

/// Visits the objects of one kind in a keyspace.
template <class Visit>
void for_each_object(const base::SharedMap<std::string, std::string>& objects, const char* kind,
                     const std::string& keyspace, Visit visit) {
  const std::string prefix = std::string(kind) + "/" + keyspace + "/";
  for (auto it = objects.lower_bound(prefix); it != objects.end() && it->first.starts_with(prefix);
       ++it)
    visit(it->first, it->second);
}

bool has_user_types(const TableSchema& table) {
  return std::ranges::any_of(
      table.columns(), [](const ColumnSchema& column) { return column.type->references_udt(); });
}

/// Types may need one another: goes round until all are there.
Result<void> read_types(const std::map<std::string, std::string>& texts, KeyspaceSchema& keyspace) {
  std::map<std::string, std::string> waiting = texts;
  const UdtResolver resolve = [&keyspace](std::string_view named,
                                          std::string_view name) -> TypePtr {
    if (!named.empty() && named != keyspace.name) return nullptr;
    const auto found = keyspace.types.find(std::string(name));
    return found == keyspace.types.end() ? nullptr : found->second;
  };
  while (!waiting.empty()) {
    const size_t before = waiting.size();
    for (auto it = waiting.begin(); it != waiting.end();) {
      auto type = read_type_text(it->second, resolve);
      if (!type && type.error().code != ErrorCode::kNotFound) return std::unexpected(type.error());
      if (!type) {
        ++it;
        continue;
      }
      keyspace.types_in_dependency_order.push_back((*type)->name());
      keyspace.types.emplace((*type)->name(), std::move(*type));
      it = waiting.erase(it);
    }
    if (waiting.size() == before) {
      return fail(ErrorCode::kCorruption, "type {} needs a type that is not there",
                  waiting.begin()->first);
    }
  }
  return {};
}

/// Functions and aggregates. What is as it was keeps its object: listeners compare those.
Result<void> read_functions(const std::map<std::string, std::string>& texts,
                            const UdtResolver& resolve, const KeyspaceSchema* old,
                            KeyspaceSchema& keyspace) {
  for (const auto& [key, text] : texts) {
    if (key.starts_with("function/")) {
      TETRAD_TRY(FunctionPtr function, read_function_text(text, resolve));
      const FunctionPtr before =
          old == nullptr ? nullptr : old->find_function(function->name, function->argument_types);
      keyspace.functions.push_back(before && *before == *function ? before : std::move(function));
    } else if (key.starts_with("aggregate/")) {
      TETRAD_TRY(AggregatePtr aggregate, read_aggregate_text(text, resolve));
      const AggregatePtr before =
          old == nullptr ? nullptr
                         : old->find_aggregate(aggregate->name, aggregate->argument_types);
      keyspace.aggregates.push_back(before && *before == *aggregate ? before
                                                                    : std::move(aggregate));
    }
  }
  return {};
}

template <class Schema>
std::shared_ptr<const Schema> find_overload(
    const std::vector<std::shared_ptr<const Schema>>& overloads, std::string_view name,
    std::span<const TypePtr> types) {
  for (const auto& overload : overloads) {
    if (overload->name == name && equal_types(overload->argument_types, types)) return overload;
  }
  return nullptr;
}

}  // namespace

bool equal_types(std::span<const TypePtr> a, std::span<const TypePtr> b) {
  return std::ranges::equal(
      a, b, [](const TypePtr& left, const TypePtr& right) { return *left == *right; });
}

bool operator==(const FunctionSchema& a, const FunctionSchema& b) {
  return a.keyspace == b.keyspace && a.name == b.name && a.argument_names == b.argument_names &&
         equal_types(a.argument_types, b.argument_types) && *a.return_type == *b.return_type &&
         a.called_on_null_input == b.called_on_null_input && a.language == b.language &&
         a.body == b.body;
}

bool operator==(const AggregateSchema& a, const AggregateSchema& b) {
  return a.keyspace == b.keyspace && a.name == b.name &&
         equal_types(a.argument_types, b.argument_types) && a.state_function == b.state_function &&
         a.final_function == b.final_function && *a.state_type == *b.state_type &&
         *a.return_type == *b.return_type && a.initial_condition == b.initial_condition;
}

FunctionPtr KeyspaceSchema::find_function(std::string_view function,
                                          std::span<const TypePtr> argument_types) const {
  return find_overload(functions, function, argument_types);
}

AggregatePtr KeyspaceSchema::find_aggregate(std::string_view aggregate,
                                            std::span<const TypePtr> argument_types) const {
  return find_overload(aggregates, aggregate, argument_types);
}

Result<std::shared_ptr<const SchemaSnapshot>> SchemaSnapshot::build(
    const replication::MetaState& state, const SchemaSnapshot* previous,
    const std::vector<std::shared_ptr<const KeyspaceSchema>>& virtual_keyspaces) {
  const SchemaSnapshot nothing;
  const SchemaSnapshot& before = previous == nullptr ? nothing : *previous;
  auto out = std::make_shared<SchemaSnapshot>();
  out->version_ = state.schema_version;
  out->version_uuid_ = state.schema_version_uuid();
  out->keyspaces_ = before.keyspaces_;
  out->objects_ = state.schema_objects;
  out->infos_ = state.tables;

  std::map<std::string, Touched> touched;
  decltype(objects_)::compare(
      before.objects_, out->objects_,
      [&touched](const std::string& key, const std::string*, const std::string*) {
        std::string_view name;
        const auto [kind, keyspace] = split_key(key, name);
        Touched& what = touched[std::string(keyspace)];
        if (kind == "table") {
          what.tables.emplace(name);
        } else if (kind != "keyspace") {
          what.dependencies = true;
        }
      });
  decltype(infos_)::compare(
      before.infos_, out->infos_, [&touched](const TableId&, const auto* old, const auto* now) {
        if (old == nullptr || now == nullptr || (*old)->incarnation == (*now)->incarnation) return;
        touched[(*now)->keyspace].tables.emplace((*now)->name);  // truncated
      });
  for (const auto& [name, what] : touched) TETRAD_TRY_VOID(out->rebuild(name, what, before, state));
  for (const auto& keyspace : virtual_keyspaces)  // but where a real one has its name
    if (!out->objects_.contains(keyspace_key(keyspace->name)))
      out->keyspaces_[keyspace->name] = keyspace;
  return std::shared_ptr<const SchemaSnapshot>(std::move(out));
}

Result<void> SchemaSnapshot::rebuild(const std::string& name, const Touched& touched,
                                     const SchemaSnapshot& before,
                                     const replication::MetaState& state) {
  std::map<std::string, std::string> types, dependencies;
  for (const char* kind : {"type", "function", "aggregate"})
    for_each_object(objects_, kind, name, [&](const std::string& key, const std::string& text) {
      dependencies.emplace(key, text);
      if (key.starts_with("type/")) types.emplace(key, text);
    });
  const auto entry = objects_.find(keyspace_key(name));
  if (entry == objects_.end()) {
    bool has_tables = false;
    for_each_object(objects_, "table", name,
                    [&](const std::string&, const std::string&) { has_tables = true; });
    if (has_tables || !dependencies.empty())
      return fail(ErrorCode::kCorruption, "keyspace '{}' has objects but no entry", name);
    keyspaces_.erase(name);
    return {};
  }
  std::shared_ptr<const KeyspaceSchema> old;
  if (const auto known = before.keyspaces_.find(name);
      known != before.keyspaces_.end() && !known->second->is_virtual)
    old = known->second;
  TETRAD_TRY(KeyspaceSchema keyspace, read_keyspace_text(entry->second));
  const UdtResolver resolve = [&keyspace](std::string_view named,
                                          std::string_view type) -> TypePtr {
    if (!named.empty() && named != keyspace.name) return nullptr;
    const auto found = keyspace.types.find(std::string(type));
    return found == keyspace.types.end() ? nullptr : found->second;
  };
  if (old != nullptr) keyspace.tables = old->tables;
  std::set<std::string> tables = touched.tables;
  if (old != nullptr && !touched.dependencies) {
    keyspace.types = old->types;
    keyspace.types_in_dependency_order = old->types_in_dependency_order;
    keyspace.functions = old->functions;
    keyspace.aggregates = old->aggregates;
  } else {
    TETRAD_TRY_VOID(read_types(types, keyspace));
    bool changed = false;
    for (auto& [type_name, type] : keyspace.types) {
      if (old == nullptr) break;
      const auto found = old->types.find(type_name);
      if (found == old->types.end()) continue;
      if (*found->second == *type) {
        type = found->second;
      } else {
        changed = true;
      }
    }
    TETRAD_TRY_VOID(read_functions(dependencies, resolve, old.get(), keyspace));
    if (changed)
      for (const auto& [table_name, table] : keyspace.tables)
        if (has_user_types(*table)) tables.insert(table_name);
  }
  for (const std::string& table_name : tables) {
    const auto object = objects_.find(table_key(name, table_name));
    if (object == objects_.end()) {
      keyspace.tables.erase(table_name);
      continue;
    }
    TETRAD_TRY(const std::shared_ptr<TableSchema> fresh, read_table_text(object->second, resolve));
    const auto info = state.tables.find(fresh->id);
    if (info == state.tables.end())
      return fail(ErrorCode::kCorruption, "table {} has no tablets", fresh->qualified_name());
    fresh->incarnation = info->second->incarnation;
    keyspace.tables.put(table_name, fresh);
  }
  keyspaces_[name] = std::make_shared<const KeyspaceSchema>(std::move(keyspace));
  return {};
}

const KeyspaceSchema* SchemaSnapshot::keyspace(std::string_view name) const {
  const auto found = keyspaces_.find(name);
  return found == keyspaces_.end() ? nullptr : found->second.get();
}

TablePtr SchemaSnapshot::table(std::string_view keyspace_name, std::string_view name) const {
  const KeyspaceSchema* in = keyspace(keyspace_name);
  if (in == nullptr) return nullptr;
  const auto found = in->tables.find(name);
  return found == in->tables.end() ? nullptr : found->second;
}

}  // namespace tetrad::cql
