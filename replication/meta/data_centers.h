// SPDX-License-Identifier: Apache-2.0
// Which data centre each node is in, as numbers: what levels are counted by.
#pragma once

#include <cstdint>
#include <map>

#include "base/ids.h"

namespace tetrad::replication {

/// The data centres of a cluster that has several. Made with the state that has the nodes, then
/// immutable.
class DataCenters {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit DataCenters(std::map<HostId, uint32_t> of_node) : of_node_(std::move(of_node)) {}
  /// kNone: no such node.
  uint32_t of(HostId host) const {
    const auto found = of_node_.find(host);
    return found == of_node_.end() ? kNone : found->second;
  }

 private:
  std::map<HostId, uint32_t> of_node_;
};

/// A set has up to four members in each.
inline constexpr size_t kDataCentersMax = 16;

}  // namespace tetrad::replication
