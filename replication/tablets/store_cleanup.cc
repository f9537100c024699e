// SPDX-License-Identifier: Apache-2.0
// Two kinds of erasing. Before a stay: what the store holds of the range goes, then the mark of the
// stay is synced, then rows are taken (make_clean). After one: ranges that are no member's here go
// in the background, as long as the map still says so before each page (erase_foreign).
#include "replication/tablets/store_cleanup.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

// Between pages, so that clients come first; after a failure.
constexpr int64_t kPauseUs = 2'000;
constexpr int64_t kTryAgainUs = 200'000;
constexpr size_t kMarksAtOnce = 1000;

/// Before new members are filled; later ones have been.
bool is_pending(const Tablet& tablet) {
  return tablet.stage == TabletStage::kWriteBoth || tablet.stage == TabletStage::kStream;
}

bool names(const std::vector<StoreAddress>& set, const StoreAddress& member) {
  return std::find(set.begin(), set.end(), member) != set.end();
}

/// The epoch that the change of members began with.
SetEpoch stay_of(const Tablet& tablet) {
  return SetEpoch{tablet.epoch.value - (tablet.stage == TabletStage::kStream ? 1 : 0)};
}

// "stay/", u32 store, u64 tablet: the epoch with which a stay began that is clean (rule 11).
Bytes stay_key(TabletId tablet, uint32_t store) {
  Bytes key = "stay/";
  base::ByteWriter w(key);
  w.u32(store);
  w.u64(tablet.value);
  return key;
}

const Tablet* find_tablet(const MetaState& state, TableIncarnation incarnation,
                          const Tablet& tablet) {
  const TableInfo* table = state.table(incarnation);
  if (table == nullptr) return nullptr;
  const Tablet& now = table->tablets.find(tablet.range.end);
  return now.id == tablet.id && now.range == tablet.range ? &now : nullptr;
}

}  // namespace

StoreCleanup::StoreCleanup(base::Reactor& reactor, storage::LocalLog& log, MetaService& meta,
                           std::vector<storage::Store*> stores, Logger logger)
    : reactor_(reactor),
      log_(log),
      meta_(meta),
      stores_(std::move(stores)),
      logger_(std::move(logger)) {
  subscription_ = meta_.subscribe([this](const MetaSnapshot& before, const MetaSnapshot& now) {
    if (before != now) on_state(before, now);
  });
}

// A mark of an epoch that the map does not know yet: the map is older than the disk.
bool StoreCleanup::is_behind(const MetaState& state, uint32_t store) const {
  std::map<TabletId, SetEpoch> epochs;
  for (const auto& [id, table] : state.tables)
    for (const Tablet& tablet : table->tablets.tablets()) epochs[tablet.id] = tablet.epoch;
  Bytes start = stay_key(TabletId{0}, store);
  const Bytes end = stay_key(TabletId{std::numeric_limits<uint64_t>::max()}, store);
  while (true) {
    const auto marks = log_.scan(start, end, kMarksAtOnce);
    if (!marks) return true;
    for (const auto& [key, mark] : *marks) {
      if (mark.size() != sizeof(uint64_t)) return true;
      const TabletId id{base::load_big_endian<uint64_t>(key.data() + key.size() - 8)};
      const SetEpoch begun{base::load_big_endian<uint64_t>(mark.data())};
      const auto known = epochs.find(id);
      if (known == epochs.end() ? id.value >= state.next_tablet_id : known->second < begun)
        return true;
    }
    if (marks->size() < kMarksAtOnce) return false;
    start = marks->back().first + '\0';
  }
}

bool StoreCleanup::holds(const Tablet& tablet, uint32_t store) const {
  const StoreAddress own{meta_.self(), store};
  return names(tablet.replicas, own) || names(tablet.new_replicas, own);
}

bool StoreCleanup::may_take(TableIncarnation incarnation, const Tablet& tablet, uint32_t store) {
  const StoreAddress own{meta_.self(), store};
  // Members of the old set have what they have; only a new one that is to be filled must be clean.
  if (!is_pending(tablet) || names(tablet.replicas, own) || !names(tablet.new_replicas, own) ||
      TETRAD_MUTANT(cleanup_skipped))
    return true;
  const Stay stay{tablet.id, store};
  const auto known = clean_.find(stay);
  // Known to be clean for this very stay.
  if (known != clean_.end() && known->second == stay_of(tablet)) return true;
  if (under_way_.insert(stay).second) tasks_.spawn(make_clean(incarnation, tablet, store));
  return false;
}

void StoreCleanup::look_at(const TableInfo* before, const TableInfo& now, bool first) {
  for (uint32_t store = 0; store < stores_.size(); ++store) {
    if (stores_[store] == nullptr) continue;
    bool left = first;
    for (const Tablet& tablet : now.tablets.tablets())
      (void)may_take(now.incarnation, tablet, store);
    if (before != nullptr) {
      // What the table's change has taken from the store.
      for (const Tablet& tablet : before->tablets.tablets()) {
        if (tablet.stage == TabletStage::kNormal || !holds(tablet, store)) continue;
        left |= !holds(now.tablets.find(tablet.range.end), store);
      }
    }
    if (left) foreign_.insert({now.incarnation, store});
  }
}

/// A new stay begins at once; of a table that has changed, or of the first state of this life,
/// every table, it is looked whether there is something that is not the store's own.
void StoreCleanup::on_state(const MetaSnapshot& before, const MetaSnapshot& now) {
  const bool first = before->applied.value == 0;
  using Tables = decltype(now->tables);
  Tables::compare(before->tables, now->tables,
                  [&](const TableId&, const auto* known, const auto* table) {
                    if (table != nullptr)
                      look_at(known == nullptr ? nullptr : known->get(), **table, first);
                  });
  if (foreign_.empty() || erasing_ || TETRAD_MUTANT(cleanup_skipped)) return;
  erasing_ = true;
  tasks_.spawn(erase_foreign());
}

