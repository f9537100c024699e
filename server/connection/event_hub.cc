// SPDX-License-Identifier: Apache-2.0
// Makes the events of the native protocol (v5, section 4.2.6) that clients registered for, one hub
// for each shard, on its thread.
//
// Schema: two snapshots are compared, and each difference is one event. Snapshots share what has
// not changed, so equal pointers mean equal content, and the comparison costs as much as the
// change. Nodes: known_ keeps what clients were told last, and each change of the metadata or of a
// node's liveness is compared with it.
//
// The order within one change matters to drivers: keyspaces before what they contain, NEW_NODE
// before UP.
#include "server/connection/event_hub.h"

#include <algorithm>
#include <vector>

namespace tetrad::server {
namespace {

using Kind = cql::SchemaChange::Kind;
using Target = cql::SchemaChange::Target;

/// Whether clients see no difference: tables are read anew when a type of their keyspace changes,
/// and when they are truncated.
bool equal_to_clients(const cql::TableSchema& a, const cql::TableSchema& b) {
  return a.id == b.id && a.version == b.version &&
         std::ranges::equal(a.columns(), b.columns(), [](const auto& left, const auto& right) {
           return *left.type == *right.type;
         });
}

/// Calls `tell(kind, name)` for each difference of two maps from names to shared values.
// Values are shared pointers: another pointer is another version.
template <class Map, class Tell>
void compare_maps(const Map& before, const Map& now, Tell tell) {
  for (const auto& [name, value] : before) {
    if (!now.contains(name)) tell(Kind::kDropped, name);
  }
  for (const auto& [name, value] : now) {
    const auto old = before.find(name);
    if (old == before.end()) {
      tell(Kind::kCreated, name);
    } else if (old->second != value) {
      tell(Kind::kUpdated, name);
    }
  }
}

template <class Function>
std::map<std::pair<std::string, std::vector<std::string>>, std::shared_ptr<const Function>>
// Functions of one name are overloads: name and argument types together are the key, as in the
// event.
by_signature(const std::vector<std::shared_ptr<const Function>>& functions) {
  std::map<std::pair<std::string, std::vector<std::string>>, std::shared_ptr<const Function>> out;
  for (const auto& function : functions) {
    std::vector<std::string> types;
    for (const auto& type : function->argument_types) types.push_back(type->cql_text());
    out.emplace(std::pair(function->name, std::move(types)), function);
  }
  return out;
}

void compare_keyspaces(const cql::KeyspaceSchema& before, const cql::KeyspaceSchema& now,
                       std::vector<cql::SchemaChange>& changes) {
  if (before.replication != now.replication || before.durable_writes != now.durable_writes) {
    changes.push_back({Kind::kUpdated, Target::kKeyspace, now.name, "", {}});
  }
  compare_maps(before.types, now.types, [&](Kind kind, const std::string& name) {
    changes.push_back({kind, Target::kType, now.name, name, {}});
  });
  using Tables = decltype(now.tables);
  Tables::compare(before.tables, now.tables,
                  [&](const std::string& name, const auto* old, const auto* fresh) {
                    const Kind kind = old == nullptr     ? Kind::kCreated
                                      : fresh == nullptr ? Kind::kDropped
                                                         : Kind::kUpdated;
                    if (kind == Kind::kUpdated && equal_to_clients(**old, **fresh)) return;
                    changes.push_back({kind, Target::kTable, now.name, name, {}});
                  });
  compare_maps(
      by_signature(before.functions), by_signature(now.functions),
      [&](Kind kind, const auto& signature) {
        changes.push_back({kind, Target::kFunction, now.name, signature.first, signature.second});
      });
  compare_maps(
      by_signature(before.aggregates), by_signature(now.aggregates),
      [&](Kind kind, const auto& signature) {
        changes.push_back({kind, Target::kAggregate, now.name, signature.first, signature.second});
      });
}

}  // namespace

EventHub::EventHub(replication::MetaService& meta) : meta_(meta) {
  look_at_nodes(false);
  subscription_ =
      meta_.subscribe([this](const replication::MetaSnapshot&, const replication::MetaSnapshot&) {
        look_at_nodes(true);
      });
}

void EventHub::schema_changed(const cql::SchemaSnapshot* before, const cql::SchemaSnapshot& now) {
  if (before == nullptr || sinks_.empty()) return;
  std::vector<cql::SchemaChange> changes;
  for (const auto& [name, keyspace] : before->keyspaces()) {
    if (now.keyspace(name) == nullptr)
      changes.push_back({Kind::kDropped, Target::kKeyspace, name, "", {}});
  }
  // A new keyspace is compared with an empty one of the same options, which gives CREATED for
  // everything in it and no UPDATED for itself.
  static const cql::KeyspaceSchema empty;
  for (const auto& [name, keyspace] : now.keyspaces()) {
    const cql::KeyspaceSchema* old = before->keyspace(name);
    if (old == keyspace.get()) continue;
    if (old == nullptr) {
      changes.push_back({Kind::kCreated, Target::kKeyspace, name, "", {}});
      cql::KeyspaceSchema made = empty;
      made.name = name;
      made.replication = keyspace->replication;
      made.durable_writes = keyspace->durable_writes;
      compare_keyspaces(made, *keyspace, changes);
    } else {
      compare_keyspaces(*old, *keyspace, changes);
    }
  }
  for (const auto& change : changes) {
    for (EventSink* sink : sinks_) {
      if (sink->wanted_events().schema_change) sink->send_schema_event(change);
    }
  }
}

// `tell` is false for the first look, which finds nodes that clients know from system.peers. A node
// is known from when it is NORMAL and answers until it has left; the node itself is never
// announced.
void EventHub::look_at_nodes(bool tell) {
  const replication::MetaSnapshot state = meta_.snapshot();
  if (state == nullptr) return;
  const auto topology = [&](cql::TopologyChange change, const cql::Inet& node) {
    for (EventSink* sink : sinks_) {
      if (tell && sink->wanted_events().topology_change) sink->send_topology_event(change, node);
    }
  };
  const auto status = [&](cql::StatusChange change, const cql::Inet& node) {
    for (EventSink* sink : sinks_) {
      if (tell && sink->wanted_events().status_change) sink->send_status_event(change, node);
    }
  };
  for (const auto& [host, node] : state->nodes) {
    // The client has a connection to this node and sees its state by that.
    if (host == meta_.self()) continue;
    const auto inet = cql::Inet::parse(node.address_of_clients(), node.native_port);
    if (!inet) continue;
    const auto known = known_.find(host);
    const bool serves = node.state == replication::NodeState::kNormal ||
                        node.state == replication::NodeState::kLeaving;
    if (!serves) {
      if (known != known_.end()) {
        topology(cql::TopologyChange::kRemovedNode, known->second.address);
        known_.erase(known);
      }
      continue;
    }
    // One that is drained is down for clients, as in Cassandra.
    const bool up = meta_.is_live(host) && meta_.takes_clients(host);
    if (known == known_.end()) {
      // A joiner is announced when it answers: first that it is new, then that it is up.
      if (!up && tell) continue;
      known_.emplace(host, Known{*inet, up});
      topology(cql::TopologyChange::kNewNode, *inet);
      if (up) status(cql::StatusChange::kUp, *inet);
      continue;
    }
    if (!(known->second.address == *inet)) {  // the same node at a new address
      topology(cql::TopologyChange::kRemovedNode, known->second.address);
      topology(cql::TopologyChange::kNewNode, *inet);
      known->second.address = *inet;
      known->second.up = false;
    }
    if (known->second.up != up) {
      known->second.up = up;
      status(up ? cql::StatusChange::kUp : cql::StatusChange::kDown, *inet);
    }
  }
}

}  // namespace tetrad::server
