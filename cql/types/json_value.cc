// SPDX-License-Identifier: Apache-2.0
// A JSON parser that takes and refuses what Jackson does in Cassandra (leading zeros, control
// characters, duplicate names: the last one wins), with bounds on depth, values and length of
// numbers. Numbers stay texts until a type reads them, since varint and decimal take any length.
// What stands behind the first value is not read, as in Cassandra.
#include "cql/types/json_value.h"

#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "cql/types/number.h"
#include "cql/types/value.h"

namespace tetrad::cql {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// RFC 3629; `c` is a whole character.
void append_utf8(std::string& out, uint32_t c) {
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 63));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 63));
    put(0x80 | (c & 63));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 63));
    put(0x80 | (c >> 6 & 63));
    put(0x80 | (c & 63));
  }
}

// Recursive descent over the text, which outlives it; at_ is the byte that is looked at.
class Parser {
 public:
  explicit Parser(std::string_view json) : text_(json) {}

  Result<JsonValue> parse() {
    if (!is_valid_utf8(text_)) return bad("Invalid UTF-8");
    TETRAD_TRY(JsonValue value, parse_value(1));
    // Jackson reads "1x" as a number with something behind it and "{}x" as an object: only the
    // former is an error.
    const bool number =
        value.kind == JsonValue::Kind::kInteger || value.kind == JsonValue::Kind::kFloat;
    if (number && at_ < text_.size() && !is_space(text_[at_]))
      return bad("Expected space separating root-level values");
    return value;
  }

 private:
  std::unexpected<Error> bad(std::string_view reason) const {
    return fail(ErrorCode::kInvalid, "Error decoding JSON string: {} at position {}", reason, at_);
  }
  std::unexpected<Error> unexpected_character() const {
    if (at_ >= text_.size()) return bad("Unexpected end-of-input");
    return bad("Unexpected character");
  }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  // False, and nothing is taken, when another character comes.
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<JsonValue> parse_value(int depth) {
    // Both bounds are checked before a value takes memory; the depth also bounds the C++ stack.
    if (depth > kJsonDepthMax) return bad("Document nesting is too deep");
    if (++values_ > kJsonValuesMax) {
      return fail(ErrorCode::kInvalid, "Error decoding JSON string: more than {} values in it",
                  kJsonValuesMax);
    }
    skip_space();
    if (at_ == text_.size()) return bad("No content to map due to end-of-input");
    JsonValue value;
    switch (text_[at_]) {
      case '{':
        return parse_object(depth);
      case '[':
        return parse_array(depth);
      case '"':
        value.kind = JsonValue::Kind::kString;
        TETRAD_TRY_VOID(parse_string(value.text));
        return value;
      case 't':
        value.boolean = true;
        value.kind = JsonValue::Kind::kBoolean;
        return parse_word("true", std::move(value));
      case 'f':
        value.kind = JsonValue::Kind::kBoolean;
        return parse_word("false", std::move(value));
      case 'n':
        return parse_word("null", std::move(value));
      default:
        return parse_number();
    }
  }

  // "trueish" is one token, not a word with something behind it.
  Result<JsonValue> parse_word(std::string_view word, JsonValue value) {
    const std::string_view rest = text_.substr(at_);
    const char next = rest.size() > word.size() ? rest[word.size()] : ' ';
    const bool goes_on = is_digit(next) || (next >= 'a' && next <= 'z') ||
                         (next >= 'A' && next <= 'Z') || next == '_' || next == '$' || next < 0;
    if (!rest.starts_with(word) || goes_on) return bad("Unrecognized token");
    at_ += word.size();
    return value;
  }

  // How many there were.
  size_t skip_digits() {
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ - start;
  }

  // -?digits[.digits][e[+-]digits], as JSON has numbers; the length is bounded before anybody reads
  // the value.
  Result<JsonValue> parse_number() {
    const size_t start = at_;
    take('-');
    // 01 is no number in JSON.
    if (at_ + 1 < text_.size() && text_[at_] == '0' && is_digit(text_[at_ + 1]))
      return bad("Invalid numeric value: Leading zeroes not allowed");
    if (skip_digits() == 0) return unexpected_character();
    bool integer = true;
    if (take('.')) {
      integer = false;
      if (skip_digits() == 0) return unexpected_character();
    }
    if (take('e') || take('E')) {
      integer = false;
      if (!take('+')) take('-');
      if (skip_digits() == 0) return unexpected_character();
    }
    if (at_ - start > kJsonNumberMax) return bad("Number value length exceeds the maximum allowed");
    JsonValue value;
    value.text = text_.substr(start, at_ - start);
    if (integer) {
      value.kind = JsonValue::Kind::kInteger;
      // Java's integers have no negative zero.
      if (value.text == "-0") value.text = "0";
    } else {
      value.kind = JsonValue::Kind::kFloat;
      value.number = std::strtod(value.text.c_str(), nullptr);
      // Floats are doubles from here on, as Jackson makes them; integers keep their digits.
      value.text.clear();
    }
    return value;
  }

