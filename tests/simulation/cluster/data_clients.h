// SPDX-License-Identifier: Apache-2.0
// Clients of simulated clusters whose requests are in a history (history.h), and others that change
// the schema and the metadata.
#pragma once

#include <optional>

#include "tests/simulation/cluster/history.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

/// As a client of the node is served: by the node's time.
int64_t now_s(SimNode& node);

/// Both note in the history what came of them; they end with the node's life.
Task<void> run_write(SimNode* node, Operation* operation);
/// Pages; each is a read of its own in the history.
Task<void> run_read(SimNode* node, Operation* operation, History* history);

/// `done`: when it was answered, if it succeeded.
Task<void> change_schema(SimNode* node, replication::SchemaChange change,
                         std::optional<base::MonotonicUs>* done);

/// Of each place of a partition the newest that a store holds there, be it value or deletion.
PartitionOf<int64_t> newest_held(const storage::ReadResult& result);

}  // namespace tetrad::simulation
