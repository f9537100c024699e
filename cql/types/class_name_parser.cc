// SPDX-License-Identifier: Apache-2.0
// Types from Cassandra's names of classes: "org.apache.cassandra.db.marshal.MapType(...)", in which
// options of the protocol, composite comparators and custom types are written.
//
//   class := name [ ( params ) ]     names may leave out the package of Cassandra's own types
//
// A type is built while it is read. What CQL refuses is not refused here: who takes a class from a
// client checks it (type_parser.cc). Depth and size are bounded (kClassDepthMax, check_type_size).
#include <algorithm>
#include <charconv>
#include <utility>

#include "cql/types/composite_type.h"
#include "cql/types/data_type.h"
#include "cql/types/strict_utf8.h"
#include "cql/types/type_size.h"

namespace tetrad::cql {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

constexpr std::string_view kPackage = "org.apache.cassandra.db.marshal.";

// FrozenType around each level, and ReversedType around all.
constexpr int kClassDepthMax = 2 * kTypeDepthMax + 2;

// Whitespace may stand between all parts; names are compared with their case.
class ClassNameParser {
 public:
  explicit ClassNameParser(std::string_view text) : text_(text) {}

  Result<TypePtr> parse() {
    TETRAD_TRY(TypePtr type, parse_one(1));
    skip_space();
    if (at_ != text_.size()) return bad("unexpected text after the class");
    TETRAD_TRY_VOID(check_type_size(*type));
    return type;
  }

