// SPDX-License-Identifier: Apache-2.0
// Literals of CQL: which types one can have (test_literal, preferred_type), its bytes for a type
// (from_string), and the literal that stands for a value (to_cql_literal), which DESCRIBE and
// schema texts use. Texts are read as Cassandra's types do, down to Java's grammar of numbers.
#include "cql/types/literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/uuid.h"
#include "cql/types/composite_type.h"
#include "cql/types/inet.h"
#include "cql/types/keyword.h"
#include "cql/types/number.h"
#include "cql/types/temporal.h"
#include "cql/types/value.h"

namespace tetrad::cql {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// An optional sign and digits, within Int.
/// from_chars takes no '+', Java does.
template <class Int>
std::optional<Int> to_integer(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && is_digit(text[1])) text.remove_prefix(1);
  Int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes digits off the front, of base 10 or 16; returns how many.
size_t take_digits(std::string_view& text, bool hex) {
  size_t count = 0;
  while (count < text.size() && (hex ? is_hex_digit(text[count]) : is_digit(text[count]))) ++count;
  text.remove_prefix(count);
  return count;
}

/// The grammar of Java's Float.parseFloat after trimming, without its NaN and Infinity.
// Java takes hexadecimal floats and a suffix f or d; strtod takes other things that Java does not,
// so the text is checked first.
bool is_float_text(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  size_t digits = take_digits(text, hex);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    digits += take_digits(text, hex);
  }
  if (digits == 0) return false;
  const std::string_view marks = hex ? "pP" : "eE";
  if (!text.empty() && marks.find(text[0]) != std::string_view::npos) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (take_digits(text, false) == 0) return false;
  } else if (hex) {
    // Java demands the exponent of a hexadecimal float.
    return false;
  }
  if (text.size() == 1 && std::string_view("fFdD").find(text[0]) != std::string_view::npos)
    text.remove_prefix(1);
  return text.empty();
}

// Java trims everything up to U+0020. Too large a number becomes an infinity, as in Java.
template <class Float>
std::optional<Float> to_float(std::string_view text) {
  while (!text.empty() && static_cast<uint8_t>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<uint8_t>(text.back()) <= ' ') text.remove_suffix(1);
  std::string_view unsigned_text = text;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) unsigned_text.remove_prefix(1);
  if (unsigned_text == "NaN") return std::numeric_limits<Float>::quiet_NaN();
  if (unsigned_text == "Infinity") {
    const Float infinity = std::numeric_limits<Float>::infinity();
    return negative ? -infinity : infinity;
  }
  if (!is_float_text(text)) return std::nullopt;
  // strtod rather than from_chars: it tells too large (infinity) from too small (zero).
  const std::string terminated(text);
  if constexpr (sizeof(Float) == 4) return std::strtof(terminated.c_str(), nullptr);
  if constexpr (sizeof(Float) == 8) return std::strtod(terminated.c_str(), nullptr);
}

bool equals_ignoring_case(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(),
                    [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y; });
}

// Cassandra's text for what is not hexadecimal.
Result<Bytes> hex_bytes(std::string_view text) {
  if (auto bytes = parse_hex(text)) return *std::move(bytes);
  return fail(ErrorCode::kInvalid, "cannot parse '{}' as hex bytes", text);
}

// Texts of refusals are Cassandra's TimeUUIDType's.
Result<Bytes> timeuuid_bytes(std::string_view text) {
  const auto uuid = Uuid::parse(text);
  if (!uuid) return fail(ErrorCode::kInvalid, "Unknown timeuuid representation: {}", text);
  if (uuid->version() != 1)
    return fail(ErrorCode::kInvalid, "TimeUUID supports only version 1 UUIDs");
  return make_uuid(*uuid);
}

/// "1:text:@", a backslash before ':' and '@' that are meant.
Result<Bytes> tuple_bytes(const DataType& type, std::string_view text,
                          std::optional<int64_t> now_ms) {
  std::vector<std::pair<std::string, bool>> fields(1);  // text; null
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == ':' || text[i + 1] == '@');
    if (text[i] == ':') {
      fields.emplace_back();
      continue;
    }
    // '@' alone is null; with anything behind it, it is an ordinary letter.
    if (text[i] == '@' && fields.back().first.empty()) fields.back().second = true;
    if (escape) ++i;
    if (!fields.back().first.empty() || escape) fields.back().second = false;
    fields.back().first += text[i];
  }
  if (fields.size() > type.components().size()) {
    return fail(ErrorCode::kInvalid,
                "Invalid tuple literal: too many elements. Type {} expects {} but got {}",
                type.cql_text(), type.components().size(), fields.size());
  }
  std::vector<OptionalBytes> values;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].second) {
      values.emplace_back();
      continue;
    }
    TETRAD_TRY(Bytes value, from_string(*type.components()[i], fields[i].first, now_ms));
    values.emplace_back(std::move(value));
  }
  // Fields that the text does not name are left out of the value, not written as null.
  const std::vector<OptionalView> views(values.begin(), values.end());
  return join_tuple(views);
}

