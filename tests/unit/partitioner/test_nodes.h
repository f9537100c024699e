// SPDX-License-Identifier: Apache-2.0
// Rings of nodes for tests.
#pragma once

#include <vector>

#include "partitioner/topology.h"

namespace tetrad::partitioner {

inline HostId host_number(uint8_t number) {
  HostId host;
  host.value.octets[15] = number;
  return host;
}

/// Nodes 1..n, node i on rack (i % racks), with tokens as if they had joined one after another.
inline std::vector<RingNode> ring_nodes(size_t count, size_t racks = 1, uint32_t stores = 1) {
  std::vector<RingNode> nodes;
  for (size_t i = 1; i <= count; ++i) {
    RingNode node{host_number(static_cast<uint8_t>(i)),
                  "dc1",
                  "rack" + std::to_string(i % racks),
                  {},
                  stores};
    node.tokens = choose_tokens(nodes, kTokensPerNode, i);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace tetrad::partitioner
