// SPDX-License-Identifier: Apache-2.0
#include "cql/schema/schema_snapshot.h"

#include <algorithm>

#include "cql/schema/schema_text.h"

namespace tetrad::cql {
namespace {

/// The objects of one keyspace, by kind.
struct KeyspaceTexts {
  std::string keyspace;
  std::map<std::string, std::string> dependencies;  // "type/…", "function/…", "aggregate/…"
  std::map<std::string, std::pair<std::string, std::string>> tables;  // name → key, text
};

/// Splits "table/<keyspace>/<name>".
std::pair<std::string_view, std::string_view> split_key(std::string_view key,
                                                        std::string_view& rest) {
  const size_t first = key.find('/');
  const size_t second = key.find('/', first + 1);
  rest = second == std::string_view::npos ? std::string_view() : key.substr(second + 1);
  return {key.substr(0, first),
          key.substr(first + 1, second == std::string_view::npos ? second : second - first - 1)};
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
  auto out = std::make_shared<SchemaSnapshot>();
  out->version_ = state.schema_version;
  out->version_uuid_ = state.schema_version_uuid();
  for (const auto& keyspace : virtual_keyspaces) out->keyspaces_.emplace(keyspace->name, keyspace);

  std::map<std::string, KeyspaceTexts> keyspaces;
  for (const auto& [key, text] : state.schema_objects) {
    std::string_view name;
    const auto [kind, keyspace] = split_key(key, name);
    KeyspaceTexts& texts = keyspaces[std::string(keyspace)];
    if (kind == "keyspace") {
      texts.keyspace = text;
    } else if (kind == "table") {
      texts.tables.emplace(std::string(name), std::pair(key, text));
    } else {
      texts.dependencies.emplace(key, text);
    }
  }

  for (const auto& [name, texts] : keyspaces) {
    if (texts.keyspace.empty())
      return fail(ErrorCode::kCorruption, "keyspace '{}' has objects but no entry", name);
    const DecodedKeyspace* old = nullptr;
    std::shared_ptr<const KeyspaceSchema> old_schema;
    if (previous != nullptr) {
      if (const auto it = previous->decoded_keyspaces_.find(name);
          it != previous->decoded_keyspaces_.end()) {
        old = &it->second;
        old_schema = previous->keyspaces_.find(name)->second;
      }
    }
    TETRAD_TRY(KeyspaceSchema keyspace, read_keyspace_text(texts.keyspace));
    const UdtResolver resolve = [&keyspace](std::string_view named,
                                            std::string_view type) -> TypePtr {
      if (!named.empty() && named != keyspace.name) return nullptr;
      const auto found = keyspace.types.find(std::string(type));
      return found == keyspace.types.end() ? nullptr : found->second;
    };
    const bool same_dependencies = old != nullptr && old->dependency_texts == texts.dependencies;
    bool same_types = same_dependencies;
    if (same_dependencies) {
      keyspace.types = old_schema->types;
      keyspace.types_in_dependency_order = old_schema->types_in_dependency_order;
      keyspace.functions = old_schema->functions;
      keyspace.aggregates = old_schema->aggregates;
    } else {
      std::map<std::string, std::string> types;
      for (const auto& [key, text] : texts.dependencies) {
        if (key.starts_with("type/")) types.emplace(key, text);
      }
      TETRAD_TRY_VOID(read_types(types, keyspace));
      same_types = old_schema != nullptr && old_schema->types.size() == keyspace.types.size();
      for (auto& [type_name, type] : keyspace.types) {
        TypePtr before;
        if (old_schema != nullptr) {
          const auto found = old_schema->types.find(type_name);
          if (found != old_schema->types.end()) before = found->second;
        }
        if (before && *before == *type) {
          type = before;
        } else {
          same_types = false;
        }
      }
      TETRAD_TRY_VOID(read_functions(texts.dependencies, resolve, old_schema.get(), keyspace));
    }
    bool same_tables = old != nullptr && old_schema->tables.size() == texts.tables.size();
    for (const auto& [table_name, entry] : texts.tables) {
      const auto& [key, text] = entry;
      const DecodedTable* decoded = nullptr;
      if (same_types && previous != nullptr) {
        if (const auto it = previous->decoded_tables_.find(key);
            it != previous->decoded_tables_.end()) {
          decoded = &it->second;
        }
      }
      std::shared_ptr<TableSchema> fresh;
      if (decoded == nullptr || decoded->text != text) {
        TETRAD_TRY(fresh, read_table_text(text, resolve));
      } else {
        const auto info = state.tables.find(decoded->table->id);
        if (info != state.tables.end() && info->second->incarnation == decoded->incarnation) {
          keyspace.tables.emplace(table_name, decoded->table);
          out->decoded_tables_.emplace(key, *decoded);
          continue;
        }
        fresh = std::make_shared<TableSchema>(*decoded->table);  // truncated: another incarnation
      }
      same_tables = false;
      const auto info = state.tables.find(fresh->id);
      if (info == state.tables.end()) {
        return fail(ErrorCode::kCorruption, "table {} has no tablets", fresh->qualified_name());
      }
      fresh->incarnation = info->second->incarnation;
      out->decoded_tables_.emplace(key, DecodedTable{text, fresh->incarnation, fresh});
      keyspace.tables.emplace(table_name, std::move(fresh));
    }
    const bool unchanged = same_dependencies && same_tables && old->text == texts.keyspace;
    out->decoded_keyspaces_.emplace(name, DecodedKeyspace{texts.keyspace, texts.dependencies});
    out->keyspaces_.insert_or_assign(  // also in place of a computed one
        name, unchanged ? old_schema : std::make_shared<const KeyspaceSchema>(std::move(keyspace)));
  }
  return std::shared_ptr<const SchemaSnapshot>(std::move(out));
}

const KeyspaceSchema* SchemaSnapshot::keyspace(std::string_view name) const {
  const auto found = keyspaces_.find(name);
  return found == keyspaces_.end() ? nullptr : found->second.get();
}

TablePtr SchemaSnapshot::table(std::string_view keyspace_name, std::string_view name) const {
  const KeyspaceSchema* in = keyspace(keyspace_name);
  if (in == nullptr) return nullptr;
  const auto found = in->tables.find(std::string(name));
  return found == in->tables.end() ? nullptr : found->second;
}

}  // namespace tetrad::cql
