// SPDX-License-Identifier: Apache-2.0
// Every call gets an empty table as its globals, which reads from the sealed library. A hook counts
// instructions, the allocator counts bytes; library functions charge for what they do inside. Lua
// is the build that throws, so errors unwind our frames.
//
// A call:
//
// 1. open(): the Lua state is made when it is first needed and kept for the next calls.
// 2. The limits are set: steps (instructions, bytes written, work inside of library functions) and
//    bytes.
// 3. run(), in a protected call: the script is compiled or found, gets new globals, is called with
//    its arguments, and its result becomes a value.
// 4. The limits are lifted; garbage is collected after an error, and when much is held.
//
// Nothing of one call is visible to the next: globals are new, the library is sealed. A script can
// loop, recurse, build strings or tables as it likes: steps or memory run out, and the call fails.
// One engine belongs to one thread.
#include "cql/script/script_engine.h"

#include <algorithm>
#include <cstdlib>
#include <lua5.4/lua.hpp>

#include "base/assert.h"
#include "cql/script/lua_value.h"
#include "cql/types/strict_utf8.h"

namespace tetrad::cql {

namespace {

constexpr size_t kFunctionsMax = 256;
// How often the hook looks: a script may exceed its steps by so many.
constexpr int kInstructionsPerCount = 1000;
/// Longer texts are refused: one instruction may compare two of them.
constexpr size_t kStringBytesMax = 1u << 20;
/// Memory that is written costs as well.
constexpr uint64_t kBytesPerStep = 64;
/// Of what is compiled, in one piece.
constexpr size_t kBodyBytesMax = 256u << 10;
/// Of long strings, compared in one instruction.
constexpr uint64_t kBytesPerInstruction = 1024;
/// The key of a script is made and looked up at each call.
constexpr uint64_t kKeyBytesPerStep = 8;
/// What compiled functions may hold between calls.
constexpr size_t kIdleBytesMax = 32u << 20;

std::string source_of(const Script& script) {
  std::string source;
  if (!script.argument_names.empty()) {
    source = "local ";
    for (size_t i = 0; i < script.argument_names.size(); ++i) {
      if (i != 0) source += ", ";
      source += script.argument_names[i];
    }
    source += " = ... ";
  }
  return source + script.body;
}

bool is_lua_name(std::string_view name) {
  constexpr std::string_view kKeywords[] = {
      "and",      "break",  "do",   "else", "elseif", "end",  "false", "for",
      "function", "goto",   "if",   "in",   "local",  "nil",  "not",   "or",
      "repeat",   "return", "then", "true", "until",  "while"};
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (name.empty() || !is_letter(name[0])) return false;
  if (!std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); })) {
    return false;
  }
  return std::ranges::find(kKeywords, name) == std::end(kKeywords);
}

std::string error_text(lua_State* state) {
  size_t size = 0;
  const char* text = lua_type(state, -1) == LUA_TSTRING ? lua_tolstring(state, -1, &size) : nullptr;
  std::string out = text == nullptr ? "an error that is no text" : std::string(text, size);
  constexpr size_t kTextMax = 1000;
  if (out.size() > kTextMax) out.resize(kTextMax);
  return is_strict_utf8(out) ? out : "an error that is no text";
}

}  // namespace

// Of what compiled() makes.
constexpr lua_Integer kFunctionField = 1, kLongestField = 2;

struct ScriptEngine::Call {
  ScriptEngine* engine;
  const Script* script;
  std::span<const OptionalView> arguments;
  bool has_returned = false;  // the script; its result may still be refused
  OptionalBytes result = std::nullopt;
};

std::string Script::key() const {
  std::string out = name;
  // The name is part of the key: it stands in error texts.
  out.push_back('\0');
  return out + source_of(*this);
}

ScriptEngine::ScriptEngine(ScriptLimits limits) : limits_(limits) {}

ScriptEngine::~ScriptEngine() { close(); }

void ScriptEngine::close() {
  if (state_ != nullptr) lua_close(state_);
  state_ = nullptr;
  functions_.clear();
  by_use_.clear();
}

