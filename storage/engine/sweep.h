// SPDX-License-Identifier: Apache-2.0
// The sweep (design, rules 17 and 18): decides off the loop, over a snapshot, what a page of a
// range may drop, then corrects that on the loop for what was written meanwhile. Both engines use
// it.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "storage/engine/partition_reader.h"
#include "storage/engine/store.h"
#include "storage/engine/sweep_watch.h"

namespace tetrad::storage {

/// What a key becomes.
struct SweptKey {
  Bytes key;
  std::optional<Bytes> value;  // unset: it is erased
  /// What hides things in the value beside its own deletions.
  Deletion cover = {};
  /// Set: a deletion of other keys goes, with this timestamp or an older one.
  int64_t uncovers_us = kNoTimestamp;
  int64_t oldest_dead_s = std::numeric_limits<int64_t>::max();  // of what it would lose
};

/// One page as decided over the snapshot, before settle_page().
struct Swept {
  SweepPage page;
  std::vector<SweptKey> changes;  // in the order of keys but for a partition's covers: those last
};

/// `from.undisturbed` false: the partition it is in keeps its partition and range tombstones.
/// Errors: kCorruption, and those of the view.
Result<Swept> sweep_page(KeyView& view, const SweepCommand& command, const SweepPlace& from);

/// All that `bound` takes has an older timestamp.
int64_t watched_below_us(const PurgeBound& bound);

/// Keys and their values, as they are when everything taken so far is written. Outer unset: it
/// would have to be read from a file.
using ValuesNow = std::unordered_map<Bytes, std::optional<std::optional<Bytes>>>;
/// Fills in the values. Errors: those of the store.
using ReadValuesNow = std::move_only_function<Result<void>(ValuesNow&)>;

/// Leaves in `swept` what may be written now. A key that was written since the page was read is
/// looked at again; one that would take a file's reading is returned, and then nothing is changed
/// yet, or stays as it is when `last_try`. A tombstone stays if something that it hides stays.
/// Errors: kCorruption, and those of `read_now`.
Result<std::vector<Bytes>> settle_page(Swept& swept, const SweepCommand& command,
                                       SweepWatches& watches, SweepWatches::Id watch,
                                       ReadValuesNow read_now, bool last_try);

}  // namespace tetrad::storage
