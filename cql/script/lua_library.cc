// SPDX-License-Identifier: Apache-2.0
// Functions of Lua's own library are taken as they are where their work is bounded by what they
// allocate; others are charged for it first, or written anew.
#include "cql/script/lua_library.h"

#include <algorithm>
#include <lua5.4/lua.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cql/script/lua_pattern.h"

namespace tetrad::cql {

namespace {

// Argument `index` as text; numbers are converted, as Lua's own library does. The view is good
// while the argument is on the stack.
std::string_view check_text(lua_State* state, int index) {
  size_t size = 0;
  const char* text = luaL_checklstring(state, index, &size);
  return {text, size};
}

/// A start counted from 1, or from the end when negative: as an offset.
size_t start_offset(lua_Integer start, size_t size) {
  if (start > 0) return static_cast<size_t>(start) - 1;
  if (start == 0 || start < -static_cast<lua_Integer>(size)) return 0;
  return size - static_cast<size_t>(-start);
}

// --- string ---

// Index 0 without captures is the whole match.
void push_capture(lua_State* state, const PatternMatcher& matcher, std::string_view subject,
                  size_t index, size_t start, size_t end) {
  if (index >= matcher.capture_count()) {
    if (index != 0) luaL_error(state, "invalid capture index %%%d", static_cast<int>(index + 1));
    lua_pushlstring(state, subject.data() + start, end - start);
    return;
  }
  const PatternMatcher::Capture& capture = matcher.capture(index);
  if (capture.kind == PatternMatcher::Capture::Kind::kPosition) {
    lua_pushinteger(state, static_cast<lua_Integer>(capture.start) + 1);
    return;
  }
  if (capture.kind == PatternMatcher::Capture::Kind::kOpen) {
    luaL_error(state, "unfinished capture");
  }
  lua_pushlstring(state, subject.data() + capture.start, capture.length);
}

/// All captures, or the whole match when there are none and `whole` is set.
int push_captures(lua_State* state, const PatternMatcher& matcher, std::string_view subject,
                  size_t start, size_t end, bool whole) {
  const size_t count = matcher.capture_count() == 0 && whole ? 1 : matcher.capture_count();
  luaL_checkstack(state, static_cast<int>(count), "too many captures");
  for (size_t i = 0; i < count; ++i) push_capture(state, matcher, subject, i, start, end);
  return static_cast<int>(count);
}

void check_error(lua_State* state, const PatternMatcher& matcher) {
  if (matcher.error() != nullptr) luaL_error(state, "%s", matcher.error());
}

// string.find and string.match: the former gives places first, and may search for plain text.
int find_or_match(lua_State* state, bool is_find) {
  const std::string_view subject = check_text(state, 1);
  std::string_view pattern = check_text(state, 2);
  const size_t from = start_offset(luaL_optinteger(state, 3, 1), subject.size());
  if (from > subject.size()) {
    lua_pushnil(state);
    return 1;
  }
  constexpr std::string_view kSpecials = "^$*+?.([%-";
  if (is_find && (lua_toboolean(state, 4) != 0 ||
                  pattern.find_first_of(kSpecials) == std::string_view::npos)) {
    charge(state, (subject.size() - from + pattern.size()) / 8);
    const size_t found = find_plain(subject, pattern, from);
    if (found == std::string_view::npos) {
      lua_pushnil(state);
      return 1;
    }
    lua_pushinteger(state, static_cast<lua_Integer>(found) + 1);
    lua_pushinteger(state, static_cast<lua_Integer>(found + pattern.size()));
    return 2;
  }
  const bool is_anchored = pattern.starts_with('^');
  if (is_anchored) pattern.remove_prefix(1);
  PatternMatcher matcher(subject, pattern, meter_of(state).steps_left);
  for (size_t start = from; start <= subject.size(); ++start) {
    const size_t end = matcher.match_at(start);
    check_error(state, matcher);
    if (end != PatternMatcher::kNone) {
      if (!is_find) return push_captures(state, matcher, subject, start, end, true);
      lua_pushinteger(state, static_cast<lua_Integer>(start) + 1);
      lua_pushinteger(state, static_cast<lua_Integer>(end));
      return 2 + push_captures(state, matcher, subject, start, end, false);
    }
    if (is_anchored) break;
  }
  lua_pushnil(state);
  return 1;
}

int string_find(lua_State* state) { return find_or_match(state, true); }
int string_match(lua_State* state) { return find_or_match(state, false); }

/// Upvalues: subject, pattern, next start, end of the last match (-1: none).
/// An empty match directly behind the last one is passed over, so that the iteration ends.
int gmatch_step(lua_State* state) {
  size_t size = 0;
  const char* text = lua_tolstring(state, lua_upvalueindex(1), &size);
  const std::string_view subject(text, size);
  text = lua_tolstring(state, lua_upvalueindex(2), &size);
  const std::string_view pattern(text, size);
  const lua_Integer last_end = lua_tointeger(state, lua_upvalueindex(4));
  PatternMatcher matcher(subject, pattern, meter_of(state).steps_left);
  for (auto start = static_cast<size_t>(lua_tointeger(state, lua_upvalueindex(3)));
       start <= subject.size(); ++start) {
    const size_t end = matcher.match_at(start);
    check_error(state, matcher);
    if (end == PatternMatcher::kNone || static_cast<lua_Integer>(end) == last_end) continue;
    lua_pushinteger(state, static_cast<lua_Integer>(end));
    lua_copy(state, -1, lua_upvalueindex(3));
    lua_replace(state, lua_upvalueindex(4));
    return push_captures(state, matcher, subject, start, end, true);
  }
  return 0;
}

// Matching begins when the iterator is called; what it keeps is in upvalues.
int string_gmatch(lua_State* state) {
  const std::string_view subject = check_text(state, 1);
  check_text(state, 2);
  const size_t from = start_offset(luaL_optinteger(state, 3, 1), subject.size());
  lua_settop(state, 2);
  lua_pushinteger(state, static_cast<lua_Integer>(std::min(from, subject.size() + 1)));
  lua_pushinteger(state, -1);
  lua_pushcclosure(state, gmatch_step, 4);
  return 1;
}

/// Appends what stands for one match of gsub; argument 3 says what.
void add_replacement(lua_State* state, std::string& out, const PatternMatcher& matcher,
                     std::string_view subject, size_t start, size_t end) {
  switch (lua_type(state, 3)) {
    case LUA_TFUNCTION:
      lua_pushvalue(state, 3);
      lua_call(state, push_captures(state, matcher, subject, start, end, true), 1);
      break;
    case LUA_TTABLE:
      push_capture(state, matcher, subject, 0, start, end);
      lua_rawget(state, 3);
      break;
    default: {
      const std::string_view by = check_text(state, 3);
      for (size_t i = 0; i < by.size(); ++i) {
        if (by[i] != '%') {
          out.push_back(by[i]);
          continue;
        }
        const char next = ++i < by.size() ? by[i] : '\0';
        if (next == '%') {
          out.push_back('%');
        } else if (next == '0') {
          out.append(subject.substr(start, end - start));
        } else if (next >= '1' && next <= '9') {
          push_capture(state, matcher, subject, static_cast<size_t>(next - '1'), start, end);
          size_t size = 0;
          const char* text = luaL_tolstring(state, -1, &size);
          out.append(text, size);
          lua_pop(state, 2);
        } else {
          luaL_error(state, "invalid use of '%%' in replacement string");
        }
        if (out.size() > meter_of(state).bytes_max) luaL_error(state, "not enough memory");
      }
      return;
    }
  }
  if (lua_toboolean(state, -1) == 0) {
    out.append(subject.substr(start, end - start));
  } else if (lua_isstring(state, -1) != 0) {
    size_t size = 0;
    const char* text = lua_tolstring(state, -1, &size);
    out.append(text, size);
  } else {
    luaL_error(state, "invalid replacement value (a %s)", luaL_typename(state, -1));
  }
  lua_pop(state, 1);
}

// The result is kept outside of Lua until it is whole, so its size is compared with the limit at
// each step.
int string_gsub(lua_State* state) {
  const std::string_view subject = check_text(state, 1);
  std::string_view pattern = check_text(state, 2);
  const int by = lua_type(state, 3);
  luaL_argexpected(
      state, by == LUA_TNUMBER || by == LUA_TSTRING || by == LUA_TFUNCTION || by == LUA_TTABLE, 3,
      "string/function/table");
  const lua_Integer replacements_max =
      luaL_optinteger(state, 4, static_cast<lua_Integer>(subject.size()) + 1);
  const bool is_anchored = pattern.starts_with('^');
  if (is_anchored) pattern.remove_prefix(1);
  PatternMatcher matcher(subject, pattern, meter_of(state).steps_left);
  std::string out;
  size_t at = 0, last_end = PatternMatcher::kNone;
  lua_Integer count = 0;
  while (count < replacements_max) {
    const size_t end = matcher.match_at(at);
    check_error(state, matcher);
    if (end != PatternMatcher::kNone && end != last_end) {
      ++count;
      add_replacement(state, out, matcher, subject, at, end);
      charge(state, 1 + out.size() / 65536);
      at = last_end = end;
    } else if (at < subject.size()) {
      out.push_back(subject[at++]);
    } else {
      break;
    }
    if (out.size() > meter_of(state).bytes_max) luaL_error(state, "not enough memory");
    if (is_anchored) break;
  }
  if (at < subject.size()) out.append(subject.substr(at));
  lua_pushlstring(state, out.data(), out.size());
  lua_pushinteger(state, count);
  return 2;
}

int string_rep(lua_State* state) {
  const std::string_view text = check_text(state, 1);
  const lua_Integer count = luaL_checkinteger(state, 2);
  const std::string_view separator = lua_isnoneornil(state, 3) ? "" : check_text(state, 3);
  if (count <= 0 || text.size() + separator.size() == 0) {
    lua_pushliteral(state, "");
    return 1;
  }
  const uint64_t each = text.size() + separator.size();
  // Before the memory is taken: std::string's is not counted by Lua's allocator.
  if (static_cast<uint64_t>(count) > meter_of(state).bytes_max / each) {
    return luaL_error(state, "resulting string too large");
  }
  charge(state, each * static_cast<uint64_t>(count) / 64);
  std::string out;
  out.reserve(each * static_cast<uint64_t>(count));
  for (lua_Integer i = 0; i < count; ++i) {
    out.append(text);
    if (i + 1 != count) out.append(separator);
  }
  lua_pushlstring(state, out.data(), out.size());
  return 1;
}

/// Upvalue: string.format. What would print an address is refused.
int string_format(lua_State* state) {
  const std::string_view format = check_text(state, 1);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') continue;
    i = format.find_first_not_of("-+ #0123456789.", i + 1);
    if (i == std::string_view::npos) break;
    if (format[i] == 'p') return luaL_error(state, "invalid conversion '%%p' to 'format'");
  }
  charge(state, format.size() / 16);
  const int count = lua_gettop(state);
  for (int i = 2; i <= count; ++i) {
    const int type = lua_type(state, i);
    if (type == LUA_TTABLE || type == LUA_TFUNCTION) {
      return luaL_error(state, "bad argument #%d to 'format' (a %s)", i, lua_typename(state, type));
    }
  }
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, count, 1);
  return 1;
}

