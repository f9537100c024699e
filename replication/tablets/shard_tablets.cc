// SPDX-License-Identifier: Apache-2.0
// Wiring of what a shard does for its tablets, and its metrics.
#include "replication/tablets/shard_tablets.h"

#include "base/data_mutants.h"

namespace tetrad::replication {

namespace {

Fences make_fences(base::Reactor& reactor, MetaService& meta,
                   const std::vector<storage::Store*>& stores) {
  Fences fences(stores.size());
  for (size_t i = 0; i < stores.size(); ++i)
    if (stores[i] != nullptr) fences[i] = std::make_unique<Fence>(reactor, meta);
  return fences;
}

std::vector<bool> own_of(const std::vector<storage::Store*>& stores) {
  std::vector<bool> own;
  for (const storage::Store* store : stores) own.push_back(store != nullptr);
  return own;
}

}  // namespace

ShardTablets::ShardTablets(base::Reactor& reactor, base::Random& random, RpcNode& rpc,
                           storage::LocalLog& log, MetaService& meta, HybridClock& clock,
                           std::vector<storage::Store*> stores,
                           const std::vector<std::optional<PowerLoss>>& losses,
                           int64_t load_period_us, uint64_t stream_page_bytes,
                           const ChangeLogOptions& changes, ClaimMakers claim_makers,
                           ViewMakersOf view_makers, const IndexOptions& indexes,
                           StoreRenewal::Renew renew_store, const HeatOptions& heat,
                           HeatRunner::BusyUs busy_us, const Logger& logger)
    : stores_(std::move(stores)),
      fences_(make_fences(reactor, meta, stores_)),
      indexes_(reactor, meta, clock, stores_, std::move(claim_makers), std::move(view_makers),
               indexes, logger.named("indexes")),
      cleanup_(reactor, log, meta, stores_, logger.named("tablets")),
      renewal_(reactor, meta, cleanup_, stores_, std::move(renew_store), logger.named("tablets")),
      behind_(reactor, log, meta, clock, own_of(stores_), losses, logger.named("replica")),
      changes_(reactor, rpc, meta, clock, stores_, behind_, changes, logger.named("changes")),
      paxos_keys_(reactor, stores_),
      load_(reactor, rpc, meta, stores_, load_period_us),
      splits_(reactor, random, rpc, meta, stores_, logger.named("tablets")),
      heat_(reactor, random, rpc, meta, fences_, heat, std::move(busy_us), logger.named("tablets")),
      stream_(reactor, rpc, meta, stores_, fences_, cleanup_, behind_, changes_, paxos_keys_,
              stream_page_bytes, logger.named("tablets")) {
  // Sizes are measured once and serve both the report and the splits.
  load_.on_measured(
      [this](const std::vector<MeasuredTablet>& tablets) { splits_.on_measured(tablets); });
  subscription_ = meta.subscribe([this](const MetaSnapshot& before, const MetaSnapshot& now) {
    if (before != now) retire(before, now);
  });
}

/// What is in the list at the first state of this life is retired again: the node may have ended
/// before its stores had taken note.
void ShardTablets::retire(const MetaSnapshot& before, const MetaSnapshot& now) {
  if (TETRAD_MUTANT(old_incarnation_accepted)) return;
  const size_t known = before->applied.value == 0 ? 0 : before->retired.size();
  for (size_t i = 0; i < now->retired.size(); ++i) {
    const bool is_old = i < known && before->retired[i] == now->retired[i];
    // Retiring twice does no harm; forgetting one would keep its rows for ever.
    if (is_old) continue;
    for (storage::Store* store : stores_)
      if (store != nullptr) store->retire(now->retired[i]);
  }
}

void ShardTablets::register_in(base::MetricsRegistry& metrics, const std::string& labels) const {
  metrics.add("tetrad_replication_foreign_keys_erased_total",
              "Keys erased of physical partitions that are not, or not yet, of their store.",
              labels, cleanup_.metrics().keys_erased);
  metrics.add("tetrad_replication_changes_logged_total",
              "Entries of change logs written by this shard's stores.", labels,
              changes_.metrics().entries);
  metrics.add("tetrad_replication_changes_erased_total",
              "Entries of change logs erased after their retention.", labels,
              changes_.metrics().erased);
  metrics.add("tetrad_replication_indexes_built_total", "Indexes built in stores of this shard.",
              labels, indexes_.metrics().built);
  metrics.add("tetrad_replication_index_claims_built_total",
              "Entries that builds of indexes have made.", labels, indexes_.metrics().claims_built);
  metrics.add("tetrad_replication_index_claims_swept_total",
              "Entries of indexes that sweeps have compared with their rows.", labels,
              indexes_.metrics().claims_swept);
  metrics.add("tetrad_replication_index_claims_dropped_total",
              "Entries of indexes dropped, since their rows have other values.", labels,
              indexes_.metrics().claims_dropped);
  metrics.add_gauge("tetrad_replication_index_builds_pending",
                    "Indexes of this shard's stores that are being built.", labels,
                    [this] { return static_cast<double>(indexes_.pending()); });
  metrics.add("tetrad_replication_tablet_splits_total", "Physical partitions split by this shard.",
              labels, splits_.metrics().splits);
  metrics.add("tetrad_replication_heat_splits_total",
              "Cuts of physical partitions that were hot, by this shard.", labels,
              heat_.metrics().splits);
  metrics.add("tetrad_replication_heat_set_apart_total",
              "Hot logical partitions that were set apart, or should have been.", labels,
              heat_.metrics().set_apart);
  metrics.add("tetrad_replication_heat_not_cut_total",
              "Times a hot physical partition was not cut, since no cut would help.", labels,
              heat_.metrics().not_cut);
  metrics.add_gauge("tetrad_replication_shard_busy_ratio",
                    "Part of the last second in which this shard's loop has worked.", labels,
                    [this] { return heat_.busy(); });
  metrics.add("tetrad_replication_tablets_filled_total",
              "Physical partitions this shard's stores became members of by streaming.", labels,
              stream_.metrics().tablets_filled);
  metrics.add("tetrad_replication_streamed_bytes_total", "Bytes taken from streams.", labels,
              stream_.metrics().bytes_taken);
}

}  // namespace tetrad::replication
