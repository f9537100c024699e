// SPDX-License-Identifier: Apache-2.0
// A shard: one thread's part of a node, with its event loop, its store, its connections and all
// that a request passes between the two. Shards are made and ended by the node, on the main thread,
// while none of them runs; the main thread then runs the first.
//
// Order of life: the node makes reactor, log, store, transport, replication and data;
// prepare_serving() the rest; threads begin; drain() and stop_serving() end what clients see before
// the parts behind it go.
#pragma once

#include <memory>
#include <thread>

#include "base/random.h"
#include "cql/execute/query_processor.h"
#include "replication/data_plane.h"
#include "replication/rpc/tcp_transport.h"
#include "replication/shard.h"
#include "server/connection/connection.h"
#include "server/runtime/asio_reactor.h"
#include "server/runtime/os_random.h"
#include "storage/engine/local_log.h"
#include "storage/engine/store.h"

namespace tetrad::server {

/// What a shard serves clients with.
/// The same for all shards but for what prepare_serving() adds by number.
struct ShardServing {
  cql::LocalNodeFacts facts;
  cql::QueryProcessorOptions query;
  ConnectionLimits limits;
  std::string program_version;
  LoginLimits* logins = nullptr;                   // outlives the shard; null: nobody has to log in
  std::shared_ptr<const ClientTlsRules> tls = {};  // null: clients speak none
  cql::NodeTables of_node = {};
};

/// One thread of the process with all that is its own: loop, store, connections. Made and ended by
/// Node; between that, used on its thread only.
struct Shard {
  Shard(uint32_t number_of_it, AsioReactor& its_reactor)
      : number(number_of_it), reactor(its_reactor), random(os_random) {}
  ~Shard() {
    stop_serving();
    reactor.set_watch(nullptr);
  }

  /// Needs `data`. `meta` is the shard's own.
  void prepare_serving(replication::MetaService& meta, const ShardServing& serving,
                       const Logger& logger, base::MetricsRegistry& metrics);
  /// Requests in flight are still answered, then the connections close. On the shard's thread.
  void drain();
  /// gc_grace_seconds of a table, where the user set it; one that is not known yet keeps all.
  std::optional<int64_t> gc_grace_s(const replication::TableInfo& table) const;
  /// tetrad_initial_partitions of a table; of one that is not known yet as many as there can be.
  uint32_t partitions_asked_for(const replication::TableInfo& table) const;
  /// Closes what is open, and drops what still runs.
  void stop_serving();

  // From 0; also the number of its store.
  const uint32_t number;
  // Of the node, which ends it after all shards.
  AsioReactor& reactor;
  // The reactor has a pointer to it, which the destructor takes back.
  std::unique_ptr<StallWatch> stalls;
  base::Random random;
  std::unique_ptr<storage::LocalLog> log, hint_log;  // the first shard's are the logs themselves
  // Null until open_stores(), as the next ones until their turn in Node::open().
  std::unique_ptr<storage::Store> store;
  std::unique_ptr<replication::TcpTransport> transport;
  std::unique_ptr<replication::ReplicationShard> replication;  // null: the first shard
  std::unique_ptr<replication::DataPlane> data;
  // Made by prepare_serving(). Each uses those above it, so they end from the last to the first.
  std::unique_ptr<cql::VirtualTables> virtual_tables;
  std::unique_ptr<cql::QueryProcessor> processor;
  std::unique_ptr<EventHub> events;
  std::unique_ptr<ConnectionContext> connections;
  std::thread thread;  // not of the first

 private:
  void register_metrics(base::MetricsRegistry& metrics);
};

}  // namespace tetrad::server
