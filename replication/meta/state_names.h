// SPDX-License-Identifier: Apache-2.0
// What tables and the admin port call the states of nodes and the stages of tablets.
#pragma once

#include <string_view>

#include "replication/meta/meta_state.h"

namespace tetrad::replication {

constexpr std::string_view name_of(partitioner::TabletStage stage) {
  using partitioner::TabletStage;
  switch (stage) {
    case TabletStage::kNormal:
      return "normal";
    case TabletStage::kWriteBoth:
      return "write-both";
    case TabletStage::kStream:
      return "stream";
    case TabletStage::kReadNew:
      return "read-new";
    case TabletStage::kWriteNew:
      return "write-new";
  }
  return "unknown";
}

constexpr std::string_view name_of(NodeState state) {
  switch (state) {
    case NodeState::kJoining:
      return "joining";
    case NodeState::kNormal:
      return "normal";
    case NodeState::kLeaving:
      return "leaving";
    case NodeState::kRemoved:
      return "removed";
  }
  return "unknown";
}

}  // namespace tetrad::replication
