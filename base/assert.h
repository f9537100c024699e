// SPDX-License-Identifier: Apache-2.0
// TETRAD_ASSERT: our own mistakes. On in every build; never reachable by a client's bytes.
//
// A condition that a client, a peer or a damaged disk can bring about is no assertion: it is a
// Result with an error.
#pragma once

namespace tetrad::base {
/// Names the condition on standard error and ends the process with a core.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace tetrad::base

// One condition each, so that the message says which one broke. The condition is always evaluated,
// so it may be cheap work only and must change nothing.
#define TETRAD_ASSERT(condition)                                        \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::tetrad::base::assertion_failed(#condition, __FILE__, __LINE__); \
  } while (false)
