// SPDX-License-Identifier: Apache-2.0
// A JSON document as a tree, with its numbers kept as they were written, as varint and decimal need
// them. Read as Cassandra's JSON library (Jackson) reads: strict JSON, anything may follow the
// document.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tetrad::cql {

/// JSON text nests at most this deep.
inline constexpr int kJsonDepthMax = 512;
/// A number has at most this many characters.
inline constexpr size_t kJsonNumberMax = 1000;
/// A document has at most this many values, which take some 100 bytes each: two bytes of text make
/// one.
inline constexpr size_t kJsonValuesMax = 262'144;

/// A parsed JSON value, a tree of values. Its depth and the number of its items are bounded by the
/// parser.
struct JsonValue {
  /// What a JSON value is; numbers with a point or an exponent are kFloat.
  enum class Kind : uint8_t { kNull, kBoolean, kInteger, kFloat, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;  // of a string; the digits of an integer
  double number = 0;
  std::vector<JsonValue> items;    // of an array; the values of an object
  std::vector<std::string> names;  // of an object; of equal names only the last one is kept

  template <class Int>
  std::optional<Int> fits() const {
    Int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (kind != Kind::kInteger || error != std::errc() || end != text.data() + text.size())
      return std::nullopt;
    return value;
  }
  /// The Java class that Cassandra would have made of it: messages name it.
  std::string_view java_class() const;
  /// Its Java text, cut short where it gets long.
  std::string java_text() const;
};

/// Errors: kInvalid "Error decoding JSON string: …".
Result<JsonValue> parse_json(std::string_view json);

}  // namespace tetrad::cql
