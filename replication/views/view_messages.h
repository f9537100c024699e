// SPDX-License-Identifier: Apache-2.0
// Messages of materialized views (design, rule 24), each to a store of a base table's tablet.
//
//   row        := varint incarnation, position, partition key with its size, clustering key with its
//                 size
//   names      := varint count, (u32 incarnation of a view, varint count, (bytes key value, bytes key
//                 cell)*)*
//   sequences  := varint count, u64*
//   read       := u8 version (1), varint set epoch, varint schema version, row, zigzag stamp us
//   its answer := u8 0, zigzag stamp us: one as high was seen
//               | u8 1, bytes record, names, sequences
//   settlement := u8 version (1), row, sequences, names, zigzag stamp us; its answer has no bytes
//   await      := u8 version (1), row (its clustering key is empty), u8 ranges (1: yes), varint count,
//                 (clustering key with its size)*; its answer has no bytes
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "storage/views/store_views.h"

namespace tetrad::replication {

/// kViewRead: a row of a base table, for an image of this stamp.
struct ViewReadRequest {
  SetEpoch epoch;
  SchemaVersion schema_version;  // of who asks
  storage::ViewRow row;
  storage::ViewStamp stamp;
};

/// kViewAwait: what was written to a partition of a base table.
struct ViewAwaitRequest {
  storage::ViewRow partition;  // its clustering key is empty
  bool ranges = false;         // rows that are not named were deleted, too
  std::vector<Bytes> clustering_keys;
};

/// Errors of decoding: kCorruption.
Bytes encode_view_read(const ViewReadRequest& request);
Result<ViewReadRequest> decode_view_read(BytesView body);
Bytes encode_view_answer(const storage::ViewRowAnswer& answer);
Result<storage::ViewRowAnswer> decode_view_answer(BytesView body);
/// kViewSettle; kViewMend, with the names that were found.
Bytes encode_view_settlement(const storage::ViewSettlement& settlement);
Result<storage::ViewSettlement> decode_view_settlement(BytesView body);
Bytes encode_view_await(const ViewAwaitRequest& request);
Result<ViewAwaitRequest> decode_view_await(BytesView body);

}  // namespace tetrad::replication
