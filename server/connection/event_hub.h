// SPDX-License-Identifier: Apache-2.0
// Who of a shard's connections wants which events, and the events themselves: schema changes from
// one snapshot to the next, nodes that came, went, rose and fell.
//
// Drivers refresh their view of the cluster by these events, so each must come after the change can
// be seen in the system tables of this node: the hub looks at snapshots that have been applied,
// never at proposals.
#pragma once

#include <map>
#include <unordered_set>

#include "base/ids.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "cql/schema/schema_snapshot.h"
#include "replication/meta/meta_service.h"

namespace tetrad::server {

/// A connection as the hub sees it.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// What its REGISTER requests have named so far.
  virtual const cql::RegisterRequest& wanted_events() const = 0;
  // Each appends an EVENT to the connection's answers of this turn.
  virtual void send_schema_event(const cql::SchemaChange& change) = 0;
  virtual void send_topology_event(cql::TopologyChange change, const cql::Inet& node) = 0;
  virtual void send_status_event(cql::StatusChange change, const cql::Inet& node) = 0;
};

/// Belongs to one shard.
class EventHub {
 public:
  explicit EventHub(replication::MetaService& meta);

  // A sink adds itself when it may get events, and removes itself before it goes.
  void add(EventSink& sink) { sinks_.insert(&sink); }
  void remove(EventSink& sink) { sinks_.erase(&sink); }

  /// Tells what changed between two snapshots. `before` may be null: then nothing did.
  void schema_changed(const cql::SchemaSnapshot* before, const cql::SchemaSnapshot& now);

 private:
  /// A node as clients last heard of it.
  struct Known {
    cql::Inet address;
    bool up = false;
  };
  // Compares the nodes of the metadata with known_; `tell`: and sends what differs.
  void look_at_nodes(bool tell);

  replication::MetaService& meta_;
  // Not owned.
  std::unordered_set<EventSink*> sinks_;
  std::map<HostId, Known> known_;       // nodes that clients have heard of, self left out
  std::shared_ptr<void> subscription_;  // last: goes first
};

}  // namespace tetrad::server