void* ScriptEngine::allocate(void* user, void* block, size_t old_size, size_t new_size) {
  auto& meter = *static_cast<LuaMeter*>(user);
  const size_t held = block == nullptr ? 0 : old_size;
  if (new_size == 0) {
    std::free(block);
    meter.bytes -= held;
    return nullptr;
  }
  if (new_size > held) {
    // Lua raises a memory error then, which ends the script.
    if (meter.bytes - held + new_size > meter.bytes_max) return nullptr;
    const uint64_t steps = (new_size - held) / kBytesPerStep;
    if (steps > meter.steps_left) {
      meter.steps_left = 0;
      return nullptr;
    }
    meter.steps_left -= steps;
  }
  if (block == nullptr && old_size == LUA_TSTRING) {  // the kind of what is made
    if (new_size > kStringBytesMax) return nullptr;
    meter.longest_string = std::max(meter.longest_string, new_size);
  }
  void* const out = std::realloc(block, new_size);
  if (out != nullptr) meter.bytes = meter.bytes - held + new_size;
  return out;
}

void ScriptEngine::on_count(lua_State* state, lua_Debug*) {
  charge(state,
         kInstructionsPerCount * (1 + meter_of(state).longest_string / kBytesPerInstruction));
}

Result<void> ScriptEngine::open() {
  if (state_ != nullptr) return {};
  meter_ = LuaMeter();
  meter_.steps_left = UINT64_MAX;
  state_ = lua_newstate(allocate, &meter_);
  if (state_ == nullptr) return fail(ErrorCode::kFunctionFailure, "no memory for Lua");
  // Library functions find the meter there without a look-up.
  *static_cast<LuaMeter**>(lua_getextraspace(state_)) = &meter_;
  lua_pushcfunction(state_, [](lua_State* state) {
    lua_newtable(state);
    push_library(state);
    lua_setfield(state, -2, "__index");
    lua_pushinteger(state, luaL_ref(state, LUA_REGISTRYINDEX));
    return 1;
  });
  if (lua_pcall(state_, 0, 1, 0) != LUA_OK) {
    const std::string text = error_text(state_);
    close();
    return fail(ErrorCode::kFunctionFailure, "Lua does not start: {}", text);
  }
  library_ = static_cast<int>(lua_tointeger(state_, -1));
  lua_settop(state_, 0);
  lua_sethook(state_, on_count, LUA_MASKCOUNT, kInstructionsPerCount);
  return {};
}

/// The reference of the compiled script and the length of its longest constant, in a table; in a
/// protected call.
int ScriptEngine::compiled(const Script& script) {
  std::string key = script.key();
  if (const auto found = functions_.find(key); found != functions_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second.used);
    return found->second.reference;
  }
  const std::string source = source_of(script);
  const std::string chunk = "=" + script.name;
  if (luaL_loadbufferx(state_, source.data(), source.size(), chunk.c_str(), "t") != LUA_OK) {
    lua_error(state_);
  }
  // So far nothing but the text has been read.
  const auto longest = static_cast<lua_Integer>(meter_.longest_string);
  lua_createtable(state_, 2, 0);
  lua_rotate(state_, -2, 1);
  lua_rawseti(state_, -2, kFunctionField);
  lua_pushinteger(state_, longest);
  lua_rawseti(state_, -2, kLongestField);
  const int reference = luaL_ref(state_, LUA_REGISTRYINDEX);
  by_use_.push_front(key);
  functions_.emplace(std::move(key), Compiled{reference, by_use_.begin()});
  // The one that was used longest ago goes; its text is compiled again if it comes back.
  if (functions_.size() > kFunctionsMax) {
    const auto oldest = functions_.find(by_use_.back());
    luaL_unref(state_, LUA_REGISTRYINDEX, oldest->second.reference);
    functions_.erase(oldest);
    by_use_.pop_back();
  }
  return reference;
}

int ScriptEngine::run(lua_State* state) {
  auto& call = *static_cast<Call*>(lua_touserdata(state, 1));
  const Script& script = *call.script;
  lua_rawgeti(state, LUA_REGISTRYINDEX, call.engine->compiled(script));
  lua_rawgeti(state, -1, kLongestField);
  LuaMeter& meter = meter_of(state);
  meter.longest_string =
      std::max(meter.longest_string, static_cast<size_t>(lua_tointeger(state, -1)));
  lua_pop(state, 1);
  lua_rawgeti(state, -1, kFunctionField);
  lua_remove(state, -2);
  lua_newtable(state);
  lua_rawgeti(state, LUA_REGISTRYINDEX, call.engine->library_);
  lua_setmetatable(state, -2);
  // The first upvalue of a chunk is _ENV, its globals.
  lua_setupvalue(state, -2, 1);
  luaL_checkstack(state, static_cast<int>(call.arguments.size()), "too many arguments");
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    push_value(state, *script.argument_types[i], call.arguments[i]);
  }
  lua_call(state, static_cast<int>(call.arguments.size()), 1);
  call.has_returned = true;
  call.result = value_at(state, lua_gettop(state), *script.return_type);
  return 0;
}

