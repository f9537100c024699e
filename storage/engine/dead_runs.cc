// SPDX-License-Identifier: Apache-2.0
// Runs of dead rows. A run is exact when it is reported, of what its read saw. Rows that may live
// and were written since are kept with their numbers, so that a run of an older read is cut by them
// before it is kept; a run whose read is older than the kept rows reach is not kept at all.
#include "storage/engine/dead_runs.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::storage {

const DeadRun* dead_run_at(const DeadRunList& runs, BytesView key, int64_t now_s) {
  for (const DeadRun& run : runs)
    if (run.start <= key && key < run.end && run.now_s <= now_s) return &run;
  return nullptr;
}

const DeadRunList* DeadRuns::find(BytesView prefix) const {
  const auto found = by_prefix_.find(prefix);
  return found == by_prefix_.end() || found->second->runs.empty() ? nullptr : &found->second->runs;
}

// Notes are kept from now on only: a run of a read that began earlier could miss a write.
void DeadRuns::watch(uint16_t bucket, BytesView prefix, uint64_t newest) {
  if (const auto found = by_prefix_.find(prefix); found != by_prefix_.end()) {
    // The list is in order of use; the last is forgotten when there is no room.
    partitions_.splice(partitions_.begin(), partitions_, found->second);
    return;
  }
  if (partitions_.size() >= kPartitionsMax) {
    const uint16_t bucket_of_last = partitions_.back().bucket;
    TETRAD_ASSERT(by_prefix_.contains(partitions_.back().prefix));
    by_prefix_.erase(partitions_.back().prefix);
    partitions_.pop_back();
    // A bit stands for several partitions of a bucket.
    if (std::ranges::find(partitions_, bucket_of_last, &Partition::bucket) == partitions_.end())
      buckets_.reset(bucket_of_last);
  }
  Partition& partition = partitions_.emplace_front();
  partition.prefix.assign(prefix);
  partition.bucket = bucket;
  partition.rows_after = newest;
  by_prefix_.emplace(partition.prefix, partitions_.begin());
  buckets_.set(bucket);
  TETRAD_ASSERT(by_prefix_.size() == partitions_.size());
}

void DeadRuns::keep(BytesView prefix, DeadRun run, uint64_t seen) {
  TETRAD_ASSERT(run.start < run.end);
  const auto found = by_prefix_.find(prefix);
  if (found == by_prefix_.end()) return;
  Partition& partition = *found->second;
  // A row that is forgotten might have lived inside the run.
  if (partition.rows_after > seen) return;
  if (run.start.size() > kKeyBytesMax || run.end.size() > kKeyBytesMax) return;
  DeadRunList parts{std::move(run)};
  for (const auto& [number, row] : partition.rows)
    // Written after the read: the run is not dead there any more.
    if (number > seen) cut(parts, row);
  for (DeadRun& part : parts) join(partition.runs, std::move(part));
}

void DeadRuns::note(BytesView prefix, BytesView clustering_key, uint64_t number) {
  const auto found = by_prefix_.find(prefix);
  if (found == by_prefix_.end() || TETRAD_MUTANT(dead_run_kept)) return;
  Partition& partition = *found->second;
  TETRAD_ASSERT(partition.rows.empty() || partition.rows.back().first <= number);
  cut(partition.runs, clustering_key);
  partition.rows.emplace_back(number, clustering_key);
  // A forgotten row raises rows_after: older reads can add no runs any more. So does a key that is
  // too long to keep, with all before it.
  while (partition.rows.size() > kRowsMax || clustering_key.size() > kKeyBytesMax) {
    partition.rows_after = partition.rows.front().first;
    partition.rows.pop_front();
    if (partition.rows.empty()) break;
  }
}

void DeadRuns::cut(DeadRunList& runs, BytesView key) {
  for (size_t i = 0; i < runs.size(); ++i) {
    DeadRun& run = runs[i];
    if (key < run.start || run.end <= key) continue;
    DeadRun behind{Bytes(key) + '\0', std::move(run.end), run.now_s};
    TETRAD_ASSERT(run.start <= key);
    run.end.assign(key);
    const bool is_empty = run.start >= run.end;
    // Cut at its first key: only what is behind stays.
    if (is_empty) runs.erase(runs.begin() + static_cast<ptrdiff_t>(i));
    if (behind.start < behind.end)
      runs.insert(runs.begin() + static_cast<ptrdiff_t>(is_empty ? i : i + 1), std::move(behind));
    break;
  }
  if (runs.size() > kRunsMax) runs.pop_back();
}

// The later time of the two: before it one of them may still have had a live row.
void DeadRuns::join(DeadRunList& runs, DeadRun run) {
  std::erase_if(runs, [&](DeadRun& other) {
    // Runs that touch are joined, too: the reader steps over both at once.
    if (other.end < run.start || run.end < other.start) return false;
    run.start = std::min(run.start, other.start);
    run.end = std::max(run.end, other.end);
    run.now_s = std::max(run.now_s, other.now_s);
    return true;
  });
  TETRAD_ASSERT(run.start < run.end);
  const auto place = std::ranges::lower_bound(runs, run.start, {}, &DeadRun::start);
  runs.insert(place, std::move(run));
  if (runs.size() > kRunsMax) runs.pop_back();
}

}  // namespace tetrad::storage
