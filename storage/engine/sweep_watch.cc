// SPDX-License-Identifier: Apache-2.0
// What sweeps have to know of writes, in bounded memory: hashes of keys (beyond kKeysMax every key
// counts as written) and the oldest timestamp by bucket. Errors are on the safe side: a key that
// was not written may seem to be, never the other way round.
#include "storage/engine/sweep_watch.h"

#include <algorithm>

#include "base/assert.h"
#include "base/hash.h"

namespace tetrad::storage {

SweepWatches::Id SweepWatches::open(int64_t below_us) {
  // The oldest is given up: its sweep finds it gone and takes its partition for disturbed.
  if (watches_.size() >= kWatchesMax) watches_.erase(watches_.begin());
  TETRAD_ASSERT(watches_.size() < kWatchesMax);
  watches_[next_].below_us = below_us;
  return next_++;
}

bool SweepWatches::begin_page(Id id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return false;
  Watch& watch = found->second;
  // Keys are noted for one page; the timestamps by bucket stay as long as the partition is swept.
  watch.keys.clear();
  watch.sorted = true;
  watch.all_keys = watch.page_void = false;
  return true;
}

void SweepWatches::note(uint16_t bucket, int64_t oldest_us) {
  for (auto& [id, watch] : watches_) {
    // No deletion that this sweep may take away hides it.
    if (oldest_us >= watch.below_us) continue;
    const auto [noted, is_new] = watch.oldest_us.try_emplace(bucket, oldest_us);
    noted->second = std::min(noted->second, oldest_us);
  }
}

void SweepWatches::note_key(BytesView key) {
  const uint64_t hash = base::xxh3_64(key);
  for (auto& [id, watch] : watches_) {
    if (watch.all_keys) continue;
    watch.sorted = false;
    watch.keys.push_back(hash);
    TETRAD_ASSERT(watch.keys.size() <= kKeysMax);
    if (watch.keys.size() < kKeysMax) continue;
    // From here on every key counts as written.
    watch.all_keys = true;
    watch.keys = {};
  }
}

void SweepWatches::note_covers_gone(Id by) {
  for (auto& [id, watch] : watches_)
    // Their pages were read with deletions that are gone now.
    if (id != by) watch.page_void = true;
}

bool SweepWatches::wrote(Id id, BytesView key) {
  const auto found = watches_.find(id);
  if (found == watches_.end() || found->second.all_keys) return true;
  Watch& watch = found->second;
  if (!watch.sorted) std::ranges::sort(watch.keys);
  watch.sorted = true;
  return std::ranges::binary_search(watch.keys, base::xxh3_64(key));
}

bool SweepWatches::wrote_hidden(Id id, uint16_t bucket, int64_t deleted_us) const {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return true;
  TETRAD_ASSERT(deleted_us < found->second.below_us);  // else the watch has not looked
  const auto oldest = found->second.oldest_us.find(bucket);
  return oldest != found->second.oldest_us.end() && oldest->second <= deleted_us;
}

bool SweepWatches::is_void(Id id) const {
  const auto found = watches_.find(id);
  return found == watches_.end() || found->second.page_void;
}

}  // namespace tetrad::storage
