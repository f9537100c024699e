// SPDX-License-Identifier: Apache-2.0
// Where an exception of a library ends: in the tasks that the coordinator starts for a request and
// that nobody awaits. It fails that request; leaving the task would end the process.
#pragma once

#include <exception>

#include "base/log.h"
#include "base/result.h"

namespace tetrad::replication {

/// What the request is answered with; the operator gets a line in the log.
inline std::unexpected<Error> failed_inside(const std::exception& error, const Logger& logger) {
  logger.error("a request failed inside error={}", error.what());
  return fail(ErrorCode::kServerError, "The request failed inside the server: {}", error.what());
}

}  // namespace tetrad::replication
