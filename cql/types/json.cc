// SPDX-License-Identifier: Apache-2.0
// CQL values from JSON (INSERT JSON, from_json) and to it (SELECT JSON, to_json), by Cassandra's
// rules: which JSON kinds a type takes, and the texts of refusals, in which values appear as Java
// prints them (JsonValue::java_text).
#include "cql/types/json.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "cql/types/literal.h"
#include "cql/types/number.h"
#include "cql/types/temporal.h"

namespace tetrad::cql {

namespace {

// Reading.

using Kind = JsonValue::Kind;

// "Expected a map, but got a Integer: 1", with Java's class, as Cassandra words it.
std::unexpected<Error> expected(std::string_view what, const JsonValue& value) {
  return fail(ErrorCode::kInvalid, "Expected {}, but got a {}: {}", what, value.java_class(),
              value.java_text());
}

// Values of JSON as bytes of a type. `now_ms_` is what "now" means in a text of a timestamp.
class Converter {
 public:
  explicit Converter(std::optional<int64_t> now_ms) : now_ms_(now_ms) {}

  // Each type takes its literal as a string; numbers and booleans also take JSON's own. Null was
  // handled by the caller: inside it is null for fields of tuples, and an error for elements.
  Result<Bytes> convert(const DataType& type, const JsonValue& value) const {
    switch (type.kind()) {
      case TypeKind::kAscii:
        return text(type, value, "an ascii string");
      case TypeKind::kText:
        return text(type, value, "a UTF-8 string");
      case TypeKind::kDate:
        return text(type, value, "a string representation of a date value");
      case TypeKind::kTime:
        return text(type, value, "a string representation of a time value");
      case TypeKind::kUuid:
        return text(type, value, "a string representation of a uuid");
      case TypeKind::kTimeuuid:
        return text(type, value, "a string representation of a timeuuid");
      case TypeKind::kInet:
        return text(type, value, "a string representation of an inet value");
      case TypeKind::kDuration:
        return text(type, value, "a string representation of a duration");
      case TypeKind::kTinyint:
        return small_integer(type, value, "a byte value");
      case TypeKind::kSmallint:
        return small_integer(type, value, "a short value");
      case TypeKind::kInt:
        if (const auto number = value.fits<int32_t>()) return make_int(*number);
        return text(type, value, "an int value");
      case TypeKind::kBigint:
        if (const auto number = value.fits<int64_t>()) return make_bigint(*number);
        return text(type, value, "a bigint value");
      case TypeKind::kTimestamp:
        // Cassandra takes a Long only, and its JSON library makes small numbers an Integer.
        if (const auto ms = value.fits<int64_t>(); ms && !value.fits<int32_t>())
          return make_timestamp(*ms);
        return text(type, value, "a long or a datestring representation of a timestamp value");
      case TypeKind::kBoolean:
        if (value.kind == Kind::kBoolean) return make_boolean(value.boolean);
        return text(type, value, "a boolean value");
      case TypeKind::kFloat:
        if (const auto number = to_double(value)) {
          // Integers go to float directly, as rounding twice would differ.
          if (value.kind == Kind::kInteger)
            return make_float(std::strtof(value.text.c_str(), nullptr));
          return make_float(static_cast<float>(*number));
        }
        return text(type, value, "a float value");
      case TypeKind::kDouble:
        if (const auto number = to_double(value)) return make_double(*number);
        return text(type, value, "a double value");
      case TypeKind::kVarint:
        return number_text(value, "varint", false);
      case TypeKind::kDecimal:
        return number_text(value, "decimal", true);
      case TypeKind::kBlob:
      case TypeKind::kCustom:
        return blob(value);
      case TypeKind::kCounter:
        return fail(ErrorCode::kInvalid, "a counter has no JSON representation to be set from");
      case TypeKind::kEmpty:
        if (value.kind == Kind::kString) return from_string(type, value.text, now_ms_);
        return fail(ErrorCode::kInvalid, "Expected an empty string, but got: {}",
                    value.java_text());
      default:
        return composite(type, value);
    }
  }

