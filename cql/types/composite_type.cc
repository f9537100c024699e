// SPDX-License-Identifier: Apache-2.0
// CompositeType and DynamicCompositeType: custom classes of Thrift times whose values have
// components. Only such columns of old schemas use them; they are parsed, validated and shown as
// Cassandra does, and nothing else is built on them.
//
// composite_type.h has the grammar of values.
#include "cql/types/composite_type.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/byte_io.h"
#include "cql/types/literal.h"
#include "cql/types/strict_utf8.h"
#include "cql/types/value.h"

namespace tetrad::cql {
namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.db.marshal.";
constexpr std::string_view kComposite = "CompositeType", kDynamic = "DynamicCompositeType";
constexpr std::array<std::string_view, 5> kOthers = {kComposite, kDynamic, "EmptyType",
                                                     "LexicalUUIDType", "ShortType"};
constexpr size_t kComponentsMax = 1024;
constexpr uint16_t kStaticMark = 0xffff, kAliasMark = 0x8000;

std::string_view without_package(std::string_view class_name) {
  if (class_name.starts_with(kPackage)) class_name.remove_prefix(kPackage.size());
  return class_name;
}

// Without blanks at both ends.
std::string_view trimmed(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\n");
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(" \t\n") - start + 1);
}

/// What stands between commas that are in no parentheses.
std::vector<std::string_view> parameters_of(std::string_view list) {
  std::vector<std::string_view> out;
  if (trimmed(list).empty()) return out;
  size_t start = 0;
  int open = 0;
  for (size_t at = 0; at < list.size(); ++at) {
    if (list[at] == '(') ++open;
    if (list[at] == ')') --open;
    if (list[at] != ',' || open != 0) continue;
    out.push_back(trimmed(list.substr(start, at - start)));
    start = at + 1;
  }
  out.push_back(trimmed(list.substr(start)));
  return out;
}

/// "\:" is no end.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  size_t start = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ':' || (at > 0 && text[at - 1] == '\\')) continue;
    out.push_back(text.substr(start, at - start));
    start = at + 1;
  }
  out.push_back(text.substr(start));
  return out;
}

/// A '!' at the end only keeps a backslash from what follows.
std::string unescaped(std::string_view part) {
  std::string out;
  for (size_t at = 0; at < part.size(); ++at) {
    if (part[at] == '\\' && at + 1 < part.size() && part[at + 1] == ':') continue;
    out += part[at];
  }
  if (out.ends_with('!')) out.pop_back();
  return out;
}

// Null: no such alias.
TypePtr type_of_alias(const CompositeClass& composite, char alias) {
  const auto found = std::ranges::find(composite.aliases, alias, &std::pair<char, TypePtr>::first);
  return found == composite.aliases.end() ? nullptr : found->second;
}

/// Cassandra finds them in a hash table of bytes, of 16 places and more.
// The name of the class lists aliases in the order of Java's HashMap, and names are compared.
void sort_as_hashed(std::vector<std::pair<char, TypePtr>>& aliases) {
  size_t places = 16;
  while (aliases.size() > places * 3 / 4) places *= 2;
  std::ranges::stable_sort(aliases, {}, [places](const std::pair<char, TypePtr>& alias) {
    return static_cast<uint8_t>(alias.first) % places;
  });
}

// A class that is neither a type of CQL nor one of kOthers is no comparator.
Result<TypePtr> class_named(std::string_view name) {
  TETRAD_TRY(TypePtr type, parse_class_name(name));
  if (type->kind() != TypeKind::kCustom || is_other_class(type->custom_class())) return type;
  return fail(ErrorCode::kInvalid, "Unable to find abstract-type class '{}'", with_packages(name));
}

