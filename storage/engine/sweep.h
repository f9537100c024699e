// SPDX-License-Identifier: Apache-2.0
// The sweep (design, rules 17 and 18): what a page of a range may drop, worked out over the merged
// view of it. Both engines use it and write the outcome back where nothing was written since.
#pragma once

#include <optional>
#include <vector>

#include "storage/engine/partition_reader.h"
#include "storage/engine/store.h"

namespace tetrad::storage {

/// What a key becomes.
struct SweptKey {
  Bytes key;
  std::optional<Bytes> value;  // unset: it is erased
};

struct Swept {
  SweepPage page;
  std::vector<SweptKey> changes;  // together, or those of a bucket not at all
};

/// `from.undisturbed` false: the partition it is in keeps its partition and range tombstones.
/// Errors: kCorruption, and those of the view.
Result<Swept> sweep_page(KeyView& view, const SweepCommand& command, const SweepPlace& from);

}  // namespace tetrad::storage
