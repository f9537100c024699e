// SPDX-License-Identifier: Apache-2.0
// Indexes and views of the model store: how they are known, built, read by and swept.
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/hash.h"
#include "storage/engine/map_view.h"
#include "storage/engine/memory_store_impl.h"
#include "storage/engine/table_marks.h"
#include "storage/index/nearest_reader.h"

namespace tetrad::storage {

void MemoryStore::set_indexes(TableIncarnation incarnation, ClaimMakerPtr maker) {
  if (closed_ || is_retired(incarnation)) return;
  commit();
  std::vector<MemoryArea::Operation> batch;
  // Indexes that are not in the schema any more: their claims go with what is known of them.
  for (Bytes& key : indexes_.set(incarnation, std::move(maker))) {
    erase_claims(claims_of_index_key(key), batch);
    batch.emplace_back(std::move(key), std::nullopt);
  }
  if (!batch.empty()) area_.write(std::move(batch));
  arm_sync();
}

void MemoryStore::set_views(TableIncarnation base, ViewMakersPtr makers, TableIncarnation next) {
  if (closed_ || is_retired(base)) return;
  commit();
  std::vector<MemoryArea::Operation> batch;
  StoreViews::Changed changed = views_.set(base, std::move(makers), next);
  if (changed.none_left) erase_claims(view_tasks_of_table(base), batch);
  for (auto& [key, value] : changed.puts) batch.emplace_back(std::move(key), std::move(value));
  for (Bytes& key : changed.erased) batch.emplace_back(std::move(key), std::nullopt);
  if (!batch.empty()) area_.write(std::move(batch));
  arm_sync();
}

bool MemoryStore::is_built(TableIncarnation incarnation, uint16_t index_id) {
  const TableIndexes* table = indexes_.find(incarnation);
  return table != nullptr && table->knows(index_id) && table->is_built(index_id);
}

void MemoryStore::build_index(TableIncarnation incarnation, uint16_t index_id, uint64_t bytes_max,
                              std::move_only_function<void(Result<IndexBuildPage>)> done) {
  if (is_retired(incarnation)) return done(retired_error(incarnation));
  // Read in one event, written in a later one, as RocksStore's.
  later([this, incarnation, index_id, bytes_max, done = std::move(done)]() mutable {
    if (!TETRAD_MUTANT(build_without_barrier)) commit();
    const TableIndexes* table = indexes_.find(incarnation);
    if (table == nullptr || !table->knows(index_id))
      return done(fail(ErrorCode::kNotFound, "no index {} is known", index_id));
    const auto build = table->builds.find(index_id);
    const Bytes after = build == table->builds.end() ? Bytes() : build->second.after;
    if (build != table->builds.end() && build->second.built) {
      IndexBuildPage page;
      page.built = true;
      return done(page);
    }
    MapView rows(area_.data);
    auto built = std::make_shared<Result<BuiltClaims>>(
        claims_of_rows(rows, incarnation, *table->maker, index_id, after, bytes_max));
    later([this, incarnation, index_id, after, built, done = std::move(done)]() mutable {
      if (!*built) return done(std::unexpected((*built).error()));
      done(write_built(incarnation, index_id, after, **built));
    });
  });
}

void MemoryStore::sweep_claims(ClaimSweepCommand command, Bytes after,
                               std::move_only_function<void(Result<ClaimSweepPage>)> done) {
  if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
  later([this, command = std::move(command), after = std::move(after),
         done = std::move(done)]() mutable {
    commit();
    const TableIndexes* table = indexes_.find(command.incarnation);
    if (table == nullptr || !table->knows(command.index_id))
      return done(fail(ErrorCode::kNotFound, "the index is gone"));
    // A claim of a bucket that is written after this is not dropped (drop_disproved).
    const uint64_t seen = write_number_;
    const int64_t now_s = TETRAD_MUTANT(claim_expires_by_clock)
                              ? reactor_.wall_time_us() / 1'000'000
                              : kBeforeAllTime_s;
    MapView rows(area_.data);
    auto checked = std::make_shared<Result<CheckedClaims>>(
        check_claims(rows, rows, *table->maker, command, after, now_s));
    later([this, checked, seen, command = std::move(command), done = std::move(done)]() mutable {
      if (!*checked) return done(std::unexpected((*checked).error()));
      done(drop_disproved(command, std::move(**checked), seen));
    });
  });
}

void MemoryStore::ViewSide::read(base::Deadline, std::function<Result<void>(KeyView&)> work,
                                 std::move_only_function<void(Result<void>)> done) {
  if (store_.closed_) return done(fail(ErrorCode::kCancelled, "the store is closed"));
  MapView view(store_.area_.data);
  const auto read = std::make_shared<Result<void>>(work(view));
  // The answer comes in a later event, as from a reader's thread.
  store_.later([read, done = std::move(done)]() mutable { done(std::move(*read)); });
}

void MemoryStore::ViewSide::write(const ViewRecords& puts, const std::vector<Bytes>& erased,
                                  std::move_only_function<void(Result<void>)> done) {
  if (store_.closed_) return done(fail(ErrorCode::kCancelled, "the store is closed"));
  store_.commit();
  std::vector<MemoryArea::Operation> batch;
  for (const auto& [key, value] : puts) batch.emplace_back(key, value);
  for (const Bytes& key : erased) batch.emplace_back(key, std::nullopt);
  if (!batch.empty()) store_.area_.write(std::move(batch));
  store_.arm_sync();
  done({});
}

void MemoryStore::ViewSide::sync(std::move_only_function<void(Result<void>)> done) {
  store_.sync(std::move(done));
}

void MemoryStore::ViewSide::when_written(base::Callback then) {
  store_.commit();
  then();
}

uint64_t MemoryStore::ViewSide::last_number(uint16_t bucket) const {
  const auto last = store_.last_number_.find(bucket);
  return last == store_.last_number_.end() ? 0 : last->second;
}

void MemoryStore::erase_claims(BytesView prefix, std::vector<MemoryArea::Operation>& batch) {
  for (auto it = area_.data.lower_bound(prefix);
       it != area_.data.end() && it->first.starts_with(prefix); ++it)
    batch.emplace_back(it->first, std::nullopt);
}

Result<ReadResult> MemoryStore::read_narrowed(const ReadCommand& command) {
  const uint16_t index_id = command.by_index->index_id;
  const TableIndexes* table = indexes_.find(command.incarnation);
  if (table == nullptr || !table->knows(index_id) ||
      (!table->is_built(index_id) && !TETRAD_MUTANT(unbuilt_answers)))
    return fail(ErrorCode::kIndexNotBuilt, "the index is not built here yet");
  MapView rows(area_.data);
  IndexReadLimits limits;
  limits.places_max = std::min(limits.places_max, options_.read_keys_max);
  limits.keys_max = options_.read_keys_max;
  const auto contents_of = [](const ReadCommand&) { return TableContents{}; };
  return read_by_index({rows, *table->maker, contents_of}, command, limits);
}

Result<ReadResult> MemoryStore::read_nearest(ReadCommand command) {
  MapView rows(area_.data);
  NearestScan scan(std::move(command));
  // RocksStore reads a page at a time here, to give other reads a turn.
  while (!scan.is_done)
    TETRAD_TRY_VOID(scan_nearest(rows, TableContents{}, options_.read_keys_max, scan));
  return scan.places.take(true);
}

Result<IndexBuildPage> MemoryStore::write_built(TableIncarnation incarnation, uint16_t index_id,
                                                const Bytes& after, BuiltClaims& built) {
  if (closed_) return fail(ErrorCode::kCancelled, "the store is closed");
  commit();
  TableIndexes* table = indexes_.find(incarnation);
  if (is_retired(incarnation) || table == nullptr || !table->knows(index_id))
    return fail(ErrorCode::kNotFound, "the index is gone");
  IndexBuild& build = table->builds[index_id];
  // Another page of the same build was written meanwhile, or it was forgotten.
  if (build.after != after) return fail(ErrorCode::kConflict, "the build has begun anew");
  build = {built.exhausted, built.next};
  IndexBuildPage page;
  page.built = built.exhausted;
  page.claims = built.claims.size();
  page.position = built.position;
  std::vector<MemoryArea::Operation> batch;
  for (auto& [key, value] : built.claims) batch.emplace_back(std::move(key), std::move(value));
  batch.emplace_back(index_key(incarnation, index_id), index_value(build));
  area_.write(std::move(batch));
  arm_sync();
  return page;
}

Result<ClaimSweepPage> MemoryStore::drop_disproved(const ClaimSweepCommand& command,
                                                   CheckedClaims checked, uint64_t seen) {
  if (closed_) return fail(ErrorCode::kCancelled, "the store is closed");
  commit();
  std::vector<MemoryArea::Operation> batch;
  for (DisprovedClaim& claim : checked.disproved) {
    const uint64_t number = last_number_[bucket_of(command.incarnation, claim.position)];
    if (number > seen && !TETRAD_MUTANT(claim_gone_unwatched)) continue;
    if (command.may_drop && !command.may_drop(claim.position, base::xxh3_64(claim.key), number))
      continue;
    batch.emplace_back(std::move(claim.key), std::nullopt);
  }
  checked.page.dropped = batch.size();
  if (!batch.empty()) {
    area_.write(std::move(batch));
    arm_sync();
  }
  return std::move(checked.page);
}

}  // namespace tetrad::storage
