// SPDX-License-Identifier: Apache-2.0
// Indexes of a RocksStore: what it knows of them, reads that they narrow, builds, and the sweep of
// claims. The algorithms are in storage/index.
#include "base/hash.h"
#include "storage/engine/rocks_store.h"
#include "storage/index/index_reader.h"

namespace tetrad::storage {
namespace {

/// Of rows and claims together, of a read on the loop.
constexpr uint64_t kStepsHereMax = 1'000;

}  // namespace

void RocksStore::set_indexes(TableIncarnation incarnation, ClaimMakerPtr maker) {
  if (closed_ || is_retired(incarnation)) return;
  if (maker != nullptr && maker->next_index_id() > 1)
    // Compactions drop claims of indexes that are not in this list. Without an index id ever given
    // there are no claims to drop.
    state_.filter->set_indexes(incarnation, maker);
  std::vector<Bytes> gone = state_.indexes.set(incarnation, std::move(maker));
  state_.tables.set_indexes(incarnation, state_.indexes.find(incarnation));
  for (const Bytes& key : gone) delete_claims_of(key);
  // What was noted of a dropped index: how far it was built.
  turn_.erase_own(gone);
}

bool RocksStore::is_built(TableIncarnation incarnation, uint16_t index_id) {
  const TableIndexes* table = state_.indexes.find(incarnation);
  return table != nullptr && table->knows(index_id) && table->is_built(index_id);
}

std::optional<Error> RocksStore::lacks_index(const ReadCommand& command) {
  const uint16_t index_id = command.by_index->index_id;
  const TableIndexes* table = state_.indexes.find(command.incarnation);
  const bool knows = table != nullptr && table->knows(index_id);
  if (knows && (table->is_built(index_id) || TETRAD_MUTANT(unbuilt_answers))) return std::nullopt;
  return Error(ErrorCode::kIndexNotBuilt, "the index is not built here yet");
}

// As read(): on the loop from memory if that takes few steps, else by a reader over a snapshot.
void RocksStore::read_narrowed(ReadCommand command, base::Deadline deadline, ReadCallback done) {
  if (auto why = lacks_index(command)) return done(std::unexpected(std::move(*why)));
  const ClaimMakerPtr maker = state_.indexes.find(command.incarnation)->maker;
  // A claim and its row are two look-ups: they must be of one moment.
  const bool fixed = options_.sync == CommitLogSync::kGroup || turn_.writes_elsewhere();
  std::shared_ptr<HeldSnapshot> snapshot;
  if (fixed) snapshot = std::make_shared<HeldSnapshot>(state_.database);
  const IndexReadLimits limits{.places_max = std::min<uint64_t>(1000, options_.read_keys_max),
                               .keys_max = options_.read_keys_max};
  {
    RocksView view(db(), {.snapshot = fixed ? snapshot->get() : nullptr,
                          .memory_only = true,
                          .steps_max = kStepsHereMax,
                          .bytes_per_step = kBytesPerLookedStep,
                          .block_hits = &block_reads_.hits});
    const auto contents_here = [this](const ReadCommand& part) { return contents_of(part); };
    auto result = storage::read_by_index({view, *maker, contents_here}, command, limits);
    if (!view.gave_up()) {
      if (!result) heed(result.error());
      return done(std::move(result));
    }
  }
  if (snapshot == nullptr) snapshot = std::make_shared<HeldSnapshot>(state_.database);
  TableContents contents;  // what partitions have is known on the loop only
  contents.scattered_tombstones = true;
  in_readers<ReadResult>(
      deadline,
      [snapshot = std::move(snapshot), maker, command = std::move(command), limits, contents] {
        RocksView view(snapshot->database().db(), {.snapshot = snapshot->get()});
        const auto contents_of = [contents](const ReadCommand&) { return contents; };
        auto found = storage::read_by_index({view, *maker, contents_of}, command, limits);
        if (found) withhold_if_larger(*found, command.bytes_max);
        return found;
      },
      [this, alive = alive_, done = std::move(done)](Result<ReadResult> from_files) mutable {
        if (*alive && !from_files) heed(from_files.error());
        done(std::move(from_files));
      });
}

void RocksStore::build_index(TableIncarnation incarnation, uint16_t index_id, uint64_t bytes_max,
                             std::move_only_function<void(Result<IndexBuildPage>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  if (is_retired(incarnation)) return done(retired_error(incarnation));
  const TableIndexes* table = state_.indexes.find(incarnation);
  if (table == nullptr || !table->knows(index_id))
    return done(fail(ErrorCode::kNotFound, "no index {} is known", index_id));
  if (table->is_built(index_id)) {
    IndexBuildPage page;
    page.built = true;
    return done(page);
  }
  base::Callback read = [this, alive = alive_, incarnation, index_id, bytes_max,
                         done = std::move(done)]() mutable {
    if (!*alive || unusable()) return done(closed_error());
    read_build_page(incarnation, index_id, bytes_max, std::move(done));
  };
  if (TETRAD_MUTANT(build_without_barrier)) return read();
  // Behind all writes that were taken before the store knew of the index: their claims are not made
  // by the write.
  turn_.when_written(std::move(read));
}

void RocksStore::read_build_page(TableIncarnation incarnation, uint16_t index_id,
                                 uint64_t bytes_max,
                                 std::move_only_function<void(Result<IndexBuildPage>)> done) {
  const TableIndexes* table = state_.indexes.find(incarnation);
  if (is_retired(incarnation) || table == nullptr || !table->knows(index_id))
    return done(fail(ErrorCode::kNotFound, "the index is gone"));
  Bytes after;
  if (const auto build = table->builds.find(index_id); build != table->builds.end())
    after = build->second.after;
  in_maintenance<BuiltClaims>(
      0,
      [snapshot = std::make_shared<HeldSnapshot>(state_.database), maker = table->maker,
       incarnation, index_id, after, bytes_max] {
        RocksView rows(snapshot->database().db(),
                       {.snapshot = snapshot->get(), .fill_cache = false});
        return claims_of_rows(rows, incarnation, *maker, index_id, after, bytes_max);
      },
      [this, alive = alive_, incarnation, index_id, after,
       done = std::move(done)](Result<BuiltClaims> built) mutable {
        if (!*alive || unusable()) return done(closed_error());
        if (!built) {
          heed(built.error());
          return done(std::unexpected(std::move(built.error())));
        }
        write_build_page(incarnation, index_id, std::move(after), std::move(*built),
                         std::move(done));
      });
}

// The store may have heard of another schema, or have forgotten what was built, while it was read.
void RocksStore::write_build_page(TableIncarnation incarnation, uint16_t index_id, Bytes after,
                                  BuiltClaims built,
                                  std::move_only_function<void(Result<IndexBuildPage>)> done) {
  TableIndexes* table = state_.indexes.find(incarnation);
  if (is_retired(incarnation) || table == nullptr || !table->knows(index_id))
    return done(fail(ErrorCode::kNotFound, "the index is gone"));
  const auto build = table->builds.find(index_id);
  if ((build == table->builds.end() ? Bytes() : build->second.after) != after)
    return done(fail(ErrorCode::kConflict, "the build has begun anew"));
  IndexBuildPage page;
  page.claims = built.claims.size();
  page.position = built.position;
  // The place is kept in memory now and on disk with the page's claims, in one batch.
  const IndexBuild now{false, built.next};
  if (!built.exhausted) table->builds[index_id] = now;
  auto written = [this, alive = alive_, incarnation, index_id, page, exhausted = built.exhausted,
                  done = std::move(done)](Result<void> result) mutable {
    if (!result) return done(std::unexpected(std::move(result.error())));
    if (!*alive || unusable()) return done(closed_error());
    if (!exhausted) return done(page);
    // "Built" is written after all claims are on the disk: a power cut must not leave it without
    // them.
    turn_.sync([this, alive, incarnation, index_id, page,
                done = std::move(done)](Result<void> synced) mutable {
      if (!synced) return done(std::unexpected(std::move(synced.error())));
      if (!*alive || unusable()) return done(closed_error());
      note_built(incarnation, index_id, page, std::move(done));
    });
  };
  turn_.add_built(built.claims,
                  built.exhausted ? std::nullopt
                                  : std::optional(std::pair(index_key(incarnation, index_id),
                                                            index_value(now))),
                  std::move(written));
}

void RocksStore::note_built(TableIncarnation incarnation, uint16_t index_id, IndexBuildPage page,
                            std::move_only_function<void(Result<IndexBuildPage>)> done) {
  TableIndexes* table = state_.indexes.find(incarnation);
  if (is_retired(incarnation) || table == nullptr || !table->knows(index_id))
    return done(fail(ErrorCode::kNotFound, "the index is gone"));
  const IndexBuild now{true, {}};
  table->builds[index_id] = now;
  page.built = true;
  turn_.add_built({}, std::pair(index_key(incarnation, index_id), index_value(now)),
                  [page, done = std::move(done)](Result<void> result) mutable {
                    if (!result) return done(std::unexpected(std::move(result.error())));
                    done(page);
                  });
}

void RocksStore::sweep_claims(ClaimSweepCommand command, Bytes after,
                              std::move_only_function<void(Result<ClaimSweepPage>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
  turn_.when_written([this, alive = alive_, command = std::move(command), after = std::move(after),
                      done = std::move(done)]() mutable {
    if (!*alive || unusable()) return done(closed_error());
    const TableIndexes* table = state_.indexes.find(command.incarnation);
    if (is_retired(command.incarnation) || table == nullptr || !table->knows(command.index_id))
      return done(fail(ErrorCode::kNotFound, "the index is gone"));
    // Taken with the snapshot: what has a higher number was written after it.
    const uint64_t seen = turn_.written_through();
    const int64_t now_s = TETRAD_MUTANT(claim_expires_by_clock)
                              ? reactor_.wall_time_us() / 1'000'000
                              : kBeforeAllTime_s;
    const auto shared = std::make_shared<ClaimSweepCommand>(std::move(command));
    in_maintenance<CheckedClaims>(
        0,
        [snapshot = std::make_shared<HeldSnapshot>(state_.database), maker = table->maker, shared,
         after = std::move(after), now_s] {
          rocksdb::DB& db = snapshot->database().db();
          RocksView rows(db, {.snapshot = snapshot->get(), .fill_cache = false});
          // Both views are of one snapshot, or a claim could be newer than its row.
          RocksView claims(
              db, {.snapshot = TETRAD_MUTANT(claim_newer_than_row) ? nullptr : snapshot->get(),
                   .fill_cache = false});
          return check_claims(rows, claims, *maker, *shared, after, now_s);
        },
        [this, alive, shared, seen, done = std::move(done)](Result<CheckedClaims> checked) mutable {
          if (!*alive || unusable()) return done(closed_error());
          if (!checked) {
            heed(checked.error());
            return done(std::unexpected(std::move(checked.error())));
          }
          drop_disproved(*shared, std::move(*checked), seen, std::move(done));
        });
  });
}

// What was written to the partition since the snapshot may have brought the value back.
void RocksStore::drop_disproved(const ClaimSweepCommand& command, CheckedClaims checked,
                                uint64_t seen,
                                std::move_only_function<void(Result<ClaimSweepPage>)> done) {
  std::vector<Bytes> gone;
  for (DisprovedClaim& claim : checked.disproved) {
    const uint64_t number = turn_.last_number(bucket_of(command.incarnation, claim.position));
    if (number > seen && !TETRAD_MUTANT(claim_gone_unwatched)) continue;
    if (command.may_drop && !command.may_drop(claim.position, base::xxh3_64(claim.key), number))
      continue;
    gone.push_back(std::move(claim.key));
  }
  checked.page.dropped = gone.size();
  if (gone.empty()) return done(std::move(checked.page));
  turn_.drop_claims(
      gone, [page = std::move(checked.page), done = std::move(done)](Result<void> written) mutable {
        if (!written) return done(std::unexpected(std::move(written.error())));
        done(std::move(page));
      });
}

// Of a dropped index: whole files at once, the rest when it is compacted.
void RocksStore::delete_claims_of(const Bytes& key_of_index) {
  const Bytes prefix = claims_of_index_key(key_of_index);
  delete_claims({prefix, past_prefix(prefix)});
}

void RocksStore::delete_claims(KeyRange keys) {
  if (unusable()) return;
  in_maintenance<void>(
      kCompactionLane + lane_,
      [database = state_.database, keys = std::move(keys)]() -> Result<void> {
        const rocksdb::Slice start(keys.start), end(keys.end);
        const rocksdb::Status status = rocksdb::DeleteFilesInRange(
            &database->db(), database->db().DefaultColumnFamily(), &start, &end, false);
        if (!status.ok()) return std::unexpected(error_of(status, "deleting files of claims"));
        return {};
      },
      [logger = logger_](const Result<void>& deleted) {
        if (!deleted && deleted.error().code != ErrorCode::kCancelled)
          logger.warn("claims_stay error=\"{}\"", deleted.error().message);
      });
}

}  // namespace tetrad::storage
