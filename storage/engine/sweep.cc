// SPDX-License-Identifier: Apache-2.0
// One page of a sweep. Rows lose what is hidden, and what of the dead the bound takes. Partition
// and range tombstones hide other keys: they are looked at when all rows of their partition were,
// and go only if nothing was written to the partition since its first row was looked at, so that
// what they hide is gone before them or with them.
#include "storage/engine/sweep.h"

#include <algorithm>

#include "base/data_mutants.h"
#include "storage/row/purge.h"
#include "storage/row/range_tombstones.h"
#include "storage/row/reconcile.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

/// Since when something may have been dropped.
int64_t dead_since_s(int64_t timestamp_us, int64_t deletion_time_s) {
  return std::max(deletion_time_s, timestamp_us / 1'000'000);
}

/// How much there is in a record. Sweeping only takes away.
struct Extent {
  size_t cells;
  bool liveness, deletion;
  explicit Extent(const RowRecord& record)
      : cells(record.cells.size()),
        liveness(record.liveness.present()),
        deletion(record.deletion.present()) {}
  friend bool operator==(const Extent&, const Extent&) = default;
};

class Sweeper {
 public:
  Sweeper(KeyView& view, const SweepCommand& command, const SweepPlace& from)
      : view_(view),
        command_(command),
        from_(from),
        measures_(command.told_beyond.bytes != 0 || command.told_beyond.tombstones != 0),
        extent_(from.extent) {}

  Result<Swept> run() {
    KeyRange keys = keys_of_range(command_.incarnation, command_.range);
    if (command_.range.empty()) return std::move(swept_);
    const Bytes start = keys.start;
    const std::unique_ptr<KeyIterator> it =
        view_.iterate({std::move(keys.start), std::move(keys.end), false, false});
    page().next.after = from_.after;
    if (command_.everything) {
      it->seek(from_.after.empty() ? start : Bytes(from_.after) + '\0');
      erase_all(*it);
      TETRAD_TRY_VOID(it->status());
      return std::move(swept_);
    }
    if (from_.inside) {
      const auto place = decode_storage_key(from_.after);
      if (!place) return fail(ErrorCode::kCorruption, "a sweep goes on after what is no key");
      prefix_.assign(place->partition_prefix);
      it->seek(prefix_);
      TETRAD_TRY_VOID(take_covers(*it));
      undisturbed_ = from_.undisturbed;
    }
    it->seek(from_.after.empty() ? start : Bytes(from_.after) + '\0');
    while (true) {
      TETRAD_TRY_VOID(it->status());
      if (!prefix_.empty() && !(it->valid() && it->key().starts_with(prefix_)))
        TETRAD_TRY_VOID(end_partition());
      if (!it->valid() || is_full()) break;
      if (prefix_.empty()) {
        TETRAD_TRY_VOID(begin_partition(*it));
      } else {
        TETRAD_TRY_VOID(take_row(*it));
        it->next();
      }
    }
    page().exhausted = !it->valid();
    page().next.inside = !prefix_.empty();
    page().next.undisturbed = undisturbed_;
    page().next.extent = extent_;
    return std::move(swept_);
  }

 private:
  struct Tombstones {
    Bytes start;
    Bytes set;  // as stored
  };

  SweepPage& page() { return swept_.page; }
  bool is_full() const {
    return swept_.page.keys >= command_.keys_max || swept_.changes.size() >= command_.changes_max;
  }
  void see(BytesView key) {
    ++page().keys;
    page().next.after.assign(key);
  }
  void put(BytesView key, Bytes value) {
    ++page().changed;
    swept_.changes.push_back({Bytes(key), std::move(value)});
  }
  void erase(BytesView key) {
    ++page().erased;
    swept_.changes.push_back({Bytes(key), std::nullopt});
  }
  void see_left(int64_t since_s) { page().oldest_left_s = std::min(page().oldest_left_s, since_s); }
  /// So much longer than a tombstone stays what has expired.
  int64_t expired_later_s() const {
    const PurgeBound& bound = command_.bound;
    if (bound.expired_before_s == PurgeBound::kNothing) return 0;
    return std::max<int64_t>(0, bound.deleted_before_s - bound.expired_before_s);
  }
  void see_left(const Deletion& deletion) {
    if (deletion.present()) see_left(dead_since_s(deletion.timestamp_us, deletion.deletion_time_s));
  }