// As Cassandra's "User Defined Function … ran longer than …ms", with what bounds it here.
std::string ScriptEngine::work_text(const Script& script) const {
  return fmt::format(
      "User Defined Function {} does more work than {} steps in a call, which are allowed by "
      "user_defined_functions_steps_max",
      script.name, limits_.steps_max);
}

std::string ScriptEngine::memory_text(const Script& script) const {
  return fmt::format(
      "User Defined Function {} takes more memory than {} MB in a call, which are allowed by "
      "user_defined_functions_memory_mb, or makes a text of more than {} MB",
      script.name, limits_.memory_bytes_max >> 20, kStringBytesMax >> 20);
}

Result<OptionalBytes> ScriptEngine::call(const Script& script,
                                         std::span<const OptionalView> arguments) {
  TETRAD_ASSERT(arguments.size() == script.argument_types.size());
  TETRAD_TRY_VOID(open());
  meter_.steps_left = limits_.steps_max;
  meter_.bytes_max = meter_.bytes + limits_.memory_bytes_max;
  meter_.longest_string = 0;
  meter_.steps_left -= std::min<uint64_t>(meter_.steps_left, script.body.size() / kKeyBytesPerStep);
  Call call{this, &script, arguments};
  lua_pushcfunction(state_, run);
  lua_pushlightuserdata(state_, &call);
  const int status = lua_pcall(state_, 1, 0, 0);
  steps_used_ += limits_.steps_max - meter_.steps_left;
  const bool worked_too_much = meter_.steps_left == 0;
  // Collecting garbage and closing must not fail.
  meter_.steps_left = UINT64_MAX;
  std::string failure;
  if (status != LUA_OK)
    failure = worked_too_much        ? work_text(script)
              : status == LUA_ERRMEM ? memory_text(script)
              : call.has_returned    ? script.name + " returns a wrong value: " + error_text(state_)
                                     : error_text(state_);
  lua_settop(state_, 0);
  meter_.bytes_max = SIZE_MAX;
  if (status != LUA_OK) {
    lua_gc(state_, LUA_GCCOLLECT);
  } else if (meter_.bytes > kIdleBytesMax) {
    lua_gc(state_, LUA_GCCOLLECT);
    if (meter_.bytes > kIdleBytesMax) close();
  }
  if (status != LUA_OK) return fail(ErrorCode::kFunctionFailure, "{}", failure);
  return std::move(call.result);
}

Result<void> ScriptEngine::check(const Script& script) {
  if (script.body.size() > kBodyBytesMax) {
    return fail(ErrorCode::kInvalid, "The body of a function has {} bytes, at most {}",
                script.body.size(), kBodyBytesMax);
  }
  for (const std::string& name : script.argument_names) {
    if (!is_lua_name(name)) {
      return fail(ErrorCode::kInvalid, "Argument name '{}' is no name in Lua", name);
    }
  }
  // An engine of its own: a body that does not compile leaves nothing behind in the shard's.
  ScriptEngine engine{ScriptLimits()};
  TETRAD_TRY_VOID(engine.open());
  engine.meter_.bytes_max = engine.meter_.bytes + engine.limits_.memory_bytes_max;
  Call call{&engine, &script, {}};
  lua_pushcfunction(engine.state_, [](lua_State* state) {
    const auto& asked = *static_cast<Call*>(lua_touserdata(state, 1));
    asked.engine->compiled(*asked.script);
    return 0;
  });
  lua_pushlightuserdata(engine.state_, &call);
  if (lua_pcall(engine.state_, 1, 0, 0) != LUA_OK) {
    return fail(ErrorCode::kInvalid, "Lua source compilation failed: {}",
                error_text(engine.state_));
  }
  return {};
}

}  // namespace tetrad::cql
