// SPDX-License-Identifier: Apache-2.0
// Clients of a single node find in a view what they have just written, as on a single node of
// Cassandra, which writes both at once: where every copy of a row is on this node, its coordinator
// waits for the views before it answers. Where others have copies, too, a view follows its table
// some milliseconds later (views/view_runner.h).
#pragma once

#include "base/ids.h"
#include "replication/views/view_messages.h"

namespace tetrad::replication {

/// What a write does to one partition of a table with views, whose only members are stores of this
/// node; one for each store.
struct AwaitedView {
  StoreAddress store;
  ViewAwaitRequest rows;
};

}  // namespace tetrad::replication