  void erase_all(KeyIterator& it) {
    for (; it.valid() && !is_full(); it.next()) {
      see(it.key());
      page().bytes += it.key().size() + it.value().size();
      erase(it.key());
    }
    page().exhausted = !it.valid();
  }

  BytesView key_of(KeyKind kind, BytesView clustering_key) {
    key_.assign(prefix_);
    key_.push_back(static_cast<char>(kind));
    key_.append(clustering_key);
    return key_;
  }

  /// The iterator stands on the partition's first key, and afterwards on its first row or behind.
  Result<void> begin_partition(KeyIterator& it) {
    const auto key = decode_storage_key(it.key());
    if (!key) return fail(ErrorCode::kCorruption, "a key of {} bytes is no row's", it.key().size());
    prefix_.assign(key->partition_prefix);
    undisturbed_ = true;
    extent_ = {};
    TETRAD_TRY_VOID(take_covers(it));
    page().keys += 1 + tombstones_.size();
    // The place in the partition: a row's key, be it there or not, is behind it.
    page().next.after.assign(key_of(KeyKind::kRangeTombstone, "\xFF"));
    return {};
  }

  Result<void> take_covers(KeyIterator& it) {
    header_stored_.clear();
    header_ = {};
    tombstones_.clear();
    if (it.valid() && it.key() == key_of(KeyKind::kHeader, {})) {
      header_stored_.assign(it.value());
      TETRAD_TRY(header_, decode_row_record(header_stored_));
      it.next();
    }
    const Bytes first(key_of(KeyKind::kRangeTombstone, {}));
    for (; it.valid() && it.key().starts_with(first); it.next())
      tombstones_.push_back({Bytes(it.key().substr(first.size())), Bytes(it.value())});
    TETRAD_TRY_VOID(it.status());
    std::vector<RangeTombstoneView> views;
    std::vector<TombstoneEnd> set;
    for (const Tombstones& stored : tombstones_) {
      set.clear();
      TETRAD_TRY_VOID(decode_tombstone_set(stored.set, set));
      for (const TombstoneEnd& e : set) views.push_back({stored.start, e.end, e.deletion});
    }
    steps_ = make_steps(std::move(views), header_.deletion);
    return {};
  }

  Result<void> take_row(KeyIterator& it) {
    see(it.key());
    const BytesView clustering_key = it.key().substr(prefix_.size() + 1);
    TETRAD_TRY_VOID(decode_row_record_into(it.value(), row_));
    const Extent before(row_);
    drop_hidden(row_);
    if (!TETRAD_MUTANT(purge_hides_nothing)) {
      hide(row_, header_.deletion);
      if (!steps_.empty()) hide(row_, deletion_at(steps_, clustering_key));
    }
    page().tombstones += purge(row_, command_.bound);
    size_t left_bytes = it.value().size();
    if (Extent(row_) != before) left_bytes = replace(it.key(), left_bytes);
    see_left(row_);
    measure(it.key(), left_bytes);
    return {};
  }

  /// With what is left in row_. The bytes of that.
  size_t replace(BytesView key, size_t stored_bytes) {
    if (row_.empty()) {
      page().bytes += key.size() + stored_bytes;
      erase(key);
      return 0;
    }
    Bytes value;
    encode_row_record(row_, value);
    const size_t left_bytes = value.size();
    page().bytes += stored_bytes - std::min(stored_bytes, left_bytes);
    put(key, std::move(value));
    return left_bytes;
  }

  /// What is left in row_.
  void measure(BytesView key, size_t left_bytes) {
    if (!measures_ || row_.empty()) return;
    extent_.bytes += key.size() + left_bytes;
    extent_.tombstones += row_.deletion.present() ? 1 : 0;
    extent_.tombstones += static_cast<uint64_t>(std::ranges::count_if(
        row_.cells, [](const Cell& cell) { return cell.kind != CellKind::kValue; }));
  }

