// SPDX-License-Identifier: Apache-2.0
// Where an exception of a library ends in work that runs on a thread of the I/O pool. Nobody above
// catches there: leaving the thread would end the process.
//
// On the loop a connection has the last catch instead (server/connection/connection.h).
#pragma once

#include <exception>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace tetrad::base {

/// What `work` answers, a Result. When it throws, the error names `job`, what was being done.
/// The exception's text goes into the error: it is for the log and for an operator.
template <class Work>
auto guarded(std::string_view job, Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return fail(ErrorCode::kServerError, "{} failed inside the server: {}", job, error.what());
  } catch (...) {
    // What is no std::exception has no text.
    return fail(ErrorCode::kServerError, "{} failed inside the server", job);
  }
}

}  // namespace tetrad::base
