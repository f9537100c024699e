// SPDX-License-Identifier: Apache-2.0
// Commands to the metadata group of simulated clusters.
#pragma once

#include <utility>

#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

/// Through a node. Whether it was refused, or its answer lost, the caller sees in the metadata.
inline Task<void> propose(SimNode* node, replication::MetaCommandBody body) {
  const base::Deadline deadline{node->reactor().now_us() + 2'000'000};
  auto result = co_await node->node().meta_group().propose(std::move(body), deadline);
  (void)result;
}

/// Has the tablet that holds the position split before it.
inline void split_at(SimNode& via, const replication::TableInfo& table, RingPosition at) {
  const partitioner::Tablet& tablet = table.tablets.find(at);
  via.spawn(
      propose(&via, replication::SplitTablet{table.incarnation, tablet.id, tablet.range, at}));
}

}  // namespace tetrad::simulation
