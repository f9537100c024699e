// SPDX-License-Identifier: Apache-2.0
// Everything Cassandra's own classes answered (oracle/Oracle.java), asked of ours.
// TETRAD_TYPES_ORACLE names another folder than the recorded one, for a larger run.
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "cql/types/compare.h"
#include "cql/types/json.h"
#include "cql/types/keyword.h"
#include "cql/types/literal.h"
#include "cql/types/number.h"
#include "cql/types/ordered_encoding.h"
#include "tests/unit/cql_types/test_types.h"

namespace tetrad::cql {
namespace {

using test::hex;
using test::type_of;

std::vector<std::string> split_tabs(std::string_view line) {
  std::vector<std::string> out;
  for (;;) {
    const size_t at = line.find('\t');
    out.emplace_back(line.substr(0, at));
    if (at == std::string_view::npos) return out;
    line.remove_prefix(at + 1);
  }
}

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      out += hex(text.substr(i + 2, 2));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Calls `check(columns)` for every line of a recorded file; returns how many there were.
template <class Check>
size_t for_each_line(const char* file, const Check& check) {
  const char* const folder = std::getenv("TETRAD_TYPES_ORACLE");
  std::ifstream in(std::string(folder != nullptr ? folder : TETRAD_ORACLE_FOLDER) + "/" + file);
  REQUIRE(in.good());
  size_t count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    check(split_tabs(line), line);
  }
  REQUIRE(count > 0);
  return count;
}

/// Reports at most some of many differences, so that a broken build prints pages, not gigabytes.
class Differences {
 public:
  void add(const std::string& line, const std::string& ours) {
    if (++count_ <= kShown) shown_ += line + "\n    ours: " + ours + "\n";
  }
  size_t count() const { return count_; }
  const std::string& shown() const { return shown_; }

 private:
  static constexpr size_t kShown = 40;
  size_t count_ = 0;
  std::string shown_;
};

TypePtr cached_type(const std::string& text) {
  static std::map<std::string, TypePtr> types;
  TypePtr& type = types[text];
  if (type == nullptr) type = type_of(text);
  return type;
}

Bytes value_of(const std::string& column) { return hex(std::string_view(column).substr(1)); }

template <class T>
std::string refusal_or(const Result<T>& result, const std::string& value) {
  return result ? value : "!" + result.error().message;
}

/// A collection somewhere in the value that counts its elements below zero. Cassandra accepts it as
/// empty but sorts it before the empty one; to us both are the same value.
bool has_negative_count(const DataType& type, BytesView value) {
  if (type.is_native() || value.empty()) return false;
  std::vector<OptionalView> parts;
  if (type.is_collection()) {
    if (value[0] & 0x80) return true;
    auto reader = CollectionReader::open(type, value);
    while (reader && !reader->at_end()) {
      const auto part = reader->next();
      if (!part) break;
      parts.push_back(*part);
    }
  } else if (type.is_tuple_like()) {
    parts = split_tuple(type, value).value_or(parts);
  } else {
    for (const BytesView element : split_vector(type, value).value_or(std::vector<BytesView>()))
      parts.emplace_back(element);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto types = type.components();
    if (parts[i] && has_negative_count(*types[i % types.size()], *parts[i])) return true;
  }
  return false;
}

int sign(int order) { return (order > 0) - (order < 0); }

}  // namespace

TEST_CASE("values compare as Cassandra compares them, and so do their encodings") {
  Differences differences;
  size_t lossy = 0;
  for_each_line(
      "compare.txt", [&](const std::vector<std::string>& columns, const std::string& line) {
        const TypePtr type = cached_type(columns[0]);
        const Bytes a = value_of(columns[1]), b = value_of(columns[2]);
        if (columns[3][0] == '!') return;
        if (has_negative_count(*type, a) || has_negative_count(*type, b)) return;
        // Cassandra lets some broken text pass, and misreads lengths in vectors that are not the
        // shortest; we refuse those.
        if (!validate(*type, a) || !validate(*type, b)) return;
        const int expected = std::atoi(columns[3].c_str());
        const int order = compare(*type, a, b);
        if (order != expected) differences.add(line, "compare " + std::to_string(order));
        if (compare(*type, b, a) != -expected) differences.add(line, "compare of b, a");
        for (const bool descending : {false, true}) {
          Bytes x, y;
          const auto done_x = append_ordered(x, *type, a, descending);
          const auto done_y = append_ordered(y, *type, b, descending);
          if (!done_x || !done_y) {
            differences.add(line, done_x ? done_y.error().message : done_x.error().message);
            continue;
          }
          if (sign(x.compare(y)) != (descending ? -expected : expected))
            differences.add(line, "encodings " + base::to_hex(x) + " " + base::to_hex(y));
          const auto first = static_cast<uint8_t>(x[0]);
          if (first == 0 || first == 0xFF) differences.add(line, "starts with a reserved byte");
          // Nothing that continues one encoding may be mistaken for another: no proper prefixes.
          if (x != y && (x.starts_with(y) || y.starts_with(x))) differences.add(line, "a prefix");
          Bytes joined = x + "tail";
          BytesView in = joined;
          const auto decoded = decode_ordered(in, *type, descending);
          if (!decoded || !*decoded || in != "tail") {
            differences.add(line, "does not decode");
            continue;
          }
          if (compare(*type, **decoded, a) != 0) differences.add(line, "decodes to another value");
          if ((**decoded != a) != is_lossy(*type, a)) differences.add(line, "is_lossy is wrong");
          if (**decoded != a && !can_be_lossy(*type))
            differences.add(line, "can_be_lossy is wrong");
          lossy += **decoded != a;
        }
      });
  INFO(differences.shown());
  CHECK(differences.count() == 0);
  CHECK(lossy > 0);
}

