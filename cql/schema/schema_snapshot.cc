// SPDX-License-Identifier: Apache-2.0
// The schema as one immutable value, made from the texts of the metadata group.
//
// build() takes the snapshot before and reads only what has changed: maps share unchanged parts, so
// comparing two versions costs as much as their difference.
//
// 1. Which objects changed, by keyspace: tables by name, types and functions as a whole
//    (`dependencies`), roles, groups of addresses.
// 2. rebuild() makes each touched keyspace anew: the keyspace itself, its types (which need one
//    another), functions and aggregates, then tables that changed or hold a type that changed.
// 3. Objects that have not changed keep their pointers, so EventHub and prepared statements see at
//    once what is the same.
//
// Texts may come from a newer program or be damaged. An object that does not read is left out and
// noted in unreadable_ with the reason; the rest of the schema stays usable, and DROP still removes
// it.
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

/// The user types of `before` that are not the same in `now`, or not there.
// By pointer: read_types keeps the pointers of equal types.
std::vector<std::string> changed_types(const KeyspaceSchema& before, const KeyspaceSchema& now) {
  std::vector<std::string> changed;
  for (const auto& [name, type] : before.types) {
    const auto found = now.types.find(name);
    if (found == now.types.end() || found->second != type) changed.push_back(name);
  }
  return changed;
}

/// In its columns, or in the arguments of their masks.
bool holds_any(const TableSchema& table, std::span<const std::string> types) {
  const auto is_held = [&](const TypePtr& held) {
    return held->references_udt() && std::ranges::any_of(types, [&](const std::string& type) {
             return held->references_udt(table.keyspace, type);
           });
  };
  return std::ranges::any_of(table.columns(), [&](const ColumnSchema& column) {
    return is_held(column.type) ||
           (column.mask && std::ranges::any_of(column.mask->argument_types, is_held));
  });
}

/// Finds the types of a keyspace that is being read.
// User types are never of another keyspace, as in Cassandra.
UdtResolver resolver_of(const KeyspaceSchema& keyspace) {
  return [&keyspace](std::string_view named, std::string_view name) -> TypePtr {
    if (!named.empty() && named != keyspace.name) return nullptr;
    const auto found = keyspace.types.find(std::string(name));
    return found == keyspace.types.end() ? nullptr : found->second;
  };
}

/// The functions that an aggregate is made of are there.
Result<void> check_parts(const AggregateSchema& aggregate, const KeyspaceSchema& keyspace) {
  std::vector<TypePtr> types = {aggregate.state_type};
  if (!aggregate.final_function.empty() &&
      keyspace.find_function(aggregate.final_function, types) == nullptr)
    return fail(ErrorCode::kNotFound, "there is no function {} for it", aggregate.final_function);
  types.insert(types.end(), aggregate.argument_types.begin(), aggregate.argument_types.end());
  if (keyspace.find_function(aggregate.state_function, types) == nullptr)
    return fail(ErrorCode::kNotFound, "there is no function {} for it", aggregate.state_function);
  return {};
}