/// The comparator of a component's text, which is written to `out`; `part` becomes the rest.
Result<TypePtr> take_comparator(const CompositeClass& composite, std::string_view& part,
                                Bytes& out) {
  const size_t at = part.find('@');
  const std::string_view name = part.substr(0, at);
  const std::string_view whole =
      std::exchange(part, at == std::string_view::npos ? std::string_view() : part.substr(at + 1));
  if (part.find('@') != std::string_view::npos)
    return fail(ErrorCode::kInvalid, "Invalid component representation: {}", whole);
  if (name.size() == 1) {
    if (TypePtr type = type_of_alias(composite, name[0])) {
      base::ByteWriter(out).u16(static_cast<uint16_t>(kAliasMark | static_cast<uint8_t>(name[0])));
      return type;
    }
  }
  TETRAD_TRY(TypePtr type, class_named(name));
  base::ByteWriter(out).u16(static_cast<uint16_t>(name.size()));
  out.append(name);
  return type;
}

// Of component `i`: from the class, or in a dynamic composite from the value itself, by alias or by
// name.
Result<TypePtr> read_comparator(const CompositeClass& composite, size_t i,
                                base::ByteReader& reader) {
  if (!composite.dynamic) {
    if (i < composite.components.size()) return composite.components[i];
    return fail(ErrorCode::kInvalid, "Too many bytes for comparator");
  }
  const auto header = reader.read_u16();
  if (!header) {
    return fail(ErrorCode::kInvalid,
                "Not enough bytes to header of the comparator part of component {}", i);
  }
  TypePtr type;
  if ((*header & kAliasMark) != 0) {
    type = type_of_alias(composite, static_cast<char>(*header & 0xff));
  } else {
    const auto name = reader.read_raw(*header);
    if (!name) {
      return fail(ErrorCode::kInvalid, "Not enough bytes to read comparator name of component {}",
                  i);
    }
    if (is_strict_utf8(*name)) {
      TETRAD_TRY(type, parse_class_name(*name));
    }
  }
  if (!type) return fail(ErrorCode::kInvalid, "Cannot find comparator for component {}", i);
  return type;
}

}  // namespace

bool is_composite_class(std::string_view class_name) {
  std::string_view name = without_package(class_name);
  name = trimmed(name.substr(0, name.find('(')));
  return name == kComposite || name == kDynamic;
}

bool is_other_class(std::string_view class_name) {
  const std::string_view name = without_package(class_name);
  return std::ranges::find(kOthers, trimmed(name.substr(0, name.find('(')))) != kOthers.end();
}

// Cassandra writes full class names; short ones in the text get the package.
std::string with_packages(std::string_view class_name) {
  std::string out;
  for (size_t at = 0; at < class_name.size();) {
    if (class_name[at] == ' ' || class_name[at] == '\t' || class_name[at] == '\n') {
      ++at;
      continue;
    }
    size_t end = class_name.find_first_of("(), =>\t\n", at);
    if (end == at) end = at + 1;
    const std::string_view word = class_name.substr(at, end - at);
    at = word.size() + at;
    const size_t next = class_name.find_first_not_of(" \t\n", at);
    // A letter before "=>" stands for a class and is none.
    const bool is_alias =
        next != std::string_view::npos && class_name.substr(next).starts_with("=>");
    const bool is_name = word.find_first_of("(),=>.") == std::string_view::npos &&
                         word.find_first_not_of("0123456789") != std::string_view::npos;
    if (is_name && !is_alias) out += kPackage;
    out += word;
  }
  return out;
}

