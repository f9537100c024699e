// SPDX-License-Identifier: Apache-2.0
// The admin port's service over simulated nodes with a table, without a socket.
#pragma once

#include <filesystem>
#include <optional>
#include <unistd.h>

#include "server/admin/admin_service.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::tests {

/// Remembers what was ordered; a key of any table is its text.
class FakeControls final : public server::NodeControls {
 public:
  bool serves_clients() const override { return serves; }
  Result<void> serve_clients(bool wanted) override {
    if (is_stopping) return fail(ErrorCode::kConflict, "the node is stopping");
    serves = wanted;
    return {};
  }
  void clients(std::function<void(std::vector<server::ClientFacts>)> done) override {
    done(connected);
  }
  void hot_keys(std::function<void(std::vector<server::HotKey>)> done) override { done(hot); }
  std::vector<server::StatementTimeout> timeouts() const override { return {{"read", read_ms}}; }
  Result<void> set_timeout(const std::string& type, uint64_t timeout_ms) override {
    if (type != "read") return fail(ErrorCode::kInvalid, "no such type");
    read_ms = timeout_ms;
    return {};
  }
  double trace_probability() const override { return probability; }
  void set_trace_probability(double wanted) override { probability = wanted; }
  Result<Bytes> partition_key(const std::string&, const std::string& table,
                              const std::string& text) const override {
    if (table.empty()) return fail(ErrorCode::kNotFound, "there is no such table");
    return Bytes(text);
  }
  bool is_computed(const std::string& keyspace, const std::string&) const override {
    return keyspace == "system_auth";
  }

  bool serves = true, is_stopping = false;
  uint64_t read_ms = 5'000;
  double probability = 0;
  std::vector<server::ClientFacts> connected;
  std::vector<server::HotKey> hot;
};

/// Keeps what is recorded.
class KeptTrail final : public cql::AuditTrail {
 public:
  Result<void> check() const override {
    if (is_full) return fail(ErrorCode::kServerError, "The audit log cannot be written");
    return {};
  }
  void record(cql::AuditRecord record) override { records.push_back(std::move(record)); }

  bool is_full = false;
  std::vector<cql::AuditRecord> records;
};

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
  ~AdminNode() {
    std::error_code ignored;
    std::filesystem::remove_all(data_directory, ignored);
  }
  /// Of the node's life that it is in.
  void serve() {
    auto& node = cluster[0];
    std::filesystem::create_directories(data_directory);
    snapshots.emplace(server::Snapshots::Parts{{{node.reactor(), node.store(0)}},
                                               pool,
                                               data_directory,
                                               [&node] { return node.node().meta().snapshot(); },
                                               [&node] { return node.node().self(); },
                                               "1.2.3",
                                               Logger()});
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
                                    [this](bool) { return complaints; },
                                    [this](auto done) { done(certificates_well, certificates); },
                                    &controls,
                                    &*snapshots,
                                    7,
                                    [this](auto done) { done("k2", encrypted); },
                                    &addresses,
                                    "/data",
                                    {"10.0.0.1:7000", "db2.example.com:7000"},
                                    {},
                                    &trail});
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
  Result<storage::FileCounts> encrypted = storage::FileCounts{{"k1", {3, 5000}}, {"k2", {1, 4096}}};
  simulation::SimIoPool pool{cluster.world()};
  const std::string data_directory =
      std::filesystem::temp_directory_path() / ("tetrad-admin-" + std::to_string(::getpid()));
  FakeControls controls;
  KeptTrail trail;
  cql::AddressFilter addresses{{}, Logger()};
  std::optional<server::Snapshots> snapshots;
  bool certificates_well = true;  // what reading them again answers
  std::vector<std::string> certificates;
  std::optional<server::AdminService> service;
};

}  // namespace tetrad::tests