// Cassandra's text for numbers, booleans and uuids that do not read.
std::unexpected<Error> unable(std::string_view what, std::string_view text) {
  return fail(ErrorCode::kInvalid, "Unable to make {} from '{}'", what, text);
}

}  // namespace

std::optional<Bytes> parse_hex(std::string_view hex) {
  if (hex.size() % 2 != 0 || !std::all_of(hex.begin(), hex.end(), is_hex_digit))
    return std::nullopt;
  const auto digit = [](char c) { return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10; };
  Bytes out;
  out.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2)
    out.push_back(static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return out;
}

// As Cassandra's errors call it: "Invalid INTEGER constant (1) for …".
std::string_view literal_kind_name(LiteralKind kind) {
  switch (kind) {
    case LiteralKind::kString:
      return "STRING";
    case LiteralKind::kInteger:
      return "INTEGER";
    case LiteralKind::kUuid:
      return "UUID";
    case LiteralKind::kFloat:
      return "FLOAT";
    case LiteralKind::kBoolean:
      return "BOOLEAN";
    case LiteralKind::kHex:
      return "HEX";
    case LiteralKind::kDuration:
      return "DURATION";
  }
  std::unreachable();
}

// The type of a literal that nothing else types: in a select list, or between overloads.
TypePtr preferred_type(LiteralKind kind, std::string_view text) {
  switch (kind) {
    case LiteralKind::kString:
      return is_valid_ascii(text) ? ascii_type() : text_type();
    case LiteralKind::kInteger:
      if (to_integer<int32_t>(text)) return int_type();
      return to_integer<int64_t>(text) ? bigint_type() : varint_type();
    case LiteralKind::kUuid: {
      const auto uuid = Uuid::parse(text);
      return uuid && uuid->version() == 1 ? timeuuid_type() : uuid_type();
    }
    case LiteralKind::kFloat:
      return double_type();
    case LiteralKind::kBoolean:
      return boolean_type();
    case LiteralKind::kHex:
      return tinyint_type();  // as Cassandra has it: a blob constant is an exact match for tinyint
    case LiteralKind::kDuration:
      return duration_type();
  }
  std::unreachable();
}

// kExact for the type that the literal would have by itself, kWeak for others that can read its
// text. Whether the text is in range is not asked: an overload is chosen before the value is made.
Assignability test_literal(LiteralKind kind, std::string_view text, const DataType& type) {
  // Their text is read when the value is made.
  if (type.kind() == TypeKind::kTuple || type.kind() == TypeKind::kCustom)
    return Assignability::kWeak;
  if (!type.is_native()) return Assignability::kNotAssignable;
  if (preferred_type(kind, text)->kind() == type.kind()) return Assignability::kExact;
  const auto one_of = [&](std::initializer_list<TypeKind> kinds) {
    return std::find(kinds.begin(), kinds.end(), type.kind()) != kinds.end()
               ? Assignability::kWeak
               : Assignability::kNotAssignable;
  };
  switch (kind) {
    case LiteralKind::kString:
      return one_of({TypeKind::kAscii, TypeKind::kText, TypeKind::kInet, TypeKind::kDate,
                     TypeKind::kTime, TypeKind::kTimestamp});
    case LiteralKind::kInteger:
      return one_of({TypeKind::kBigint, TypeKind::kCounter, TypeKind::kDate, TypeKind::kDecimal,
                     TypeKind::kDouble, TypeKind::kDuration, TypeKind::kFloat, TypeKind::kInt,
                     TypeKind::kSmallint, TypeKind::kTime, TypeKind::kTimestamp, TypeKind::kTinyint,
                     TypeKind::kVarint});
    case LiteralKind::kUuid:
      return one_of({TypeKind::kUuid, TypeKind::kTimeuuid});
    case LiteralKind::kFloat:
      return one_of({TypeKind::kDecimal, TypeKind::kDouble, TypeKind::kFloat});
    case LiteralKind::kBoolean:
      return one_of({TypeKind::kBoolean});
    case LiteralKind::kHex:
      return one_of({TypeKind::kBlob});
    case LiteralKind::kDuration:
      return one_of({TypeKind::kDuration});
  }
  std::unreachable();
}

