// SPDX-License-Identifier: Apache-2.0
// The user types that the tests and the oracle know, and bytes from hex.
#pragma once

#include <string>
#include <string_view>

#include "cql/types/data_type.h"
#include "cql/types/literal.h"

namespace tetrad::cql::test {

inline Result<TypePtr> user_type(std::string_view keyspace, std::string_view name) {
  const TypePtr addr =
      make_udt("ks", "addr", {"a", "B c"}, {int_type(), text_type()}, /*frozen=*/false);
  if (!keyspace.empty() && keyspace != "ks") return TypePtr();
  if (name == "addr") return addr;
  if (name == "Outer") {
    return make_udt("ks", "Outer", {"x", "y", "z"},
                    {freeze(addr), make_list(uuid_type(), true), timestamp_type()}, false);
  }
  if (name == "fz") return make_udt("ks", "fz", {"a"}, {int_type()}, false);
  if (keyspace.empty()) return fail(ErrorCode::kInvalid, "Unknown type ks.{}", name);
  return TypePtr();
}

inline TypePtr type_of(std::string_view text) {
  const auto type = parse_type(text, user_type);
  if (!type) throw std::runtime_error(type.error().message);
  return *type;
}

inline Bytes hex(std::string_view digits) {
  const auto bytes = parse_hex(digits);
  if (!bytes) throw std::runtime_error("no hex: " + std::string(digits));
  return *bytes;
}

}  // namespace tetrad::cql::test
