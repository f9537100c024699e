// SPDX-License-Identifier: Apache-2.0
// Bodies of functions: what they find, what stops them, values both ways.
#include "cql/script/script_engine.h"

#include <catch2/catch.hpp>

#include "cql/types/literal.h"

namespace tetrad::cql {
namespace {

TypePtr type_of(std::string_view text) {
  return parse_type(text, [](std::string_view, std::string_view) { return TypePtr(); }).value();
}

Script script(std::string body, TypePtr type = int_type()) {
  return {"f", {}, std::move(body), {}, std::move(type)};
}

/// What a body without arguments returns, as CQL text; "error: ..." if it fails.
std::string run(ScriptEngine& engine, std::string body, std::string_view type = "int") {
  const TypePtr made = type_of(type);
  const auto result = engine.call(script(std::move(body), made), {});
  if (!result) {
    CHECK(result.error().code == ErrorCode::kFunctionFailure);
    return "error: " + result.error().message;
  }
  return *result ? to_cql_literal(*made, **result) : "null";
}

std::string run(std::string body, std::string_view type = "int") {
  ScriptEngine engine{ScriptLimits()};
  return run(engine, std::move(body), type);
}

constexpr const char* kTooMuchWork =
    "error: User Defined Function f does more work than 1000000 steps in a call, which are allowed "
    "by user_defined_functions_steps_max";

bool fails(std::string body) { return run(std::move(body)).starts_with("error: "); }

}  // namespace

TEST_CASE("a body finds safe libraries only") {
  CHECK(run("return math.floor(2.5) + #string.upper('ab') + utf8.len('ö')") == "5");
  CHECK(run("local t = {3, 1, 2} table.sort(t) return table.concat(t, ',')", "text") == "'1,2,3'");
  CHECK(run("return ('abc'):rep(2, '-')", "text") == "'abc-abc'");
  for (const char* name : {"io",           "os",
                           "load",         "loadstring",
                           "loadfile",     "dofile",
                           "require",      "package",
                           "debug",        "_G",
                           "coroutine",    "collectgarbage",
                           "print",        "pcall",
                           "xpcall",       "getmetatable",
                           "setmetatable", "rawset",
                           "rawget",       "next",
                           "math.random",  "math.randomseed",
                           "string.dump"}) {
    INFO(name);
    CHECK(run(std::string("return ") + name + " == nil and 1 or 0") == "1");
  }
}

TEST_CASE("calls and functions share nothing") {
  ScriptEngine engine{ScriptLimits()};
  CHECK(run(engine, "x = (x or 0) + 1 return x") == "1");
  CHECK(run(engine, "x = (x or 0) + 1 return x") == "1");
  CHECK(run(engine, "return x == nil and 1 or 0") == "1");
  CHECK(run(engine, "string.upper = nil return 1").starts_with("error: "));
  CHECK(run(engine, "math.pi = 3 return 1").starts_with("error: "));
  CHECK(run(engine, "string = nil return 1") == "1");
  CHECK(run(engine, "return ('a'):upper()", "text") == "'A'");
}

TEST_CASE("a body that never ends is stopped, whatever it does") {
  for (const char* body : {
           "while true do end",
           "local function f() return f() end return f()",
           "local function f() return 1 + f() end return f()",
           "local s = 'x' while true do s = s .. s end",
           "local t = {} while true do t[#t + 1] = {} end",
           "return #string.rep('x', 1 << 40)",
           "return #string.rep('', 1 << 40, 'x')",
           "return #string.format('%99999d', 1)",
           "local s = string.rep('a', 100000) return #string.find(s, string.rep('a?', 90) .. "
           "string.rep('a', 90) .. 'b')",
           "local s = string.rep('a', 60000) return string.find(s, '.-.-.-.-b') or 0",
           "local s = string.rep('a', 60000) return #string.gsub(s, '(.-)(.-)(.-)b', '%1')",
           "local s = string.rep('a', 900000) local n = 0 while true do if s < s .. 'b' then n = n "
           "+ 1 end end",
           "local s = string.rep('(', 90000) return #string.match(s, '%b()')",
           "local t = {} for i = 1, 10 do t[i] = i end return table.concat(t, ',', 1, 1 << 60)",
           "return select('#', table.unpack({}, 1, 1 << 30))",
           "return #table.move({}, 1, 1 << 60, 2)",
           "local t = {} for i = 1, 100 do t[i] = i end while true do table.sort(t) end",
           "for w in string.gmatch(string.rep('a', 90000), '.-.-.-b') do end",
           "while true do local s = string.rep('x', 500000):upper():reverse() end",
       }) {
    INFO(body);
    CHECK(fails(body));
  }
  ScriptEngine engine{ScriptLimits()};
  CHECK(run(engine, "while true do end") == kTooMuchWork);
  CHECK(run(engine, "return 7") == "7");
  CHECK(
      run(engine, "local t = {} while true do t[#t + 1] = ('x'):rep(100000 + #t) end") ==
      "error: User Defined Function f takes more memory than 16 MB in a call, which are allowed by "
      "user_defined_functions_memory_mb, or makes a text of more than 1 MB");
  CHECK(run(engine, "return 8") == "8");
  CHECK(engine.steps_used() >= 1'000'000);
}

TEST_CASE("errors of Lua say where") {
  CHECK(run("error('as told')") == "error: f:1: as told");
  CHECK(run("return nil + 1").starts_with("error: f:1: attempt to perform arithmetic"));
  CHECK(run("error({})") == "error: an error that is no text");
  CHECK(run("return 'a'") ==
        "error: f returns a wrong value: expected a value of type int, got a string");
  CHECK(run("return 1.5") == "error: f returns a wrong value: 1.5 is not a value of type int");
  CHECK(run("return 2147483648") ==
        "error: f returns a wrong value: 2147483648 is not a value of type int");
  CHECK(run("return 2.0") == "2");
  CHECK(run("return") == "null");
  CHECK(run("return '\\xff'", "text").starts_with("error: "));
}

TEST_CASE("long texts cost what their comparison takes, constants as well") {
  const std::string constants = "local x, y = '" + std::string(400'000, 'x') + "', '" +
                                std::string(400'000, 'x') + "y' local n = 0 ";
  const std::string compares = "if x < y then n = n + 1 end end return n";
  ScriptEngine engine{ScriptLimits()};
  CHECK(run(engine, constants + "for i = 1, 100 do " + compares) == "100");
  // Compiled before or not.
  for (int i = 0; i < 2; ++i) {
    CHECK(run(engine, constants + "for i = 1, 20000 do " + compares) == kTooMuchWork);
  }
  CHECK(run(engine, "local n = 0 for i = 1, 20000 do n = n + 1 end return n") == "20000");
}

TEST_CASE("library functions are charged for what they read") {
  const std::string number = "local s = string.rep('1', 1000000) ";
  CHECK(run(number + "return #tostring(tonumber(s)) > 0 and 1 or 0") == "1");
  CHECK(fails(number + "for i = 1, 100 do tonumber(s) end return 1"));
  CHECK(run("return string.packsize('i4i4')") == "8");
  CHECK(run("return string.unpack('>I2', string.pack('>I2', 513))") == "513");
  CHECK(fails("return string.packsize(string.rep('i4', 300000))"));
  CHECK(
      fails("local t = {} local s = string.rep('x', 500000) for i = 1, 10 do t[i] = s .. i end "
            "for i = 1, 100 do table.sort(t) end return 1"));
  CHECK(run("local t = {} for i = 1, 100 do t[i] = i end return select('#', table.unpack(t))") ==
        "100");
  CHECK(fails("local t = {} for i = 1, 10000 do t[i] = i end return select('#', table.unpack(t))"));
  CHECK(fails("return select('#', string.byte(string.rep('x', 10000), 1, -1))"));
  CHECK(run("return string.byte('abc', -1)") == "99");
  CHECK(run("return select('#', string.byte('abc', 1, -1))") == "3");
  // One instruction copies all arguments.
  CHECK(
      fails("local function f(...) local n = 0 for i = 1, 100000 do n = n + select('#', ...) end "
            "return n end local t = {} for i = 1, 8000 do t[i] = i end "
            "return f(table.unpack(t))"));
}

TEST_CASE("what does not compile is refused") {
  Script bad = script("return (");
  const auto checked = ScriptEngine::check(bad);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::kInvalid);
  CHECK(checked.error().message.starts_with("Lua source compilation failed: f:1: "));
  CHECK(ScriptEngine::check(script("return 1")));
  CHECK_FALSE(ScriptEngine::check(script("\x1bLua")));
  Script named{"f", {"end"}, "return 1", {int_type()}, int_type()};
  CHECK_FALSE(ScriptEngine::check(named));
}

TEST_CASE("values go both ways") {
  struct Case {
    const char *type, *body, *result;
  };
  for (const Case& c : {
           Case{"tinyint", "return -128", "-128"},
           {"bigint", "return math.maxinteger", "9223372036854775807"},
           {"varint", "return '123456789012345678901234567890'", "123456789012345678901234567890"},
           {"decimal", "return '1.50'", "1.50"},
           {"double", "return 1", "1.0"},
           {"boolean", "return 1 < 2", "true"},
           {"blob", "return '\\0\\255'", "0x00ff"},
           {"inet", "return '10.0.0.1'", "'10.0.0.1'"},
           {"date", "return 0", "'1970-01-01'"},
           {"duration", "return {months = 1, days = 2, nanoseconds = 3}", "1mo2d3ns"},
           {"list<int>", "return {1, 2}", "[1, 2]"},
           {"set<text>", "return {'b', 'a'}", "{'a', 'b'}"},
           {"map<text, int>", "return {b = 2, a = 1}", "{'a': 1, 'b': 2}"},
           {"tuple<int, text, int>", "return {1, nil, 3}", "(1, null, 3)"},
           {"vector<float, 2>", "return {1, 2}", "[1.0, 2.0]"},
           {"list<frozen<map<int, frozen<set<int>>>>>", "return {{[1] = {2, 1}}}", "[{1: {1, 2}}]"},
       }) {
    INFO(c.type << ": " << c.body);
    ScriptEngine engine{ScriptLimits()};
    const TypePtr type = type_of(c.type);
    CHECK(run(engine, c.body, c.type) == c.result);
    const auto made = engine.call(script(c.body, type), {});
    REQUIRE(made);
    const Script same{"same", {"x"}, "return x", {type}, type};
    const auto back = engine.call(same, std::array{OptionalView(**made)});
    REQUIRE(back);
    CHECK(*back == *made);
  }
  CHECK(run("return {1, 2}", "vector<float, 3>").starts_with("error: "));
  CHECK(run("return {1, 'x'}", "list<int>").starts_with("error: "));
}

TEST_CASE("keys come in the same order everywhere") {
  CHECK(run("local t = {c = 1, a = 2, [2] = 3, [1] = 4, [true] = 5} local s = '' "
            "for k in pairs(t) do s = s .. tostring(k) .. ' ' end return s",
            "text") == "'true 1 2 a c '");
}

}  // namespace tetrad::cql
