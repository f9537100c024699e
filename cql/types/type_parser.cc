// SPDX-License-Identifier: Apache-2.0
// Types from CQL: "frozen<map<text, int>>". class_name_parser.cc has the other notation.
//
//   cql := native | list<cql> | set<cql> | map<cql, cql> | tuple<cql, ...> | vector<cql, n>
//        | frozen<cql> | [keyspace.]name | 'class'
//
// They are read in two steps: RawType is the tree as written, build() resolves user types and checks
// what may be inside what, with Cassandra's texts. Types that came from the names of classes are
// checked afterwards (check_class), since classes can spell types that CQL refuses. Depth and size
// are bounded (kTypeDepthMax, check_type_size).
#include <algorithm>
#include <charconv>
#include <utility>

#include "cql/types/data_type.h"
#include "cql/types/type_size.h"

namespace tetrad::cql {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// A type as it is written, before names are looked up: Cassandra's messages quote this form.
struct RawType {
  TypeKind kind = TypeKind::kEmpty;
  bool is_class = false;
  bool frozen = false;
  std::string keyspace, name;  // of a udt; the class name in `name`
  TypePtr known;               // native and class types
  std::vector<RawType> parts;
  int64_t dimension = 0;

  // What Cassandra's parser takes inside frozen<>: collections, tuples, vectors and user types.
  bool can_freeze() const { return known == nullptr && !is_class; }
  bool is_collection() const {
    return known == nullptr && kind >= TypeKind::kList && kind <= TypeKind::kMap;
  }
  bool is_udt() const { return known == nullptr && kind == TypeKind::kUdt; }
  bool is(TypeKind native) const { return known != nullptr && known->kind() == native; }

  // Also everything inside, as far as it can be frozen.
  void freeze() {
    frozen = true;
    for (RawType& part : parts) {
      if (part.can_freeze()) part.freeze();
    }
  }

  std::string text() const {
    if (is_class) return "'" + name + "'";
    if (known != nullptr) return known->cql_text();
    std::string out;
    if (is_udt()) {
      out = keyspace.empty() ? name : keyspace + "." + name;
    } else {
      static constexpr std::pair<TypeKind, std::string_view> names[] = {
          {TypeKind::kList, "list"},
          {TypeKind::kSet, "set"},
          {TypeKind::kMap, "map"},
          {TypeKind::kTuple, "tuple"},
          {TypeKind::kVector, "vector"}};
      for (const auto& [k, word] : names) {
        if (k == kind) out = word;
      }
      out += '<';
      for (size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) out += ", ";
        out += parts[i].text();
      }
      if (kind == TypeKind::kVector) out += fmt::format(", {}", dimension);
      out += '>';
    }
    return frozen && kind != TypeKind::kVector ? "frozen<" + out + ">" : out;
  }
};

// One of two readers of CQL types: this one makes types of them, grammar/parse_types.cc parts of a
// statement's tree.
class CqlTypeParser {
 public:
  explicit CqlTypeParser(std::string_view text) : text_(text) {}

  Result<RawType> parse() {
    TETRAD_TRY(RawType type, parse_one(1));
    skip_space();
    if (at_ != text_.size()) return syntax("unexpected text after the type");
    return type;
  }

