// SPDX-License-Identifier: Apache-2.0
// How a node serves its clients, and what an operator changes of it while the node runs: whether
// clients may connect, timeouts, traces. Belongs to the first shard's thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "server/admin/node_controls.h"
#include "server/config/options.h"
#include "server/connection/listener.h"
#include "server/shard.h"

namespace tetrad::server {

/// Lets clients in, and does what an operator asks of that. Owned by the node, on the first shard's
/// thread.
/// Timeouts and the probability of traces are copied to every shard, where statements read them
/// without a lock.
class Serving final : public NodeControls {
 public:
  using Shards = std::vector<std::unique_ptr<Shard>>;

  /// Both outlive it.
  Serving(const Options& options, const Shards& shards, Logger logger);

  /// Called with each change by order; before begin().
  void on_change(std::function<void(bool serves)> listener) { changed_ = std::move(listener); }
  /// All shards are ready: clients may come. Errors: kConfig: the port is taken.
  Result<void> begin(std::string rpc_address, uint32_t connections_max);
  bool has_begun() const { return listener_ != nullptr; }
  /// For good: connections end as their requests do.
  void stop();

  bool serves_clients() const override { return serves_; }
  Result<void> serve_clients(bool serves) override;
  void clients(std::function<void(std::vector<ClientFacts>)> done) override;
  void hot_keys(std::function<void(std::vector<HotKey>)> done) override;
  std::vector<StatementTimeout> timeouts() const override;
  Result<void> set_timeout(const std::string& type, uint64_t timeout_ms) override;
  double trace_probability() const override { return trace_probability_; }
  void set_trace_probability(double probability) override;
  Result<Bytes> partition_key(const std::string& keyspace, const std::string& table,
                              const std::string& text) const override;
  bool is_computed(const std::string& keyspace, const std::string& table) const override;

 private:
  /// Runs it for each shard, on its thread.
  void on_each(const std::function<void(Shard&)>& work);
  /// What each shard finds, on its thread; all of it goes to `done` on the first one's.
  template <class T>
  void gather(std::function<std::vector<T>(Shard&)> find, std::function<void(std::vector<T>)> done);

  const Options& options_;
  const Shards& shards_;
  const Logger logger_;
  std::function<void(bool serves)> changed_;
  std::string rpc_address_;
  std::unique_ptr<Listener> listener_;
  // serves_: clients may connect. stopped_: for good, serve_clients() is refused from then on.
  bool serves_ = false, stopped_ = false;
  std::vector<uint64_t> timeouts_ms_;  // in the order of the table in serving.cc
  double trace_probability_ = 0;
};

}  // namespace tetrad::server