Result<CompositeClass> parse_composite_class(std::string_view class_name) {
  CompositeClass out;
  const std::string_view name = without_package(class_name);
  const size_t open = name.find('(');
  out.dynamic = trimmed(name.substr(0, open)) == kDynamic;
  const auto invalid = [&] {
    return fail(ErrorCode::kInvalid, "Invalid definition for comparator {}{}.", kPackage,
                out.dynamic ? kDynamic : kComposite);
  };
  std::vector<std::string_view> parameters;
  if (open != std::string_view::npos) {
    if (!name.ends_with(')')) return invalid();
    parameters = parameters_of(name.substr(open + 1, name.size() - open - 2));
  }
  if (parameters.size() > kComponentsMax || (!out.dynamic && parameters.empty())) return invalid();
  out.name.append(kPackage).append(out.dynamic ? kDynamic : kComposite) += '(';
  for (const std::string_view parameter : parameters) {
    const size_t arrow = out.dynamic ? parameter.find("=>") : 0;
    if (arrow == std::string_view::npos) return invalid();
    const std::string_view alias = trimmed(parameter.substr(0, arrow));
    if (out.dynamic && alias.size() != 1) return invalid();
    auto type = class_named(trimmed(parameter.substr(out.dynamic ? arrow + 2 : 0)));
    if (!type) return invalid();
    if (out.dynamic) {
      if (type_of_alias(out, alias[0])) return invalid();
      out.aliases.emplace_back(alias[0], std::move(*type));
      continue;
    }
    if (!out.components.empty()) out.name += ',';
    out.name += with_packages(parameter);
    out.components.push_back(std::move(*type));
  }
  sort_as_hashed(out.aliases);
  for (const auto& [alias, type] : out.aliases) {
    if (!out.name.ends_with('(')) out.name += ',';
    out.name.append(1, alias).append("=>").append(type->class_name());
  }
  out.name += ')';
  return out;
}

Result<Bytes> composite_from_string(const CompositeClass& composite, std::string_view text) {
  Bytes out;
  size_t i = 0;
  for (std::string_view part : split(text)) {
    // The end-of-component byte, for bounds of queries: "!" sorts behind and "_" in front of what
    // begins so.
    if (part == "!" || part == "_") {
      if (out.empty())
        return fail(ErrorCode::kInvalid, "Invalid component representation: {}", part);
      out.back() = part == "!" ? '\x01' : '\xff';
      break;
    }
    TypePtr type;
    if (composite.dynamic) {
      TETRAD_TRY(type, take_comparator(composite, part, out));
    } else if (i == composite.components.size()) {
      return fail(ErrorCode::kInvalid, "Too many components for {}", composite.name);
    } else {
      type = composite.components[i];
    }
    TETRAD_TRY(const Bytes value, from_string(*type, unescaped(part)));
    if (value.size() > std::numeric_limits<uint16_t>::max()) {
      return fail(ErrorCode::kInvalid, "Component {} of a composite has {} bytes, 65535 may be", i,
                  value.size());
    }
    base::ByteWriter(out).u16(static_cast<uint16_t>(value.size()));
    out.append(value).append(1, '\0');
    ++i;
  }
  return out;
}

// Each component: its comparator (dynamic ones only), u16 size, value, end-of-component byte. Only
// the last may have such a byte that is not 0.
Result<void> validate_composite(const CompositeClass& composite, BytesView value) {
  base::ByteReader reader(value);
  // Marks a static column of Thrift times; components follow.
  if (!composite.dynamic && value.starts_with("\xff\xff")) TETRAD_TRY_VOID(reader.read_u16());
  for (size_t i = 0; reader.remaining() > 0; ++i) {
    TETRAD_TRY(const TypePtr type, read_comparator(composite, i, reader));
    const auto length = reader.read_u16();
    if (!length)
      return fail(ErrorCode::kInvalid, "Not enough bytes to read value size of component {}", i);
    const auto component = reader.read_raw(*length);
    if (!component)
      return fail(ErrorCode::kInvalid, "Not enough bytes to read value of component {}", i);
    TETRAD_TRY_VOID(validate(*type, *component));
    const auto end = reader.read_u8();
    if (!end) {
      return fail(ErrorCode::kInvalid,
                  "Not enough bytes to read the end-of-component byte of component{}", i);
    }
    if (*end != 0 && reader.remaining() > 0) {
      return fail(ErrorCode::kInvalid,
                  "Invalid bytes remaining after an end-of-component at component{}", i);
    }
  }
  return {};
}

}  // namespace tetrad::cql