Task<Result<bool>> StoreCleanup::erase_page(TableIncarnation incarnation, RingRange range,
                                            uint32_t store, storage::SweepPlace* place) {
  storage::SweepCommand command;
  command.incarnation = incarnation;
  command.range = range;
  // Nothing is decoded: rot must not stop it.
  command.everything = true;
  base::OneShot<Result<storage::SweepPage>> erased;
  const auto setter = erased.setter();
  std::move_only_function<void(Result<storage::SweepPage>)> done =
      [setter](Result<storage::SweepPage> page) { setter.set(std::move(page)); };
  TETRAD_ASSERT(stores_[store] != nullptr);
  stores_[store]->sweep(std::move(command), std::move(*place), std::move(done));
  Result<storage::SweepPage> page = co_await erased;
  if (!page) co_return std::unexpected<Error>(page.error());
  metrics_.keys_erased.add(page->erased - page->skipped);
  *place = std::move(page->next);
  if (page->skipped != 0) *place = {};  // from the start
  co_return page->exhausted && page->skipped == 0;
}

/// Until it is done, or the stay is over.
Task<void> StoreCleanup::make_clean(TableIncarnation incarnation, Tablet tablet, uint32_t store) {
  const Stay stay{tablet.id, store};
  const SetEpoch begun = stay_of(tablet);
  const Bytes key = stay_key(tablet.id, store);
  Bytes mark;
  base::ByteWriter(mark).u64(begun.value);
  const auto known = log_.get(key);
  bool clean = known && *known && **known == mark;
  storage::SweepPlace place;
  const uint64_t erased_before = metrics_.keys_erased.value();
  while (!clean) {
    const MetaSnapshot state = meta_.snapshot();
    const Tablet* now = find_tablet(*state, incarnation, tablet);
    if (now == nullptr || !is_pending(*now) || stay_of(*now) != begun || is_behind(*state, store))
      break;
    Result<bool> page = co_await erase_page(incarnation, tablet.range, store, &place);
    const bool erased_all = page && *page;
    if (!erased_all) {
      const int64_t pause_us = page ? kPauseUs : kTryAgainUs;
      co_await base::sleep_for(reactor_, pause_us);
      continue;
    }
    // First that it is gone, then that it was erased.
    base::OneShot<Result<void>> flushed;
    const auto flush_setter = flushed.setter();
    std::move_only_function<void(Result<void>)> on_flushed = [flush_setter](Result<void> result) {
      flush_setter.set(std::move(result));
    };
    if (metrics_.keys_erased.value() != erased_before) {
      stores_[store]->flush(std::move(on_flushed));
      Result<void> result = co_await flushed;
      if (!result) break;
    }
    base::OneShot<Result<void>> noted;
    const auto note_setter = noted.setter();
    storage::LocalLog::DoneCallback on_noted = [note_setter](Result<void> result) {
      note_setter.set(std::move(result));
    };
    std::vector<storage::LocalLog::Operation> batch;
    batch.push_back({key, mark});
    log_.write(std::move(batch), true, std::move(on_noted));
    Result<void> result = co_await noted;
    if (!result) break;
    clean = true;
  }
  if (clean) clean_[stay] = begun;
  TETRAD_ASSERT(under_way_.contains(stay));
  under_way_.erase(stay);
}

Task<void> StoreCleanup::erase_foreign() {
  while (!foreign_.empty()) {
    const Work work = *foreign_.begin();
    foreign_.erase(foreign_.begin());
    const bool done = co_await erase_foreign_of(work);
    if (done) continue;
    foreign_.insert(work);  // the map has changed meanwhile
    co_await base::sleep_for(reactor_, kTryAgainUs);
  }
  TETRAD_ASSERT(erasing_);
  erasing_ = false;
}

Task<bool> StoreCleanup::erase_foreign_of(Work work) {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* const table = state->table(work.incarnation);
  if (table == nullptr) co_return true;
  if (is_behind(*state, work.store)) co_return false;
  std::vector<RingRange> ranges;  // neighbours as one
  for (const Tablet& tablet : table->tablets.tablets()) {
    if (holds(tablet, work.store)) continue;
    if (!ranges.empty() && ranges.back().end == tablet.range.start)
      ranges.back().end = tablet.range.end;
    else
      ranges.push_back(tablet.range);
  }
  const uint64_t erased_before = metrics_.keys_erased.value();
  for (size_t i = 0; i < ranges.size(); ++i) {
    storage::SweepPlace place;
    bool all = false;
    while (!all) {
      // No tablet of the range has become the store's own: nothing of it is being taken.
      const TableInfo* now = meta_.snapshot()->table(work.incarnation);
      if (now == nullptr) co_return true;
      if (now != table) {
        for (const Tablet& tablet : now->tablets.tablets()) {
          const bool overlaps =
              tablet.range.start < ranges[i].end && ranges[i].start < tablet.range.end;
          if (overlaps && holds(tablet, work.store)) co_return false;
        }
      }
      Result<bool> page = co_await erase_page(work.incarnation, ranges[i], work.store, &place);
      if (!page) co_return page.error().code == ErrorCode::kStaleSchema;
      all = *page;
      if (!all) co_await base::sleep_for(reactor_, kPauseUs);
    }
  }
  const uint64_t erased = metrics_.keys_erased.value() - erased_before;
  if (erased != 0)
    logger_.info("erased what is not this store's own table={}.{} store={} keys={}",
                 table->keyspace, table->name, work.store, erased);
  co_return true;
}

}  // namespace tetrad::replication
