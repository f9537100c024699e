// SPDX-License-Identifier: Apache-2.0
// The schema at one version: keyspaces, tables, types, functions. Built from the metadata state's
// schema objects plus the virtual keyspaces; immutable. A statement is prepared against one
// snapshot and runs against one.
//
// Building one is incremental: of two states that follow each other only what differs is read, so a
// change costs by the objects that it touches and not by the size of the schema. schema_snapshot.cc
// has the steps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/shared_map.h"
#include "cql/schema/address_groups.h"
#include "cql/schema/roles.h"
#include "cql/schema/table_schema.h"
#include "replication/meta/meta_state.h"

namespace tetrad::cql {

/// A user-defined function. Immutable; equal ones of two snapshots are the same object.
/// Overloads are functions of one name and other argument types; keyspace, name and types together
/// name one.
struct FunctionSchema {
  std::string keyspace, name;
  std::vector<std::string> argument_names;
  std::vector<TypePtr> argument_types;
  TypePtr return_type;
  // False: with a null among its arguments the result is null and the body is not run.
  bool called_on_null_input = false;
  std::string language, body;

  friend bool operator==(const FunctionSchema& a, const FunctionSchema& b);
  std::string qualified_name() const { return keyspace + "." + name; }
};

/// A user-defined aggregate; the functions that it is made of are of the same keyspace. Immutable.
struct AggregateSchema {
  std::string keyspace, name;
  std::vector<TypePtr> argument_types;
  // By name: state_function takes the state and the arguments, final_function the state alone. Both
  // are there as long as the aggregate is (check_parts() in the source).
  std::string state_function, final_function;  // final_function may be ""
  TypePtr state_type, return_type;
  std::optional<Bytes> initial_condition;

  friend bool operator==(const AggregateSchema& a, const AggregateSchema& b);
  std::string qualified_name() const { return keyspace + "." + name; }
};
using FunctionPtr = std::shared_ptr<const FunctionSchema>;
using AggregatePtr = std::shared_ptr<const AggregateSchema>;

/// By value, of the same number.
/// Frozen and not frozen differ.
bool equal_types(std::span<const TypePtr> a, std::span<const TypePtr> b);

/// A keyspace with everything in it. Immutable once it is in a snapshot; snapshots share the parts
/// that did not change.
struct KeyspaceSchema {
  std::string name;
  std::map<std::string, std::string>
      replication;  // "class" with its full name, and the factors, as echoed
  bool durable_writes = true;
  ThroughputSetting throughput;  // of all tables together that have none of their own
  bool is_virtual = false;       // its tables are computed
  base::SharedMap<std::string, TablePtr> tables;
  std::map<std::string, TypePtr> types;  // user types, not frozen
  std::vector<std::string> types_in_dependency_order;
  std::vector<FunctionPtr> functions;  // by name, then argument types
  std::vector<AggregatePtr> aggregates;

  /// The function with exactly these arguments, or null.
  FunctionPtr find_function(std::string_view name, std::span<const TypePtr> argument_types) const;
  AggregatePtr find_aggregate(std::string_view name, std::span<const TypePtr> argument_types) const;
};

/// Holds the traces; made by the first of them. Clients may read, write and truncate its tables.
inline constexpr std::string_view kTracesKeyspace = "system_traces";

/// Whether the keyspace belongs to the server: its schema is not for users to change, and it is
/// left out of the description of the schema.
inline bool is_system(const KeyspaceSchema& keyspace) {
  return keyspace.is_virtual || keyspace.name == kTracesKeyspace;
}

/// Whether the object of that key in the metadata is a keyspace or in one. Names of roles and of
/// groups of addresses may have slashes, or be those of keyspaces.
bool is_of_keyspace(std::string_view key);

/// An object of the metadata whose text this program does not read: written by a newer one, or
/// damaged. A snapshot is as if it were not there, but its name stays taken until it is dropped.
struct UnreadableObject {
  std::string kind;      // keyspace, type, function, aggregate, table, role, CIDR group
  std::string keyspace;  // of a role or a CIDR group: its name
  std::string name;      // of a function with its argument types; "" of these and of a keyspace
  std::string reason;

