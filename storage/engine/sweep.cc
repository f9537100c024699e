// SPDX-License-Identifier: Apache-2.0
// One page of a sweep.
//
//   1. A page goes on behind its place. Inside of a partition, its deletions are read again first.
//   2. At a partition's first key: its header and its range tombstones, which hide rows. They are
//      kept for later, whatever becomes of them.
//   3. Each row loses what they hide and what its own deletions hide, then what of the dead the
//      bound takes. What is left is put, nothing left is erased. Registers below the floor go.
//   4. When all rows of the partition were looked at: range tombstones and the partition's deletion
//      lose what the bound takes, but only if all rows that should have lost something did
//      (`undisturbed`). So what they hide is gone before them or with them.
//   5. The page ends when it has looked at, or changed, as many keys as it may.
//
// Then, on the loop, settle_page() corrects it for what was written since it was read:
//
//   6. A key that may have been written is decided again by its current value; where that would
//      take a file's reading, the page is not written yet, or the key stays as it is.
//   7. A deletion of other keys stays if something that should have gone before it stays, or if its
//      bucket got something that it hides since the partition was begun. What is newer than the
//      deletion may come all the time. If a row stays, the partition is not undisturbed.
//   8. If another sweep has dropped deletions meanwhile, nothing of the page is written: what it
//      read was read with them.
//
// Reading a page (1 to 5) runs on any thread over a snapshot; settle_page() runs on the loop, in
// the turn in which what it leaves is written. Rule 17 says what it keeps, rule 18 what the bound
// may be.
#include "storage/engine/sweep.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "storage/row/paxos_registers.h"
#include "storage/row/purge.h"
#include "storage/row/range_tombstones.h"
#include "storage/row/reconcile.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

/// Since when something may have been dropped, in seconds. A deletion time can be before its
/// timestamp when a client set the timestamp; the later of the two is safe to compare with a bound.
int64_t dead_since_s(int64_t timestamp_us, int64_t deletion_time_s) {
  return std::max(deletion_time_s, timestamp_us / 1'000'000);
}

bool hides_nothing() { return TETRAD_MUTANT(purge_hides_nothing); }

/// The oldest of what the bound takes; max(): nothing.
int64_t oldest_dead_s(const RowRecord& record, const PurgeBound& bound) {
  int64_t oldest_s = std::numeric_limits<int64_t>::max();
  const auto see = [&](int64_t since_s) { oldest_s = std::min(oldest_s, since_s); };
  if (record.deletion.present() && bound.takes(record.deletion))
    see(dead_since_s(record.deletion.timestamp_us, record.deletion.deletion_time_s));
  if (record.liveness.present() && bound.takes(record.liveness)) see(record.liveness.expiry_s);
  for (const Cell& cell : record.cells)
    if (bound.takes(cell)) see(cell.expiry_s);
  return oldest_s;
}

/// What becomes of a row. Returns how many parts the bound took.
size_t sweep_row(RowRecord& row, const Deletion& header, const Deletion& range,
                 const PurgeBound& bound) {
  // First what the row hides of itself, then what its partition hides, then the purge: the other
  // way round a tombstone would be gone before what it hides.
  drop_hidden(row);
  if (!hides_nothing()) {
    hide(row, header);
    hide(row, range);
  }
  return purge(row, bound);
}

struct SetLoss {
  size_t dropped = 0;
  int64_t uncovers_us =
      kNoTimestamp;  // the latest that went and that the partition's does not hide
  int64_t oldest_s = std::numeric_limits<int64_t>::max();
};

/// What becomes of the range tombstones of one start.
SetLoss sweep_set(std::vector<TombstoneEnd>& set, const Deletion& header, const PurgeBound& bound) {
  SetLoss loss;
  const size_t before = set.size();
  loss.dropped = std::erase_if(set, [&](const TombstoneEnd& e) {
    // A range tombstone that the partition's deletion hides goes at any age: that one hides all of
    // its rows, too.
    const bool is_hidden = header.hides(e.deletion.timestamp_us);
    if (!is_hidden && !bound.takes(e.deletion)) return false;
    if (!is_hidden) loss.uncovers_us = std::max(loss.uncovers_us, e.deletion.timestamp_us);
    loss.oldest_s =
        std::min(loss.oldest_s, dead_since_s(e.deletion.timestamp_us, e.deletion.deletion_time_s));
    return true;
  });
  TETRAD_ASSERT(loss.dropped + set.size() == before);
  return loss;
}

