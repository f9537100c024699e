// SPDX-License-Identifier: Apache-2.0
// How the cache follows a read.
//
//   1. A read of a partition's rows asks for its run. One that has not seen the bucket's newest
//      mutation is dropped.
//   2. Without a run, a read whose partition was not asked for since its last write leaves a knock,
//      and goes to the view alone.
//   3. Else rows come from the run as far as it goes, then from the view. What the view gives is
//      recorded, if the read sees all mutations of the bucket.
//   4. When the read ends, the record joins the run that it adjoins, or takes its place. The run
//      that was used least lately makes room.
//
// A run is contiguous: it has all rows between `start` and `end` that RocksDB has, with their
// stored values. All on the store's thread, one iterator at a time (in_use_). Bytes are counted
// with what the allocator holds.
#include "storage/engine/row_cache.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"

namespace tetrad::storage {

size_t RowCache::Run::lower_bound(BytesView wanted) const {
  const auto place = std::ranges::lower_bound(rows, wanted, {}, [this](const Row& row) {
    return BytesView(bytes).substr(row.at, row.key_bytes);
  });
  return static_cast<size_t>(place - rows.begin());
}

/// Walks a run, then what lies beyond it in the view; what it sees there is kept when it ends.
class CachedRows final : public KeyIterator {
 public:
  /// `run`: of the partition, or null. `keeps`: what is read beside it is worth keeping.
  CachedRows(RowCache& cache, KeyView& view, KeyView::Bounds bounds, size_t prefix_bytes,
             RowCache::Run* run, bool keeps, uint64_t seen)
      : cache_(cache),
        view_(view),
        bounds_(std::move(bounds)),
        prefix_bytes_(prefix_bytes),
        run_(run),
        keeps_(keeps),
        seen_(seen) {
    TETRAD_ASSERT(!cache_.in_use_);
    TETRAD_ASSERT(prefix_bytes_ <= bounds_.start.size());
    cache_.in_use_ = true;
  }
  ~CachedRows() override {
    end_recording();
    cache_.in_use_ = false;
  }
  CachedRows(const CachedRows&) = delete;
  CachedRows& operator=(const CachedRows&) = delete;

  void seek(BytesView key) override {
    const BytesView from = std::max(key, BytesView(bounds_.start));
    if (begin_in_run(from)) {
      at_ = run_->lower_bound(from);
      return show_from_run();
    }
    seek_beyond(from, false);
  }
  void seek_before(BytesView key) override {
    const BytesView to = std::min(key, BytesView(bounds_.end));
    if (begin_in_run(to)) {
      at_ = run_->lower_bound(to);
      return step_back_in_run();
    }
    seek_beyond(to, true);
  }
  void next() override {
    if (in_run_) {
      ++at_;
      return show_from_run();
    }
    beyond_->next();
    settle(false);
  }
  void prev() override {
    if (in_run_) return step_back_in_run();
    beyond_->prev();
    settle(true);
  }
  Result<void> status() const override {
    return beyond_ == nullptr ? Result<void>() : beyond_->status();
  }

 private:
  // Is the place where the read begins covered by the run?
  bool begin_in_run(BytesView place) {
    end_recording();
    // At the run's end too: rows beyond it are then looked for in the view.
    in_run_ = run_ != nullptr && run_->start <= place && place <= run_->end;
    if (in_run_) {
      run_->passed_over = 0;
      ++cache_.figures_.hits;
      return true;
    }
    ++cache_.figures_.misses;
    // A run that others read is not given up for one that this read alone may want.
    if (run_ != nullptr && ++run_->passed_over < RowCache::kPassesMax) keeps_ = false;
    return false;
  }

  void show_from_run() {
    if (at_ < run_->rows.size()) {
      key_ = run_->key(at_);
      value_ = run_->value(at_);
      valid_ = key_ < bounds_.end;
      return;
    }
    // The run reaches to the bound: no row is missing in between.
    if (bounds_.end <= run_->end) {
      valid_ = false;
      return;
    }
    seek_beyond(run_->end, false);
  }

  /// Shows the row before at_.
  void step_back_in_run() {
    if (at_ > 0) {
      --at_;
      key_ = run_->key(at_);
      value_ = run_->value(at_);
      valid_ = key_ >= bounds_.start;
      return;
    }
    // The run begins at the bound or before it: there is no row in between.
    if (bounds_.start >= run_->start) {
      valid_ = false;
      return;
    }
    seek_beyond(run_->start, true);
  }

