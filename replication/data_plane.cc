// SPDX-License-Identifier: Apache-2.0
// Wiring of one shard's data plane: the parts get the options that they need, start in one order,
// and register their metrics.
#include "replication/data_plane.h"

namespace tetrad::replication {

namespace {

// Null where the shard has none.
storage::Store* first_of(const std::vector<storage::Store*>& stores) {
  for (storage::Store* store : stores)
    if (store != nullptr) return store;
  return nullptr;
}

constexpr uint64_t kDiskPartOfHints = 20;        // a twentieth of it at most
constexpr uint64_t kHintBytesLeast = 16u << 20;  // but at least this

/// The room for hints is the node's: each shard has its part.
HintOptions hint_options(const NodeEnvironment& environment, const DataPlaneOptions& options) {
  HintOptions hints = options.hints;
  hints.shard = options.shard;
  // Of the disk a part at most, so that hints never fill what rows need; then divided by the
  // shards, which do not know each other's queues.
  if (environment.disk != nullptr) {
    const auto space = environment.disk->measure();
    if (space) {
      const uint64_t share = (space->used_bytes + space->usable_bytes) / kDiskPartOfHints;
      hints.bytes_max = std::min(hints.bytes_max, std::max(share, kHintBytesLeast));
    }
  }
  // Both limits are of the node; a shard's part is fixed, so one shard never takes another's.
  hints.bytes_per_replica_max /= options.shard_count;
  hints.bytes_max /= options.shard_count;
  return hints;
}

CoordinatorOptions coordinator_options(const DataPlaneOptions& options) {
  CoordinatorOptions coordinator = options.coordinator;
  coordinator.horizon = options.horizon;
  return coordinator;
}

// Ballots of two lives of a node must differ; without a number of the life a random one does.
uint64_t start_number(const NodeEnvironment& environment, const DataPlaneOptions& options) {
  return options.start_number != 0 ? options.start_number : environment.random.next();
}

HintDispatchOptions dispatch_options(const DataPlaneOptions& options) {
  HintDispatchOptions dispatch = options.hint_dispatch;
  dispatch.horizon = options.horizon;
  return dispatch;
}

}  // namespace

DataPlane::DataPlane(const NodeEnvironment& environment, RpcNode& rpc, MetaService& meta,
                     HybridClock& clock, const Fences& fences, StoreCleanup& cleanup,
                     ChangeLogs& changes, BehindStores& behind, PaxosKeys& paxos_keys,
                     const DataPlaneOptions& options)
    : behind_(behind),
      batches_(options.batches),
      stores_(environment.stores),
      replicas_(environment.reactor, rpc, meta, clock, options.horizon, environment.stores, fences,
                cleanup, changes, behind, environment.read_fold, options.replica,
                environment.logger.named("replica")),
      paxos_(environment.reactor, rpc, meta, clock, options.horizon, environment.stores, fences,
             cleanup, changes, behind, replicas_, paxos_keys),
      turns_(environment.reactor, rpc),
      hints_(environment.hint_log != nullptr ? *environment.hint_log : environment.log,
             hint_options(environment, options)),
      coordinator_(environment.reactor, environment.random, rpc, meta, replicas_, paxos_, turns_,
                   BallotSource(rpc.self(), start_number(environment, options), options.shard),
                   hints_, clock, coordinator_options(options),
                   environment.logger.named("coordinator")),
      dispatcher_(environment.reactor, hints_, rpc, meta, clock, dispatch_options(options),
                  environment.logger.named("hints")),
      repairs_(
          environment.reactor, environment.random, rpc, meta, clock, behind, coordinator_,
          [this](const StoreAddress& replica) { return replicas_.is_local(replica); }, fences,
          environment.stores, options.repair, environment.logger.named("repair")),
      comparison_(environment.reactor, rpc, meta, clock, options.horizon),
      purges_(environment.reactor, rpc, meta, clock, environment.stores, options.horizon,
              options.purge, environment.logger.named("purge")),
      throughput_(environment.reactor, environment.random, rpc, meta, options.throughput),
      recent_source_(environment.reactor, rpc, meta, clock, environment.stores, fences, cleanup,
                     behind, options.recent_fetch.longest_us),
      recent_fetch_(environment.reactor, rpc, meta, clock, behind, replicas_, environment.stores,
                    options.recent_fetch, environment.logger.named("replica")),
      store_teller_(environment.reactor, environment.stores, behind, recent_fetch_,
                    options.tell_store),
      views_(environment.reactor, rpc, meta, clock, coordinator_, behind, environment.stores,
             options.views, environment.logger.named("views")),
      view_verifier_(environment.reactor, rpc, meta, clock, coordinator_, first_of(stores_)) {}

// Replays use the coordinator, which is about to go; stores must not ask a clock that is gone.
DataPlane::~DataPlane() {
  if (batches_ != nullptr) batches_->stop();
  for (storage::Store* store : stores_)
    if (store != nullptr) store->set_sync_clock(nullptr);
}

/// By the records that come of it a store will know since when it may lack something.
void DataPlane::set_sync_clocks(const NodeEnvironment& environment, const HybridClock& clock) {
  for (uint32_t i = 0; i < stores_.size(); ++i) {
    if (stores_[i] == nullptr) continue;
    stores_[i]->set_sync_clock(
        [&reactor = environment.reactor, &clock, this, i]() -> std::optional<int64_t> {
          // Without a time that is to be trusted, or while a loss is not noted on disk, a record
          // says nothing of when.
          if (!clock.is_good() || !behind_.is_noted(i)) return std::nullopt;
          return clock.now_us(reactor);
        });
  }
}

Result<std::unique_ptr<DataPlane>> DataPlane::make(const NodeEnvironment& environment, RpcNode& rpc,
                                                   MetaService& meta, HybridClock& clock,
                                                   const Fences& fences, StoreCleanup& cleanup,
                                                   ChangeLogs& changes, BehindStores& behind,
                                                   PaxosKeys& paxos_keys,
                                                   DataPlaneOptions options) {
  std::unique_ptr<DataPlane> plane(new DataPlane(environment, rpc, meta, clock, fences, cleanup,
                                                 changes, behind, paxos_keys, options));
  // Hints are read first, so that none of a replica is passed over; tasks start when everything
  // they use is there.
  TETRAD_TRY_VOID(plane->hints_.open());
  plane->dispatcher_.start();
  plane->repairs_.start();
  plane->purges_.start();
  plane->set_sync_clocks(environment, clock);
  plane->recent_fetch_.start();
  plane->store_teller_.start();
  plane->views_.start();
  if (options.batches != nullptr) options.batches->start(plane->coordinator_);
  plane->purges_.metrics().register_in(environment.metrics,
                                       fmt::format("shard=\"{}\"", options.shard));
  const std::string labels = fmt::format("shard=\"{}\"", options.shard);
  plane->views_.register_in(environment.metrics, labels);
  base::MetricsRegistry& metrics = environment.metrics;
  plane->coordinator_.metrics().register_in(metrics, labels);
  plane->paxos_.metrics().register_in(metrics, labels);
  plane->coordinator_.counter_metrics().register_in(metrics, labels);
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
  metrics.add("tetrad_replication_repair_horizons_held_total",
              "Repairs after which nothing more may be purged: logged batches may be older, or a "
              "node that may hold some is silent.",
              labels, repairs.horizons_held);
  metrics.add("tetrad_replication_repairs_failed_total",
              "Repairs that ended early, to be tried again: a member was down or the set changed.",
              labels, repairs.failed);
  const RecentFetchMetrics& recent = plane->recent_fetch_.metrics();
  metrics.add("tetrad_replication_recent_rows_fetched_total",
              "Rows fetched from other replicas after a power cut.", labels, recent.rows);
  metrics.add("tetrad_replication_recent_fetches_failed_total",
              "Fetches after a power cut that ended early, to be tried again.", labels,
              recent.failed);
  metrics.add("tetrad_replication_recent_tablets_fetched_total",
              "Physical partitions that hold again what a power cut may have taken.", labels,
              recent.tablets);
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