/// Counts of what a record holds. A sweep only lowers them, so equal counts mean an equal record,
/// and no copy of it need be kept to see whether it has changed.
struct Extent {
  size_t cells;
  bool liveness, deletion;
  explicit Extent(const RowRecord& record)
      : cells(record.cells.size()),
        liveness(record.liveness.present()),
        deletion(record.deletion.present()) {}
  friend bool operator==(const Extent&, const Extent&) = default;
};

// Makes one page and is thrown away. All views of RowRecord point into what the iterator or
// header_stored_ holds.
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
    // Where the page before ended inside a partition.
    if (from_.inside) {
      const auto place = decode_storage_key(from_.after);
      if (!place) return fail(ErrorCode::kCorruption, "a sweep goes on after what is no key");
      prefix_.assign(place->partition_prefix);
      // Bounded: what this sweep has erased of its rows is not passed over for each page.
      Bytes rows(key_of(KeyKind::kRow, {}));
      const auto covers = view_.iterate({prefix_, std::move(rows), true, false});
      covers->seek(prefix_);
      TETRAD_TRY_VOID(take_covers(*covers));
      undisturbed_ = from_.undisturbed;
    }
    it->seek(from_.after.empty() ? start : Bytes(from_.after) + '\0');
    while (true) {
      TETRAD_TRY_VOID(it->status());
      // A partition ends at the first key that is not its own, also when the page is full or the
      // range ends there.
      if (!prefix_.empty() && !(it->valid() && it->key().starts_with(prefix_)))
        TETRAD_TRY_VOID(end_partition());
      if (!it->valid() || is_full()) break;
      if (prefix_.empty()) {
        TETRAD_TRY_VOID(begin_partition(*it));
      } else if (is_registers_key(it->key())) {
        TETRAD_TRY_VOID(take_registers(*it));
        it->next();
      } else {
        TETRAD_TRY_VOID(take_row(*it));
        it->next();
      }
    }
    TETRAD_ASSERT(page().changed + page().erased == swept_.changes.size());
    page().exhausted = !it->valid();
    page().next.inside = !prefix_.empty();
    page().next.undisturbed = undisturbed_;
    page().next.extent = extent_;
    return std::move(swept_);
  }

 private:
  struct Tombstones {
    Bytes place;
    Bytes set;  // as stored
  };

  SweepPage& page() { return swept_.page; }
  bool is_full() const {
    // Both bounds: keys_max for a range where nothing is dead, changes_max for one where all is,
    // since changes are written in one turn.
    return swept_.page.keys >= command_.keys_max || swept_.changes.size() >= command_.changes_max;
  }
  void see(BytesView key) {
    ++page().keys;
    page().next.after.assign(key);
  }
  SweptKey& put(BytesView key, Bytes value) {
    ++page().changed;
    return swept_.changes.emplace_back(SweptKey{Bytes(key), std::move(value)});
  }
  SweptKey& erase(BytesView key) {
    ++page().erased;
    return swept_.changes.emplace_back(SweptKey{Bytes(key), std::nullopt});
  }
  // The oldest thing that is left tells when it is worth sweeping the range again.
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

  /// Of a range that is not this store's any more: nothing is decoded, so nothing that does not
  /// decode can stand in the way.
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
    TETRAD_ASSERT(prefix_.empty());  // the one before has ended
    prefix_.assign(key->partition_prefix);
    undisturbed_ = true;
    extent_ = {};
    TETRAD_TRY_VOID(take_covers(it));
    page().keys += 1 + tombstones_.size();
    // The place in the partition: a row's key, be it there or not, is behind it.
    page().next.after.assign(key_of(KeyKind::kRangeTombstone, "\xFF\xFF\xFF"));
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
    // Views stay good while tombstones_ is not changed.
    TETRAD_TRY_VOID(it.status());
    std::vector<RangeTombstoneView> views;
    std::vector<TombstoneEnd> set;
    for (const Tombstones& stored : tombstones_) {
      set.clear();
      TETRAD_TRY_VOID(decode_tombstone_set(stored.set, set));
      TETRAD_TRY(const BytesView start, start_at_place(stored.place));
      for (const TombstoneEnd& e : set) views.push_back({start, e.end, e.deletion});
    }
    steps_ = make_steps(std::move(views), header_.deletion);
    return {};
  }

  Result<void> take_row(KeyIterator& it) {
    see(it.key());
    const BytesView clustering_key = it.key().substr(prefix_.size() + 1);
    TETRAD_TRY_VOID(decode_row_record_into(it.value(), row_));
    const Extent before(row_);
    // The age is taken before the sweep takes the cells away.
    const int64_t dead_s = oldest_dead_s(row_, command_.bound);
    const Deletion range = steps_.empty() ? Deletion{} : deletion_at(steps_, clustering_key);
    page().tombstones += sweep_row(row_, header_.deletion, range, command_.bound);
    size_t left_bytes = it.value().size();
    TETRAD_ASSERT(it.key().starts_with(prefix_));
    TETRAD_ASSERT(row_.cells.size() <= before.cells);  // sweeping only takes away
    // Only what has changed becomes a write: a sweep of a range without garbage costs reads alone.
    if (Extent(row_) != before) {
      left_bytes = replace(it.key(), left_bytes);
      // Kept for sweep_again(), which has no view of the covers.
      swept_.changes.back().cover = later_of(header_.deletion, range);
      swept_.changes.back().oldest_dead_s = dead_s;
    }
    see_left(row_);
    measure(it.key(), left_bytes);
    return {};
  }

  /// Registers whose newest ballot is below the floor decide nothing any more: no proposer may use
  /// a ballot below it.
  Result<void> take_registers(KeyIterator& it) {
    see(it.key());
    if (!command_.registers_floor.present()) return {};
    TETRAD_TRY(const PaxosRegisters registers, decode_registers(it.value()));
    if (!(registers.last() < command_.registers_floor)) return {};
    page().bytes += it.key().size() + it.value().size();
    erase(it.key());
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

  // A partition is reported once, at its end, when its whole extent is known.
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
      see_left(
          dead_since_s(record.liveness.timestamp_us, record.liveness.expiry_s + expired_later_s()));
    for (const Cell& cell : record.cells) {
      if (cell.kind != CellKind::kValue) {
        see_left(dead_since_s(cell.timestamp_us, cell.expiry_s));
      } else if (cell.ttl_s > 0) {
        see_left(dead_since_s(cell.timestamp_us, cell.expiry_s + expired_later_s()));
      }
    }
  }

  /// All rows have been looked at.
  Result<void> end_partition() {
    TETRAD_ASSERT(!prefix_.empty());
    // If anything that should have gone stayed on an earlier page of this partition, its covers
    // stay (rule 17); the next sweep tries again.
    const bool covers_go = undisturbed_ || hides_nothing();
    for (const Tombstones& stored : tombstones_)
      TETRAD_TRY_VOID(take_tombstones(stored, covers_go));
    if (!header_stored_.empty()) {
      row_ = header_;
      const Extent before(row_);
      const int64_t dead_s = oldest_dead_s(row_, command_.bound);
      // Static cells obey the partition's own deletion, so the header is both hider and hidden: its
      // cells go now, its deletion only if nothing else stays.
      drop_hidden(row_);
      const size_t dropped = purge(row_, command_.bound);
      page().tombstones += dropped;
      if (!covers_go && header_.deletion.present()) {
        row_.deletion = header_.deletion;
        if (command_.bound.takes(header_.deletion)) --page().tombstones;
      }
      size_t left_bytes = header_stored_.size();
      const BytesView key = key_of(KeyKind::kHeader, {});
      if (Extent(row_) != before) {
        left_bytes = replace(key, left_bytes);
        SweptKey& change = swept_.changes.back();
        change.oldest_dead_s = dead_s;
        // The timestamp up to which something would come to light if it arrived late; settle_page()
        // asks the watches about it.
        if (!row_.deletion.present()) change.uncovers_us = header_.deletion.timestamp_us;
      }
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
    // Without leave nothing of the set goes, whatever its age.
    const SetLoss loss = covers_go ? sweep_set(set, header_.deletion, command_.bound) : SetLoss{};
    for (const TombstoneEnd& e : set) see_left(e.deletion);
    const BytesView key = key_of(KeyKind::kRangeTombstone, stored.place);
    extent_.tombstones += set.size();
    if (!set.empty()) extent_.bytes += key.size() + stored.set.size();
    if (loss.dropped == 0) return {};
    page().tombstones += loss.dropped;
    SweptKey* change = nullptr;
    if (set.empty()) {
      page().bytes += key.size() + stored.set.size();
      change = &erase(key);
    } else {
      Bytes value;
      encode_tombstone_set(set, value);
      page().bytes += stored.set.size() - std::min(stored.set.size(), value.size());
      change = &put(key, std::move(value));
    }
    change->cover = header_.deletion;
    change->uncovers_us = loss.uncovers_us;
    change->oldest_dead_s = loss.oldest_s;
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

/// The change of a key that has another value now; unset: there is none to make. Only what was
/// decided with the page is used beside the value: `cover` hides what it hid before, since
/// deletions never go while this watch is open without making its page void.
Result<std::optional<SweptKey>> sweep_again(const SweptKey& before,
                                            const std::optional<Bytes>& stored,
                                            const SweepCommand& command) {
  const PurgeBound& bound = command.bound;
  const auto place = decode_storage_key(before.key);
  if (!stored || !place) return std::optional<SweptKey>();
  if (place->kind == KeyKind::kRegisters) {
    TETRAD_TRY(const PaxosRegisters registers, decode_registers(*stored));
    if (!(registers.last() < command.registers_floor)) return std::optional<SweptKey>();
    return before;
  }
  SweptKey again{before.key, std::nullopt, before.cover};
  if (place->kind == KeyKind::kRangeTombstone) {
    std::vector<TombstoneEnd> set;
    TETRAD_TRY_VOID(decode_tombstone_set(*stored, set));
    const SetLoss loss = sweep_set(set, before.cover, bound);
    if (loss.dropped == 0) return std::optional<SweptKey>();
    again.uncovers_us = loss.uncovers_us;
    again.oldest_dead_s = loss.oldest_s;
    if (!set.empty()) encode_tombstone_set(set, again.value.emplace());
    return again;
  }
  TETRAD_TRY(RowRecord record, decode_row_record(*stored));
  const Extent extent(record);
  const Deletion deletion = record.deletion;
  again.oldest_dead_s = oldest_dead_s(record, bound);
  sweep_row(record, before.cover, {}, bound);
  if (place->kind == KeyKind::kHeader && deletion.present()) {
    const bool went_before = before.uncovers_us != kNoTimestamp;
    // It stays until its partition has been looked through.
    if (!went_before) record.deletion = deletion;
    if (!record.deletion.present()) again.uncovers_us = deletion.timestamp_us;
  }
  if (Extent(record) == extent) return std::optional<SweptKey>();
  if (!record.empty()) encode_row_record(record, again.value.emplace());
  return again;
}

BytesView partition_of(BytesView key) {
  const auto place = decode_storage_key(key);
  return place ? place->partition_prefix : BytesView();
}

}  // namespace

// In microseconds, exclusive: a watch need only note writes whose timestamps a purged deletion
// could have hidden.
int64_t watched_below_us(const PurgeBound& bound) {
  constexpr int64_t kSecond = 1'000'000, kEnd_s = std::numeric_limits<int64_t>::max() / kSecond - 1;
  if (bound.horizon_s == PurgeBound::kNothing) return kNoTimestamp;
  return (std::clamp(bound.horizon_s, -kEnd_s, kEnd_s) + 1) * kSecond;
}

namespace {

/// The keys of the page that may have been written since it was read, without values. Most pages
/// meet no write: no value is read again.
ValuesNow values_written_since(const Swept& swept, SweepWatches& watches, SweepWatches::Id watch) {
  ValuesNow values;
  for (const SweptKey& change : swept.changes)
    if (watches.wrote(watch, change.key)) values.try_emplace(change.key);
  return values;
}

/// Whether the deletion that `change` takes away must stay: a row that it hides is kept in its
/// partition (`kept_in`), or a write that it hides has come since the partition was begun.
bool still_hides(const SweptKey& change, const StorageKeyView& place, const Bytes& kept_in,
                 const SweepWatches& watches, SweepWatches::Id watch) {
  return (kept_in == place.partition_prefix ||
          watches.wrote_hidden(watch, bucket_of(place.incarnation, place.position),
                               change.uncovers_us)) &&
         !TETRAD_MUTANT(purge_ignores_late) && !hides_nothing();
}

}  // namespace

Result<std::vector<Bytes>> settle_page(Swept& swept, const SweepCommand& command,
                                       SweepWatches& watches, SweepWatches::Id watch,
                                       ReadValuesNow read_now, bool last_try) {
  // Changes are in the order in which they were found, a partition's rows before its covers: what
  // is kept of the rows (kept_in) is known when a cover is decided.
  std::vector<Bytes> cold;
  std::vector<SweptKey> settled;
  settled.reserve(swept.changes.size());
  SweepPage page = swept.page;
  Bytes kept_in;  // the partition of which something that should go stays
  const bool is_void = watches.is_void(watch);
  ValuesNow values;
  if (!is_void && !command.everything && !TETRAD_MUTANT(purge_ignores_newer)) {
    values = values_written_since(swept, watches, watch);
    if (!values.empty()) TETRAD_TRY_VOID(read_now(values));
  }
  // Left out of this page. If it was something that a cover hides, the covers of the same partition
  // have to stay as well.
  const auto keep = [&](const SweptKey& change) {
    ++page.skipped;
    page.oldest_left_s = std::min(page.oldest_left_s, change.oldest_dead_s);
    if (change.uncovers_us == kNoTimestamp) kept_in.assign(partition_of(change.key));
  };
  for (const SweptKey& change : swept.changes) {
    const auto place = decode_storage_key(change.key);
    if (!place || is_void) {
      keep(change);
      continue;
    }
    if (command.everything && watches.wrote(watch, change.key)) {  // it is of a later stay
      keep(change);
      continue;
    }
    SweptKey next = change;
    if (const auto found = values.find(change.key); found != values.end()) {
      const auto& stored = found->second;
      if (!stored) {
        if (!last_try) cold.push_back(change.key);
        keep(change);
        continue;
      }
      TETRAD_TRY(auto again, sweep_again(change, *stored, command));
      // There is nothing dead in the current value.
      if (!again) continue;
      next = std::move(*again);
    }
    TETRAD_ASSERT(next.uncovers_us == kNoTimestamp || place->kind != KeyKind::kRow);
    const bool uncovers = next.uncovers_us != kNoTimestamp && !command.everything;
    if (uncovers && still_hides(next, *place, kept_in, watches, watch)) {
      keep(next);
      continue;
    }
    settled.push_back(std::move(next));
  }
  // The caller fetches these values off the loop and settles the page once more.
  if (!cold.empty()) return cold;
  TETRAD_ASSERT(page.skipped <= swept.page.skipped + swept.changes.size());
  TETRAD_ASSERT(settled.size() <= swept.changes.size());
  // The next page goes on in this partition and must know that something stayed.
  if (page.next.inside && kept_in == partition_of(page.next.after)) page.next.undisturbed = false;
  swept.page = std::move(page);
  swept.changes = std::move(settled);
  return cold;
}

Result<Swept> sweep_page(KeyView& view, const SweepCommand& command, const SweepPlace& from) {
  return Sweeper(view, command, from).run();
}

}  // namespace tetrad::storage
