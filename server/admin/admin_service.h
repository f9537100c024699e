// SPDX-License-Identifier: Apache-2.0
// What the admin port answers: health, metrics, and the facts and orders of tetractl, as JSON.
#pragma once

#include <functional>
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
  struct Parts {
    base::Reactor& reactor;
    replication::ReplicationNode& node;
    replication::DataPlane& data;
    std::vector<storage::Store*> stores;
    base::MetricsRegistry& metrics;
    Logger logger;
    std::function<std::string()> health;  // "serving", or what it does instead
    std::string version;
  };
  explicit AdminService(Parts parts) : parts_(std::move(parts)) {}

  void handle(const HttpRequest& request, HttpServer::Respond respond);

 private:
  std::string status() const;
  std::string ring() const;
  std::string partitions(const HttpRequest& request) const;
  std::string describe_cluster() const;
  std::string table_stats() const;
  static Task<void> propose(AdminService* self, replication::MetaCommandBody body,
                            HttpServer::Respond respond);
  void leave(HostId host, bool dead, HttpServer::Respond respond);
  static Task<void> split(AdminService* self, uint64_t tablet_id, HttpServer::Respond respond);

  Parts parts_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::server
