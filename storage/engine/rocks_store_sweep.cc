// SPDX-License-Identifier: Apache-2.0
// The steps of a sweep's page in a RocksStore; what goes is decided in sweep.cc.
//
//   1. The watch begins: from now on it notes what is written.
//   2. When all that was written before is in RocksDB, a maintenance thread reads the page over a
//      snapshot. If deletions of other keys are to go, the log is synced: what they hid went in
//      earlier pages.
//   3. On the loop, when nothing is on its way to RocksDB: keys that were written since are looked
//      at again, as they are now. Those that would take a file's reading are read into memory first
//      (kSweepTries times at most, then they stay as they are).
//   4. What is left goes into this turn's batch. If an earlier write of the batch is given up, so
//      is
//
// Threads: 1, 3 and 4 run on the loop, the reading of 2 on a maintenance thread. Rule 17 is the
// reason for the order, and rule 18 for the bound in the command.
//      the page, and the same page is asked for again.
#include "storage/engine/rocks_store.h"

namespace tetrad::storage {
namespace {

constexpr int kSweepTries = 3;  // to have in memory what was written since a page was read

/// Partition or range tombstones go. What they hid went in earlier pages, whose writes must be safe
/// from a power cut before: a log that loses its middle would show it again.
bool drops_cover(const Swept& swept) {
  return std::any_of(swept.changes.begin(), swept.changes.end(), [](const SweptKey& change) {
    const auto place = decode_storage_key(change.key);
    return place && (place->kind == KeyKind::kHeader || place->kind == KeyKind::kRangeTombstone);
  });
}

}  // namespace

void RocksStore::sweep(SweepCommand command, SweepPlace from,
                       std::move_only_function<void(Result<SweepPage>)> done) {
  if (const auto why = unusable()) return done(std::unexpected(*why));
  if (is_retired(command.incarnation)) return done(retired_error(command.incarnation));
  SweepWatches& watches = turn_.watches();
  // A page inside a partition needs the watch of the page before: what was written since that one
  // began counts, too.
  const bool is_watched = from.inside && watches.begin_page(from.watch);
  if (!is_watched) {
    from.watch = watches.open(watched_below_us(command.bound));
    // Without it nobody knows whether a row of earlier pages came back: covers stay.
    from.undisturbed = false;  // of a partition that it is inside of
  }
  const auto job = std::make_shared<SweepJob>(
      SweepJob{std::move(command), from.watch, is_watched, {}, 0, std::move(done)});
  // What the page does not see is written after this: the watch sees it.
  turn_.when_written([this, alive = alive_, job, from = std::move(from)]() mutable {
    if (!*alive || unusable()) return job->done(closed_error());
    read_page(job, std::move(from));
  });
}

void RocksStore::read_page(const SweepJobPtr& job, SweepPlace from) {
  in_maintenance<Swept>(
      0,
      [snapshot = std::make_shared<HeldSnapshot>(state_.database), job, from = std::move(from)] {
        RocksView view(snapshot->database().db(),
                       {.snapshot = snapshot->get(), .fill_cache = false});
        auto swept = sweep_page(view, job->command, from);
        // Before the page is written: the rows that they hid must not come back by a power cut.
        if (swept && drops_cover(*swept)) {
          const rocksdb::Status synced = snapshot->database().sync_log();
          if (!synced.ok()) return Result<Swept>(std::unexpected(error_of(synced, "syncing")));
        }
        return swept;
      },
      [this, alive = alive_, job](Result<Swept> swept) {
        if (!*alive || unusable()) return job->done(closed_error());
        // A sync that failed is the store's end, whoever asked for it.
        if (!swept) {
          if (state_.database->watch().failed_sync())
            health_.take(rocksdb::Status::IOError("a sync failed"), "sweeping");
          return end_sweep(job, swept.error());
        }
        job->swept = std::move(*swept);
        write_swept(job);
      });
}

void RocksStore::end_sweep(const SweepJobPtr& job, Error error) {
  turn_.watches().close(job->watch);
  job->done(std::unexpected(std::move(error)));
}

void RocksStore::write_swept(const SweepJobPtr& job) {
  // Nothing is on its way to RocksDB: its values and this turn's batch are all there is.
  turn_.when_settled([this, alive = alive_, job] {
    if (!*alive || unusable()) return job->done(closed_error());
    if (is_retired(job->command.incarnation))
      return end_sweep(job, retired_error(job->command.incarnation).error());
    if (turn_.failure() != nullptr) return end_sweep(job, *turn_.failure());
    // The page is lost; the same one is read again.
    if (turn_.full())
      return put_off(job, Error(ErrorCode::kOverloaded, "too many writes wait for the disk"));
    settle_swept(job);
  });
}

void RocksStore::put_off(const SweepJobPtr& job, Error overloaded) {
  // Inside a partition the watch stays open, so the page may be asked for again.
  if (!job->goes_on) return end_sweep(job, std::move(overloaded));
  job->done(std::unexpected(std::move(overloaded)));
}

void RocksStore::settle_swept(const SweepJobPtr& job) {
  SweepWatches& watches = turn_.watches();
  const bool last_try = ++job->tries == kSweepTries;
  const auto read_now = [this](ValuesNow& values) { return read_values_now(values); };
  const auto cold = settle_page(job->swept, job->command, watches, job->watch, read_now, last_try);
  if (!cold) return end_sweep(job, cold.error());
  if (!cold->empty()) return warm_up(job, *cold);
  // Other sweeps that have read with these covers must not write their pages (sweep.cc, step 8).
  const bool uncovers = std::ranges::any_of(job->swept.changes, [](const SweptKey& change) {
    return change.uncovers_us != kNoTimestamp;
  });
  if (uncovers) watches.note_covers_gone(job->watch);
  SweepPage& page = job->swept.page;
  const bool goes_on = page.next.inside && !page.exhausted;
  // The next page begins a partition: it opens a watch of its own.
  if (!goes_on) watches.close(job->watch);
  page.next.watch = goes_on ? job->watch : 0;
  if (job->swept.changes.empty()) return job->done(std::move(page));
  const auto done = [this, alive = alive_, job](Result<void> written) {
    if (!*alive || unusable()) return job->done(closed_error());
    if (written) return job->done(std::move(job->swept.page));
    if (written.error().code == ErrorCode::kOverloaded) return put_off(job, written.error());
    end_sweep(job, written.error());
  };
  turn_.replace(job->swept.changes, done);
}

// On the loop, from memory only: a key that would need a file stays unset.
Result<void> RocksStore::read_values_now(ValuesNow& values) {
  RocksView view(db(), {.memory_only = true});
  for (auto& [key, value] : values) {
    const auto stored = view.get(key);
    if (view.take_gave_up()) continue;
    if (!stored) return std::unexpected(stored.error());
    value.emplace();
    if (*stored) value->emplace(**stored);
  }
  turn_.add_pending(values);
  return {};
}

// Reads them into the block cache, on a thread that may wait for the disk.
void RocksStore::warm_up(const SweepJobPtr& job, std::vector<Bytes> keys) {
  in_maintenance<void>(
      0,
      [database = state_.database, keys = std::move(keys)]() -> Result<void> {
        RocksView view(database->db(), {});
        for (const Bytes& key : keys) TETRAD_TRY_VOID(view.get(key));
        return {};
      },
      [this, alive = alive_, job](const Result<void>& read) {
        if (!*alive || unusable()) return job->done(closed_error());
        if (!read) return end_sweep(job, read.error());
        write_swept(job);
      });
}

}  // namespace tetrad::storage
