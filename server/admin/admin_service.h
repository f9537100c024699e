// SPDX-License-Identifier: Apache-2.0
// What the admin port answers: health, metrics, and the facts and orders of tetractl, as JSON.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/task_group.h"
#include "replication/data_plane.h"
#include "replication/node.h"
#include "server/admin/http_server.h"
#include "storage/engine/store.h"

namespace tetrad::server {

class AdminService {
 public:
  /// Its store belongs to its thread.
  struct Shard {
    base::Reactor& reactor;
    storage::Store& store;
    replication::DataPlane& data;
  };
  struct Parts {
    replication::ReplicationNode& node;
    std::vector<Shard> shards;  // by number; the service runs on the first
    base::MetricsRegistry& metrics;
    Logger logger;
    std::function<std::string()> health;  // "serving", or what it does instead
    std::string version;
  };
  explicit AdminService(Parts parts)
      : parts_(std::move(parts)), statistics_(parts_.shards.size()) {}

  void handle(const HttpRequest& request, HttpServer::Respond respond);
  /// Of a shard's store, as of the last request for metrics.
  const storage::StoreStatistics& statistics(size_t shard) const { return statistics_[shard]; }

 private:
  struct StoreFigures {
    storage::StoreStatistics statistics;
    std::map<TableId, uint64_t> bytes;  // of the tables asked for
  };
  using AllFigures = std::vector<StoreFigures>;
  base::Reactor& reactor() { return parts_.shards.front().reactor; }
  /// Asks every shard on its thread, then runs `done` on this one.
  void gather_figures(bool of_tables, std::function<void(const AllFigures&)> done);
  std::string status() const;
  std::string ring() const;
  /// An empty name is any. Errors: kNotFound.
  Result<void> check_named(const std::string& keyspace, const std::string& name) const;
  std::string partitions(const std::string& keyspace, const std::string& name) const;
  std::string describe_cluster() const;
  std::string table_stats(const AllFigures& figures) const;
  static Task<void> propose(AdminService* self, replication::MetaCommandBody body,
                            HttpServer::Respond respond);
  void leave(HostId host, bool dead, HttpServer::Respond respond);
  static Task<void> split(AdminService* self, uint64_t tablet_id, HttpServer::Respond respond);

  Parts parts_;
  std::vector<storage::StoreStatistics> statistics_;  // by shard
  base::TaskGroup tasks_;
};

}  // namespace tetrad::server
