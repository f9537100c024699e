// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/random_statement.h"

#include <iterator>
#include <vector>

#include "cql/grammar/lexer.h"

namespace tetrad::tests {
namespace {

constexpr std::string_view kNames[] = {"k",  "c",  "d",  "s",  "v",  "m",    "l",       "e",  "i",
                                       "bi", "si", "vi", "de", "f",  "t",    "a",       "b",  "u",
                                       "tu", "ts", "da", "du", "ip", "fl",   "fm",      "fu", "nu",
                                       "tp", "ve", "ms", "n",  "g",  "\"\"", "\"Q q\"", "bo"};
constexpr std::string_view kTables[] = {
    "t", "w", "r", "n", "system.local", "system_schema.columns"};
constexpr std::string_view kNatives[] = {"int",    "text",    "counter",   "duration", "bigint",
                                         "blob",   "decimal", "date",      "timeuuid", "empty",
                                         "varint", "inet",    "timestamp", "time"};
constexpr std::string_view kClasses[] = {"Int32Type",
                                         "UTF8Type",
                                         "CounterColumnType",
                                         "DurationType",
                                         "LongType",
                                         "EmptyType",
                                         "BytesType",
                                         "DateType",
                                         "LexicalUUIDType",
                                         "CompositeType",
                                         "no.Such",
                                         "org.apache.cassandra.db."
                                         "marshal.IntegerType"};
constexpr std::string_view kFunctions[] = {"floor",
                                           "token",
                                           "to_json",
                                           "mintimeuuid",
                                           "maxtimeuuid",
                                           "to_date",
                                           "map_keys",
                                           "abs",
                                           "collection_max",
                                           "blob_as_int",
                                           "int_as_blob",
                                           "f",
                                           "g",
                                           "count",
                                           "sum",
                                           "max",
                                           "round",
                                           "mask_inner",
                                           "mask_default",
                                           "mask_replace",
                                           "mask_hash",
                                           "similarity_cosine",
                                           "to_timestamp",
                                           "writetime",
                                           "ttl",
                                           "system.now",
                                           "map_values",
                                           "to_unix_timestamp"};
constexpr std::string_view kOperators[] = {"=",
                                           "<",
                                           ">",
                                           "<=",
                                           ">=",
                                           "!=",
                                           "CONTAINS",
                                           "IN",
                                           "CONTAINS KEY",
                                           "NOT CONTAINS",
                                           "LIKE",
                                           "NOT IN",
                                           "NOT CONTAINS KEY",
                                           "IS NOT"};
constexpr std::string_view kLiterals[] = {"1",
                                          "0",
                                          "-1",
                                          "null",
                                          "?",
                                          ":n",
                                          "''",
                                          "'a'",
                                          "true",
                                          "NaN",
                                          "-Infinity",
                                          "1.5",
                                          "1e308",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "99999999999999999999",
                                          "1E-2147483647",
                                          "0x",
                                          "0x00",
                                          "1mo",
                                          "1mo1ms",
                                          "89478485y",
                                          "1d1ns",
                                          "-1d",
                                          "P1Y",
                                          "'2020-01-01'",
                                          "'12:00:00'",
                                          "123e4567-e89b-42d3-a456-426614174000",
                                          "50554d6e-29bb-11e5-b345-feff819cdc9f",
                                          "'127.0.0.1'",
                                          "[]",
                                          "{}",
                                          "[1, 2]",
                                          "{1, 2}",
                                          "{'a': 1}",
                                          "{x: 1}",
                                          "(1, 'a')",
                                          "[1, 2, 3]",
                                          "'\xC0\x80'",
                                          "'\xED\xA0\x80'",
                                          "'{\"k\": 1}'",
                                          "now()",
                                          "uuid()",
                                          "(int)1",
                                          "1 + 2",
                                          "- 3",
                                          "'::'"};

std::string class_name(Choices& c, int depth) {
  if (depth <= 0 || c.below(3) == 0) return c.of(kClasses);
  constexpr std::string_view kMade[] = {"ListType",   "SetType",      "MapType",   "TupleType",
                                        "FrozenType", "ReversedType", "VectorType"};
  const size_t made = c.below(std::size(kMade) + 1);
  if (made == std::size(kMade)) {
    constexpr std::string_view kHex[] = {"75", "76", "78", "c080", "00", "7"};
    std::string out = "UserType(ks," + c.of(kHex);
    for (size_t i = c.below(3); i > 0; --i)
      out += "," + c.of(kHex) + ":" + class_name(c, depth - 1);
    return out + ")";
  }
  std::string out = std::string(kMade[made]) + "(";
  const size_t parts = made == 2 ? 2 : made == 3 ? c.below(4) : 1;
  for (size_t i = 0; i < parts; ++i) out += (i == 0 ? "" : ",") + class_name(c, depth - 1);
  if (made == 6) out += " , " + std::to_string(c.below(5));
  return out + ")";
}

std::string type(Choices& c, int depth) {
  if (depth <= 0 || c.below(3) == 0) return c.of(kNatives);
  switch (c.below(9)) {
    case 0:
      return "list<" + type(c, depth - 1) + ">";
    case 1:
      return "set<" + type(c, depth - 1) + ">";
    case 2: {
      const std::string key = type(c, depth - 1);
      return "map<" + key + ", " + type(c, depth - 1) + ">";
    }
    case 3: {
      std::string out = "tuple<" + type(c, depth - 1);
      for (size_t i = c.below(3); i > 0; --i) out += ", " + type(c, depth - 1);
      return out + ">";
    }
    case 4:
      return "vector<" + type(c, depth - 1) + ", " + std::to_string(c.below(4)) + ">";
    case 5:
      return "frozen<" + type(c, depth - 1) + ">";
    case 6:
      return "'" + class_name(c, 3) + "'";
    case 7: {  // as deep as it goes
      std::string out;
      const size_t levels = c.below(80);
      const bool frozen = c.one_in(2);
      for (size_t i = 0; i < levels; ++i) out += frozen ? "frozen<tuple<" : "tuple<";
      return out + "int" + std::string(frozen ? 2 * levels : levels, '>');
    }
    default:
      return c.one_in(2) ? "u" : "frozen<v>";
  }
}

std::string term(Choices& c, int depth) {
  switch (depth <= 0 ? 0 : c.below(6)) {
    case 1: {
      std::string out = c.of(kFunctions) + "(" + term(c, depth - 1);
      for (size_t i = c.below(3); i > 0; --i) out += ", " + term(c, depth - 1);
      return out + ")";
    }
    case 2: {
      constexpr std::string_view kSigns[] = {" + ", " - ", " * ", " / ", " % "};
      const std::string left = term(c, depth - 1), sign = c.of(kSigns);
      return left + sign + term(c, depth - 1);
    }
    case 3: {
      constexpr std::string_view kOpen[] = {"[", "{", "("};
      constexpr std::string_view kShut[] = {"]", "}", ")"};
      const size_t which = c.below(3);
      const bool pairs = which == 1 && c.one_in(2);
      std::string out(kOpen[which]);
      for (size_t i = 1 + c.below(3); i > 0; --i) {
        out += term(c, depth - 1);
        if (pairs) out += ": " + term(c, depth - 1);
        if (i > 1) out += ", ";
      }
      return out += kShut[which];
    }
    case 4:
      return "(" + type(c, 2) + ")" + term(c, depth - 1);
    default:
      return c.of(kLiterals);
  }
}

std::string selector(Choices& c, int depth) {
  switch (depth <= 0 ? 0 : c.below(8)) {
    case 1: {
      std::string out = c.of(kFunctions) + "(" + selector(c, depth - 1);
      for (size_t i = c.below(3); i > 0; --i) out += ", " + selector(c, depth - 1);
      return out + ")";
    }
    case 2:
      return "cast(" + selector(c, depth - 1) + " AS " + c.of(kNatives) + ")";
    case 3:
      return c.of(kNames) + "." + c.of(kNames);
    case 4:
      return c.of(kNames) + "[" + term(c, 1) + (c.one_in(2) ? ".." + term(c, 1) : "") + "]";
    case 5: {
      const std::string left = selector(c, depth - 1);
      return left + (c.one_in(2) ? " + " : " - ") + selector(c, depth - 1);
    }
    case 6:
      return term(c, depth - 1);
    case 7:
      return "(" + selector(c, depth - 1) + ", " + selector(c, depth - 1) + ")";
    default:
      return c.of(kNames);
  }
}

std::string relations(Choices& c) {
  std::string out = " WHERE ";
  for (size_t i = 1 + c.below(3); i > 0; --i) {
    switch (c.below(6)) {
      case 1:
        out += "token(" + c.of(kNames) + ") " + c.of(kOperators) + " " + term(c, 1);
        break;
      case 2:
        out += "(" + c.of(kNames) + ", " + c.of(kNames) + ") " + c.of(kOperators) + " (" +
               term(c, 1) + ", " + term(c, 1) + ")";
        break;
      case 3:
        out += c.of(kNames) + "[" + term(c, 1) + "] = " + term(c, 1);
        break;
      case 4:
        out += c.of(kNames) + " IN (" + term(c, 1) + ", " + term(c, 1) + ")";
        break;
      default:
        out += c.of(kNames) + " " + c.of(kOperators) + " " + term(c, 2);
    }
    if (i > 1) out += " AND ";
  }
  return out;
}

/// Of a write: none mostly.
std::string conditions(Choices& c) {
  switch (c.below(6)) {
    case 1:
      return " IF EXISTS";
    case 2:
    case 3: {
      std::string out = " IF ";
      for (size_t i = 1 + c.below(3); i > 0; --i) {
        out += c.of(kNames);
        if (c.one_in(3)) out += c.one_in(2) ? "[" + term(c, 1) + "]" : "." + c.of(kNames);
        out += c.one_in(4) ? " IN (" + term(c, 1) + ", " + term(c, 1) + ")"
                           : " " + c.of(kOperators) + " " + term(c, 2);
        if (i > 1) out += " AND ";
      }
      return out;
    }
    default:
      return "";
  }
}

std::string any_word(Choices& c) {
  switch (c.below(6)) {
    case 0:
      return c.of(kNames);
    case 1:
      return term(c, 2);
    case 2:
      return type(c, 3);
    case 3:
      return c.of(kOperators);
    case 4:
      return c.of(kFunctions);
    default:
      return c.of(kTables);
  }
}

}  // namespace

std::string random_statement(Choices& c) {
  switch (c.below(12)) {
    case 0:
      return "CREATE TYPE n (" + c.of(kNames) + " " + type(c, 4) + ", b " + type(c, 3) + ")";
    case 1:
      return "CREATE TABLE n (k " + type(c, 3) + ", c " + type(c, 3) + ", v " + type(c, 4) +
             (c.one_in(4) ? " static" : "") + ", PRIMARY KEY (k" + (c.one_in(2) ? ", c))" : "))");
    case 2:
      if (c.one_in(4))
        return "ALTER TABLE " + c.of(kTables) + " ALTER " + c.of(kNames) + " MASKED WITH " +
               c.of(kFunctions) + "(" + (c.one_in(2) ? "" : term(c, 2)) + ")";
      return "ALTER TABLE " + c.of(kTables) + (c.one_in(3) ? " DROP " : " ADD ") + c.of(kNames) +
             (c.one_in(4) ? "" : " " + type(c, 4));
    case 3:
      return std::string("ALTER TYPE ") + (c.one_in(2) ? "u" : "n") + " ADD " + c.of(kNames) + " " +
             type(c, 4);
    case 4:
      return "CREATE FUNCTION h (a " + type(c, 3) + ") CALLED ON NULL INPUT RETURNS " + type(c, 3) +
             " LANGUAGE lua AS 'return a'";
    case 5: {
      constexpr std::string_view kDropped[] = {"TABLE t",    "TABLE n",    "TYPE u",
                                               "TYPE n",     "TYPE v",     "FUNCTION f",
                                               "FUNCTION h", "AGGREGATE g"};
      return "DROP " + c.of(kDropped);
    }
    case 6:
      return "UPDATE " + c.of(kTables) + " SET " + c.of(kNames) + " = " + term(c, 2) + ", " +
             c.of(kNames) + "[" + term(c, 1) + "] = " + term(c, 1) + relations(c) + conditions(c);
    case 7:
      return "DELETE " + (c.one_in(2) ? c.of(kNames) : c.of(kNames) + "[" + term(c, 1) + "]") +
             " FROM " + c.of(kTables) + relations(c) + conditions(c);
    case 8: {
      std::string names, values;
      for (size_t i = 1 + c.below(5); i > 0; --i) {
        names += (names.empty() ? "" : ", ") + c.of(kNames);
        values += (values.empty() ? "" : ", ") + term(c, 2);
      }
      return "INSERT INTO " + c.of(kTables) + " (" + names + ") VALUES (" + values + ")" +
             (c.one_in(3) ? " IF NOT EXISTS" : "");
    }
    default: {
      std::string out = c.one_in(6) ? "SELECT JSON " : "SELECT ";
      for (size_t i = 1 + c.below(3); i > 0; --i)
        out += selector(c, 3) + (c.one_in(8) ? " AS x" : "") + (i > 1 ? ", " : "");
      out += " FROM " + c.of(kTables);
      if (!c.one_in(3)) out += relations(c);
      if (c.one_in(4)) out += " GROUP BY " + c.of(kNames) + ", " + selector(c, 1);
      if (c.one_in(5)) out += " ORDER BY " + c.of(kNames) + " DESC";
      if (c.one_in(5)) out += " LIMIT " + c.of(kLiterals);
      return out + (c.one_in(4) ? "" : " ALLOW FILTERING");
    }
  }
}

std::string edited(std::string_view text, Choices& c) {
  std::vector<std::string> words;
  cql::Lexer lexer(text);
  while (true) {
    const cql::Token token = lexer.next();
    if (token.kind == cql::TokenKind::kEnd || token.kind == cql::TokenKind::kError) break;
    words.emplace_back(text.substr(token.offset, token.length));
  }
  for (size_t edits = 1 + c.below(4); edits > 0 && !words.empty(); --edits) {
    const size_t at = c.below(words.size());
    switch (c.below(4)) {
      case 0:
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), words[at]);
        break;
      default:
        words[at] = any_word(c);
    }
  }
  std::string out;
  for (const std::string& word : words) out += word;
  return out;
}

}  // namespace tetrad::tests
