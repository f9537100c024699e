// SPDX-License-Identifier: Apache-2.0
// Folding many rows into a few bytes on the replica. Storage and replication do not know what is
// computed: a plan is bytes for a FoldReader handed in from above, and the state of a fold is
// bytes, too.
#pragma once

#include <memory>
#include <span>

#include "storage/row/read_command.h"

namespace tetrad::storage {

/// Takes the live rows of one read, in its order. Of their cells and of the header's those that
/// are live at the read's time count; others may be there. After an error it takes no more.
class RowFold : public RowSink {
 public:
  /// The state after all rows so far, for FoldPlan::go_on(). Errors: kInvalid when it is too large
  /// to travel.
  virtual Result<Bytes> state() const = 0;
};

/// Immutable; several threads use one.
class FoldPlan {
 public:
  virtual ~FoldPlan() = default;
  /// What a FoldReader makes the same plan of.
  virtual BytesView spec() const = 0;
  /// The state depends on the order of the rows: each range must go on from the one before.
  virtual bool in_order() const = 0;
  /// `state`: empty, or what a fold of this plan was in. Errors: kCorruption.
  virtual Result<std::unique_ptr<RowFold>> go_on(BytesView state, int64_t now_s) const = 0;
  /// The state after the rows of all of them; the states are in the order of their ranges. Not of a
  /// plan that is in_order(). Errors: kCorruption, and those of RowFold::state().
  virtual Result<Bytes> join(std::span<const Bytes> states) const = 0;
};

/// Goes on over live rows that were read. Errors: those of the fold.
Result<Bytes> fold_rows(const FoldPlan& plan, BytesView state, int64_t now_s,
                        const ReadResult& rows);

}  // namespace tetrad::storage
