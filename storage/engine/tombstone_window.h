// SPDX-License-Identifier: Apache-2.0
// The range tombstones that a read of one partition needs, found when its rows are: a read of one
// row, or of the first few, does not pay for all others that its partition has.
//
// Tombstones of all keys with one prefix p are stored at p, so those over a key k are at prefixes
// of k: a few steps backwards from k meet them, each of which cuts k to what it has in common with
// the place that was met. Other ranges are stored apart, by how many bytes their two ends have in
// common: of each such length those over k begin at or behind as many bytes of k. See
// row/range_tombstones.h.
#pragma once

#include <memory>
#include <vector>

#include "storage/engine/partition_reader.h"
#include "storage/row/range_tombstones.h"

namespace tetrad::storage {

/// Of one partition in one read, on that read's thread. steps() are exact over the keys from
/// known_from_ to before known_to_; nothing is said of others.
class TombstoneWindow {
 public:
  /// `prefix` of the partition's keys and `view` outlive it. `partition`: what that hides is left
  /// out. `whole`: what is over no row counts too, as in an answer that is to be merged.
  TombstoneWindow(KeyView& view, BytesView prefix, const TableContents& contents,
                  const Deletion& partition, bool whole);

  /// A slice begins. Keys come in the order of the read from now on.
  void begin(BytesView start, BytesView end, bool reversed);
  /// The deletion over a key of the slice; absent if none.
  Result<Deletion> at(BytesView key);
  /// All of the slice is to be known.
  Result<void> finish();

  /// Of what is known.
  const TombstoneSteps& steps() const { return steps_; }
  uint64_t keys_read() const { return keys_read_; }
  /// Deleted ranges over what was asked for; one that reaches into several slices counts in each.
  uint64_t ranges_met() const { return ranges_met_; }

 private:
  static constexpr int kSingly = 4;  // rows of a slice that are looked up one by one
  static constexpr uint64_t kAtOnceFirst = 64, kAtOnceMost = 8192, kAll = UINT64_MAX;

  /// Tombstones of [start, end), or of the part that at most `keys_max` keys show; returns where
  /// that part ends.
  Result<Bytes> load(BytesView start, BytesView end, uint64_t keys_max);
  Result<void> load_prefixes_of(BytesView key);
  Result<Bytes> load_forward(BytesView start, BytesView end, uint64_t keys_max);
  Result<void> load_straddling(BytesView start, BytesView end);
  Result<void> take(BytesView start, BytesView set, BytesView wanted_from);
  KeyIterator& plain();
  KeyIterator& straddling();
  BytesView key_of(BytesView place);

  KeyView& view_;
  const BytesView prefix_;
  const TableContents contents_;
  const Deletion partition_;
  const bool whole_;

  Bytes slice_start_, slice_end_;
  bool reversed_ = false;
  int looked_up_ = 0;
  uint64_t at_once_ = kAtOnceFirst;
  Bytes known_from_, known_to_;  // of the slice
  std::unique_ptr<KeyIterator> plain_, straddling_;
  base::Arena arena_;
  std::vector<RangeTombstoneView> tombstones_;
  TombstoneSteps steps_;
  bool has_more_ = false;  // tombstones than steps_
  uint64_t keys_read_ = 0, ranges_met_ = 0;
  Bytes key_, place_;              // scratch
  std::vector<TombstoneEnd> set_;  // scratch
};

}  // namespace tetrad::storage
