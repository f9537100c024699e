// SPDX-License-Identifier: Apache-2.0
// Indexes of a shard's stores (rule 23): tells each store which indexes and views its tables have,
// has the indexes built at a limited rate, and sweeps claims that no row bears out any more.
//
// A store's disproved claim may go at once where any W of the set's n members have at least one
// that names the row whenever an acknowledged write made it match: 3 W >= 2 n + 1. With three
// members it stays until all of them have been made equal since it was first seen so, its partition
// not written meanwhile.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "base/log.h"
#include "base/metrics.h"
#include "base/reactor.h"
#include "base/task_group.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/repair/purge_horizon.h"
#include "storage/engine/store.h"

namespace tetrad::replication {

/// The indexes of a table as the schema has them; null: none, now or before. Made by cql.
using ClaimMakers =
    std::function<storage::ClaimMakerPtr(const MetaState& state, const TableInfo& table)>;

/// The views of a base table as the schema has them; null: none. Made by cql.
using ViewMakersOf =
    std::function<storage::ViewMakersPtr(const MetaState& state, const TableInfo& base)>;

/// How fast indexes are built and swept.
struct IndexOptions {
  /// Of rows, that a page of a build reads; then it pauses.
  uint64_t build_page_bytes = 256 << 10;
  int64_t build_pause_us = 5'000;
  /// All claims are looked at so often.
  int64_t sweep_every_us = int64_t{1800} * 1'000'000;
  uint64_t sweep_page_claims = 256;
  int64_t sweep_pause_us = 20'000;
  HorizonSlack horizon;
};

/// Counters of one shard's indexes, changed by its thread only.
struct IndexMetrics {
  base::Counter built, claims_built, claims_swept, claims_dropped;
};

/// How far an index is built in a store.
struct IndexStatus {
  std::string keyspace, table;
  TableIncarnation incarnation;
  uint16_t index_id = 0;
  uint32_t store = 0;
  bool built = false;
  RingPosition position;  // all before it is built, as far as this life knows
  uint64_t claims = 0;    // built in this life
};

/// Whether a member that disproves a claim must name the row all the same.
bool keeps_disproved(size_t members);

/// Tells the stores of a shard which indexes and views their tables have, builds indexes and sweeps
/// their claims. Owned by the shard, on its thread; one build and one sweep at a time. Always: a
/// store knows of an index before others of its shard hear of the schema that has it.
class IndexRunner {
 public:
  /// `stores` by number; null: another shard's. Everything outlives it.
  IndexRunner(base::Reactor& reactor, MetaService& meta, const HybridClock& clock,
              std::vector<storage::Store*> stores, ClaimMakers makers, ViewMakersOf view_makers,
              IndexOptions options, Logger logger);
  ~IndexRunner();
  IndexRunner(const IndexRunner&) = delete;
  IndexRunner& operator=(const IndexRunner&) = delete;
  void start();

  /// Of all indexes and stores of this shard, by incarnation, index and store.
  std::vector<IndexStatus> statuses() const;
  /// Indexes of stores that are not built yet.
  size_t pending() const { return building_.size(); }
  const IndexMetrics& metrics() const { return metrics_; }

 private:
  /// An index of a table in one store.
  struct Place {
    TableIncarnation incarnation;
    uint16_t index_id;
    uint32_t store;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  /// When a claim was seen to be disproved for the first time, and the newest write of its bucket.
  struct Doubt {
    int64_t since_us;
    uint64_t number;
  };

  /// Tells the stores, before anybody else of the shard hears of the new state.
  void on_state(const MetaSnapshot& before, const MetaSnapshot& now);
  void look_at(const MetaState& state, const TableInfo& table);
  /// The table is gone: its builds and doubts are, too.
  void forget(TableIncarnation incarnation);
  /// One page after another over all that is not built; ends when nothing is left.
  Task<void> build();
  Task<void> sweep();
  /// False: it was not finished.
  Task<bool> sweep_index(Place place);
  /// Whether a disproved claim may go: at once where what is disproved need not be named; otherwise
  /// when all members have been made equal since it was first seen so, and its bucket (`number`)
  /// was not written meanwhile.
  bool may_drop(Place place, RingPosition position, uint64_t hash, uint64_t number);

  base::Reactor& reactor_;
  MetaService& meta_;
  const HybridClock& clock_;
  const std::vector<storage::Store*> stores_;
  const ClaimMakers makers_;
  const ViewMakersOf view_makers_;
  const IndexOptions options_;
  const Logger logger_;
  IndexMetrics metrics_;
  std::map<Place, IndexStatus> known_;
  std::set<Place> building_;
  std::unordered_map<uint64_t, Doubt> doubts_;  // by the claim's hash, and the store's number
  bool is_building_ = false, is_sweeping_ = false;
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<void> subscription_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
