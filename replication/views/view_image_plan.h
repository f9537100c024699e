// SPDX-License-Identifier: Apache-2.0
// What an execution writes of what members have answered (design, rule 24). Pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "storage/row/mutation.h"
#include "storage/views/store_views.h"

namespace tetrad::replication {

/// A base row as all of a group of members hold it: without tombstones, and without what expired so
/// long ago that some of them may have dropped its value. Equal rows have equal bytes. Errors:
/// kCorruption.
Result<Bytes> shown_values(BytesView record, int64_t now_s);

/// The images of a row; a large one in several mutations.
struct ViewImages {
  std::vector<storage::Mutation> mutations;
  storage::ViewNamesByView current;  // names that are in views now
};
/// `values`: of shown_values(). `names`: all that members have answered.
Result<ViewImages> view_images(const storage::ViewMakers& makers, const storage::ViewRow& row,
                               BytesView values, const storage::ViewNamesByView& names,
                               storage::ViewStamp stamp);

}  // namespace tetrad::replication