  // Four digits behind "\u".
  Result<uint32_t> parse_hex4() {
    uint32_t value = 0;
    if (text_.size() - at_ < 4) return bad("Unexpected end-of-input");
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, begin + 4, value, 16);
    if (error != std::errc() || end != begin + 4) return bad("Unexpected character in \\u escape");
    at_ += 4;
    return value;
  }

  // What stands behind a backslash, which is taken already.
  Result<void> parse_escape(std::string& out) {
    if (at_ == text_.size()) return bad("Unexpected end-of-input");
    static constexpr std::string_view marks = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const char mark = text_[at_++];
    if (const size_t i = marks.find(mark); i != std::string_view::npos) {
      out += meanings[i];
      return {};
    }
    if (mark != 'u') return bad("Unrecognized character escape");
    TETRAD_TRY(uint32_t c, parse_hex4());
    // Two escapes make one character beyond U+FFFF; a first half without its second stands alone.
    if (c >= 0xD800 && c < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      const size_t before = at_;
      at_ += 2;
      TETRAD_TRY(const uint32_t low, parse_hex4());
      if (low >= 0xDC00 && low < 0xE000) {
        append_utf8(out, 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00));
        return {};
      }
      at_ = before;
    }
    if (c >= 0xD800 && c < 0xE000) c = '?';  // half a pair, as Java encodes it
    append_utf8(out, c);
    return {};
  }

  // From the quote that at_ stands on to the one behind the string. UTF-8 was checked for the whole
  // text.
  Result<void> parse_string(std::string& out) {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (static_cast<uint8_t>(c) < 0x20) return bad("Illegal unquoted character");
      ++at_;
      if (c == '"') return {};
      if (c == '\\') {
        TETRAD_TRY_VOID(parse_escape(out));
      } else {
        out += c;
      }
    }
    return bad("Unexpected end-of-input in a string");
  }

  // [ value, value … ]; a comma before the bracket is an error.
  Result<JsonValue> parse_array(int depth) {
    JsonValue array;
    array.kind = JsonValue::Kind::kArray;
    ++at_;
    skip_space();
    if (take(']')) return array;
    for (;;) {
      TETRAD_TRY(JsonValue item, parse_value(depth + 1));
      array.items.push_back(std::move(item));
      skip_space();
      if (take(']')) return array;
      if (!take(',')) return unexpected_character();
    }
  }

  // { "name": value, … }; names in the order in which they first came.
  Result<JsonValue> parse_object(int depth) {
    JsonValue object;
    object.kind = JsonValue::Kind::kObject;
    ++at_;
    skip_space();
    if (take('}')) return object;
    // A later value of a name takes the place of the first, as in Java's LinkedHashMap.
    std::unordered_map<std::string, size_t> places;
    for (;;) {
      skip_space();
      if (at_ == text_.size() || text_[at_] != '"') return unexpected_character();
      std::string name;
      TETRAD_TRY_VOID(parse_string(name));
      skip_space();
      if (!take(':')) return unexpected_character();
      TETRAD_TRY(JsonValue item, parse_value(depth + 1));
      const auto [place, is_new] = places.try_emplace(name, object.items.size());
      if (is_new) {
        object.names.push_back(std::move(name));
        object.items.push_back(std::move(item));
      } else {
        object.items[place->second] = std::move(item);
      }
      skip_space();
      if (take('}')) return object;
      if (!take(',')) return unexpected_character();
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t values_ = 0;
};

}  // namespace

// The class that Jackson makes of the value; its name is part of error texts.
std::string_view JsonValue::java_class() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "Boolean";
    case Kind::kInteger:
      return fits<int32_t>() ? "Integer" : fits<int64_t>() ? "Long" : "BigInteger";
    case Kind::kFloat:
      return "Double";
    case Kind::kString:
      return "String";
    case Kind::kArray:
      return "ArrayList";
    case Kind::kObject:
      return "LinkedHashMap";
  }
  std::unreachable();
}

// As Java prints them: arrays "[1, 2]", objects "{a=1}", without quotes.
std::string JsonValue::java_text() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return boolean ? "true" : "false";
    case Kind::kInteger:
    case Kind::kString:
      return text;
    case Kind::kFloat:
      return double_to_text(number);
    default:
      break;
  }
  // Enough for an error text; the value may be megabytes.
  constexpr size_t kTextMax = 1000;
  const bool object = kind == Kind::kObject;
  std::string out(1, object ? '{' : '[');
  for (size_t i = 0; i < items.size() && out.size() < kTextMax; ++i) {
    if (i > 0) out += ", ";
    if (object) out += names[i] + "=";
    out += items[i].java_text();
  }
  return out + (object ? '}' : ']');
}

Result<JsonValue> parse_json(std::string_view json) { return Parser(json).parse(); }

}  // namespace tetrad::cql
