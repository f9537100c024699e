// SPDX-License-Identifier: Apache-2.0
// Rows of views (rule 24). A row of a view is a function of the whole base row, so it is replaced
// whole: by an image, all of whose parts have one time, its stamp. Of two images the one with the
// higher stamp wins; nothing of the other shows through.
//
//   1. A row that the base row bears out is given complete: marker, key cell, and every column of
//      the view as a value or a tombstone. A column with elements begins with its deletion at stamp
//      - 1.
//   2. Any other row that was named is a row tombstone at the stamp.
//   3. No clock is asked: what has expired is given with its expiry. With a key column nothing
//      outlives its cell. Without one the row lasts as long as the base row's marker and cells,
//      columns that the view does not have too.
//
// Stamps are even, so that stamp - 1 is above every other image's.
#pragma once

#include <set>

#include "base/result.h"
#include "storage/row/row_record.h"
#include "storage/views/view_maker.h"

namespace tetrad::storage {

/// When an image was made: above all images of the same row before it, in even microseconds.
struct ViewStamp {
  int64_t us = 0;
  friend auto operator<=>(const ViewStamp&, const ViewStamp&) = default;
};

/// The first stamp above both.
ViewStamp stamp_above(ViewStamp highest_seen, int64_t now_us);

/// Names a row of a view, of one base row.
struct ViewName {
  Bytes key_value;  // of the view's key column; "" without one
  Bytes key_cell;   // of the base row, as in BaseRowName
  friend auto operator<=>(const ViewName&, const ViewName&) = default;
};
/// Each once.
using ViewNames = std::set<ViewName>;

/// Adds the names that `record` gives, live, expired or hidden: to be asked of what comes in, since
/// a value that loses may be the one that another member's image has. Without a key column any
/// record gives one. Errors: kCorruption.
Result<void> add_view_names(const ViewMaker& maker, BytesView record, ViewNames& out);
/// As add_view_names(), of a row as a whole: at most one. Unset: the row has no value in the key
/// column, or nothing at all.
std::optional<ViewName> view_name_of(const ViewMaker& maker, const RowRecord& base_row);

/// The image of a view's row of this name. `base_row`: canonical, what its partition's tombstones
/// hide left out. `key_cell`: the view row's (ViewPlace). The result's views point into all these.
RowRecord view_image(const ViewMaker& maker, const RowRecord& base_row, const ViewName& name,
                     BytesView key_cell, ViewStamp stamp);

}  // namespace tetrad::storage