 private:
  // A string of JSON is read as the text of the type.
  Result<Bytes> text(const DataType& type, const JsonValue& value, std::string_view what) const {
    if (value.kind != Kind::kString) return expected(what, value);
    return from_string(type, value.text, now_ms_);
  }
  // Cassandra reads the number's text: 1.0 is refused by the type, with its words.
  Result<Bytes> small_integer(const DataType& type, const JsonValue& value,
                              std::string_view what) const {
    if (value.kind != Kind::kString && value.kind != Kind::kInteger && value.kind != Kind::kFloat)
      return expected(what, value);
    return from_string(type, value.java_text(), now_ms_);
  }
  // Integers of any length become the nearest double.
  static std::optional<double> to_double(const JsonValue& value) {
    if (value.kind == Kind::kFloat) return value.number;
    if (value.kind != Kind::kInteger) return std::nullopt;
    return std::strtod(value.text.c_str(), nullptr);
  }
  // varint and decimal. JSON's integers have all their digits here; its floats have become doubles.
  static Result<Bytes> number_text(const JsonValue& value, std::string_view name, bool decimal) {
    const std::string written = value.java_text();
    if (decimal && written.empty()) return Bytes();
    Result<Bytes> number = decimal ? decimal_from_text(written) : varint_from_text(written);
    if (number) return number;
    return fail(ErrorCode::kInvalid, "Value '{}' is not a valid representation of a {} value",
                written, name);
  }
  // Cassandra lets a ClassCastException out; its text is part of the answer.
  static Result<Bytes> blob(const JsonValue& value) {
    const auto refuse = [&](std::string_view reason) {
      return fail(ErrorCode::kInvalid, "Value '{}' is not a valid blob representation: {}",
                  value.java_text(), reason);
    };
    if (value.kind != Kind::kString) {
      const std::string_view short_name = value.java_class();
      const std::string class_name =
          (short_name == "BigInteger"                                  ? "java.math."
           : value.kind == Kind::kArray || value.kind == Kind::kObject ? "java.util."
                                                                       : "java.lang.") +
          std::string(short_name);
      return refuse(fmt::format(
          "class {0} cannot be cast to class java.lang.String ({0} and java.lang.String are in "
          "module java.base of loader 'bootstrap')",
          class_name));
    }
    if (!value.text.starts_with("0x"))
      return refuse("String representation of blob is missing 0x prefix: " + value.text);
    const std::string_view hex = std::string_view(value.text).substr(2);
    auto bytes = parse_hex(hex);
    if (!bytes) return refuse(fmt::format("cannot parse '{}' as hex bytes", hex));
    return *std::move(bytes);
  }

  /// Composite values may come as a string that holds their JSON (map keys always do).
  Result<Bytes> composite(const DataType& type, const JsonValue& value) const {
    if (value.kind == Kind::kString) {
      // One level of strings only: the inner value is not read again.
      TETRAD_TRY(const JsonValue inner, parse_json(value.text));
      return composite_of(type, inner);
    }
    return composite_of(type, value);
  }

  // By kind of type; each refuses JSON of another kind with its own words.
  Result<Bytes> composite_of(const DataType& type, const JsonValue& value) const {
    switch (type.kind()) {
      case TypeKind::kList:
      case TypeKind::kSet:
        return list_or_set(type, value);
      case TypeKind::kMap:
        return map(type, value);
      case TypeKind::kVector:
        return vector(type, value);
      case TypeKind::kTuple:
        return tuple(type, value);
      default:
        return udt(type, value);
    }
  }

  // Of lists, sets and vectors: a null among them is an error, as in CQL.
  Result<std::vector<Bytes>> elements(const DataType& element, const JsonValue& value,
                                      std::string_view name) const {
    std::vector<Bytes> out;
    out.reserve(value.items.size());
    for (const JsonValue& item : value.items) {
      if (item.kind == Kind::kNull)
        return fail(ErrorCode::kInvalid, "Invalid null element in {}", name);
      TETRAD_TRY(Bytes bytes, convert(element, item));
      out.push_back(std::move(bytes));
    }
    return out;
  }

  Result<Bytes> list_or_set(const DataType& type, const JsonValue& value) const {
    const bool set = type.kind() == TypeKind::kSet;
    if (value.kind != Kind::kArray)
      return expected(set ? "a list (representing a set)" : "a list", value);
    TETRAD_TRY(const std::vector<Bytes> parts,
               elements(*type.element(), value, set ? "set" : "list"));
    std::vector<BytesView> views(parts.begin(), parts.end());
    return set ? join_sorted_set(*type.element(), std::move(views)) : join_list(views);
  }

  Result<Bytes> vector(const DataType& type, const JsonValue& value) const {
    if (value.kind != Kind::kArray) return expected("a list", value);
    if (value.items.size() != type.dimension()) {
      return fail(ErrorCode::kInvalid, "List had incorrect size: expected {} but given {}; {}",
                  type.dimension(), value.items.size(), value.java_text());
    }
    TETRAD_TRY(const std::vector<Bytes> parts, elements(*type.element(), value, "list"));
    const auto fixed = type.element()->fixed_length();
    for (const Bytes& part : parts) {
      if (fixed && part.size() != *fixed)
        return fail(ErrorCode::kInvalid, "Invalid empty element in a {}", type.cql_text());
    }
    const std::vector<BytesView> views(parts.begin(), parts.end());
    return join_vector(type, views);
  }

