// SPDX-License-Identifier: Apache-2.0
// The nodes on the ring of tokens, and the walk along it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace tetrad::partitioner {

/// A node as placement sees it. Tokens are fixed for its life; no two nodes have one in common.
struct RingNode {
  HostId host;
  std::string data_center, rack;
  std::vector<int64_t> tokens;
  uint32_t store_count = 1;
};

/// The members wanted in each data centre: min(this, its nodes).
inline constexpr uint32_t kReplicasPerDataCenter = 4;
/// Tokens of a node, fixed when it joins.
inline constexpr size_t kTokensPerNode = 16;

/// All tokens of some nodes, sorted. A token belongs to the first node clockwise, that is with the
/// lowest token that is not below it; past the last one the first node follows.
class Ring {
 public:
  explicit Ring(std::vector<RingNode> nodes);

  const std::vector<RingNode>& nodes() const { return nodes_; }
  /// Sorted tokens with the index of their node.
  const std::vector<std::pair<int64_t, size_t>>& tokens() const { return tokens_; }
  /// The members for a token, in clockwise order: in each data centre min(replicas_max, its nodes),
  /// on distinct racks while there are any, as NetworkTopologyStrategy walks.
  std::vector<size_t> replicas_of(int64_t token, uint32_t replicas_max) const;
  /// True when the replicas of every token are all nodes.
  bool everyone_everywhere(uint32_t replicas_max) const;

 private:
  /// Counts of one data centre, by which the walk knows when it has enough.
  struct DataCenter {
    uint32_t nodes = 0, racks = 0;
    std::string name;
  };
  std::vector<RingNode> nodes_;
  std::vector<std::pair<int64_t, size_t>> tokens_;
  std::vector<DataCenter> data_centers_;
  std::vector<size_t> data_center_of_;  // of each node
  std::vector<size_t> rack_of_;         // of each node, counted over all data centres
  size_t rack_count_ = 0;
};

/// Tokens for a node that joins: `count` of them, each near the middle of the widest gap there is,
/// never one that is taken. The same for the same arguments.
std::vector<int64_t> choose_tokens(const std::vector<RingNode>& nodes, size_t count, uint64_t seed);

}  // namespace tetrad::partitioner
