// SPDX-License-Identifier: Apache-2.0
// CQL values as Lua values and back. Integers are Lua integers, floats numbers, text and blobs
// strings, collections tables (lists from 1), user types tables by field name, null is nil;
// decimals, and varints beyond 64 bits, are strings of their digits. Errors are Lua's, which are
// exceptions in this build (script_engine.cc): locals are destroyed on the way.
#include "cql/script/lua_value.h"

#include <cmath>
#include <limits>
#include <lua5.4/lua.hpp>
#include <string>

#include "cql/types/empty_value.h"
#include "cql/types/literal.h"
#include "cql/types/number.h"

namespace tetrad::cql {

namespace {

/// The value of a Result, or a Lua error with its message.
template <class T>
T take(lua_State* state, Result<T> result) {
  if (!result) luaL_error(state, "%s", result.error().message.c_str());
  return std::move(*result);
}

// Lua copies the bytes: it may keep them.
void push_text(lua_State* state, BytesView text) {
  lua_pushlstring(state, text.data(), text.size());
}

// Places count from 1, as Lua's.
void push_items(lua_State* state, const DataType& type, std::span<const BytesView> items) {
  lua_createtable(state, static_cast<int>(items.size()), 0);
  for (size_t i = 0; i < items.size(); ++i) {
    push_value(state, type, items[i]);
    lua_rawseti(state, -2, static_cast<lua_Integer>(i) + 1);
  }
}

// Fields that are null leave a gap in the table: reading them gives nil.
void push_fields(lua_State* state, const DataType& type, BytesView value) {
  const auto fields = take(state, split_tuple(type, value));
  lua_newtable(state);
  for (size_t i = 0; i < fields.size(); ++i) {
    push_value(state, *type.components()[i], fields[i]);
    if (type.kind() == TypeKind::kUdt) {
      push_text(state, type.field_names()[i]);
      lua_insert(state, -2);
      lua_rawset(state, -3);
    } else {
      lua_rawseti(state, -2, static_cast<lua_Integer>(i) + 1);
    }
  }
}

// {months = m, days = d, nanoseconds = n}.
void push_duration(lua_State* state, const Duration& duration) {
  lua_createtable(state, 0, 3);
  lua_pushinteger(state, duration.months);
  lua_setfield(state, -2, "months");
  lua_pushinteger(state, duration.days);
  lua_setfield(state, -2, "days");
  lua_pushinteger(state, duration.nanos);
  lua_setfield(state, -2, "nanoseconds");
}

// "expected a value of type int, got a string".
[[noreturn]] void refuse(lua_State* state, int index, const DataType& type) {
  const std::string name = type.cql_text();
  luaL_error(state, "expected a value of type %s, got a %s", name.c_str(),
             luaL_typename(state, index));
  __builtin_unreachable();  // luaL_error does not return
}

// Strings that look like numbers are refused: Lua would convert them silently.
lua_Integer integer_at(lua_State* state, int index, const DataType& type, int64_t least,
                       int64_t most) {
  int is_integer = 0;
  if (lua_type(state, index) != LUA_TNUMBER) refuse(state, index, type);
  const lua_Integer value = lua_tointegerx(state, index, &is_integer);
  if (is_integer == 0 || value < least || value > most) {
    const std::string name = type.cql_text();
    luaL_error(state, "%s is not a value of type %s", luaL_tolstring(state, index, nullptr),
               name.c_str());
  }
  return value;
}

template <class T>
lua_Integer integer_at(lua_State* state, int index, const DataType& type) {
  return integer_at(state, index, type, std::numeric_limits<T>::min(),
                    std::numeric_limits<T>::max());
}

// A view of Lua's own memory, good while the value is on the stack.
std::string_view text_at(lua_State* state, int index, const DataType& type) {
  if (lua_type(state, index) != LUA_TSTRING) refuse(state, index, type);
  size_t size = 0;
  const char* text = lua_tolstring(state, index, &size);
  return {text, size};
}

/// varint and decimal: a number or its digits.
/// A float that has no fraction is taken for a varint, 1e300 as well.
Bytes wide_number_at(lua_State* state, int index, const DataType& type) {
  if (lua_isinteger(state, index) != 0) {
    const lua_Integer value = lua_tointeger(state, index);
    return type.kind() == TypeKind::kVarint ? make_varint(value) : decimal_from_int64(value);
  }
  if (lua_type(state, index) == LUA_TNUMBER) {
    const lua_Number value = lua_tonumber(state, index);
    if (type.kind() == TypeKind::kDecimal) return take(state, decimal_from_double(value));
    if (!std::isfinite(value) || value != std::trunc(value)) {
      luaL_error(state, "%f is not a value of type varint", value);
    }
    return varint_from_double(value);
  }
  return take(state, from_string(type, text_at(state, index, type)));
}

// A field that is not there is 0.
lua_Integer duration_field(lua_State* state, int index, const char* name, int64_t least,
                           int64_t most) {
  lua_getfield(state, index, name);
  const lua_Integer value =
      lua_isnil(state, -1) ? 0 : integer_at(state, -1, *duration_type(), least, most);
  lua_pop(state, 1);
  return value;
}

Bytes duration_at(lua_State* state, int index) {
  constexpr int64_t kInt = std::numeric_limits<int32_t>::max();
  constexpr int64_t kLong = std::numeric_limits<int64_t>::max();
  Duration duration;
  duration.months = static_cast<int32_t>(duration_field(state, index, "months", -kInt, kInt));
  duration.days = static_cast<int32_t>(duration_field(state, index, "days", -kInt, kInt));
  duration.nanos = duration_field(state, index, "nanoseconds", -kLong, kLong);
  return make_duration(duration);
}

/// Lists, sets and vectors.
/// By rawlen: a list with nils in it may end at any of them, as Lua defines its length.
Bytes items_at(lua_State* state, int index, const DataType& type) {
  const auto size = lua_rawlen(state, index);
  const bool is_vector = type.kind() == TypeKind::kVector;
  if (is_vector && size != type.dimension()) {
    luaL_error(state, "expected %d elements of a vector, got %d",
               static_cast<int>(type.dimension()), static_cast<int>(size));
  }
  std::vector<Bytes> items;
  for (size_t i = 1; i <= size; ++i) {
    lua_rawgeti(state, index, static_cast<lua_Integer>(i));
    OptionalBytes item = value_at(state, lua_gettop(state), *type.element());
    lua_pop(state, 1);
    if (!item) luaL_error(state, "nil is no element of a collection");
    items.push_back(std::move(*item));
  }
  std::vector<BytesView> views(items.begin(), items.end());
  if (is_vector) return join_vector(type, views);
  return type.kind() == TypeKind::kSet ? join_sorted_set(*type.element(), std::move(views))
                                       : join_list(views);
}

// lua_next() gives keys in no order; join_sorted_map() makes one value of them on every node.
Bytes map_at(lua_State* state, int index, const DataType& type) {
  std::vector<std::pair<Bytes, Bytes>> entries;
  lua_pushnil(state);
  while (lua_next(state, index) != 0) {
    const int top = lua_gettop(state);
    OptionalBytes key = value_at(state, top - 1, *type.key());
    OptionalBytes value = value_at(state, top, *type.value());
    if (!key || !value) luaL_error(state, "nil is no element of a collection");
    entries.emplace_back(std::move(*key), std::move(*value));
    lua_pop(state, 1);
  }
  std::vector<std::pair<BytesView, BytesView>> views(entries.begin(), entries.end());
  return join_sorted_map(*type.key(), std::move(views));
}

// Fields that the table lacks are null.
Bytes fields_at(lua_State* state, int index, const DataType& type) {
  std::vector<OptionalBytes> fields;
  for (size_t i = 0; i < type.components().size(); ++i) {
    if (type.kind() == TypeKind::kUdt) {
      push_text(state, type.field_names()[i]);
      lua_rawget(state, index);
    } else {
      lua_rawgeti(state, index, static_cast<lua_Integer>(i) + 1);
    }
    fields.push_back(value_at(state, lua_gettop(state), *type.components()[i]));
    lua_pop(state, 1);
  }
  std::vector<OptionalView> views(fields.begin(), fields.end());
  return join_tuple(views);
}

// Types that are tables in Lua. The stack is checked first: values nest as deep as their types.
Bytes table_at(lua_State* state, int index, const DataType& type) {
  if (lua_type(state, index) != LUA_TTABLE) refuse(state, index, type);
  luaL_checkstack(state, 8, "the value nests too deep");
  switch (type.kind()) {
    case TypeKind::kDuration:
      return duration_at(state, index);
    case TypeKind::kMap:
      return map_at(state, index, type);
    case TypeKind::kTuple:
    case TypeKind::kUdt:
      return fields_at(state, index, type);
    default:
      return items_at(state, index, type);
  }
}

// One table: each type and what it takes of Lua.
Bytes bytes_at(lua_State* state, int index, const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kTinyint:
      return make_tinyint(static_cast<int8_t>(integer_at<int8_t>(state, index, type)));
    case TypeKind::kSmallint:
      return make_smallint(static_cast<int16_t>(integer_at<int16_t>(state, index, type)));
    case TypeKind::kInt:
      return make_int(static_cast<int32_t>(integer_at<int32_t>(state, index, type)));
    case TypeKind::kBigint:
    case TypeKind::kCounter:
    case TypeKind::kTimestamp:
    case TypeKind::kTime:
      return make_bigint(integer_at<int64_t>(state, index, type));
    case TypeKind::kDate:
      return make_date_of_days(integer_at<int32_t>(state, index, type));
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      if (lua_type(state, index) != LUA_TNUMBER) refuse(state, index, type);
      const lua_Number value = lua_tonumber(state, index);
      return type.kind() == TypeKind::kFloat ? make_float(static_cast<float>(value))
                                             : make_double(value);
    }
    case TypeKind::kVarint:
    case TypeKind::kDecimal:
      return wide_number_at(state, index, type);
    case TypeKind::kBoolean:
      if (lua_type(state, index) != LUA_TBOOLEAN) refuse(state, index, type);
      return make_boolean(lua_toboolean(state, index) != 0);
    case TypeKind::kUuid:
    case TypeKind::kTimeuuid:
    case TypeKind::kInet:
      return take(state, from_string(type, text_at(state, index, type)));
    case TypeKind::kText:
    case TypeKind::kAscii:
    case TypeKind::kBlob:
    case TypeKind::kCustom:
    case TypeKind::kEmpty:
      return Bytes(text_at(state, index, type));
    default:
      return table_at(state, index, type);
  }
}

}  // namespace

