// SPDX-License-Identifier: Apache-2.0
// A partition key that gets much of the work of a node's replicas.
#pragma once

#include <cstdint>
#include <string>

namespace tetrad::server {

/// As one shard has counted it.
struct HotKey {
  std::string keyspace, table;
  std::string key;  // as nodetool takes one: a:b of two columns; else in hex
  int64_t partition = 0, token = 0;
  double reads = 0, writes = 0;  // request units a second, over some ten seconds
  double share = 0;              // of the work of its physical partition
};

}  // namespace tetrad::server
