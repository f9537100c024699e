// SPDX-License-Identifier: Apache-2.0
// How a read walks over dead rows: it skips the runs that are known, and reports those that it has
// walked itself, so that the next read skips them (dead_runs.h).
//
//   1. A slice begins at its edge; a known run that lies there is skipped.
//   2. Dead rows are counted. The first live row, or the end of the slice or of the page, ends the
//      run from the edge to there.
//   3. It is reported when it was long enough; one that makes a known run longer, when it was an
//      eighth of that. The edge is then behind the live row.
// Header only: it runs for each row of a read.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "storage/engine/dead_runs.h"
#include "storage/engine/partition_reader.h"
#include "storage/row/read_command.h"

namespace tetrad::storage {

/// A copy of the last key that was seen, made for each row of a read: short ones without a call.
class KeptKey {
 public:
  void set(BytesView key, bool and_zero = false) {
    if (key.size() >= sizeof few_) {
      size_ = kLong;
      long_.assign(key);
      if (and_zero) long_.push_back('\0');
      return;
    }
    key.copy(few_, key.size());
    few_[key.size()] = '\0';
    size_ = key.size() + (and_zero ? 1 : 0);
  }
  BytesView view() const { return size_ == kLong ? BytesView(long_) : BytesView(few_, size_); }

 private:
  /// In `few_` up to its size, else in `long_`; `size_` says which.
  static constexpr size_t kLong = ~size_t{0};
  size_t size_ = 0;
  char few_[56];
  Bytes long_;
};

/// Skips the known dead runs of a slice and reports newly walked ones to the view. Active only for
/// reads of live rows.
class DeadWalk {
 public:
  /// Of a slice that is read from `edge` on. `rows_min`: fewer dead rows are not worth remembering.
  DeadWalk(KeyView& view, const ReadCommand& command, const TableContents& contents, BytesView edge,
           uint64_t rows_min)
      : view_(view),
        command_(command),
        rows_min_(rows_min),
        is_on_(command.live_only && !command.is_range && contents.dead_rows),
        known_(is_on_ ? view.dead_runs() : nullptr),
        passed_before_(is_on_ ? view.passed_over() : 0) {
    if (is_on_) edge_.set(edge);
  }

  /// Where a slice from `start` really begins.
  BytesView skip(BytesView start) {
    const DeadRun* run = begins_at(start);
    return run == nullptr ? start : BytesView(run->end);
  }
  /// Where a slice up to `end`, that is read backwards, really ends.
  BytesView skip_back(BytesView end) {
    if (known_ == nullptr) return end;
    for (const DeadRun& run : *known_)
      if (run.start < end && end <= run.end && run.now_s <= command_.now_s) {
        ++joined_;
        return run.start;
      }
    return end;
  }
  /// The known run that a key lies in; null if none.
  const DeadRun* begins_at(BytesView key) {
    if (known_ == nullptr) return nullptr;
    const DeadRun* run = dead_run_at(*known_, key, command_.now_s);
    if (run != nullptr) ++joined_;
    return run;
  }

  /// Each row of the slice, in the order of the read.
  void walk_past(BytesView key, bool is_dead) {
    if (!is_on_) return;
    if (is_dead) {
      ++count_;
      last_.set(key);
      return;
    }
    const uint64_t passed = view_.passed_over();
    if ((count_ | joined_ | (passed - passed_before_)) != 0) {
      if (is_worth_it())
        command_.reversed ? report(Bytes(key) + '\0', edge_.view()) : report(edge_.view(), key);
      count_ = joined_ = 0;
      passed_before_ = passed;
    }
    edge_.set(key, !command_.reversed);
  }
  /// The page ends behind the last row that was walked.
  void end_page() {
    if (!is_on_ || count_ == 0 || !is_worth_it()) return;
    const Bytes last(last_.view());
    command_.reversed ? report(last, edge_.view()) : report(edge_.view(), last + '\0');
  }
  /// There are no more rows up to the end of the slice, as it is read.
  void end_slice(BytesView end) {
    if (!is_on_ || !is_worth_it()) return;
    command_.reversed ? report(end, edge_.view()) : report(edge_.view(), end);
  }

 private:
  /// A run that is known already is made longer by fewer.
  bool is_worth_it() const {
    const uint64_t rows = count_ + view_.passed_over() - passed_before_;
    return rows >= (joined_ != 0 ? rows_min_ / 8 : rows_min_);
  }
  /// Empty ranges are left out: the edge may lie behind the end of the slice.
  void report(BytesView start, BytesView end) {
    if (start < end) view_.found_dead({Bytes(start), Bytes(end), command_.now_s});
  }

  KeyView& view_;
  const ReadCommand& command_;
  const uint64_t rows_min_;
  /// Only then keys are copied and counted: other reads pay one test for each row.
  const bool is_on_;
  const DeadRunList* const known_;
  KeptKey edge_, last_;              // behind the last live row; the last dead one
  uint64_t count_ = 0, joined_ = 0;  // dead rows, and known runs, since edge_
  uint64_t passed_before_;
};

}  // namespace tetrad::storage