// One table: each type and what Lua sees of it. Bytes that are not of the type read as 0.
void push_value(lua_State* state, const DataType& type, OptionalView optional) {
  luaL_checkstack(state, 8, "the value nests too deep");
  if (counts_as_null(type, optional)) {
    lua_pushnil(state);
    return;
  }
  const BytesView value = *optional;
  switch (type.kind()) {
    case TypeKind::kTinyint:
      return lua_pushinteger(state, read_tinyint(value).value_or(0));
    case TypeKind::kSmallint:
      return lua_pushinteger(state, read_smallint(value).value_or(0));
    case TypeKind::kInt:
      return lua_pushinteger(state, read_int(value).value_or(0));
    case TypeKind::kBigint:
    case TypeKind::kCounter:
    case TypeKind::kTimestamp:
    case TypeKind::kTime:
      return lua_pushinteger(state, read_bigint(value).value_or(0));
    case TypeKind::kDate:
      return lua_pushinteger(
          state, static_cast<int64_t>(read_date(value).value_or(0)) - (int64_t{1} << 31));
    case TypeKind::kFloat:
      return lua_pushnumber(state, static_cast<double>(read_float(value).value_or(0)));
    case TypeKind::kDouble:
      return lua_pushnumber(state, read_double(value).value_or(0));
    case TypeKind::kBoolean:
      return lua_pushboolean(state, read_boolean(value).value_or(false) ? 1 : 0);
    case TypeKind::kVarint:
      if (const auto fits = varint_to_int64(value)) return lua_pushinteger(state, *fits);
      return push_text(state, to_string(type, value));
    case TypeKind::kDecimal:
    case TypeKind::kUuid:
    case TypeKind::kTimeuuid:
    case TypeKind::kInet:
      return push_text(state, to_string(type, value));
    case TypeKind::kDuration:
      return push_duration(state, read_duration(value).value_or(Duration{}));
    case TypeKind::kList:
    case TypeKind::kSet:
      return push_items(state, *type.element(), take(state, split_list(value)));
    case TypeKind::kVector:
      return push_items(state, *type.element(), take(state, split_vector(type, value)));
    case TypeKind::kMap: {
      const auto entries = take(state, split_map(value));
      lua_createtable(state, 0, static_cast<int>(entries.size()));
      for (const auto& [key, mapped] : entries) {
        push_value(state, *type.key(), key);
        push_value(state, *type.value(), mapped);
        if (lua_isnil(state, -2)) luaL_error(state, "an empty value is no key of a table");
        lua_settable(state, -3);  // an error for NaN
      }
      return;
    }
    case TypeKind::kTuple:
    case TypeKind::kUdt:
      return push_fields(state, type, value);
    default:
      return push_text(state, value);
  }
}

OptionalBytes value_at(lua_State* state, int index, const DataType& type) {
  if (lua_isnil(state, index)) return std::nullopt;
  Bytes bytes = bytes_at(state, index, type);
  const auto valid = validate(type, bytes);
  if (!valid) luaL_error(state, "%s", valid.error().message.c_str());
  return bytes;
}

}  // namespace tetrad::cql