// --- table ---

/// Calls upvalue 1 with the arguments given; the work was charged for.
int call_original(lua_State* state) {
  const int count = lua_gettop(state);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, count, LUA_MULTRET);
  return lua_gettop(state);
}

/// insert, remove: elements behind the position move.
int charged_by_size(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  const bool moves = lua_gettop(state) > 1 && lua_type(state, 2) == LUA_TNUMBER;
  if (moves) charge(state, lua_rawlen(state, 1) / 4);
  return call_original(state);
}

// n log n comparisons; those of strings cost by their length.
int charged_sort(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  const uint64_t size = lua_rawlen(state, 1);
  uint64_t rounds = 1;
  while ((size >> rounds) != 0) ++rounds;
  charge(state, size * rounds * (4 + meter_of(state).longest_string / 256));
  return call_original(state);
}

// For elements from first to last.
void charge_range(lua_State* state, lua_Integer first, lua_Integer last) {
  if (first > last) return;
  charge(state, static_cast<uint64_t>(last) - static_cast<uint64_t>(first));
}

/// So many values come out at once. One instruction may copy all of them, as it may compare two
/// long strings.
void charge_results(lua_State* state, lua_Integer first, lua_Integer last) {
  if (first > last) return;
  constexpr uint64_t kResultsMax = 8000, kValueBytes = 16;
  const uint64_t count = static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1;
  if (count > kResultsMax || count == 0) luaL_error(state, "too many results to unpack");
  charge(state, count);
  LuaMeter& meter = meter_of(state);
  meter.longest_string = std::max<size_t>(meter.longest_string, count * kValueBytes);
}

