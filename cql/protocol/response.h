// SPDX-License-Identifier: Apache-2.0
// Responses: each function appends one whole envelope to a buffer, usually FrameEncoder::out().
// Nothing is allocated but what the buffer itself needs to grow.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_io.h"
#include "base/error.h"
#include "base/uuid.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/inet.h"
#include "cql/protocol/result_metadata.h"
#include "cql/protocol/schema_change.h"

namespace tetrad::cql {

/// Whom an answer goes to, and what precedes its message.
struct ReplyHead {
  // The version and stream of the request; of an event the version of the connection and
  // kEventStream.
  int version = kProtocolVersionMax;
  int16_t stream = 0;
  const Uuid* tracing_id = nullptr;
  std::span<const std::string> warnings = {};                          // not sent before v4
  std::span<const std::pair<std::string, Bytes>> custom_payload = {};  // not sent before v4
};

/// READY: no login is needed.
void append_ready(Bytes& out, const ReplyHead& head);
/// `authenticator`: a Java class name that drivers switch on.
void append_authenticate(Bytes& out, const ReplyHead& head, std::string_view authenticator);
/// AUTH_CHALLENGE: one more step of SASL, which PLAIN does not have.
void append_auth_challenge(Bytes& out, const ReplyHead& head, BytesView token);
/// A null token when `token` is absent.
void append_auth_success(Bytes& out, const ReplyHead& head, std::optional<BytesView> token = {});

/// The name of an option and what it may be.
using SupportedOption = std::pair<std::string, std::vector<std::string>>;
/// SUPPORTED, the answer to OPTIONS: "CQL_VERSION", "COMPRESSION", "PROTOCOL_VERSIONS" and their
/// values.
void append_supported(Bytes& out, const ReplyHead& head, std::span<const SupportedOption> options);

/// ERROR with the extras of its code, downgraded for older versions (error_code.h). Internal codes
/// become a server error. Long messages are cut, bytes that are no UTF-8 replaced.
void append_error(Bytes& out, const ReplyHead& head, const Error& error);
/// The answer to a version that is not served: `version` and `stream` as the decoder found them. v1
/// and v2 get their own 8-byte header, others that of the highest version served.
void append_version_refusal(Bytes& out, int version, int16_t stream);

/// RESULT of kind Void: done, nothing to show.
void append_void(Bytes& out, const ReplyHead& head);
/// RESULT of kind Set_keyspace: drivers note the keyspace.
void append_set_keyspace(Bytes& out, const ReplyHead& head, std::string_view keyspace);
/// RESULT of kind Schema_change. v3 gets a change of the keyspace for functions, which it does not
/// know.
void append_schema_change(Bytes& out, const ReplyHead& head, const SchemaChange& change);

/// What the answer to PREPARE says. The views are needed during the call only.
struct PreparedReply {
  BytesView id;                                     // 16 bytes
  std::span<const WireColumn> markers;              // in order
  std::span<const uint16_t> partition_key_markers;  // marker of each key part, or empty
  const EncodedMetadata* result = nullptr;          // null: not a SELECT, or conditional
};
/// RESULT of kind Prepared. v5 has the id of the result's metadata, too.
void append_prepared(Bytes& out, const ReplyHead& head, const PreparedReply& prepared);

/// How the metadata of a Rows result is sent.
struct RowsOptions {
  std::optional<BytesView> paging_state;  // present: there are more pages
  bool skip_metadata = false;             // the client has it
  bool metadata_changed = false;  // v5: send the new id with the metadata. Excludes the former
};

/// Larger bodies are not sent: drivers refuse them (native protocol v5, section 2.4).
inline constexpr size_t kResponseBodyBytesMax = 256u << 20;

/// Appends one cell.
inline void append_cell(Bytes& out, BytesView value) {
  char size[4];
  base::store_big_endian(size, static_cast<int32_t>(value.size()));
  out.append(size, 4);
  out.append(value);
}
/// A cell of length -1.
inline void append_null_cell(Bytes& out) { out.append("\xff\xff\xff\xff", 4); }

/// A whole Rows result of cells that append_cell() made: row_count x columns of them. A page beyond
/// kResponseBodyBytesMax becomes an ERROR.
void append_rows(Bytes& out, const ReplyHead& head, const EncodedMetadata& metadata,
                 const RowsOptions& options, int32_t row_count, BytesView cells);

/// Rows written straight into the buffer. No other envelope may be appended to `out` until
/// finish().
///
///   RowsWriter rows(out, head, metadata, {});
///   for (...) { rows.cell(a); rows.null_cell(); rows.end_row(); }
///   rows.finish();
class RowsWriter {
 public:
  RowsWriter(Bytes& out, const ReplyHead& head, const EncodedMetadata& metadata,
             const RowsOptions& options);
  RowsWriter(const RowsWriter&) = delete;
  RowsWriter& operator=(const RowsWriter&) = delete;

  void cell(BytesView value) {
    append_cell(out_, value);
    ++cells_;
  }
  void null_cell() {
    append_null_cell(out_);
    ++cells_;
  }
  /// After the cells of every column.
  /// Asserts that there were as many cells as columns.
  void end_row();
  int32_t row_count() const { return rows_; }
  /// Bytes of the envelope so far.
  size_t size() const { return out_.size() - start_; }

  /// At most one of these three, once; nothing may be added afterwards.
  void finish();
  /// finish() for a page whose successor is known only now: moves the rows to make room.
  void finish_with_more_pages(BytesView paging_state);
  /// Takes the whole envelope out of the buffer again, to send an error instead.
  void abandon();

 private:
  Bytes& out_;
  const size_t start_;
  const size_t columns_;
  const int version_;
  const int16_t stream_;
  // Offsets in out_ of fields that are patched when the page ends.
  size_t metadata_flags_at_ = 0;
  size_t row_count_at_ = 0;
  size_t cells_ = 0;
  int32_t rows_ = 0;
};

// EVENT envelopes; they go to stream -1.
enum class TopologyChange : uint8_t { kNewNode, kRemovedNode, kMovedNode };
/// What happened to a node that stays in the cluster.
enum class StatusChange : uint8_t { kUp, kDown };
void append_topology_event(Bytes& out, int version, TopologyChange change, const Inet& node);
void append_status_event(Bytes& out, int version, StatusChange change, const Inet& node);
/// The body is that of append_schema_change().
void append_schema_event(Bytes& out, int version, const SchemaChange& change);

}  // namespace tetrad::cql
