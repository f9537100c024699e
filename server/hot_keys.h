// SPDX-License-Identifier: Apache-2.0
// The partition keys that get most of the work of a node's replicas.
//
// Each shard counts for its own store (replication/throughput); Serving::hot_keys() and
// system_tetrad.hot_keys join the shards' lists.
#pragma once

#include <vector>

#include "server/admin/node_controls.h"

namespace tetrad::server {

struct Shard;

/// Of each physical partition that is warm the heaviest keys, ten at most, each with 1 % of its work or
/// more. On the shard's thread.
std::vector<HotKey> hot_keys_of(Shard& shard);

}  // namespace tetrad::server