 private:
  std::unexpected<Error> bad(std::string_view reason) const {
    return fail(ErrorCode::kInvalid, "Syntax error parsing '{}': {} at position {}", text_, reason,
                at_);
  }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    skip_space();
    const size_t start = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '-' ||
                                  text_[at_] == '+' || text_[at_] == '$'))
      ++at_;
    return text_.substr(start, at_ - start);
  }

  // [( class, class … )]
  Result<std::vector<TypePtr>> parameters(int depth) {
    std::vector<TypePtr> out;
    if (!take('(')) return out;
    if (take(')')) return out;
    do {
      TETRAD_TRY(TypePtr type, parse_one(depth + 1));
      out.push_back(std::move(type));
    } while (take(','));
    if (!take(')')) return bad("expecting ',' or ')'");
    return out;
  }

  /// `depth` counts classes, FrozenType and ReversedType, too, which are no levels of a type.
  Result<TypePtr> parse_one(int depth) {
    if (depth > kClassDepthMax)
      return fail(ErrorCode::kInvalid, "types may nest {} deep at most", kTypeDepthMax);
    skip_space();
    const size_t start = at_;
    const std::string_view full = word();
    if (full.empty()) return bad("expecting a class name");
    std::string_view name = full;
    if (name.starts_with(kPackage)) name.remove_prefix(kPackage.size());
    if (name == "UserType") return parse_udt(depth);
    if (name == "VectorType") return parse_vector(depth);
    // Kinds before kList are the native ones.
    for (auto kind = TypeKind::kAscii; kind < TypeKind::kList;
         kind = static_cast<TypeKind>(static_cast<int>(kind) + 1)) {
      const TypePtr& type = native_type(kind);
      if (type->class_name().substr(kPackage.size()) != name) continue;
      TETRAD_TRY(const std::vector<TypePtr> none, parameters(depth));
      if (!none.empty()) return bad("a native type has no parameters");
      return type;
    }
    // The name of timestamp before Cassandra 1.2; still in old schemas.
    if (name == "DateType") return timestamp_type();
    // Classes of parameters that become types of CQL, or marks on them.
    static constexpr std::string_view composite[] = {"ListType",  "SetType",    "MapType",
                                                     "TupleType", "FrozenType", "ReversedType"};
    for (const std::string_view known : composite) {
      if (known != name) continue;
      TETRAD_TRY(std::vector<TypePtr> parts, parameters(depth));
      return composite_of(name, std::move(parts));
    }
    // Not one of ours: its name in full and everything between its parentheses, as written.
    int deepest = 0;
    if (at_ < text_.size() && text_[at_] == '(') {
      int open = 0;
      do {
        if (text_[at_] == '(') ++open;
        if (text_[at_] == ')') --open;
        deepest = std::max(deepest, open);
        ++at_;
      } while (open > 0 && at_ < text_.size());
      // Parentheses inside are skipped in pairs.
      if (open > 0) return bad("expecting ')'");
    }
    const std::string_view written = text_.substr(start, at_ - start);
    // Brought to Cassandra's own spelling, since drivers compare the names of classes.
    if (is_composite_class(written)) {
      if (deepest + depth > kClassDepthMax)
        return fail(ErrorCode::kInvalid, "types may nest {} deep at most", kTypeDepthMax);
      TETRAD_TRY(CompositeClass parsed, parse_composite_class(written));
      return make_custom(std::move(parsed.name));
    }
    std::string class_name(written);
    // A class without a package is one of Cassandra's.
    if (name.find('.') == std::string_view::npos && name.size() == full.size())
      class_name.insert(0, kPackage);
    return make_custom(std::move(class_name));
  }

  Result<TypePtr> composite_of(std::string_view name, std::vector<TypePtr> parts) {
    if (name == "TupleType") return make_tuple(std::move(parts));
    if (parts.size() != (name == "MapType" ? 2u : 1u)) return bad("wrong number of parameters");
    if (name == "ListType") return make_list(std::move(parts[0]), false);
    if (name == "SetType") return make_set(std::move(parts[0]), false);
    if (name == "MapType") return make_map(std::move(parts[0]), std::move(parts[1]), false);
    // ReversedType says that a clustering column is DESC; the type is the same.
    return name == "FrozenType" ? freeze(parts[0]) : parts[0];
  }

  // Names of types and fields stand in hexadecimal, so that they can have any character.
  Result<std::string> hex_name() {
    const std::string_view hex = word();
    const auto digit = [](char c) {
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      if (c >= 'A' && c <= 'F') return c - 'A' + 10;
      return -1;
    };
    std::string out;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      const int high = digit(hex[i]), low = digit(hex[i + 1]);
      if (high < 0 || low < 0) return bad("expecting a name in hex digits");
      out += static_cast<char>(high << 4 | low);
    }
    if (hex.empty() || hex.size() % 2 != 0) return bad("expecting a name in hex digits");
    if (!is_strict_utf8(out)) return bad("expecting a name that is UTF-8");
    return out;
  }

  // UserType(keyspace, name, field:class, …); the type is not frozen here, FrozenType around it
  // says so.
  Result<TypePtr> parse_udt(int depth) {
    if (!take('(')) return bad("expecting '('");
    std::string keyspace(word());
    if (!take(',')) return bad("expecting ','");
    TETRAD_TRY(std::string name, hex_name());
    std::vector<std::string> fields;
    std::vector<TypePtr> types;
    while (take(',')) {
      TETRAD_TRY(std::string field, hex_name());
      if (!take(':')) return bad("expecting ':'");
      TETRAD_TRY(TypePtr type, parse_one(depth + 1));
      fields.push_back(std::move(field));
      types.push_back(std::move(type));
    }
    if (!take(')')) return bad("expecting ',' or ')'");
    return make_udt(std::move(keyspace), std::move(name), std::move(fields), std::move(types),
                    false);
  }

  // VectorType(class , n).
  Result<TypePtr> parse_vector(int depth) {
    if (!take('(')) return bad("expecting '('");
    TETRAD_TRY(TypePtr element, parse_one(depth + 1));
    if (!take(',')) return bad("expecting ','");
    int64_t dimension = 0;
    const std::string_view number = word();
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), dimension);
    if (error != std::errc() || end != number.data() + number.size())
      return bad("expecting the number of elements");
    if (!take(')')) return bad("expecting ')'");
    return make_checked_vector(std::move(element), dimension);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<TypePtr> parse_class_name(std::string_view class_name) {
  ClassNameParser parser(class_name);
  return parser.parse();
}

}  // namespace tetrad::cql