/// With the incarnation that the metadata gave it.
Result<TablePtr> read_table(const std::string& key, const std::string& text,
                            const UdtResolver& resolve, const replication::MetaState& state) {
  TETRAD_TRY(const std::shared_ptr<TableSchema> table, read_table_text(text, resolve));
  if (table_key(table->keyspace, table->name) != key)
    return fail(ErrorCode::kCorruption, "it says that it is {}", table->qualified_name());
  if (table->partition_key().empty())
    return fail(ErrorCode::kCorruption, "it has no partition key");
  const auto info = state.tables.find(table->id);
  if (info == state.tables.end()) return fail(ErrorCode::kCorruption, "it has no tablets");
  // TRUNCATE changes the incarnation and not the text, so it comes from the metadata beside it.
  table->incarnation = info->second->incarnation;
  return table;
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

bool is_of_keyspace(std::string_view key) {
  return !key.starts_with(kRolePrefix) && !key.starts_with(kAddressGroupPrefix);
}

// For the log and /health.
std::string UnreadableObject::title() const {
  return name.empty() ? fmt::format("{} {}", kind, keyspace)
                      : fmt::format("{} {}.{}", kind, keyspace, name);
}

std::shared_ptr<const SchemaSnapshot> SchemaSnapshot::build(
    const replication::MetaState& state, const SchemaSnapshot* previous,
    const std::vector<std::shared_ptr<const KeyspaceSchema>>& virtual_keyspaces) {
  // The first one differs from an empty schema in everything, so there is one way for both.
  const SchemaSnapshot nothing;
  const SchemaSnapshot& before = previous == nullptr ? nothing : *previous;
  auto out = std::make_shared<SchemaSnapshot>();
  out->version_ = state.schema_version;
  out->version_uuid_ = state.schema_version_uuid();
  // Copies of pointers; rebuild() replaces what was touched.
  out->keyspaces_ = before.keyspaces_;
  out->unreadable_ = before.unreadable_;
  out->objects_ = state.schema_objects;
  out->infos_ = state.tables;

  std::map<std::string, Touched> touched;
  std::set<std::string> touched_roles, touched_groups;
  decltype(objects_)::compare(before.objects_, out->objects_,
                              [&](const std::string& key, const std::string*, const std::string*) {
                                if (key.starts_with(kRolePrefix)) {
                                  touched_roles.insert(key.substr(kRolePrefix.size()));
                                  return;
                                }
                                if (key.starts_with(kAddressGroupPrefix)) {
                                  touched_groups.insert(key.substr(kAddressGroupPrefix.size()));
                                  return;
                                }
                                std::string_view name;
                                const auto [kind, keyspace] = split_key(key, name);
                                Touched& what = touched[std::string(keyspace)];
                                if (kind == "table") {
                                  what.tables.emplace(name);
                                } else if (kind != "keyspace") {
                                  what.dependencies = true;
                                }
                              });
  // TRUNCATE and CREATE give a new incarnation. A table that appears or goes is in the objects
  // already.
  decltype(infos_)::compare(
      before.infos_, out->infos_, [&touched](const TableId&, const auto* old, const auto* now) {
        if (old == nullptr || now == nullptr || (*old)->incarnation == (*now)->incarnation) return;
        touched[(*now)->keyspace].tables.emplace((*now)->name);  // truncated
      });
  for (const auto& [name, what] : touched) out->rebuild(name, what, before, state);
  out->roles_ = before.roles_;
  if (!touched_roles.empty()) out->read_roles(*before.roles_, touched_roles);
  out->address_groups_ = before.address_groups_;
  if (!touched_groups.empty()) out->read_address_groups(*before.address_groups_, touched_groups);
  for (const auto& keyspace : virtual_keyspaces)  // but where a real one has its name
    if (!out->objects_.contains(keyspace_key(keyspace->name)))
      out->keyspaces_[keyspace->name] = keyspace;
  return out;
}

/// One that does not read is as good as none: the role can do nothing, no address is in the group.
template <class Object>
void SchemaSnapshot::read_named(const NamedKind<Object>& kind, const std::set<std::string>& names,
                                std::map<std::string, Object, std::less<>>& known) {
  for (const std::string& name : names) {
    const std::string key = kind.key_of(name);
    known.erase(name);
    unreadable_.erase(key);
    const auto entry = objects_.find(key);
    if (entry == objects_.end()) continue;
    Result<Object> object = kind.read(entry->second);
    if (object && (*object)->name != name)
      object = fail(ErrorCode::kCorruption, "it says that it is {}", (*object)->name);
    if (object) {
      known.emplace(name, std::move(*object));
    } else {
      unreadable_[key] = {kind.title, name, "", object.error().message};
    }
  }
}

// A new set each time that one role changes: sets are small, and snapshots share them.
void SchemaSnapshot::read_roles(const RoleSet& before, const std::set<std::string>& names) {
  RoleSet::Roles roles = before.all();
  read_named<RolePtr>({"role", role_key, read_role_text}, names, roles);
  roles_ = std::make_shared<const RoleSet>(std::move(roles));
}

void SchemaSnapshot::read_address_groups(const AddressGroups& before,
                                         const std::set<std::string>& names) {
  AddressGroups::Groups groups = before.all();
  read_named<AddressGroupPtr>({"CIDR group", address_group_key, read_address_group_text}, names,
                              groups);
  address_groups_ = std::make_shared<const AddressGroups>(std::move(groups));
}

// Also what was readable before may stop being so: when a type that it needs is gone.
void SchemaSnapshot::set_unreadable(const std::string& key, const std::string& reason) {
  std::string_view name;
  const auto [kind, keyspace] = split_key(key, name);
  unreadable_[key] = {std::string(kind), std::string(keyspace), std::string(name), reason};
}

void SchemaSnapshot::forget_unreadable(std::string_view keyspace, bool and_tables) {
  std::erase_if(unreadable_, [&](const auto& entry) {
    return entry.second.keyspace == keyspace && entry.second.kind != "role" &&
           entry.second.kind != "CIDR group" && (and_tables || entry.second.kind != "table");
  });
}

/// Types may need one another: goes round until all are there that can be.
void SchemaSnapshot::read_types(const KeyspaceSchema* old, KeyspaceSchema& keyspace) {
  std::map<std::string, std::string> waiting, reasons;
  for_each_object(
      objects_, "type", keyspace.name,
      [&](const std::string& key, const std::string& text) { waiting.emplace(key, text); });
  const UdtResolver resolve = resolver_of(keyspace);
  // Types come in the order of their names, not of their dependence. A round without progress ends
  // it: what is left needs something that is not there.
  for (size_t before = SIZE_MAX; !waiting.empty() && waiting.size() != before;) {
    before = waiting.size();
    for (auto it = waiting.begin(); it != waiting.end();) {
      auto type = read_type_text(it->second, resolve);
      if (type && type_key((*type)->keyspace(), (*type)->name()) != it->first)
        type = fail(ErrorCode::kCorruption, "it says that it is {}.{}", (*type)->keyspace(),
                    (*type)->name());
      if (!type) {
        reasons[it->first] = type.error().message;
        ++it;
        continue;
      }
      const std::string name = (*type)->name();
      if (old != nullptr) {  // those that hold it are then compared at a glance
        const auto known = old->types.find(name);
        if (known != old->types.end() && *known->second == **type) *type = known->second;
      }
      keyspace.types_in_dependency_order.push_back(name);
      keyspace.types.emplace(name, std::move(*type));
      it = waiting.erase(it);
    }
  }
  for (const auto& [key, text] : waiting) set_unreadable(key, reasons[key]);
}

// Functions before aggregates: check_parts() looks them up.
void SchemaSnapshot::read_functions(const KeyspaceSchema* old, KeyspaceSchema& keyspace) {
  const UdtResolver resolve = resolver_of(keyspace);
  for_each_object(
      objects_, "function", keyspace.name, [&](const std::string& key, const std::string& text) {
        auto function = read_function_text(text, resolve);
        if (!function) return set_unreadable(key, function.error().message);
        const FunctionPtr before =
            old == nullptr ? nullptr
                           : old->find_function((*function)->name, (*function)->argument_types);
        keyspace.functions.push_back(before && *before == **function ? before
                                                                     : std::move(*function));
      });
  for_each_object(
      objects_, "aggregate", keyspace.name, [&](const std::string& key, const std::string& text) {
        auto aggregate = read_aggregate_text(text, resolve);
        if (!aggregate) return set_unreadable(key, aggregate.error().message);
        if (const auto whole = check_parts(**aggregate, keyspace); !whole)
          return set_unreadable(key, whole.error().message);
        const AggregatePtr before =
            old == nullptr ? nullptr
                           : old->find_aggregate((*aggregate)->name, (*aggregate)->argument_types);
        keyspace.aggregates.push_back(before && *before == **aggregate ? before
                                                                       : std::move(*aggregate));
      });
}

// Each is erased from unreadable_ first: it may have been mended or dropped since.
void SchemaSnapshot::read_tables(const std::set<std::string>& tables,
                                 const replication::MetaState& state, KeyspaceSchema& keyspace) {
  const UdtResolver resolve = resolver_of(keyspace);
  for (const std::string& table_name : tables) {
    const std::string key = table_key(keyspace.name, table_name);
    unreadable_.erase(key);
    const auto object = objects_.find(key);
    if (object == objects_.end()) {
      keyspace.tables.erase(table_name);
      continue;
    }
    auto table = read_table(key, object->second, resolve, state);
    if (table) {
      keyspace.tables.put(table_name, std::move(*table));
    } else {
      keyspace.tables.erase(table_name);
      set_unreadable(key, table.error().message);
    }
  }
}

void SchemaSnapshot::rebuild(const std::string& name, const Touched& touched,
                             const SchemaSnapshot& before, const replication::MetaState& state) {
  // Without its own entry a keyspace has no replication: none of its objects can be used.
  const auto leave_out = [&](const std::string& reason) {
    keyspaces_.erase(name);
    forget_unreadable(name, true);
    set_unreadable(keyspace_key(name), reason);
  };
  const auto entry = objects_.find(keyspace_key(name));
  if (entry == objects_.end()) {
    bool is_empty = true;
    for (const char* kind : {"table", "type", "function", "aggregate"})
      for_each_object(objects_, kind, name,
                      [&](const std::string&, const std::string&) { is_empty = false; });
    if (!is_empty) return leave_out("it has objects but no entry");
    keyspaces_.erase(name);
    forget_unreadable(name, true);
    return;
  }
  auto read = read_keyspace_text(entry->second);
  if (read && read->name != name)
    read = fail(ErrorCode::kCorruption, "it says that it is {}", read->name);
  if (!read) return leave_out(read.error().message);
  KeyspaceSchema& keyspace = *read;
  std::shared_ptr<const KeyspaceSchema> old;
  if (const auto known = before.keyspaces_.find(name);
      known != before.keyspaces_.end() && !known->second->is_virtual)
    old = known->second;

  std::set<std::string> tables = touched.tables;
  const auto add_unreadable_tables = [&] {
    for (const auto& [key, object] : unreadable_)
      if (object.keyspace == name && object.kind == "table") tables.insert(object.name);
  };
  if (old == nullptr) {
    forget_unreadable(name, true);
    for_each_object(objects_, "table", name, [&](const std::string& key, const std::string&) {
      tables.insert(key.substr(table_key(name, "").size()));
    });
    read_types(nullptr, keyspace);
    read_functions(nullptr, keyspace);
  } else {
    // Shared, entry by entry: read_tables() replaces those that were touched.
    keyspace.tables = old->tables;
    if (!touched.dependencies) {
      keyspace.types = old->types;
      keyspace.types_in_dependency_order = old->types_in_dependency_order;
      keyspace.functions = old->functions;
      keyspace.aggregates = old->aggregates;
    } else {
      forget_unreadable(name, false);
      read_types(old.get(), keyspace);
      read_functions(old.get(), keyspace);
      add_unreadable_tables();  // a type that they need may be there now
      const std::vector<std::string> changed = changed_types(*old, keyspace);
      for (const auto& [table_name, table] : keyspace.tables)
        if (!changed.empty() && holds_any(*table, changed)) tables.insert(table_name);
    }
  }
  read_tables(tables, state, keyspace);
  keyspaces_[name] = std::make_shared<const KeyspaceSchema>(std::move(keyspace));
}

const UnreadableObject* SchemaSnapshot::unreadable(std::string_view key) const {
  const auto found = unreadable_.find(key);
  return found == unreadable_.end() ? nullptr : &found->second;
}

Result<void> SchemaSnapshot::check_readable(std::string_view key) const {
  const UnreadableObject* const found = unreadable(key);
  if (found == nullptr) return {};
  return fail(ErrorCode::kInvalid, "The schema of {} does not read, it can only be dropped: {}",
              found->title(), found->reason);
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