// Arguments 2 and 3 are the first and the last place.
int charged_move(lua_State* state) {
  charge_range(state, luaL_checkinteger(state, 2), luaL_checkinteger(state, 3));
  return call_original(state);
}

int charged_concat(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  charge_range(state, luaL_optinteger(state, 3, 1),
               luaL_optinteger(state, 4, static_cast<lua_Integer>(lua_rawlen(state, 1))));
  return call_original(state);
}

int charged_unpack(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  charge_results(state, luaL_optinteger(state, 2, 1),
                 luaL_optinteger(state, 3, static_cast<lua_Integer>(lua_rawlen(state, 1))));
  return call_original(state);
}

/// Library functions over strings: for the bytes they look at.
int charged_by_text(lua_State* state) {
  charge(state, check_text(state, 1).size() / 64);
  return call_original(state);
}

/// byte, codepoint: a value for each byte from one place to another, at most.
int charged_by_places(lua_State* state) {
  const auto size = static_cast<lua_Integer>(check_text(state, 1).size());
  const lua_Integer first = luaL_optinteger(state, 2, 1);
  lua_Integer last = luaL_optinteger(state, 3, first);
  if (last < 0) last = std::max<lua_Integer>(size + last + 1, 0);
  const lua_Integer from = first < 0 ? std::max<lua_Integer>(size + first + 1, 1) : first;
  charge_results(state, from, std::min(last, size));
  return call_original(state);
}

