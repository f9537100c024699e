// SPDX-License-Identifier: Apache-2.0
// A read asks for the deletion over each of its rows, in order.
//
//   1. The first few rows of a slice are looked up singly: the places at prefixes of the row's key,
//      from the longest to the shortest, and the ranges that straddle it.
//   2. From then on what is ahead is loaded at once, in growing pieces; backwards the whole rest.
//   3. An answer that is merged needs tombstones over no row, too: what lies between two rows is
//
// Why prefixes: a tombstone of all keys with one prefix lies at that prefix, so what covers a key
// lies at one of its prefixes. Any other straddles two places, and is filed apart by how much its
// ends have in common. Known are the tombstones over [known_from_, known_to_); `whole_` keeps all
// that were loaded, for an answer that is compared.
//      loaded with the second, and finish() loads the rest of the slice.
#include "storage/engine/tombstone_window.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

size_t common_bytes(BytesView a, BytesView b) {
  const auto [in_a, in_b] = std::ranges::mismatch(a, b);
  return static_cast<size_t>(in_a - a.begin());
}

}  // namespace

TombstoneWindow::TombstoneWindow(KeyView& view, BytesView prefix, const TableContents& contents,
                                 const Deletion& partition, bool whole)
    : view_(view), prefix_(prefix), contents_(contents), partition_(partition), whole_(whole) {}

BytesView TombstoneWindow::key_of(BytesView place) {
  key_.assign(prefix_);
  key_.push_back(static_cast<char>(KeyKind::kRangeTombstone));
  key_.append(place);
  return key_;
}

// Iterators are made when first needed: most reads meet no tombstone.
KeyIterator& TombstoneWindow::plain() {
  if (plain_ == nullptr) {
    const Bytes start(key_of({}));
    plain_ = view_.iterate({start, Bytes(key_of(BytesView(&kStraddlingPlace, 1))), true, true});
  }
  return *plain_;
}

KeyIterator& TombstoneWindow::straddling() {
  if (straddling_ == nullptr) {
    const Bytes start(key_of(BytesView(&kStraddlingPlace, 1)));
    Bytes end(prefix_);
    end.push_back(static_cast<char>(KeyKind::kRow));
    straddling_ = view_.iterate({start, std::move(end), true, false});
  }
  return *straddling_;
}

void TombstoneWindow::begin(BytesView start, BytesView end, bool reversed) {
  TETRAD_ASSERT(start < end);
  slice_start_.assign(start);
  slice_end_.assign(end);
  reversed_ = reversed;
  // Empty: nothing is known yet.
  known_from_ = known_to_ = reversed ? slice_end_ : slice_start_;
  looked_up_ = 0;
  if (!whole_) tombstones_.clear();
}

Result<Deletion> TombstoneWindow::at(BytesView key) {
  TETRAD_ASSERT(slice_start_ <= key && key < slice_end_);
  // Rows come in order, so what is known grows at one end.
  const bool known = known_from_ <= key && key < known_to_;
  if (!known) {
    // Tombstones between the last row and this one matter only when tombstones are delivered.
    Bytes from(key), to = Bytes(key) + '\0';
    if (whole_ && !reversed_) from = known_to_;
    if (whole_ && reversed_) to = known_from_;
    uint64_t keys_max = kAll;
    if (++looked_up_ > kSingly) {
      if (reversed_) from = slice_start_;
      if (!reversed_) to = slice_end_;
      if (!reversed_) keys_max = at_once_;
      // A read that goes on is probably a long one.
      at_once_ = std::min(2 * at_once_, kAtOnceMost);
    }
    if (!whole_) tombstones_.clear();
    do {
      TETRAD_TRY(Bytes reached, load(from, to, keys_max));
      if (!whole_) known_from_ = from;
      if (whole_ && reversed_) known_from_ = from;
      if (!whole_ || !reversed_) known_to_ = reached;
      from = std::move(reached);
    } while (key >= known_to_);
  }
  if (has_more_) steps_ = make_steps(tombstones_, partition_);
  has_more_ = false;
  TETRAD_ASSERT(key < known_to_);
  return deletion_at(steps_, key);
}

Result<void> TombstoneWindow::finish() {
  if (!whole_) return {};
  const bool is_known = reversed_ ? known_from_ <= slice_start_ : known_to_ >= slice_end_;
  if (!is_known) {
    const Bytes from = reversed_ ? slice_start_ : known_to_;
    const Bytes to = reversed_ ? known_from_ : slice_end_;
    TETRAD_TRY_VOID(load(from, to, kAll));
    known_from_ = slice_start_;
    known_to_ = slice_end_;
    TETRAD_ASSERT(known_from_ < known_to_);
  }
  if (has_more_) steps_ = make_steps(tombstones_, partition_);
  has_more_ = false;
  return {};
}