  void seek_beyond(BytesView place, bool backwards) {
    in_run_ = false;
    if (beyond_ == nullptr) beyond_ = view_.iterate(bounds_);
    // Only what may be joined or kept is copied: within the size of one run.
    recording_ = keeps_;
    if (recording_) {
      backwards_ = backwards;
      edge_.assign(place);
      recorded_ = {};
      const bool adjoins = run_ != nullptr && run_->start <= place && place <= run_->end;
      TETRAD_ASSERT(!adjoins || run_->bytes.size() <= RowCache::kRunBytesMax);
      room_ = RowCache::kRunBytesMax - (adjoins ? run_->bytes.size() : 0);
    }
    backwards ? beyond_->seek_before(place) : beyond_->seek(place);
    settle(backwards);
  }

  void settle(bool backwards) {
    valid_ = beyond_->valid();
    if (valid_) {
      key_ = beyond_->key();
      value_ = beyond_->value();
    }
    if (!recording_) return;
    // A read that turns round, or an error: what was seen has no one direction, or no end.
    if (backwards != backwards_ || (!valid_ && !beyond_->status())) {
      recording_ = false;
      recorded_ = {};
    } else if (!valid_) {
      end_recording(true);
    } else if (key_.size() + value_.size() > room_) {
      // It would grow past the bound: keep what there is.
      end_recording();
    } else {
      room_ -= key_.size() + value_.size();
      recorded_.rows.push_back({static_cast<uint32_t>(recorded_.bytes.size()),
                                static_cast<uint32_t>(key_.size()),
                                static_cast<uint32_t>(value_.size())});
      recorded_.bytes.append(key_).append(value_);
    }
  }

  /// `whole`: up to the bound, not only to the last row that was seen.
  void end_recording(bool whole = false) {
    if (!recording_) return;
    recording_ = false;
    if (recorded_.rows.empty() && !whole) return;
    if (backwards_) {
      std::ranges::reverse(recorded_.rows);
      // A whole recording reaches to the bound itself, so "no more rows" is cached as well.
      recorded_.start = whole ? bounds_.start : Bytes(recorded_.key(0));
      recorded_.end = std::move(edge_);
    } else {
      recorded_.start = std::move(edge_);
      recorded_.end = whole ? bounds_.end : Bytes(recorded_.key(recorded_.rows.size() - 1)) + '\0';
    }
    if (recorded_.start > recorded_.end) {  // it began beyond the bounds: there is nothing to keep
      recorded_ = {};
      return;
    }
    recorded_.prefix.assign(bounds_.start, 0, prefix_bytes_);
    recorded_.seen = seen_;
    // keep() may erase or move the run that this iterator walks.
    cache_.keep(std::move(recorded_));
    recorded_ = {};
    run_ = nullptr;  // it may be another now
    keeps_ = false;
  }

  RowCache& cache_;
  KeyView& view_;
  const KeyView::Bounds bounds_;
  const size_t prefix_bytes_;
  RowCache::Run* run_;
  bool keeps_;
  const uint64_t seen_;
  bool in_run_ = false;
  size_t at_ = 0;  // in the run
  std::unique_ptr<KeyIterator> beyond_;

