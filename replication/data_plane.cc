// SPDX-License-Identifier: Apache-2.0
#include "replication/data_plane.h"

namespace tetrad::replication {

namespace {

constexpr uint64_t kDiskPartOfHints = 20;        // a twentieth of it at most
constexpr uint64_t kHintBytesLeast = 16u << 20;  // but so much

/// The room for hints is the node's: each shard has its part.
HintOptions hint_options(const NodeEnvironment& environment, const DataPlaneOptions& options) {
  HintOptions hints = options.hints;
  hints.shard = options.shard;
  if (environment.disk != nullptr) {
    const auto space = environment.disk->measure();
    if (space) {
      const uint64_t share = (space->used_bytes + space->usable_bytes) / kDiskPartOfHints;
      hints.bytes_max = std::min(hints.bytes_max, std::max(share, kHintBytesLeast));
    }
  }
  hints.bytes_per_replica_max /= options.shard_count;
  hints.bytes_max /= options.shard_count;
  return hints;
}

CoordinatorOptions coordinator_options(const DataPlaneOptions& options) {
  CoordinatorOptions coordinator = options.coordinator;
  coordinator.horizon = options.horizon;
  return coordinator;
}

HintDispatchOptions dispatch_options(const DataPlaneOptions& options) {
  HintDispatchOptions dispatch = options.hint_dispatch;
  dispatch.horizon = options.horizon;
  return dispatch;
}

}  // namespace

DataPlane::DataPlane(const NodeEnvironment& environment, RpcNode& rpc, MetaService& meta,
                     HybridClock& clock, const Fences& fences, StoreCleanup& cleanup,
                     ChangeLogs& changes, const DataPlaneOptions& options)
    : replicas_(environment.reactor, rpc, meta, clock, options.horizon, environment.stores, fences,
                cleanup, changes, environment.read_fold, environment.logger.named("replica")),
      hints_(environment.hint_log != nullptr ? *environment.hint_log : environment.log,
             hint_options(environment, options)),
      coordinator_(environment.reactor, rpc, meta, replicas_, hints_, clock,
                   coordinator_options(options), environment.logger.named("coordinator")),
      dispatcher_(environment.reactor, hints_, rpc, meta, clock, dispatch_options(options),
                  environment.logger.named("hints")),
      repairs_(
          environment.reactor, environment.random, rpc, meta, clock, coordinator_,
          [this](const StoreAddress& replica) { return replicas_.is_local(replica); }, fences,
          environment.stores, options.repair, environment.logger.named("repair")),
      comparison_(environment.reactor, rpc, meta, clock, options.horizon),
      purges_(environment.reactor, rpc, meta, clock, environment.stores, options.horizon,
              options.purge, environment.logger.named("purge")),
      throughput_(environment.reactor, environment.random, rpc, meta, options.throughput) {}

Result<std::unique_ptr<DataPlane>> DataPlane::make(const NodeEnvironment& environment, RpcNode& rpc,
                                                   MetaService& meta, HybridClock& clock,
                                                   const Fences& fences, StoreCleanup& cleanup,
                                                   ChangeLogs& changes, DataPlaneOptions options) {
  std::unique_ptr<DataPlane> plane(
      new DataPlane(environment, rpc, meta, clock, fences, cleanup, changes, options));
  TETRAD_TRY_VOID(plane->hints_.open());
  plane->dispatcher_.start();
  plane->repairs_.start();
  plane->purges_.start();
  plane->purges_.metrics().register_in(environment.metrics,
                                       fmt::format("shard=\"{}\"", options.shard));
  const std::string labels = fmt::format("shard=\"{}\"", options.shard);
  base::MetricsRegistry& metrics = environment.metrics;
  plane->coordinator_.metrics().register_in(metrics, labels);
  HintStore& hints = plane->hints_;
  metrics.add("tetrad_replication_hints_stored_total",
              "Mutations kept for replicas that missed them.", labels, hints.metrics().stored);
  metrics.add("tetrad_replication_hints_replayed_total", "Hints that their replicas took.", labels,
              hints.metrics().replayed);
  metrics.add("tetrad_replication_hints_refused_total", "Hints that did not fit the limit.", labels,
              hints.metrics().refused);
  metrics.add_gauge("tetrad_replication_hints_pending", "Hints waiting for their replicas.", labels,
                    [&hints] { return static_cast<double>(hints.pending_count()); });
  const RepairMetrics& repairs = plane->repairs_.metrics();
  metrics.add("tetrad_replication_repaired_tablets_total",
              "Physical partitions whose members were all compared and made equal.", labels,
              repairs.tablets);
  metrics.add("tetrad_replication_repair_pages_total",
              "Pages of physical partitions that repair has compared.", labels, repairs.pages);
  metrics.add("tetrad_replication_repairs_failed_total",
              "Repairs that ended early, to be tried again: a member was down or the set changed.",
              labels, repairs.failed);
  const ThroughputGate::Metrics& throughput = plane->throughput_.metrics();
  metrics.add("tetrad_replication_throughput_refused_total",
              "Requests refused for the throughput of their table or keyspace.", labels,
              throughput.refused);
  metrics.add("tetrad_replication_throughput_waited_total",
              "Requests that waited for the throughput of their table or keyspace.", labels,
              throughput.waited);
  return plane;
}

}  // namespace tetrad::replication