TEST_CASE("values are written as JSON and as CQL as Cassandra writes them") {
  Differences differences;
  for_each_line("text.txt", [&](const std::vector<std::string>& columns, const std::string& line) {
    const TypePtr type = cached_type(columns[0]);
    const Bytes value = value_of(columns[1]);
    // Java before 19 does not always write the shortest digits of a double; ours must then
    // be no longer and read back as the same bytes.
    const auto same = [&](const std::string& theirs, const std::string& ours) {
      if (theirs == ours || theirs[0] == '!') return true;
      if (type->kind() != TypeKind::kDouble && type->kind() != TypeKind::kFloat) return false;
      const auto back = from_string(*type, ours);
      return ours.size() <= theirs.size() && back && *back == value;
    };
    const std::string json = to_json(*type, value), literal = to_cql_literal(*type, value);
    if (columns[2] != "!!" && !same(unescape(columns[2]), json)) {
      // A tuple without its last fields is an accident there, and nulls here.
      differences.add(line, json);
    }
    if (!same(unescape(columns[3]), literal)) differences.add(line, literal);
    if (type->is_native() && !same(unescape(columns[4]), to_string(*type, value)))
      differences.add(line, to_string(*type, value));
  });
  INFO(differences.shown());
  CHECK(differences.count() == 0);
}

TEST_CASE("texts are read, and refused, as Cassandra does") {
  Differences differences;
  for_each_line("parse.txt", [&](const std::vector<std::string>& columns, const std::string& line) {
    const TypePtr type = cached_type(columns[0]);
    const auto value = from_string(*type, unescape(columns[1]));
    const std::string ours = refusal_or(value, value ? "=" + base::to_hex(*value) : "");
    const std::string theirs = unescape(columns[2]);
    if (theirs == "!!" ? value.has_value() : theirs != ours) differences.add(line, ours);
  });
  INFO(differences.shown());
  CHECK(differences.count() == 0);
}

TEST_CASE("JSON is read, and refused, as Cassandra does") {
  Differences differences;
  for_each_line("json.txt", [&](const std::vector<std::string>& columns, const std::string& line) {
    const TypePtr type = cached_type(columns[0]);
    const auto value = from_json(*type, unescape(columns[1]));
    const std::string ours = refusal_or(value, !value   ? ""
                                               : *value ? "=" + base::to_hex(**value)
                                                        : "null");
    const std::string theirs = unescape(columns[2]);
    if (theirs == "!!" ? value.has_value() : theirs != ours) differences.add(line, ours);
  });
  INFO(differences.shown());
  CHECK(differences.count() == 0);
}

TEST_CASE("bytes are validated as Cassandra does") {
  Differences differences;
  for_each_line("validate.txt",
                [&](const std::vector<std::string>& columns, const std::string& line) {
                  const auto valid = validate(*cached_type(columns[0]), value_of(columns[1]));
                  const std::string ours = refusal_or(valid, "ok");
                  const std::string theirs = unescape(columns[2]);
                  // See is_valid_utf8: we refuse some broken text that Cassandra lets pass.
                  if (theirs == "ok" && ours.ends_with("String didn't validate.")) return;
                  if (theirs == "!!" ? valid.has_value() : theirs != ours)
                    differences.add(line, ours);
                });
  INFO(differences.shown());
  CHECK(differences.count() == 0);
}