/// pack, packsize, unpack: every character of the format is a step and may be a value.
int charged_by_format(lua_State* state) {
  const size_t size = check_text(state, 1).size();
  charge_results(state, 1, static_cast<lua_Integer>(size));
  return call_original(state);
}

/// tonumber: a text is read to its end.
int charged_tonumber(lua_State* state) {
  if (lua_type(state, 1) == LUA_TSTRING) charge(state, check_text(state, 1).size() / 8);
  return call_original(state);
}

// --- basic functions ---

/// Without addresses: a table is "table".
int basic_tostring(lua_State* state) {
  luaL_checkany(state, 1);
  const int type = lua_type(state, 1);
  if (type == LUA_TTABLE || type == LUA_TFUNCTION) {
    lua_pushstring(state, lua_typename(state, type));
  } else {
    luaL_tolstring(state, 1, nullptr);
  }
  return 1;
}

struct SortKey {
  int type;  // booleans, numbers, texts
  bool is_integer;
  lua_Integer integer;
  lua_Number number;
  std::string_view text;  // the table holds it
};

// Booleans, numbers, texts; of equal numbers the integer first.
bool comes_first(const SortKey& a, const SortKey& b) {
  if (a.type != b.type) return a.type < b.type;
  if (a.type == LUA_TSTRING) return a.text < b.text;
  if (a.is_integer && b.is_integer) return a.integer < b.integer;
  return a.number < b.number || (a.number == b.number && a.is_integer && !b.is_integer);
}

/// Upvalues: table, its keys in order, the next one's place.
int pairs_step(lua_State* state) {
  while (true) {
    const lua_Integer at = lua_tointeger(state, lua_upvalueindex(3));
    lua_pushinteger(state, at + 1);
    lua_replace(state, lua_upvalueindex(3));
    if (lua_rawgeti(state, lua_upvalueindex(2), at) == LUA_TNIL) return 1;
    lua_pushvalue(state, -1);
    if (lua_rawget(state, lua_upvalueindex(1)) != LUA_TNIL) return 2;
    lua_pop(state, 2);  // removed meanwhile
    charge(state, 1);
  }
}

/// The order of Lua's own depends on the process; here keys come sorted, so that every node gives
/// the same answer.
int basic_pairs(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  std::vector<SortKey> keys;
  lua_pushnil(state);
  while (lua_next(state, 1) != 0) {
    lua_pop(state, 1);
    SortKey key{lua_type(state, -1), false, 0, 0, {}};
    if (key.type == LUA_TNUMBER) {
      key.is_integer = lua_isinteger(state, -1) != 0;
      key.integer = key.is_integer ? lua_tointeger(state, -1) : 0;
      key.number = lua_tonumber(state, -1);
    } else if (key.type == LUA_TSTRING) {
      size_t size = 0;
      const char* text = lua_tolstring(state, -1, &size);
      key.text = {text, size};
      charge(state, size / 16);
    } else if (key.type == LUA_TBOOLEAN) {
      key.is_integer = true;
      key.integer = lua_toboolean(state, -1);
    } else {
      return luaL_error(state, "pairs: a key is a %s", lua_typename(state, key.type));
    }
    keys.push_back(key);
    charge(state, 4);
  }
  std::sort(keys.begin(), keys.end(), comes_first);
  lua_pushvalue(state, 1);
  lua_createtable(state, static_cast<int>(std::min<size_t>(keys.size(), 1u << 24)), 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    const SortKey& key = keys[i];
    if (key.type == LUA_TSTRING) {
      lua_pushlstring(state, key.text.data(), key.text.size());
    } else if (key.type == LUA_TBOOLEAN) {
      lua_pushboolean(state, static_cast<int>(key.integer));
    } else if (key.is_integer) {
      lua_pushinteger(state, key.integer);
    } else {
      lua_pushnumber(state, key.number);
    }
    lua_rawseti(state, -2, static_cast<lua_Integer>(i) + 1);
  }
  lua_pushinteger(state, 1);
  lua_pushcclosure(state, pairs_step, 3);
  return 1;
}