  /// "table ks.t", "keyspace ks".
  std::string title() const;
};

/// Immutable, and shared by shards through shared_ptr<const SchemaSnapshot>. Pointers and
/// references that it gives live as long as it does.
class SchemaSnapshot {
 public:
  /// By the key of the object in the metadata.
  using UnreadableObjects = std::map<std::string, UnreadableObject, std::less<>>;

  /// Reads what differs from the state that `previous` (may be null) was built from, and takes over
  /// the rest: objects that did not change stay the same. `virtual_keyspaces` are those of
  /// SystemTables. An object that does not read is left out with all that needs it, and is in
  /// unreadable(). Never null.
  static std::shared_ptr<const SchemaSnapshot> build(
      const replication::MetaState& state, const SchemaSnapshot* previous,
      const std::vector<std::shared_ptr<const KeyspaceSchema>>& virtual_keyspaces);

  SchemaVersion version() const { return version_; }
  const Uuid& version_uuid() const { return version_uuid_; }
  /// Sorted by name, virtual ones included.
  const std::map<std::string, std::shared_ptr<const KeyspaceSchema>, std::less<>>& keyspaces()
      const {
    return keyspaces_;
  }
  /// Null: there is none. Names are as the schema has them, case and all.
  const KeyspaceSchema* keyspace(std::string_view name) const;
  /// A table or a view; null: there is none.
  TablePtr table(std::string_view keyspace, std::string_view name) const;
  /// Never null.
  const RoleSetPtr& roles() const { return roles_; }
  /// Never null.
  const AddressGroupsPtr& address_groups() const { return address_groups_; }
  const UnreadableObjects& unreadable() const { return unreadable_; }
  /// The object of that key in the metadata if it does not read, or null.
  const UnreadableObject* unreadable(std::string_view key) const;
  /// Errors: kInvalid, the object of that key in the metadata does not read.
  Result<void> check_readable(std::string_view key) const;

 private:
  /// What changed of a keyspace between two states.
  struct Touched {
    bool dependencies = false;  // a type, function or aggregate
    std::set<std::string> tables;
  };
  // Replaces the keyspace of that name in keyspaces_ by one that is read anew where `touched` says
  // so, or takes it out.
  void rebuild(const std::string& name, const Touched& touched, const SchemaSnapshot& before,
               const replication::MetaState& state);
  /// Objects that belong to no keyspace, each under a name of its own.
  template <class Object>
  struct NamedKind {
    const char* title;
    std::string (*key_of)(std::string_view name);
    Result<Object> (*read)(const std::string& text);
  };
  /// In `known` come those of these names, as the metadata has them now.
  template <class Object>
  void read_named(const NamedKind<Object>& kind, const std::set<std::string>& names,
                  std::map<std::string, Object, std::less<>>& known);
  /// The roles of these names, as the metadata has them now.
  void read_roles(const RoleSet& before, const std::set<std::string>& names);
  /// The groups of addresses of these names.
  void read_address_groups(const AddressGroups& before, const std::set<std::string>& names);
  /// What is as it was in `old` (may be null) keeps its object: listeners compare those.
  void read_types(const KeyspaceSchema* old, KeyspaceSchema& keyspace);
  void read_functions(const KeyspaceSchema* old, KeyspaceSchema& keyspace);
  /// The tables of these names, as the metadata has them now; after read_types(), since their
  /// columns may hold those types.
  void read_tables(const std::set<std::string>& tables, const replication::MetaState& state,
                   KeyspaceSchema& keyspace);
  void set_unreadable(const std::string& key, const std::string& reason);
  /// Forgets what did not read of a keyspace: all of it, or all but tables.
  void forget_unreadable(std::string_view keyspace, bool and_tables);

  SchemaVersion version_;
  Uuid version_uuid_;
  std::map<std::string, std::shared_ptr<const KeyspaceSchema>, std::less<>> keyspaces_;
  // What it was built from: the next one reads only what differs.
  base::SharedMap<std::string, std::string> objects_;
  // In none of the maps is an object that is in here.
  UnreadableObjects unreadable_;
  RoleSetPtr roles_ = std::make_shared<const RoleSet>();
  AddressGroupsPtr address_groups_ = std::make_shared<const AddressGroups>();
  // Of these only the incarnation counts here: TRUNCATE changes it and no text.
  base::SharedMap<TableId, std::shared_ptr<const replication::TableInfo>> infos_;
};

using SchemaPtr = std::shared_ptr<const SchemaSnapshot>;

}  // namespace tetrad::cql