 private:
  std::unexpected<Error> syntax(std::string_view reason) const {
    return fail(ErrorCode::kSyntax, "Failed parsing CQL type: [{}] reason: line 1:{} {}", text_,
                at_, reason);
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
  Result<void> expect(char c) {
    if (!take(c)) return syntax(fmt::format("expecting '{}'", c));
    return {};
  }

  /// Text between two `quote`s, doubled ones halved.
  Result<std::string> quoted(char quote) {
    std::string out;
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote) {
        if (at_ == text_.size() || text_[at_] != quote) return out;
        ++at_;
      }
      out += c;
    }
    return syntax("no closing quote");
  }

  // A word, in lower case unless it had quotes.
  struct Name {
    std::string text;
    bool was_quoted = false;
  };
  Result<Name> parse_name() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '"') {
      TETRAD_TRY(std::string name, quoted('"'));
      return Name{std::move(name), true};
    }
    const size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == start) return syntax("no viable alternative, expecting a type");
    return Name{lower_case(text_.substr(start, at_ - start)), false};
  }

  /// `depth`: levels of types, counted as DataType::depth() does.
  Result<RawType> parse_one(int depth) {
    if (depth > kTypeDepthMax)
      return fail(ErrorCode::kInvalid, "types may nest {} deep at most", kTypeDepthMax);
    skip_space();
    RawType type;
    if (at_ < text_.size() && text_[at_] == '\'') {
      TETRAD_TRY(type.name, quoted('\''));
      type.is_class = true;
      return type;
    }
    TETRAD_TRY(Name name, parse_name());
    // keyspace.name: always a user type.
    if (take('.')) {
      TETRAD_TRY(Name second, parse_name());
      type.kind = TypeKind::kUdt;
      type.keyspace = std::move(name.text);
      type.name = std::move(second.text);
      return type;
    }
    if (!name.was_quoted && take('<')) {
      return name.text == "frozen" ? parse_frozen(depth) : parse_parameters(name.text, depth);
    }
    // "int" in quotes is a user type, as in the grammar of statements.
    if (!name.was_quoted) type.known = native_type_named(name.text);
    if (type.known == nullptr) {
      type.kind = TypeKind::kUdt;
      type.name = std::move(name.text);
    }
    return type;
  }

  /// After the first `frozen<`. More of them follow in a loop: they are no levels, and their number
  /// has no limit.
  Result<RawType> parse_frozen(int depth) {
    constexpr std::string_view kWord = "frozen";
    size_t marks = 1;
    while (true) {
      skip_space();
      const std::string_view rest = text_.substr(at_);
      if (rest.size() < kWord.size() || lower_case(rest.substr(0, kWord.size())) != kWord) break;
      const size_t before = at_;
      at_ += kWord.size();
      if (!take('<')) {
        at_ = before;
        break;
      }
      ++marks;
    }
    TETRAD_TRY(RawType type, parse_one(depth));
    if (!type.can_freeze()) {
      return fail(ErrorCode::kInvalid,
                  "frozen<> is only allowed on collections, tuples, and user-defined types "
                  "(got {})",
                  type.text());
    }
    type.freeze();
    // frozen<frozen<x>> is x, frozen once.
    for (; marks > 0; --marks) TETRAD_TRY_VOID(expect('>'));
    return type;
  }

  Result<RawType> parse_parameters(const std::string& word, int depth) {
    RawType type;
    size_t count = 1;
    if (word == "list") {
      type.kind = TypeKind::kList;
    } else if (word == "set") {
      type.kind = TypeKind::kSet;
    } else if (word == "map") {
      type.kind = TypeKind::kMap;
      count = 2;
    } else if (word == "vector") {
      type.kind = TypeKind::kVector;
    } else if (word == "tuple") {
      type.kind = TypeKind::kTuple;
      // A tuple ends where no comma follows.
      count = SIZE_MAX;
    } else {
      return syntax("no such parameterised type");
    }
    while (type.parts.size() < count) {
      if (!type.parts.empty()) {
        if (count == SIZE_MAX && !take(',')) break;
        if (count != SIZE_MAX) TETRAD_TRY_VOID(expect(','));
      }
      TETRAD_TRY(RawType part, parse_one(depth + 1));
      type.parts.push_back(std::move(part));
    }
    if (type.kind == TypeKind::kVector) {
      TETRAD_TRY_VOID(expect(','));
      skip_space();
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), type.dimension);
      if (error != std::errc()) return syntax("expecting the number of elements");
      at_ = static_cast<size_t>(end - text_.data());
    }
    TETRAD_TRY_VOID(expect('>'));
    // A tuple is always frozen, and so is what it holds.
    if (type.kind == TypeKind::kTuple) type.freeze();
    return type;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<TypePtr> build(const RawType& raw, const UdtResolver& resolve_udt);

// The order of these checks is Cassandra's.
Result<void> check_collection(const RawType& raw) {
  for (const RawType& part : raw.parts) {
    if (part.is(TypeKind::kCounter)) {
      return fail(ErrorCode::kInvalid, "Counters are not allowed inside collections: {}",
                  raw.text());
    }
  }
  if (raw.kind != TypeKind::kList && raw.parts.front().is(TypeKind::kDuration)) {
    return raw.kind == TypeKind::kMap
               ? fail(ErrorCode::kInvalid, "Durations are not allowed as map keys: {}", raw.text())
               : fail(ErrorCode::kInvalid, "Durations are not allowed inside sets: {}", raw.text());
  }
  if (raw.frozen) return {};
  for (const RawType& part : raw.parts) {
    if (part.frozen || !(part.is_collection() || part.is_udt())) continue;
    return part.is_collection()
               ? fail(ErrorCode::kInvalid,
                      "Non-frozen collections are not allowed inside collections: {}", raw.text())
               : fail(ErrorCode::kInvalid, "Non-frozen UDTs are not allowed inside collections: {}",
                      raw.text());
  }
  return {};
}

