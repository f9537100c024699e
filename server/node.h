// SPDX-License-Identifier: Apache-2.0
// A node: the program's parts wired together from its options, started, run and stopped.
//
// main() opens one node, runs it, and opens another one in the same process when it ended as
// kRenewed or kTakenOut.
#pragma once

#include <memory>

#include "base/log.h"
#include "base/result.h"
#include "server/config/options.h"
#include "server/runtime/recent_log.h"

namespace tetrad::server {

// From CMakeLists.txt, for example "1.2.0".
inline constexpr const char* kProgramVersion = TETRAD_VERSION;

/// Why a node ended that has not failed.
enum class NodeEnd : uint8_t {
  kStopped,   // by a signal, or for good by its operator's order (runtime/data_folder.h)
  kRenewed,   // a damaged store was erased: it begins anew without it
  kTakenOut,  // its cluster took it out while it was away: its data has been set aside
};

/// The whole process behind main(): shards with their threads, stores and ports. One per process;
/// open() and run() are called on the main thread, which becomes the first shard's.
class Node {
 public:
  /// Opens files and sockets; nothing is served yet. Errors: kConfig, kIo, kCorruption, each one
  /// line for the operator. `log`: what the logger's lines pass through; outlives the node.
  static Result<std::unique_ptr<Node>> open(const Options& options, Logger logger,
                                            const RecentLog& log);
  virtual ~Node() = default;
  /// Serves until SIGTERM or SIGINT, or until it is no member any more, then drains and stops.
  /// Errors: what made it stop otherwise.
  virtual Result<NodeEnd> run() = 0;
};

}  // namespace tetrad::server
