// SPDX-License-Identifier: Apache-2.0
// What a broken assertion does: it names itself on standard error and ends the process, so that a core
// shows where.
#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace tetrad::base {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace tetrad::base
