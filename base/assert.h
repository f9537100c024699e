// SPDX-License-Identifier: Apache-2.0
// TETRAD_ASSERT: our own mistakes. On in every build; never reachable by a client's bytes.
#pragma once

namespace tetrad::base {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}

#define TETRAD_ASSERT(condition)                                        \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::tetrad::base::assertion_failed(#condition, __FILE__, __LINE__); \
  } while (false)