TEST_CASE("varint and decimal arithmetic give Cassandra's digits and scales") {
  Differences differences;
  for_each_line(
      "arithmetic.txt", [&](const std::vector<std::string>& columns, const std::string& line) {
        static const std::map<char, ArithmeticOp> ops = {{'+', ArithmeticOp::kAdd},
                                                         {'-', ArithmeticOp::kSubtract},
                                                         {'*', ArithmeticOp::kMultiply},
                                                         {'/', ArithmeticOp::kDivide},
                                                         {'%', ArithmeticOp::kRemainder}};
        const Bytes a = value_of(columns[2]), b = value_of(columns[3]);
        const ArithmeticOp op = ops.at(columns[1][0]);
        const auto result =
            columns[0] == "decimal" ? decimal_arithmetic(op, a, b) : varint_arithmetic(op, a, b);
        const std::string ours = refusal_or(result, result ? "=" + base::to_hex(*result) : "");
        if (columns[4] == "!!" ? result.has_value() : columns[4] != ours)
          differences.add(line, ours);
      });
  INFO(differences.shown());
  CHECK(differences.count() == 0);
}

TEST_CASE("types have Cassandra's texts, class names and rules of assignment") {
  Differences differences;
  std::vector<TypePtr> types;
  size_t row = 0;
  static const std::vector<std::pair<LiteralKind, std::string>> literals = {
      {LiteralKind::kString, "x"},
      {LiteralKind::kInteger, "1"},
      {LiteralKind::kInteger, "12345678901"},
      {LiteralKind::kInteger, "123456789012345678901234567890"},
      {LiteralKind::kFloat, "1.5"},
      {LiteralKind::kUuid, "00000000-0000-1000-8000-000000000000"},
      {LiteralKind::kBoolean, "true"},
      {LiteralKind::kHex, "0x00"},
      {LiteralKind::kDuration, "1y"}};
  const auto digit = [](Assignability a) {
    return a == Assignability::kExact ? 0 : a == Assignability::kWeak ? 1 : 2;
  };
  for_each_line("types.txt", [&](const std::vector<std::string>& columns, const std::string& line) {
    if (columns[0] == "type") {
      const auto type = parse_type(columns[1], test::user_type);
      if (columns.size() == 3) {  // refused
        if (columns[2] == "!!" ? type.has_value() : columns[2] != refusal_or(type, ""))
          differences.add(line, refusal_or(type, "accepted"));
        return;
      }
      if (!type) {
        differences.add(line, type.error().message);
        return;
      }
      types.push_back(*type);
      const auto fixed = (*type)->fixed_length();
      const std::string length = fixed ? std::to_string(*fixed) : "-1";
      const std::string ours = (*type)->cql_text() + "\t" + (*type)->class_name() + "\t" + length +
                               "\t" + ((*type)->is_multi_cell() ? "1" : "0");
      if (ours != columns[2] + "\t" + columns[3] + "\t" + columns[4] + "\t" + columns[5])
        differences.add(line, ours);
      const auto again = parse_class_name((*type)->class_name());
      if (!again || (**again).class_name() != (*type)->class_name())
        differences.add(line, "class name does not read back");
      const auto cql_again = parse_type((*type)->cql_text(), test::user_type);
      if (!cql_again || !(**cql_again == **type)) differences.add(line, "text does not read back");
    } else if (columns[0] == "matrix") {
      const DataType& to = *types[row++];
      std::string ours;
      for (const TypePtr& from : types) {
        ours += std::to_string(is_value_compatible(to, *from) + 2 * is_order_compatible(to, *from) +
                               4 * digit(test_assignment(to, *from))) +
                " ";
      }
      if (ours != columns[1] + " ") {
        std::string detail = to.cql_text() + " from";
        std::istringstream a(ours), b(columns[1]);
        for (const TypePtr& from : types) {
          std::string x, y;
          a >> x;
          b >> y;
          if (x != y) detail += " " + from->cql_text() + ":" + x + "/" + y;
        }
        differences.add("matrix", detail);
      }
      std::string ours_literal;
      for (const auto& [kind, text] : literals)
        ours_literal += std::to_string(digit(test_literal(kind, text, to)));
      if (ours_literal != columns[2])
        differences.add("literals of " + to.cql_text() + " " + columns[2], ours_literal);
    } else if (columns[0] == "quote") {
      if (quote_identifier(columns[1]) != columns[2])
        differences.add(line, quote_identifier(columns[1]));
    }
  });
  CHECK(row == types.size());
  INFO(differences.shown());
  CHECK(differences.count() == 0);
}

}  // namespace tetrad::cql