// The resolver gives the type unfrozen, as CREATE TYPE made it.
Result<TypePtr> build_udt(const RawType& raw, const UdtResolver& resolve_udt) {
  TypePtr found;
  if (resolve_udt) {
    TETRAD_TRY(found, resolve_udt(raw.keyspace, raw.name));
  }
  if (found == nullptr) {
    return fail(ErrorCode::kInvalid, "Unknown type {}{}{}", raw.keyspace,
                raw.keyspace.empty() ? "" : ".", raw.name);
  }
  return raw.frozen ? freeze(found) : found;
}

/// What Cassandra refuses in types that are written; classes can spell it, too. `type` is not a
/// udt.
Result<void> check_parts(const DataType& type) {
  const auto is_counter = [](const TypePtr& part) { return part->is_counter(); };
  if (type.is_collection()) {
    if (std::ranges::any_of(type.components(), is_counter)) {
      return fail(ErrorCode::kInvalid, "Counters are not allowed inside collections: {}",
                  type.cql_text());
    }
    const bool keyed_by_duration = type.components().front()->kind() == TypeKind::kDuration;
    if (type.kind() == TypeKind::kMap && keyed_by_duration) {
      return fail(ErrorCode::kInvalid, "Durations are not allowed as map keys: {}",
                  type.cql_text());
    }
    if (type.kind() == TypeKind::kSet && keyed_by_duration) {
      return fail(ErrorCode::kInvalid, "Durations are not allowed inside sets: {}",
                  type.cql_text());
    }
  }
  if (type.kind() == TypeKind::kTuple) {
    if (type.components().empty())
      return fail(ErrorCode::kInvalid, "a tuple has at least one field");
    if (std::ranges::any_of(type.components(), is_counter))
      return fail(ErrorCode::kInvalid, "Counters are not allowed inside tuples");
  }
  return {};
}

/// The checks of types that are written, for one that came from the name of a class.
Result<void> check_class(const DataType& type, const UdtResolver& resolve_udt) {
  if (type.kind() == TypeKind::kUdt) {
    TypePtr found;
    if (resolve_udt) {
      TETRAD_TRY(found, resolve_udt(type.keyspace(), type.name()));
    }
    if (found == nullptr)
      return fail(ErrorCode::kInvalid, "Unknown type {}.{}", type.keyspace(), type.name());
    // A class spells out the fields: they must be those of the keyspace's type.
    if (*(type.is_frozen() ? freeze(found) : found) != type) {
      return fail(ErrorCode::kInvalid, "The class given for type {}.{} does not have its fields",
                  type.keyspace(), type.name());
    }
    return {};
  }
  TETRAD_TRY_VOID(check_parts(type));
  for (const TypePtr& part : type.components()) TETRAD_TRY_VOID(check_class(*part, resolve_udt));
  return {};
}

// Of checked parts; vectors have checks of their own.
Result<TypePtr> make_composite(const RawType& raw, std::vector<TypePtr> parts) {
  switch (raw.kind) {
    case TypeKind::kList:
      return make_list(std::move(parts[0]), raw.frozen);
    case TypeKind::kSet:
      return make_set(std::move(parts[0]), raw.frozen);
    case TypeKind::kMap:
      return make_map(std::move(parts[0]), std::move(parts[1]), raw.frozen);
    case TypeKind::kVector:
      return make_checked_vector(std::move(parts[0]), raw.dimension);
    default:
      return make_tuple(std::move(parts));
  }
}

Result<TypePtr> build(const RawType& raw, const UdtResolver& resolve_udt) {
  if (raw.known != nullptr) return raw.known;
  if (raw.is_class) {
    TETRAD_TRY(TypePtr type, parse_class_name(raw.name));
    TETRAD_TRY_VOID(check_class(*type, resolve_udt));
    return type;
  }
  if (raw.kind == TypeKind::kUdt) return build_udt(raw, resolve_udt);
  if (raw.is_collection()) TETRAD_TRY_VOID(check_collection(raw));
  std::vector<TypePtr> parts;
  parts.reserve(raw.parts.size());
  for (const RawType& part : raw.parts) {
    if (raw.kind == TypeKind::kTuple && part.is(TypeKind::kCounter))
      return fail(ErrorCode::kInvalid, "Counters are not allowed inside tuples");
    TETRAD_TRY(TypePtr type, build(part, resolve_udt));
    parts.push_back(std::move(type));
  }
  TETRAD_TRY(TypePtr type, make_composite(raw, std::move(parts)));
  TETRAD_TRY_VOID(check_parts(*type));
  TETRAD_TRY_VOID(check_type_size(*type));
  return type;
}

}  // namespace

Result<TypePtr> parse_type(std::string_view cql_text, const UdtResolver& resolve_udt) {
  CqlTypeParser parser(cql_text);
  TETRAD_TRY(const RawType raw, parser.parse());
  return build(raw, resolve_udt);
}

}  // namespace tetrad::cql
