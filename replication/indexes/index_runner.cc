// SPDX-License-Identifier: Apache-2.0
//   1. With each new map stores get the new, changed and dropped indexes and views.
//   2. Indexes that are not built are built one after another, page by page.
//   3. From time to time claims are swept: those that their row disproves are dropped, where the
//      other members do not need them any more (may_drop).
#include "replication/indexes/index_runner.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/consistency.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

// After an error of a store, which may be short of disk or behind with writes.
constexpr int64_t kTryAgainUs = 200'000;
constexpr size_t kDoubtsMax = 100'000;  // of a shard; those beyond it wait for a later sweep
constexpr std::string_view kTableObject = "table/", kTypeObject = "type/";

std::string object_of(const TableInfo& table) {
  return std::string(kTableObject) + table.keyspace + "/" + table.name;
}

}  // namespace

bool keeps_disproved(size_t members) {
  const auto n = static_cast<int>(members);
  return 3 * write_quorum(n) < 2 * n + 1 && !TETRAD_MUTANT(disproved_not_named);
}

IndexRunner::IndexRunner(base::Reactor& reactor, MetaService& meta, const HybridClock& clock,
                         std::vector<storage::Store*> stores, ClaimMakers makers,
                         ViewMakersOf view_makers, IndexOptions options, Logger logger)
    : reactor_(reactor),
      meta_(meta),
      clock_(clock),
      stores_(std::move(stores)),
      makers_(std::move(makers)),
      view_makers_(std::move(view_makers)),
      options_(options),
      logger_(std::move(logger)) {
  if (!makers_ && !view_makers_) return;
  subscription_ = meta_.subscribe([this](const MetaSnapshot& before, const MetaSnapshot& now) {
    if (before != now) on_state(before, now);
  });
}

IndexRunner::~IndexRunner() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void IndexRunner::start() {
  if (!makers_) return;
  timer_ = reactor_.call_at(reactor_.now_us() + options_.sweep_every_us, [this] {
    start();
    if (is_sweeping_ || known_.empty()) return;
    is_sweeping_ = true;
    tasks_.spawn(sweep());
  });
}

std::vector<IndexStatus> IndexRunner::statuses() const {
  std::vector<IndexStatus> all;
  for (const auto& [place, status] : known_) all.push_back(status);
  return all;
}

/// Tables that are new, that were truncated, or whose schema or user types have changed.
void IndexRunner::on_state(const MetaSnapshot& before, const MetaSnapshot& now) {
  std::set<std::string> changed;
  std::set<std::string, std::less<>> keyspaces;  // whose user types have changed
  using Objects = decltype(now->schema_objects);
  if (before->schema_version != now->schema_version) {
    // Both maps share what is equal, so the comparison costs as much as the change.
    Objects::compare(before->schema_objects, now->schema_objects,
                     [&](const std::string& name, const auto*, const auto*) {
                       if (name.starts_with(kTableObject)) changed.insert(name);
                       if (!name.starts_with(kTypeObject)) return;
                       const size_t first = kTypeObject.size();
                       keyspaces.insert(name.substr(first, name.find('/', first) - first));
                     });
  }
  using Tables = decltype(now->tables);
  Tables::compare(before->tables, now->tables,
                  [&](const TableId&, const auto* old_table, const auto* table) {
                    const bool same = old_table != nullptr && table != nullptr &&
                                      (*old_table)->incarnation == (*table)->incarnation;
                    if (same) return;
                    if (old_table != nullptr) forget((*old_table)->incarnation);
                    if (table == nullptr) return;
                    // Looked at here already: once is enough, as it begins the builds anew.
                    changed.erase(object_of(**table));
                    look_at(*now, **table);
                  });
  if (changed.empty() && keyspaces.empty()) return;
  // What is known of a table has the types of its columns in it, which its text only names.
  for (const auto& [id, table] : now->tables)
    if (keyspaces.contains(table->keyspace) || changed.contains(object_of(*table)))
      look_at(*now, *table);
}

void IndexRunner::forget(TableIncarnation incarnation) {
  std::erase_if(known_, [&](const auto& known) { return known.first.incarnation == incarnation; });
  std::erase_if(building_, [&](const Place& place) { return place.incarnation == incarnation; });
}

/// For all stores, also those that hold nothing of the table yet.
void IndexRunner::look_at(const MetaState& state, const TableInfo& table) {
  if (view_makers_) {
    const storage::ViewMakersPtr views = view_makers_(state, table);
    for (storage::Store* store : stores_)
      if (store != nullptr) store->set_views(table.incarnation, views, {state.next_incarnation});
  }
  if (!makers_) return;
  const storage::ClaimMakerPtr maker = makers_(state, table);
  // Builds go on where the store has noted that they were, not where this object left them.
  forget(table.incarnation);
  for (uint32_t number = 0; number < stores_.size(); ++number) {
    storage::Store* const store = stores_[number];
    if (store == nullptr) continue;
    store->set_indexes(table.incarnation, maker);
    if (maker == nullptr) continue;
    for (const uint16_t index_id : maker->index_ids()) {
      const Place place{table.incarnation, index_id, number};
      const bool built = store->is_built(table.incarnation, index_id);
      IndexStatus status{table.keyspace, table.name, table.incarnation,      index_id,
                         number,         built,      RingPosition::lowest(), 0};
      if (built) status.position = RingPosition::highest();
      known_.emplace(place, std::move(status));
      if (!built) building_.insert(place);
    }
  }
  // A build under way takes up what was added.
  if (building_.empty() || is_building_) return;
  is_building_ = true;
  tasks_.spawn(build());
}