// Hexadecimal constants lose their 0x and are read as bytes; all others are texts of the type.
Result<Bytes> literal_to_bytes(LiteralKind kind, std::string_view text, const DataType& type,
                               std::optional<int64_t> now_ms) {
  if (kind == LiteralKind::kHex && text.size() >= 2) text.remove_prefix(2);
  if (kind == LiteralKind::kHex && type.kind() == TypeKind::kCustom) return hex_bytes(text);
  if (kind == LiteralKind::kHex && type.kind() == TypeKind::kTuple) {
    // Its bytes as they are stored. Cassandra does not look at them, and fails when it reads them.
    TETRAD_TRY(Bytes value, from_string(*blob_type(), text, now_ms));
    TETRAD_TRY_VOID(validate(type, value));
    return value;
  }
  return from_string(type, text, now_ms);
}

namespace {

// The words of refusals are Java's: "byte", "short", "long".
Result<Bytes> number_from_string(TypeKind kind, std::string_view text) {
  switch (kind) {
    case TypeKind::kTinyint:
      if (const auto value = to_integer<int8_t>(text)) return make_tinyint(*value);
      return unable("byte", text);
    case TypeKind::kSmallint:
      if (const auto value = to_integer<int16_t>(text)) return make_smallint(*value);
      return unable("short", text);
    case TypeKind::kInt:
      if (const auto value = to_integer<int32_t>(text)) return make_int(*value);
      return unable("int", text);
    case TypeKind::kBigint:
    case TypeKind::kCounter:
      if (const auto value = to_integer<int64_t>(text)) return make_bigint(*value);
      return unable("long", text);
    case TypeKind::kVarint:
      return varint_from_text(text);
    case TypeKind::kDecimal:
      return decimal_from_text(text);
    case TypeKind::kFloat:
      if (const auto value = to_float<float>(text)) return make_float(*value);
      return unable("float", text);
    case TypeKind::kDouble:
      if (const auto value = to_float<double>(text)) return make_double(*value);
      return unable("double", text);
    default:
      std::unreachable();
  }
}

// What of them may be written is in temporal.cc and duration.cc.
Result<Bytes> time_from_string(TypeKind kind, std::string_view text,
                               std::optional<int64_t> now_ms) {
  switch (kind) {
    case TypeKind::kTimestamp: {
      TETRAD_TRY(const int64_t ms, parse_timestamp(text, now_ms));
      return make_timestamp(ms);
    }
    case TypeKind::kDate: {
      TETRAD_TRY(const uint32_t days, parse_date(text));
      return make_date(days);
    }
    case TypeKind::kTime: {
      TETRAD_TRY(const int64_t nanos, parse_time(text));
      return make_time(nanos);
    }
    case TypeKind::kDuration: {
      TETRAD_TRY(const Duration duration, parse_duration(text));
      return make_duration(duration);
    }
    default:
      std::unreachable();
  }
}

}  // namespace

