// SPDX-License-Identifier: Apache-2.0
// What a user-defined function finds around it: string, table, math, utf8 and a few basic
// functions; nothing that reaches outside, keeps state, or does much work inside one call of C.
//
// A function must give the same answer on every node (paging, read repair and folds of aggregates
// depend on it), so nothing here depends on addresses, hash seeds, time or locale: pairs() goes by
// sorted keys, tostring() of a table is "table", math has no random.
#pragma once

#include <cstddef>
#include <cstdint>

struct lua_Debug;
struct lua_State;

namespace tetrad::cql {

/// What a running function has used and may still use.
/// One for each state, reset for each call.
struct LuaMeter {
  uint64_t steps_left = 0;      // instructions, and the work of library functions
  size_t bytes = 0;             // held by the state
  size_t bytes_max = SIZE_MAX;  // of the running call
  size_t longest_string = 0;    // of the running call: comparing it costs more than one step
};

/// The meter of a state, kept where lua_getextraspace() says.
LuaMeter& meter_of(lua_State* state);
/// Raises an error when there is not that much work left. Returns 0.
int charge(lua_State* state, uint64_t steps);

/// Pushes the table of everything that functions see. Call it once, in a protected call.
void push_library(lua_State* state);

}  // namespace tetrad::cql