/// One index of one store after another, page by page.
Task<void> IndexRunner::build() {
  while (!building_.empty()) {
    // A copy, and looked for again below: the table may be dropped while the page is read.
    const Place place = *building_.begin();
    base::OneShot<Result<storage::IndexBuildPage>> built;
    std::move_only_function<void(Result<storage::IndexBuildPage>)> done =
        [setter = built.setter()](Result<storage::IndexBuildPage> page) {
          setter.set(std::move(page));
        };
    TETRAD_ASSERT(stores_[place.store] != nullptr);
    stores_[place.store]->build_index(place.incarnation, place.index_id, options_.build_page_bytes,
                                      std::move(done));
    const Result<storage::IndexBuildPage> page = co_await built;
    const auto known = known_.find(place);
    int64_t pause_us = options_.build_pause_us;
    if (!page) {
      const ErrorCode code = page.error().code;
      // The index or the table is gone. Other errors pass.
      if (code == ErrorCode::kNotFound || code == ErrorCode::kStaleSchema) building_.erase(place);
      pause_us = kTryAgainUs;
    } else if (known != known_.end()) {
      metrics_.claims_built.add(page->claims);
      known->second.claims += page->claims;
      known->second.position = page->position;
      if (page->built) {
        known->second.built = true;
        building_.erase(place);
        metrics_.built.add();
        logger_.info("index built table={}.{} index={} store={} claims={}", known->second.keyspace,
                     known->second.table, place.index_id, place.store, known->second.claims);
        continue;
      }
    } else {
      building_.erase(place);
    }
    co_await base::sleep_for(reactor_, pause_us);
  }
  TETRAD_ASSERT(is_building_);
  is_building_ = false;
}

// ---- sweeping ----

Task<void> IndexRunner::sweep() {
  // A copy: what is added meanwhile is swept the next time.
  std::vector<Place> places;
  for (const auto& [place, status] : known_)
    if (status.built) places.push_back(place);
  for (size_t i = 0; i < places.size(); ++i) {
    const Place place = places[i];
    const bool finished = co_await sweep_index(place);
    if (!finished) logger_.debug("claims not swept index={} store={}", place.index_id, place.store);
  }
  TETRAD_ASSERT(is_sweeping_);
  is_sweeping_ = false;
}

Task<bool> IndexRunner::sweep_index(Place place) {
  storage::ClaimSweepCommand command;
  command.incarnation = place.incarnation;
  command.index_id = place.index_id;
  command.claims_max = options_.sweep_page_claims;
  command.may_drop = [this, place](RingPosition position, uint64_t hash, uint64_t number) {
    return may_drop(place, position, hash, number);
  };
  Bytes after;
  while (known_.contains(place)) {
    base::OneShot<Result<storage::ClaimSweepPage>> swept;
    std::move_only_function<void(Result<storage::ClaimSweepPage>)> done =
        [setter = swept.setter()](Result<storage::ClaimSweepPage> page) {
          setter.set(std::move(page));
        };
    stores_[place.store]->sweep_claims(command, after, std::move(done));
    Result<storage::ClaimSweepPage> page = co_await swept;
    if (!page) co_return false;
    metrics_.claims_swept.add(page->claims);
    metrics_.claims_dropped.add(page->dropped);
    if (page->exhausted) co_return true;
    after = std::move(page->next);
    co_await base::sleep_for(reactor_, options_.sweep_pause_us);
  }
  co_return false;
}

bool IndexRunner::may_drop(Place place, RingPosition position, uint64_t hash, uint64_t number) {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(place.incarnation);
  // In doubt it stays: a claim too many costs a look, a claim too few loses a row.
  if (table == nullptr) return false;
  const Tablet& tablet = table->tablets.find(position);
  // In a change of members the sets of which W are asked are two.
  if (tablet.stage != TabletStage::kNormal) return false;
  if ((state->data_centers == nullptr && !keeps_disproved(tablet.replicas.size())) ||
      TETRAD_MUTANT(claim_gone_early))
    return true;
  const StoreAddress own{meta_.self(), place.store};
  if (std::ranges::find(tablet.replicas, own) == tablet.replicas.end()) return true;
  // The hash of the claim; stores of one shard share the map.
  const uint64_t key = hash * 31 + place.store;
  const auto doubt = doubts_.find(key);
  if (doubt == doubts_.end() || doubt->second.number != number) {
    // Seen for the first time, or its bucket was written since: the time begins anew.
    if (doubt != doubts_.end() || doubts_.size() < kDoubtsMax)
      doubts_[key] = {clock_.now_us(reactor_), number};
    return false;
  }
  const int64_t horizon_s = purge_horizon_s(tablet, options_.horizon);
  constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  const bool all_equal_since = horizon_s != kNone && doubt->second.since_us / 1'000'000 < horizon_s;
  if (all_equal_since) doubts_.erase(doubt);
  return all_equal_since;
}

}  // namespace tetrad::replication
