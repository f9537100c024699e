// SPDX-License-Identifier: Apache-2.0
// Between the constants of CQL text and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cql/types/data_type.h"
#include "cql/types/value.h"

namespace tetrad::cql {

/// How a constant was written, which decides the types that it may stand for.
enum class LiteralKind : uint8_t { kString, kInteger, kUuid, kFloat, kBoolean, kHex, kDuration };

/// As messages name it: "STRING", "INTEGER", …
std::string_view literal_kind_name(LiteralKind kind);

/// The type a constant has where nothing else says: int, bigint or varint by its size, double,
/// ascii or text, …
TypePtr preferred_type(LiteralKind kind, std::string_view text);

/// Whether a constant may stand for a value of the type. Prepare answers "Invalid STRING constant
/// (abc) for "v" of type int" when not.
Assignability test_literal(LiteralKind kind, std::string_view text, const DataType& type);

/// The value of a constant that test_literal() has let through. `text` is what is between the
/// quotes of a string, and with the 0x of a blob. `now_ms` is for a timestamp 'now'.
/// Errors: kInvalid with the marshal message ("Unable to make int from 'x'").
Result<Bytes> literal_to_bytes(LiteralKind kind, std::string_view text, const DataType& type,
                               std::optional<int64_t> now_ms = std::nullopt);

/// Cassandra's AbstractType.fromString: natives from their plain text, blobs, collections and
/// vectors from hex, tuples from fields with ':' between them. The empty text is the empty value
/// for most types.
Result<Bytes> from_string(const DataType& type, std::string_view text,
                          std::optional<int64_t> now_ms = std::nullopt);

/// AbstractType.getString, the inverse of from_string; also what CAST (x AS text) gives for
/// natives.
std::string to_string(const DataType& type, BytesView value);

/// As a constant of CQL: 'it''s', 0x0a, [1, 2], {a: 1, "B": null}, null. For a value that is not
/// valid, or a number too long to be written out: its bytes as a blob.
std::string to_cql_literal(const DataType& type, OptionalView value);

/// Hex digits in pairs to bytes. nullopt for anything else.
std::optional<Bytes> parse_hex(std::string_view hex);

}  // namespace tetrad::cql
