// SPDX-License-Identifier: Apache-2.0
// Values to JSON and back, as Cassandra's toJson and fromJson, SELECT JSON and INSERT JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cql/types/data_type.h"
#include "cql/types/json_value.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// null for null; "" for an empty value of most types; map keys always as strings; NaN and
/// infinities as null. A value that is not valid is given as a string of its bytes in hex.
std::string to_json(const DataType& type, OptionalView value);

/// A value from one JSON document; null from null. What follows the document is ignored, as
/// Cassandra does. `now_ms` is for a timestamp "now".
/// Errors: kInvalid: "Error decoding JSON string: …", or what is wrong with the value ("Expected an
/// int value, but got a Boolean: true").
Result<OptionalBytes> from_json(const DataType& type, std::string_view json,
                                std::optional<int64_t> now_ms = std::nullopt);
/// As above, from what was parsed before.
Result<OptionalBytes> from_json(const DataType& type, const JsonValue& value,
                                std::optional<int64_t> now_ms = std::nullopt);

/// The members of a JSON object in their order; of equal names the last value counts. For INSERT
/// JSON: a name in double quotes keeps its case, others are made lower case (json_column_name).
/// Errors: kInvalid, when it is no object or no JSON.
Result<std::vector<std::pair<std::string, JsonValue>>> split_json_object(std::string_view json);

/// "Name" (with quotes in the string itself) to Name; anything else to lower case.
std::string json_column_name(std::string_view name);
/// The inverse: a name that is not all lower case gets quotes.
std::string quote_json_column_name(std::string_view name);

/// A string of JSON with its quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace tetrad::cql