Result<Bytes> TombstoneWindow::load(BytesView start, BytesView end, uint64_t keys_max) {
  TETRAD_ASSERT(start <= end);
  Bytes reached(end);
  if (!whole_) has_more_ = true;  // the earlier ones are gone
  if (contents_.range_tombstones) {
    // Those that begin before the slice and reach into it (rule 17).
    if (!TETRAD_MUTANT(reach_forgotten)) TETRAD_TRY_VOID(load_prefixes_of(start));
    TETRAD_TRY(reached, load_forward(start, end, keys_max));
  }
  if (contents_.straddling_tombstones) TETRAD_TRY_VOID(load_straddling(start, reached));
  return reached;
}

Result<void> TombstoneWindow::load_prefixes_of(BytesView key) {
  KeyIterator& it = plain();
  if (contents_.scattered_tombstones) {  // all that begin before it
    for (it.seek(key_of({})); it.valid(); it.next()) {
      const BytesView place = it.key().substr(prefix_.size() + 1);
      if (place >= key) break;
      TETRAD_TRY_VOID(take(place, it.value(), key));
    }
    return it.status();
  }
  // The last place at or before a prefix of the key; then those shorter than what both share.
  size_t bytes = key.size();
  while (true) {
    // The place at or before this prefix.
    place_.assign(key, 0, bytes);
    place_.push_back('\0');
    it.seek_before(key_of(place_));
    TETRAD_TRY_VOID(it.status());
    if (!it.valid()) return {};
    const BytesView place = it.key().substr(prefix_.size() + 1);
    const size_t common = common_bytes(place, key);
    if (common == place.size()) {
      if (place != key) TETRAD_TRY_VOID(take(place, it.value(), key));
      if (common == 0) return {};
      // One shorter than what was a prefix of the key; else what both have in common.
      bytes = common - 1;
    } else {
      TETRAD_ASSERT(common < bytes || common == 0);
      if (bytes == 0) return {};
      bytes = common;
    }
  }
}

Result<Bytes> TombstoneWindow::load_forward(BytesView start, BytesView end, uint64_t keys_max) {
  KeyIterator& it = plain();
  for (it.seek(key_of(start)); it.valid(); it.next()) {
    const BytesView place = it.key().substr(prefix_.size() + 1);
    if (place >= end) break;
    if (keys_max-- == 0) return Bytes(place);
    TETRAD_TRY_VOID(take(place, it.value(), start));
  }
  TETRAD_TRY_VOID(it.status());
  return Bytes(end);
}

// Of each length that both ends have in common, those over `start` begin with as many bytes of it,
// or behind it; what begins before them ends before `start`, so a seek passes over it.
Result<void> TombstoneWindow::load_straddling(BytesView start, BytesView end) {
  KeyIterator& it = straddling();
  Bytes from(2, kStraddlingPlace);
  from[1] = 0;
  it.seek(key_of(from));
  while (it.valid()) {
    const BytesView place = it.key().substr(prefix_.size() + 1);
    if (place.size() < 2) return fail(ErrorCode::kCorruption, "a range tombstone at no place");
    const auto common = static_cast<uint8_t>(place[1]);
    const BytesView at = place.substr(2);
    BytesView first = start.substr(0, common);
    if (TETRAD_MUTANT(reach_forgotten)) first = start;
    // Before anything that could reach: go to the first that may.
    if (at < first) {
      from.assign(place, 0, 2);
      from.append(first);
      it.seek(key_of(from));
    } else if (at >= end) {
      // Nothing more of this length: the next one.
      if (common == 255) break;
      from.assign(1, kStraddlingPlace);
      from.push_back(static_cast<char>(common + 1));
      it.seek(key_of(from));
    } else {
      TETRAD_TRY_VOID(take(at, it.value(), start));
      it.next();
    }
  }
  return it.status();
}

Result<void> TombstoneWindow::take(BytesView start, BytesView set, BytesView wanted_from) {
  ++keys_read_;
  set_.clear();
  TETRAD_TRY_VOID(decode_tombstone_set(set, set_));
  // What ends before the slice, or is hidden by the partition's deletion, would only cost.
  std::erase_if(set_, [&](const TombstoneEnd& e) {
    return e.end <= wanted_from || partition_.hides(e.deletion.timestamp_us);
  });
  if (set_.empty()) return {};
  has_more_ = true;
  TETRAD_ASSERT(start < set_.front().end);
  const BytesView kept = arena_.copy(start);
  for (const TombstoneEnd& e : set_) {
    // Those over what is known already were met with it.
    if (known_from_ == known_to_ || (reversed_ ? e.end <= known_from_ : start >= known_to_))
      ++ranges_met_;
    tombstones_.push_back({kept, arena_.copy(e.end), e.deletion});
  }
  return {};
}

}  // namespace tetrad::storage
