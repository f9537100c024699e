// SPDX-License-Identifier: Apache-2.0
// Requests of the native protocol as plain structs. Every view points into the envelope's body and
// lives as long as its pin. Nothing here knows the schema, nothing is copied.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/consistency_level.h"
#include "base/result.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/inline_list.h"

namespace tetrad::cql {

/// A value bound to a marker: [value] of the protocol.
/// The type is not known here: whether the bytes are a value of it is checked when it is bound.
struct WireValue {
  /// Null and unset differ since v4: unset leaves a column as it is.
  enum class Kind : uint8_t { kNull, kUnset, kBytes };

  Kind kind = Kind::kNull;
  BytesView bytes;

  static WireValue null() { return {}; }
  static WireValue unset() { return {Kind::kUnset, {}}; }
  static WireValue of(BytesView bytes) { return {Kind::kBytes, bytes}; }
  bool is_null() const { return kind == Kind::kNull; }
  bool is_unset() const { return kind == Kind::kUnset; }
  bool has_bytes() const { return kind == Kind::kBytes; }
  friend bool operator==(const WireValue&, const WireValue&) = default;
};

/// Up to so many values cost no allocation.
using WireValues = InlineList<WireValue, 8>;
using WireNames = InlineList<BytesView, 4>;
/// Key and bytes; no bytes for a null.
using PayloadEntries = std::vector<std::pair<BytesView, std::optional<BytesView>>>;

/// What QUERY, EXECUTE and BATCH say beside the statement.
struct QueryParameters {
  // Optional members are unset when the request does not have the field, or its version has no such
  // field.
  ConsistencyLevel consistency = ConsistencyLevel::kOne;
  std::optional<ConsistencyLevel> serial_consistency;  // kSerial or kLocalSerial
  bool skip_metadata = false;
  WireValues values;                       // of a BATCH: empty, see BatchRequest
  WireNames names;                         // one for each value, or empty: positional
  std::optional<int32_t> page_size;        // > 0; absent: no paging
  std::optional<BytesView> paging_state;   // opaque, see paging_state.h
  std::optional<int64_t> timestamp_us;     // never INT64_MIN
  std::optional<BytesView> keyspace;       // v5
  std::optional<uint32_t> now_in_seconds;  // v5
};

/// STARTUP: the first request of a connection, after OPTIONS at most.
/// Known options: CQL_VERSION (required), COMPRESSION, THROW_ON_OVERLOAD; drivers also send
/// DRIVER_NAME and DRIVER_VERSION.
struct StartupRequest {
  std::vector<std::pair<BytesView, BytesView>> options;  // as sent, in order
  BytesView cql_version;
  Compression compression = Compression::kNone;
  bool throw_on_overload = false;
  /// The value of an option, its key compared without regard to case; none if absent.
  std::optional<BytesView> option(std::string_view key) const;
};

/// OPTIONS: what the server supports is asked for.
struct OptionsRequest {};

/// QUERY: a statement to parse and run at once.
/// The text is UTF-8, which the decoder has checked.
struct QueryRequest {
  BytesView text;
  QueryParameters parameters;
};

/// PREPARE: a statement to parse and keep.
/// `keyspace` stands for the one in use where the statement names none.
struct PrepareRequest {
  BytesView text;
  std::optional<BytesView> keyspace;  // v5
};

/// EXECUTE: a statement that PREPARE gave an id.
/// result_metadata_id is the one that the client has; when it is out of date the answer brings the
/// new metadata.
struct ExecuteRequest {
  BytesView id;
  std::optional<BytesView> result_metadata_id;  // v5
  QueryParameters parameters;
};

/// The kind of a batch, by its number on the wire.
enum class BatchType : uint8_t { kLogged = 0, kUnlogged = 1, kCounter = 2 };

/// BATCH: statements that change rows, with one consistency level and at most one timestamp for
/// all.
/// Timestamp and serial consistency of `parameters` hold for all statements; it has no values.
struct BatchRequest {
  /// One statement: a text or an id, and its part of the values.
  struct Statement {
    bool prepared = false;
    BytesView text_or_id;
    uint32_t first_value = 0, value_count = 0;  // of `values`
  };
  BatchType type = BatchType::kLogged;
  InlineList<Statement, 4> statements;
  WireValues values;  // of all statements
  QueryParameters parameters;

  std::span<const WireValue> values_of(const Statement& s) const {
    return values.span().subspan(s.first_value, s.value_count);
  }
};

/// The events a connection wants.
/// A second REGISTER adds to the first.
struct RegisterRequest {
  bool topology_change = false;
  bool status_change = false;
  bool schema_change = false;
};

/// AUTH_RESPONSE: the client's step of the SASL exchange.
struct AuthResponseRequest {
  std::optional<BytesView> token;
};

using RequestMessage =
    std::variant<OptionsRequest, StartupRequest, QueryRequest, PrepareRequest, ExecuteRequest,
                 BatchRequest, RegisterRequest, AuthResponseRequest>;

/// A decoded request with what its envelope carries beside the message.
/// Lives no longer than the pin of its envelope.
struct Request {
  RequestMessage message;
  PayloadEntries custom_payload;  // v4+
};

/// Decodes the body of a request envelope of version 3, 4 or 5. Errors: kProtocol for what breaks
/// the protocol, kInvalid where Cassandra answers so; the connection can go on after either.
Result<Request> decode_request(const Envelope& envelope);

/// The user and password of a SASL PLAIN token: authzid NUL user NUL password.
struct PlainCredentials {
  BytesView user, password;
};
/// Fails with kBadCredentials when the token is null or malformed.
/// Neither is empty, and there is no NUL in the password.
Result<PlainCredentials> decode_plain_token(std::optional<BytesView> token);

}  // namespace tetrad::cql
