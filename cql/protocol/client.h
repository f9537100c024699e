// SPDX-License-Identifier: Apache-2.0
// The other side of the native protocol: requests written and responses read, for tetrad-bench and
// tests. Pure as the rest: a FrameDecoder (Role::kClient) and a FrameEncoder carry the bytes.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/inet.h"
#include "cql/protocol/request.h"
#include "cql/protocol/schema_change.h"
#include "cql/types/data_type.h"

namespace tetrad::cql::client {

// Requests. Each function appends one whole envelope.

/// What the envelope of a request says beside its message.
/// `stream`: the number that the answer will carry; one that is in flight must not be used again.
struct RequestHead {
  int version = kProtocolVersionMax;
  int16_t stream = 0;
  bool tracing = false;
  std::span<const std::pair<std::string_view, BytesView>> custom_payload = {};  // v4+
};

/// As QueryParameters, in the words of a caller.
/// Optional members that are unset are not sent.
struct Parameters {
  ConsistencyLevel consistency = ConsistencyLevel::kOne;
  std::span<const WireValue> values = {};
  std::span<const std::string_view> names = {};  // one for each value, or none
  bool skip_metadata = false;
  std::optional<int32_t> page_size = {};
  std::optional<BytesView> paging_state = {};
  std::optional<ConsistencyLevel> serial_consistency = {};
  std::optional<int64_t> timestamp_us = {};
  std::optional<std::string_view> keyspace = {};  // v5
  std::optional<uint32_t> now_in_seconds = {};    // v5
};

/// One statement of a BATCH to be written: a text, or the id of a prepared one.
/// Values have no names in a batch.
struct BatchStatement {
  bool prepared = false;
  BytesView text_or_id;
  std::span<const WireValue> values = {};
};

using StartupOption = std::pair<std::string_view, std::string_view>;

/// One for each opcode of a request. What the version of `head` does not have is left out, but for
/// a custom payload, which the caller sets from v4 on only.
void append_startup(Bytes& out, const RequestHead& head, std::span<const StartupOption> options);
void append_options(Bytes& out, const RequestHead& head);
void append_query(Bytes& out, const RequestHead& head, std::string_view text,
                  const Parameters& parameters);
/// `keyspace`: v5.
void append_prepare(Bytes& out, const RequestHead& head, std::string_view text,
                    std::optional<std::string_view> keyspace = {});
/// `result_metadata_id`: sent in v5.
void append_execute(Bytes& out, const RequestHead& head, BytesView id, BytesView result_metadata_id,
                    const Parameters& parameters);
void append_batch(Bytes& out, const RequestHead& head, BatchType type,
                  std::span<const BatchStatement> statements, const Parameters& parameters);
/// `events`: "TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE".
void append_register(Bytes& out, const RequestHead& head, std::span<const std::string_view> events);
/// Without a token the protocol's null is sent.
void append_auth_response(Bytes& out, const RequestHead& head, std::optional<BytesView> token);
/// The token of SASL PLAIN.
/// RFC 4616 with an empty authorization id: NUL user NUL password.
Bytes plain_token(std::string_view user, std::string_view password);

// Responses. Views point into the envelope's body.

/// A column of a result or a marker, as the server describes it.
struct Column {
  std::string keyspace, table, name;
  TypePtr type;
};

/// The metadata of a result or of markers; views point into the body of the response.
struct Metadata {
  // What the flags of the metadata say (v5, 4.2.5.2): no_metadata when the request asked to skip
  // it, new_id when a prepared statement's metadata has changed since it was prepared.
  bool no_metadata = false;
  int32_t column_count = 0;
  std::vector<Column> columns;  // none if no_metadata
  std::optional<BytesView> paging_state;
  std::optional<BytesView> new_id;
  std::vector<uint16_t> partition_key_markers;  // of markers only
};

/// Cells of a result one after another. None is a null cell; the caller knows the number of
/// columns.
/// Cheap: no cell is copied.
class CellReader {
 public:
  explicit CellReader(BytesView cells) : rest_(cells) {}
  /// Cells have no end of a row: after column_count of them the next row begins.
  bool at_end() const { return rest_.empty(); }
  /// Not at_end(). decode_response() has checked the cells.
  std::optional<BytesView> next();

 private:
  BytesView rest_;
};

/// ERROR: the number on the wire, and what Tetrad's own code makes of it.
struct ErrorReply {
  uint32_t wire_code = 0;
  Error error;  // kServerError for an unknown number
};
/// READY: the connection may be used.
struct ReadyReply {};
/// AUTHENTICATE: the server wants AUTH_RESPONSE next.
struct AuthenticateReply {
  BytesView authenticator;
};
/// AUTH_CHALLENGE: one more step of the SASL exchange.
struct AuthChallengeReply {
  std::optional<BytesView> token;
};
/// AUTH_SUCCESS: the connection may be used.
struct AuthSuccessReply {
  std::optional<BytesView> token;
};
/// SUPPORTED, the answer to OPTIONS.
/// Among others COMPRESSION and PROTOCOL_VERSIONS.
struct SupportedReply {
  std::map<std::string, std::vector<std::string>> options;
};
/// RESULT of kind Void: done, nothing to show.
struct VoidReply {};
/// RESULT of kind Rows: one page. `cells` points into the body; all_cells() cuts it up.
/// Types of the cells are in metadata.columns, or, without metadata, in the answer to PREPARE.
struct RowsReply {
  Metadata metadata;
  int32_t row_count = 0;
  BytesView cells;
  /// Row by row.
  std::vector<std::optional<BytesView>> all_cells() const;
};
/// RESULT of kind Set_keyspace, the answer to USE.
struct SetKeyspaceReply {
  BytesView keyspace;
};
/// RESULT of kind Prepared, the answer to PREPARE.
struct PreparedReply {
  BytesView id;
  BytesView result_metadata_id;  // v5
  Metadata markers, result;
};
/// RESULT of kind Schema_change, the answer to a statement that changes the schema.
struct SchemaChangeReply {
  SchemaChange change;
};
/// EVENT about a node of the cluster.
/// `node` is the address at which the server thinks that clients reach it.
struct NodeEvent {
  std::string type, change;  // TOPOLOGY_CHANGE or STATUS_CHANGE; NEW_NODE, UP, ...
  Inet node;
};
/// EVENT about the schema, sent to whoever registered for it.
struct SchemaEvent {
  SchemaChange change;
};

using Reply = std::variant<ErrorReply, ReadyReply, AuthenticateReply, AuthChallengeReply,
                           AuthSuccessReply, SupportedReply, VoidReply, RowsReply, SetKeyspaceReply,
                           PreparedReply, SchemaChangeReply, NodeEvent, SchemaEvent>;

/// A decoded response with what its envelope carries beside the message. Its views live as long as
/// the body.
struct Response {
  Reply reply;
  std::optional<Uuid> tracing_id;
  std::vector<BytesView> warnings;
  PayloadEntries custom_payload;
};

/// Errors: kProtocol, kCorruption for a type that cannot be read.
/// Checks the whole body before it returns, so that the views in the reply need no checks.
Result<Response> decode_response(const Envelope& envelope);

}  // namespace tetrad::cql::client