  // {"key": value, …}; of equal keys the last value counts.
  Result<Bytes> map(const DataType& type, const JsonValue& value) const {
    if (value.kind != Kind::kObject) return expected("a map", value);
    std::vector<std::pair<Bytes, Bytes>> entries;
    entries.reserve(value.items.size());
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (value.items[i].kind == Kind::kNull)
        return fail(ErrorCode::kInvalid, "Invalid null value in map");
      JsonValue key;
      // JSON has only strings as names; keys of other types are read from their text.
      key.kind = Kind::kString;
      key.text = value.names[i];
      TETRAD_TRY(Bytes key_bytes, convert(*type.key(), key));
      TETRAD_TRY(Bytes bytes, convert(*type.value(), value.items[i]));
      entries.emplace_back(std::move(key_bytes), std::move(bytes));
    }
    return join_sorted_map(*type.key(), {entries.begin(), entries.end()});
  }

  // [a, b, …] with all items; null is a field without a value.
  Result<Bytes> tuple(const DataType& type, const JsonValue& value) const {
    if (value.kind != Kind::kArray) return expected("a list representation of a tuple", value);
    const size_t count = type.components().size();
    if (value.items.size() != count) {
      return value.items.size() > count
                 ? fail(ErrorCode::kInvalid, "Tuple contains extra items (expected {}): {}", count,
                        value.java_text())
                 : fail(ErrorCode::kInvalid, "Tuple is missing items (expected {}): {}", count,
                        value.java_text());
    }
    std::vector<OptionalBytes> fields(count);
    for (size_t i = 0; i < count; ++i) {
      if (value.items[i].kind == Kind::kNull) continue;
      TETRAD_TRY(fields[i], convert(*type.components()[i], value.items[i]));
    }
    const std::vector<OptionalView> views(fields.begin(), fields.end());
    return join_tuple(views);
  }

  // Fields that are not named are null, as all fields are for {}.
  Result<Bytes> udt(const DataType& type, const JsonValue& value) const {
    if (value.kind != Kind::kObject) return expected("a map", value);
    const size_t count = type.components().size();
    std::vector<const JsonValue*> given(count);
    std::optional<std::string> unknown;
    for (size_t i = 0; i < value.items.size(); ++i) {
      std::string name = json_column_name(value.names[i]);
      if (const auto index = type.field_index(name)) {
        // Named twice, it has the value of the name that is written otherwise: "A" or "\"a\"".
        if (given[*index] == nullptr || name != value.names[i]) given[*index] = &value.items[i];
      } else if (!unknown) {
        unknown = std::move(name);
      }
    }
    // The error of a wrong field goes before the error of an unknown one.
    std::vector<OptionalBytes> fields(count);
    for (size_t i = 0; i < count; ++i) {
      if (given[i] == nullptr || given[i]->kind == Kind::kNull) continue;
      TETRAD_TRY(fields[i], convert(*type.components()[i], *given[i]));
    }
    if (unknown) {
      return fail(ErrorCode::kInvalid, "Unknown field '{}' in value of user defined type {}",
                  *unknown, type.name());
    }
    const std::vector<OptionalView> views(fields.begin(), fields.end());
    return join_tuple(views);
  }