Result<Bytes> from_string(const DataType& type, std::string_view text,
                          std::optional<int64_t> now_ms) {
  const TypeKind kind = type.kind();
  // As Cassandra: '' is the empty value of most types, false for booleans, and wrong for date and
  // time.
  if (text.empty()) {
    if (kind == TypeKind::kBoolean) return make_boolean(false);
    if (kind != TypeKind::kDate && kind != TypeKind::kTime) return Bytes();
  }
  switch (kind) {
    case TypeKind::kText:
      return Bytes(text);
    case TypeKind::kAscii:
      if (is_valid_ascii(text)) return Bytes(text);
      return fail(ErrorCode::kInvalid,
                  "Invalid ASCII character in string literal: "
                  "java.nio.charset.UnmappableCharacterException: Input length = 1");
    case TypeKind::kTinyint:
    case TypeKind::kSmallint:
    case TypeKind::kInt:
    case TypeKind::kBigint:
    case TypeKind::kCounter:
    case TypeKind::kVarint:
    case TypeKind::kDecimal:
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return number_from_string(kind, text);
    case TypeKind::kBoolean:
      if (equals_ignoring_case(text, "true")) return make_boolean(true);
      if (equals_ignoring_case(text, "false")) return make_boolean(false);
      return unable("boolean", text);
    case TypeKind::kUuid:
      if (const auto uuid = Uuid::parse(text)) return make_uuid(*uuid);
      return unable("UUID", text);
    case TypeKind::kTimeuuid:
      return timeuuid_bytes(text);
    case TypeKind::kInet:
      return parse_inet(text);
    case TypeKind::kTimestamp:
    case TypeKind::kDate:
    case TypeKind::kTime:
    case TypeKind::kDuration:
      return time_from_string(kind, text, now_ms);
    case TypeKind::kEmpty:
      return fail(ErrorCode::kInvalid, "'{}' is not empty", text);
    case TypeKind::kTuple:
    case TypeKind::kUdt:
      return tuple_bytes(type, text, now_ms);
    case TypeKind::kCustom:
      if (is_composite_class(type.custom_class())) {
        TETRAD_TRY(const CompositeClass composite, parse_composite_class(type.custom_class()));
        return composite_from_string(composite, text);
      }
      return hex_bytes(text);
    case TypeKind::kBlob:
    case TypeKind::kList:
    case TypeKind::kSet:
    case TypeKind::kMap:
    case TypeKind::kVector:
      return hex_bytes(text);
  }
  std::unreachable();
}

