// SPDX-License-Identifier: Apache-2.0
// The frame of all objects of the metadata as text (schema_text.h, roles.h, address_groups.h): JSON
// with the number of its format. What one version of the program writes the next ones read.
#pragma once

#include <exception>
#include <string>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace tetrad::cql {

/// Never throws for what is in the object: bytes that are no UTF-8, which no client's statement has
/// (WireReader refuses it), become U+FFFD.
inline std::string object_text(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The Result that `read` makes of the object; it may throw as the JSON library does. `what`: its kind,
/// for messages; `format`: the newest that this program reads. Errors: kCorruption: no JSON, a later
/// format, a field that is missing or of another type; those of `read`.
template <class Read>
auto read_object_text(const std::string& text, const char* what, int format, Read read)
    -> decltype(read(nlohmann::json())) {
  try {
    const nlohmann::json object = nlohmann::json::parse(text);
    const int written = object.at("format").get<int>();
    if (written > format) {
      return fail(ErrorCode::kCorruption, "a {} of format {}, this program reads {}", what, written,
                  format);
    }
    return read(object);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kCorruption, "the {} does not read: {}", what, error.what());
  }
}

}  // namespace tetrad::cql
