// SPDX-License-Identifier: Apache-2.0
// Runs the bodies of user-defined functions: Lua 5.4 without anything that reaches outside. One per
// shard; functions share no state, and the same arguments give the same answer on every node.
//
//   1. call() finds the compiled script by its key, or compiles it in a protected call.
//   2. The arguments become Lua values, the meter gets the limits of the call.
//   3. Lua runs; every allocation, every few instructions and each library function count against
//      the meter.
//   4. The result becomes a value of the return type, which is checked.
// An error of Lua ends the call and leaves the state usable: nothing of a call outlives it.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "cql/script/lua_library.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// What a call may use; beyond it the call fails, the engine goes on.
struct ScriptLimits {
  uint64_t steps_max = 1'000'000;         // of one call: instructions and the library's work
  uint64_t memory_bytes_max = 16u << 20;  // of one call
};

/// A function as the engine runs it. Immutable, outlives its calls.
/// Made when a statement that calls the function is prepared.
struct Script {
  std::string name;  // in error messages
  std::vector<std::string> argument_names;
  std::string body;
  std::vector<TypePtr> argument_types;
  TypePtr return_type;

  /// Equal scripts are compiled once.
  std::string key() const;
};

/// A Lua state with the scripts compiled so far. Belongs to a shard and its thread; calls do not
/// nest. functions_ and by_use_ hold the same keys. A state that holds too much after a call is
/// closed, and made anew at the next one.
class ScriptEngine {
 public:
  explicit ScriptEngine(ScriptLimits limits);
  ~ScriptEngine();
  ScriptEngine(const ScriptEngine&) = delete;
  ScriptEngine& operator=(const ScriptEngine&) = delete;

  /// Errors: kFunctionFailure with what Lua says.
  Result<OptionalBytes> call(const Script& script, std::span<const OptionalView> arguments);

  /// Of all calls so far.
  uint64_t steps_used() const { return steps_used_; }

  /// Compiles and forgets it. Errors: kInvalid.
  static Result<void> check(const Script& script);

 private:
  /// A compiled script: its place in Lua's registry and in the list of use.
  struct Compiled {
    int reference = 0;
    std::list<std::string>::iterator used;
  };
  struct Call;

  /// Makes the Lua state and its sealed library, if there is none. Errors: kFunctionFailure.
  Result<void> open();
  /// Forgets the state and all compiled scripts.
  void close();
  /// In a protected call: compiles, calls, and takes the result of the Call that it is given.
  static int run(lua_State* state);
  /// Lua's allocator: counts bytes and steps in the LuaMeter `user`. Null: over a limit.
  static void* allocate(void* user, void* block, size_t old_size, size_t new_size);
  /// After each kInstructionsPerCount instructions. Raises a Lua error when the steps are used up.
  static void on_count(lua_State* state, lua_Debug* debug);
  int compiled(const Script& script);
  // The error of a call that has used up its steps, or its memory.
  std::string work_text(const Script& script) const;
  std::string memory_text(const Script& script) const;

  const ScriptLimits limits_;
  LuaMeter meter_;
  uint64_t steps_used_ = 0;
  lua_State* state_ = nullptr;  // made at the first call
  int library_ = 0;             // reference to the metatable of environments
  std::unordered_map<std::string, Compiled> functions_;
  std::list<std::string> by_use_;  // front: used last
};

}  // namespace tetrad::cql