  std::optional<int64_t> now_ms_;
};

// Writing.

void append_value(std::string& out, const DataType& type, OptionalView value);

/// A map key: its JSON, as a string when it is none yet.
void append_key(std::string& out, const DataType& type, OptionalView key) {
  std::string json;
  append_value(json, type, key);
  if (json.starts_with('"')) {
    out += json;
  } else {
    append_json_string(out, json);
  }
}

// False: the bytes do not read. What was appended until then is taken back by append_value().
bool append_collection(std::string& out, const DataType& type, BytesView value) {
  auto reader = CollectionReader::open(type, value);
  if (!reader) return false;
  for (bool first = true; !reader->at_end(); first = false) {
    if (!first) out += ", ";
    if (type.kind() == TypeKind::kMap) {
      const auto key = reader->next();
      if (!key) return false;
      append_key(out, *type.key(), *key);
      out += ": ";
    }
    const auto part = reader->next();
    if (!part) return false;
    append_value(out, *type.components().back(), *part);
  }
  return true;
}

// { } for maps and user types, [ ] for all others.
bool append_composite(std::string& out, const DataType& type, BytesView value) {
  const bool braces = type.kind() == TypeKind::kMap || type.kind() == TypeKind::kUdt;
  out += braces ? '{' : '[';
  if (type.is_collection()) {
    if (!append_collection(out, type, value)) return false;
  } else if (type.is_tuple_like()) {
    const auto fields = split_tuple(type, value);
    if (!fields) return false;
    for (size_t i = 0; i < fields->size(); ++i) {
      if (i > 0) out += ", ";
      if (type.kind() == TypeKind::kUdt) {
        append_json_string(out, quote_json_column_name(type.field_names()[i]));
        out += ": ";
      }
      append_value(out, *type.components()[i], (*fields)[i]);
    }
  } else {
    const auto elements = split_vector(type, value);
    if (!elements) return false;
    for (size_t i = 0; i < elements->size(); ++i) {
      if (i > 0) out += ", ";
      append_value(out, *type.element(), (*elements)[i]);
    }
  }
  out += braces ? '}' : ']';
  return true;
}

void append_hex(std::string& out, BytesView value) {
  out.append("\"0x").append(base::to_hex(value)).append("\"");
}

// Numbers and booleans are JSON's own, everything else a string.
void append_native(std::string& out, const DataType& type, BytesView value) {
  switch (type.kind()) {
    case TypeKind::kAscii:
    case TypeKind::kText:
      return append_json_string(out, value);
    case TypeKind::kBlob:
      return append_hex(out, value);
    case TypeKind::kFloat:
      // JSON has no NaN and no infinity.
      if (const auto number = read_float(value); number && !std::isfinite(*number)) {
        out += "null";
        return;
      }
      break;
    case TypeKind::kDouble:
      if (const auto number = read_double(value); number && !std::isfinite(*number)) {
        out += "null";
        return;
      }
      break;
    case TypeKind::kTimestamp:
      if (const auto ms = read_bigint(value))
        return append_json_string(out, format_timestamp(*ms, ' '));
      break;
    default:
      break;
  }
  if (value.empty()) {
    out += "\"\"";
    return;
  }
  // Bytes of another type than the column's: shown as they are, as a blob.
  if (!validate(type, value)) return append_hex(out, value);
  const std::string text = to_string(type, value);
  switch (type.kind()) {
    case TypeKind::kUuid:
    case TypeKind::kTimeuuid:
    case TypeKind::kInet:
    case TypeKind::kDate:
    case TypeKind::kTime:
    case TypeKind::kDuration:
      return append_json_string(out, text);
    default:
      out += text;
  }
}

void append_value(std::string& out, const DataType& type, OptionalView value) {
  if (!value) {
    out += "null";
  } else if (type.kind() == TypeKind::kCustom) {
    append_hex(out, *value);
  } else if (type.is_native()) {
    append_native(out, type, *value);
  } else {
    const size_t start = out.size();
    // Bytes that do not read as the type are shown as a blob: SELECT must not fail on one row.
    if (append_composite(out, type, *value)) return;
    out.resize(start);
    append_hex(out, *value);
  }
}

}  // namespace

std::string to_json(const DataType& type, OptionalView value) {
  std::string out;
  append_value(out, type, value);
  return out;
}

Result<OptionalBytes> from_json(const DataType& type, std::string_view json,
                                std::optional<int64_t> now_ms) {
  TETRAD_TRY(const JsonValue value, parse_json(json));
  return from_json(type, value, now_ms);
}

// JSON's null is null here; inside of a value convert() decides.
Result<OptionalBytes> from_json(const DataType& type, const JsonValue& value,
                                std::optional<int64_t> now_ms) {
  if (value.kind == Kind::kNull) return std::nullopt;
  TETRAD_TRY(Bytes bytes, Converter(now_ms).convert(type, value));
  return bytes;
}

Result<std::vector<std::pair<std::string, JsonValue>>> split_json_object(std::string_view json) {
  TETRAD_TRY(JsonValue value, parse_json(json));
  if (value.kind != Kind::kObject) return expected("a map", value);
  std::vector<std::pair<std::string, JsonValue>> out;
  out.reserve(value.items.size());
  for (size_t i = 0; i < value.items.size(); ++i) {
    out.emplace_back(std::move(value.names[i]), std::move(value.items[i]));
  }
  return out;
}

// Names follow the rules of CQL: in quotes as they are, otherwise in lower case.
std::string json_column_name(std::string_view name) {
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"')
    return std::string(name.substr(1, name.size() - 2));
  std::string out(name);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

// The inverse of json_column_name() as far as it matters: only upper case makes the quotes
// necessary.
std::string quote_json_column_name(std::string_view name) {
  const bool lower =
      std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return lower ? std::string(name) : "\"" + std::string(name) + "\"";
}

// The escapes are those of Jackson, which Cassandra uses: a letter where JSON has one, otherwise
// four hexadecimal digits in upper case. "/" and everything from U+007F on stay as they are.
void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kEscaped = "\"\\\b\t\n\f\r", kLetters = "\"\\btnfr";
  out += '"';
  for (const char c : text) {
    if (static_cast<uint8_t>(c) >= 0x20 && c != '"' && c != '\\') {
      out += c;
      continue;
    }
    if (const size_t at = kEscaped.find(c); at != std::string_view::npos) {
      out += '\\';
      out += kLetters[at];
    } else {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    }
  }
  out += '"';
}

}  // namespace tetrad::cql