  void tell_if_large() {
    const PartitionExtent& limit = command_.told_beyond;
    const bool is_large = (limit.bytes != 0 && extent_.bytes > limit.bytes) ||
                          (limit.tombstones != 0 && extent_.tombstones > limit.tombstones);
    if (!is_large) return;
    if (page().large.size() == kLargePartitionsMax) {
      ++page().large_left_out;
      return;
    }
    const auto key = decode_storage_key(key_of(KeyKind::kHeader, {}));
    if (key) page().large.push_back({Bytes(key->partition_key), extent_});
  }

  void see_left(const RowRecord& record) {
    see_left(record.deletion);
    if (record.liveness.present() && record.liveness.ttl_s > 0)
      see_left(record.liveness.expiry_s + expired_later_s());
    for (const Cell& cell : record.cells) {
      if (cell.kind != CellKind::kValue) {
        see_left(dead_since_s(cell.timestamp_us, cell.expiry_s));
      } else if (cell.ttl_s > 0) {
        see_left(cell.expiry_s + expired_later_s());
      }
    }
  }

  /// All rows have been looked at.
  Result<void> end_partition() {
    const bool covers_go = undisturbed_ || TETRAD_MUTANT(purge_hides_nothing);
    for (const Tombstones& stored : tombstones_)
      TETRAD_TRY_VOID(take_tombstones(stored, covers_go));
    if (!header_stored_.empty()) {
      row_ = header_;
      const Extent before(row_);
      drop_hidden(row_);
      const size_t dropped = purge(row_, command_.bound);
      page().tombstones += dropped;
      if (!covers_go && header_.deletion.present()) {
        row_.deletion = header_.deletion;
        if (command_.bound.takes(header_.deletion)) --page().tombstones;
      }
      size_t left_bytes = header_stored_.size();
      const BytesView key = key_of(KeyKind::kHeader, {});
      if (Extent(row_) != before) left_bytes = replace(key, left_bytes);
      see_left(row_);
      measure(key, left_bytes);
    }
    if (measures_) tell_if_large();
    extent_ = {};
    prefix_.clear();
    undisturbed_ = true;
    return {};
  }

  Result<void> take_tombstones(const Tombstones& stored, bool covers_go) {
    std::vector<TombstoneEnd> set;
    TETRAD_TRY_VOID(decode_tombstone_set(stored.set, set));
    const size_t dropped = std::erase_if(set, [&](const TombstoneEnd& e) {
      return covers_go &&
             (header_.deletion.hides(e.deletion.timestamp_us) || command_.bound.takes(e.deletion));
    });
    for (const TombstoneEnd& e : set) see_left(e.deletion);
    const BytesView key = key_of(KeyKind::kRangeTombstone, stored.start);
    extent_.tombstones += set.size();
    if (!set.empty()) extent_.bytes += key.size() + stored.set.size();
    if (dropped == 0) return {};
    page().tombstones += dropped;
    if (set.empty()) {
      page().bytes += key.size() + stored.set.size();
      erase(key);
      return {};
    }
    Bytes value;
    encode_tombstone_set(set, value);
    page().bytes += stored.set.size() - std::min(stored.set.size(), value.size());
    put(key, std::move(value));
    return {};
  }

  KeyView& view_;
  const SweepCommand& command_;
  const SweepPlace& from_;
  Swept swept_;

  // the partition being looked at; prefix_ is empty between partitions
  Bytes prefix_;
  bool undisturbed_ = true;
  const bool measures_;
  PartitionExtent extent_;  // of what was looked at and stays
  Bytes header_stored_;
  RowRecord header_;  // views into header_stored_
  std::vector<Tombstones> tombstones_;
  TombstoneSteps steps_;  // views into tombstones_

  Bytes key_;      // scratch
  RowRecord row_;  // scratch
};

}  // namespace

Result<Swept> sweep_page(KeyView& view, const SweepCommand& command, const SweepPlace& from) {
  return Sweeper(view, command, from).run();
}

}  // namespace tetrad::storage