namespace {

/// The plain text of a native value that is neither text nor blob; nullopt when its bytes are not
/// of the type.
/// One table: each type's own text.
std::optional<std::string> native_text(const DataType& type, BytesView value) {
  const auto integer = [](auto number) -> std::optional<std::string> {
    if (!number) return std::nullopt;
    return std::to_string(*number);
  };
  const auto checked = [](Result<std::string> text) -> std::optional<std::string> {
    if (!text) return std::nullopt;
    return *std::move(text);
  };
  switch (type.kind()) {
    case TypeKind::kTinyint:
      return integer(read_tinyint(value));
    case TypeKind::kSmallint:
      return integer(read_smallint(value));
    case TypeKind::kInt:
      return integer(read_int(value));
    case TypeKind::kBigint:
    case TypeKind::kCounter:
      return integer(read_bigint(value));
    case TypeKind::kVarint:
      return checked(varint_to_text(value));
    case TypeKind::kDecimal:
      if (value.size() < 4) return std::nullopt;
      return checked(decimal_to_text(value));
    case TypeKind::kFloat:
      if (const auto number = read_float(value)) return float_to_text(*number);
      return std::nullopt;
    case TypeKind::kDouble:
      if (const auto number = read_double(value)) return double_to_text(*number);
      return std::nullopt;
    case TypeKind::kBoolean:
      if (const auto truth = read_boolean(value)) return *truth ? "true" : "false";
      return std::nullopt;
    case TypeKind::kUuid:
    case TypeKind::kTimeuuid:
      if (const auto uuid = read_uuid(value)) return uuid->to_string();
      return std::nullopt;
    case TypeKind::kInet:
      if (value.size() == 4 || value.size() == 16) return format_inet(value);
      return std::nullopt;
    case TypeKind::kTimestamp:
      if (const auto ms = read_bigint(value)) return format_timestamp(*ms);
      return std::nullopt;
    case TypeKind::kDate:
      if (const auto days = read_date(value)) return format_date(*days);
      return std::nullopt;
    case TypeKind::kTime:
      if (const auto nanos = read_bigint(value)) return format_time(*nanos);
      return std::nullopt;
    case TypeKind::kDuration:
      if (const auto duration = read_duration(value)) return format_duration(*duration);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

void append_quoted(std::string& out, std::string_view text) {
  out += '\'';
  for (const char c : text) out.append(c == '\'' ? 2 : 1, c);
  out += '\'';
}

// What stands for bytes that are not of their type, too: DESCRIBE and error texts must not fail on
// them.
void append_blob(std::string& out, BytesView value) {
  out.append("0x").append(base::to_hex(value));
}

void append_literal(std::string& out, const DataType& type, OptionalView value);

/// The elements with ", " between them, keys and values with ": ".
bool append_collection(std::string& out, const DataType& type, BytesView value) {
  auto reader = CollectionReader::open(type, value);
  if (!reader) return false;
  for (bool first = true; !reader->at_end(); first = false) {
    if (!first) out += ", ";
    for (size_t i = 0; i < type.components().size(); ++i) {
      const auto part = reader->next();
      if (!part) return false;
      if (i > 0) out += ": ";
      append_literal(out, *type.components()[i], *part);
    }
  }
  return true;
}

// As append_collection(). `rest` follows the value to notice where its fields end.
bool append_fields(std::string& out, const DataType& type, BytesView value) {
  const auto fields = split_tuple(type, value);
  if (!fields) return false;
  // Fields that the value does not have are left out, nulls that it has are not.
  BytesView rest = value;
  for (size_t i = 0; i < fields->size() && !rest.empty(); ++i) {
    if (i > 0) out += ", ";
    if (type.kind() == TypeKind::kUdt) out += quote_identifier(type.field_names()[i]) + ": ";
    const OptionalView& field = (*fields)[i];
    append_literal(out, *type.components()[i], field);
    rest.remove_prefix(4 + (field ? field->size() : 0));
  }
  return true;
}

// Of a vector: all elements, with ", " between them.
bool append_elements(std::string& out, const DataType& type, BytesView value) {
  const auto elements = split_vector(type, value);
  if (!elements) return false;
  for (size_t i = 0; i < elements->size(); ++i) {
    if (i > 0) out += ", ";
    append_literal(out, *type.element(), (*elements)[i]);
  }
  return true;
}

bool append_composite(std::string& out, const DataType& type, BytesView value) {
  const TypeKind kind = type.kind();
  // [ ] for lists and vectors, ( ) for tuples, { } for sets, maps and user types.
  const bool square = kind == TypeKind::kList || kind == TypeKind::kVector;
  out += square ? '[' : kind == TypeKind::kTuple ? '(' : '{';
  const bool ok = type.is_collection()   ? append_collection(out, type, value)
                  : type.is_tuple_like() ? append_fields(out, type, value)
                                         : append_elements(out, type, value);
  out += square ? ']' : kind == TypeKind::kTuple ? ')' : '}';
  return ok;
}

// Recursive over the type; bytes that are not of it become a blob, at the level at which that
// shows.
void append_literal(std::string& out, const DataType& type, OptionalView value) {
  if (!value) {
    out += "null";
    return;
  }
  switch (type.kind()) {
    case TypeKind::kAscii:
    case TypeKind::kText:
      return append_quoted(out, *value);
    case TypeKind::kBlob:
    case TypeKind::kCustom:
      return append_blob(out, *value);
    default:
      break;
  }
  if (!type.is_native()) {
    const size_t start = out.size();
    if (append_composite(out, type, *value)) return;
    out.resize(start);
    return append_blob(out, *value);
  }
  if (value->empty()) {
    out += "null";
    return;
  }
  const auto text = native_text(type, *value);
  if (!text) return append_blob(out, *value);
  switch (type.kind()) {
    case TypeKind::kInet:
    case TypeKind::kTimestamp:
    case TypeKind::kDate:
    case TypeKind::kTime:
      return append_quoted(out, *text);
    default:
      out += *text;
  }
}

}  // namespace

// Read as a term of the same type it gives the same bytes, but for empty values, which become null,
// and for bytes that are not of their type.
std::string to_cql_literal(const DataType& type, OptionalView value) {
  std::string out;
  append_literal(out, type, value);
  return out;
}

// The inverse of from_string(): tuples as "1:text:@", with backslashes before ':' and '@' that are
// meant.
std::string to_string(const DataType& type, BytesView value) {
  if (type.kind() == TypeKind::kAscii || type.kind() == TypeKind::kText) return std::string(value);
  if (type.is_tuple_like()) {
    const auto fields = split_tuple(type, value);
    if (!fields) return base::to_hex(value);
    std::string out;
    BytesView rest = value;
    for (size_t i = 0; i < fields->size() && !rest.empty(); ++i) {
      if (i > 0) out += ':';
      const OptionalView& field = (*fields)[i];
      rest.remove_prefix(4 + (field ? field->size() : 0));
      if (!field) {
        out += '@';
        continue;
      }
      for (const char c : to_string(*type.components()[i], *field)) {
        if (c == ':' || c == '@') out += '\\';
        out += c;
      }
    }
    return out;
  }
  if (value.empty()) return "";
  return native_text(type, value).value_or(base::to_hex(value));
}

}  // namespace tetrad::cql
