// SPDX-License-Identifier: Apache-2.0
// A node: the program's parts wired together from its options, started, run and stopped.
#pragma once

#include <memory>

#include "base/log.h"
#include "base/result.h"
#include "server/config/options.h"

namespace tetrad::server {

inline constexpr const char* kProgramVersion = TETRAD_VERSION;

class Node {
 public:
  /// Opens files and sockets; nothing is served yet. Errors: kConfig, kIo, kCorruption, each one
  /// line for the operator.
  static Result<std::unique_ptr<Node>> open(const Options& options, Logger logger);
  virtual ~Node() = default;
  /// Serves until SIGTERM or SIGINT, then drains and stops. Errors: what made it stop otherwise.
  virtual Result<void> run() = 0;
};

}  // namespace tetrad::server
