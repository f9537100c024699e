// SPDX-License-Identifier: Apache-2.0
// The admin port's service over simulated nodes with a table, without a socket.
#pragma once

#include <optional>

#include "server/admin/admin_service.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::tests {

class AdminNode {
 public:
  explicit AdminNode(size_t nodes = 1) : cluster(1, nodes) {
    TETRAD_ASSERT(cluster.form());
    bool created = false;
    auto& node = cluster[0];
    node.spawn(simulation::create_table(&node, 1, &created));
    TETRAD_ASSERT(cluster.world().run_until(
        [&] { return created && node.node().clock().is_good(); }, 10'000'000));
    serve();
  }
  /// Of the node's life that it is in.
  void serve() {
    auto& node = cluster[0];
    service.emplace(
        server::AdminService::Parts{node.node(),
                                    {{node.reactor(), node.store(0), node.data()}},
                                    metrics,
                                    Logger(),
                                    [this] { return health; },
                                    "1.2.3",
                                    "secret",
                                    "/data/admin_token",
                                    "127.0.0.1",
                                    [this] { return complaints; },
                                    [this](auto done) { done(certificates_well, certificates); }});
  }
  /// What a request is answered with, once the world has gone on until it is.
  server::HttpResponse ask(const server::HttpRequest& request) {
    std::optional<server::HttpResponse> answer;
    service->handle(request, [&](server::HttpResponse made) {
      TETRAD_ASSERT(!answer);
      answer = std::move(made);
    });
    TETRAD_ASSERT(cluster.world().run_until([&] { return answer.has_value(); }, 60'000'000));
    return std::move(*answer);
  }

  simulation::SimCluster cluster;
  base::MetricsRegistry metrics;
  std::string health = "serving";
  std::vector<std::string> complaints;
  bool certificates_well = true;  // what reading them again answers
  std::vector<std::string> certificates;
  std::optional<server::AdminService> service;
};

}  // namespace tetrad::tests