  bool recording_ = false, backwards_ = false;
  Bytes edge_;              // where the recording began
  size_t room_ = 0;         // bytes that may still be recorded
  RowCache::Run recorded_;  // rows in the order they were seen
};

std::unique_ptr<KeyIterator> RowCache::iterate(KeyView& view, KeyView::Bounds bounds,
                                               Moment moment) {
  // Without its prefix the view reads RocksDB, and does not come back here.
  const size_t prefix_bytes = std::exchange(bounds.partition_prefix_bytes, 0);
  if (bytes_max_ == 0 || in_use_) return view.iterate(std::move(bounds));
  const BytesView prefix = BytesView(bounds.start).substr(0, prefix_bytes);
  // A read over an old snapshot would record rows that are old already.
  const bool up_to_date = moment.newest <= moment.seen;
  Run* run = nullptr;
  const auto found = by_prefix_.find(prefix);
  if (found != by_prefix_.end()) {
    // No mutation of the bucket came after what the run has seen (rule 19).
    if (found->second->seen >= moment.newest || TETRAD_MUTANT(row_cache_never_stale)) {
      runs_.splice(runs_.begin(), runs_, found->second);
      run = &runs_.front();
    } else {
      erase(found->second);
    }
  }
  // The second read within one state of the bucket begins to cache: scans that pass once leave the
  // cache alone.
  if (run == nullptr && !knocked_before(prefix, moment.newest)) {
    ++figures_.misses;
    return view.iterate(std::move(bounds));
  }
  return std::make_unique<CachedRows>(*this, view, std::move(bounds), prefix_bytes, run, up_to_date,
                                      moment.seen);
}

// A table of fixed size that forgets by collision: a lost knock costs one more read without the
// cache.
bool RowCache::knocked_before(BytesView prefix, uint64_t newest) {
  if (knocks_.empty()) knocks_.resize(kKnocks);
  const uint64_t hash = base::xxh3_64(prefix);
  Knock& knock = knocks_[hash % kKnocks];
  if (knock.hash == hash && knock.newest == newest) return true;
  knock = {hash, newest};
  return false;
}

void RowCache::keep(Run kept) {
  TETRAD_ASSERT(kept.start <= kept.end);
  TETRAD_ASSERT(kept.bytes.size() <= kRunBytesMax);
  const auto found = by_prefix_.find(kept.prefix);
  Runs::iterator run;
  if (found == by_prefix_.end()) {
    kept.bytes.shrink_to_fit();
    kept.rows.shrink_to_fit();
    runs_.push_front(std::move(kept));
    run = runs_.begin();
    by_prefix_.emplace(run->prefix, run);
    ++figures_.runs;
  } else {
    run = found->second;
    const bool adjoins = kept.start <= run->end && run->start <= kept.end;
    if (adjoins && run->bytes.size() + kept.bytes.size() <= kRunBytesMax) {
      join(*run, kept);
    } else {
      // It is somewhere else in the partition: the newer one wins.
      erase(run);
      return keep(std::move(kept));
    }
  }
  account(*run);
  while (figures_.bytes > bytes_max_ && !runs_.empty()) erase(std::prev(runs_.end()));
  TETRAD_ASSERT(figures_.runs == runs_.size());
  TETRAD_ASSERT(by_prefix_.size() == runs_.size());
  TETRAD_ASSERT(!runs_.empty() || figures_.bytes == 0);
}

// Rows of both are the same where they overlap: neither has seen a write that the other has not. So
// only what lies outside of the run is copied.
void RowCache::join(Run& run, const Run& more) {
  TETRAD_ASSERT(run.prefix == more.prefix);
  const size_t before = run.start <= more.start ? 0 : more.lower_bound(run.start);
  const size_t after = std::max(before, more.lower_bound(run.end));
  std::vector<Row> rows;
  rows.reserve(run.rows.size() + before + more.rows.size() - after);
  const auto add = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      rows.push_back(more.rows[i]);
      rows.back().at = static_cast<uint32_t>(run.bytes.size());
      run.bytes.append(more.key(i)).append(more.value(i));
    }
  };
  add(0, before);
  rows.insert(rows.end(), run.rows.begin(), run.rows.end());
  add(after, more.rows.size());
  TETRAD_ASSERT(rows.size() == run.rows.size() + before + more.rows.size() - after);
  run.rows = std::move(rows);
  run.start = std::min(run.start, more.start);
  run.end = std::max(run.end, more.end);
  run.seen = more.seen;
}

void RowCache::account(Run& run) {
  TETRAD_ASSERT(figures_.bytes >= run.charge);
  figures_.bytes -= run.charge;
  // 128: the nodes of list and map.
  run.charge = sizeof(Run) + 128 + run.prefix.capacity() + run.start.capacity() +
               run.end.capacity() + run.bytes.capacity() + run.rows.capacity() * sizeof(Row);
  figures_.bytes += run.charge;
}

void RowCache::erase(Runs::iterator run) {
  TETRAD_ASSERT(figures_.bytes >= run->charge);
  figures_.bytes -= run->charge;
  --figures_.runs;
  by_prefix_.erase(run->prefix);
  runs_.erase(run);
}

// A table was retired; or all of it, when the store was opened anew.
void RowCache::forget(BytesView prefix) {
  for (auto run = runs_.begin(); run != runs_.end();) {
    const auto next = std::next(run);
    if (run->prefix.starts_with(prefix)) erase(run);
    run = next;
  }
}

}  // namespace tetrad::storage