// The metamethod of sealed tables.
int refuse_change(lua_State* state) { return luaL_error(state, "the library cannot be changed"); }

// --- how it is put together ---

/// Replaces field `name` of the table on top by `function` with the old one as its upvalue.
void wrap(lua_State* state, const char* name, lua_CFunction function) {
  lua_getfield(state, -1, name);
  lua_pushcclosure(state, function, 1);
  lua_setfield(state, -2, name);
}
// A function of ours in place of Lua's.
void set(lua_State* state, const char* name, lua_CFunction function) {
  lua_pushcfunction(state, function);
  lua_setfield(state, -2, name);
}
void remove(lua_State* state, const char* name) {
  lua_pushnil(state);
  lua_setfield(state, -2, name);
}

/// Replaces the table on top by an empty one that reads from it.
/// A function may keep nothing in the library: what it set would be there in the next call.
void seal(lua_State* state) {
  lua_newtable(state);
  lua_newtable(state);
  lua_rotate(state, -3, -1);
  lua_setfield(state, -2, "__index");
  lua_pushcfunction(state, refuse_change);
  lua_setfield(state, -2, "__newindex");
  lua_pushboolean(state, 0);
  lua_setfield(state, -2, "__metatable");
  lua_setmetatable(state, -2);
}

// dump would show bytecode, which a function could not load anyway.
void push_string_library(lua_State* state) {
  luaL_requiref(state, "string", luaopen_string, 0);
  remove(state, "dump");
  set(state, "find", string_find);
  set(state, "match", string_match);
  set(state, "gmatch", string_gmatch);
  set(state, "gsub", string_gsub);
  set(state, "rep", string_rep);
  wrap(state, "format", string_format);
  for (const char* name : {"upper", "lower", "reverse"}) wrap(state, name, charged_by_text);
  for (const char* name : {"pack", "packsize", "unpack"}) wrap(state, name, charged_by_format);
  wrap(state, "byte", charged_by_places);
  // ("x"):upper() finds the same functions.
  lua_pushliteral(state, "");
  lua_getmetatable(state, -1);
  lua_pushvalue(state, -3);
  lua_setfield(state, -2, "__index");
  lua_pushboolean(state, 0);
  lua_setfield(state, -2, "__metatable");
  lua_pop(state, 2);
  seal(state);
}

// Each is charged for what it moves or copies inside one call.
void push_table_library(lua_State* state) {
  luaL_requiref(state, "table", luaopen_table, 0);
  wrap(state, "insert", charged_by_size);
  wrap(state, "remove", charged_by_size);
  wrap(state, "sort", charged_sort);
  wrap(state, "move", charged_move);
  wrap(state, "concat", charged_concat);
  wrap(state, "unpack", charged_unpack);
  seal(state);
}

// Random numbers would differ between nodes.
void push_math_library(lua_State* state) {
  luaL_requiref(state, "math", luaopen_math, 0);
  remove(state, "random");
  remove(state, "randomseed");
  seal(state);
}

void push_utf8_library(lua_State* state) {
  luaL_requiref(state, "utf8", luaopen_utf8, 0);
  for (const char* name : {"len", "offset", "codes"}) wrap(state, name, charged_by_text);
  wrap(state, "codepoint", charged_by_places);
  seal(state);
}

}  // namespace

LuaMeter& meter_of(lua_State* state) { return **static_cast<LuaMeter**>(lua_getextraspace(state)); }

int charge(lua_State* state, uint64_t steps) {
  LuaMeter& meter = meter_of(state);
  if (meter.steps_left < steps) {
    meter.steps_left = 0;
    return luaL_error(state, "the function does too much work");
  }
  meter.steps_left -= steps;
  return 0;
}

// A fresh table with chosen functions: load, require, print, pcall and the like are not in it.
void push_library(lua_State* state) {
  lua_newtable(state);
  luaL_requiref(state, "_G", luaopen_base, 0);
  for (const char* name : {"assert", "error", "ipairs", "select", "tonumber", "type"}) {
    lua_getfield(state, -1, name);
    lua_setfield(state, -3, name);
  }
  lua_pop(state, 1);
  wrap(state, "tonumber", charged_tonumber);
  set(state, "pairs", basic_pairs);
  set(state, "tostring", basic_tostring);
  push_string_library(state);
  lua_setfield(state, -2, "string");
  push_table_library(state);
  lua_setfield(state, -2, "table");
  push_math_library(state);
  lua_setfield(state, -2, "math");
  push_utf8_library(state);
  lua_setfield(state, -2, "utf8");
}

}  // namespace tetrad::cql
