// SPDX-License-Identifier: Apache-2.0
// Where the next page of a statement begins, as an opaque value that clients keep and hand back, to
// any node of the cluster. Authenticated, so that a changed one is refused instead of read.
//
//   state := version u8 (1) | statement hash (16) | zigzag rows left | zigzag rows left of partition
//            | position (length and bytes) | first 16 bytes of HMAC-SHA-256 over all before
// Version 2 is one that clients cannot read: what stands between the version and the MAC is XORed
// with HMAC-SHA-256 over the MAC and a u32 that counts from 0, block by block, by a key of its own.
// The MAC is over the bytes as they were before.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace tetrad::cql {

inline constexpr int64_t kNoRowLimit = -1;

using StatementHash = std::array<uint8_t, 16>;

/// Cassandra's words, and what they mean here.
inline constexpr const char* kForeignPagingState =
    "Invalid value for the paging state: it is not one that this cluster gave, or was cut or "
    "changed since";
/// Given by this cluster, to a statement that pages in another way.
inline constexpr const char* kUnfitPagingState =
    "Invalid value for the paging state: this cluster gave it to another statement";

/// What a page hands to the next one. Whoever decodes one has checked that a node of the cluster has
/// written it; that it belongs to the statement is for the reader to compare.
struct PagingState {
  /// Of the statement, its bound values and the schema it was read with: whatever must not change
  /// between pages.
  StatementHash statement{};
  /// Rows that LIMIT still allows; kNoRowLimit without one.
  int64_t rows_left = kNoRowLimit;
  /// Rows that PER PARTITION LIMIT still allows in the partition of `position`.
  int64_t partition_rows_left = kNoRowLimit;
  /// The executor's own words.
  Bytes position;
  bool is_hidden = false;  // clients cannot read it
};

/// `key` is the cluster's paging secret.
Bytes encode_paging_state(const PagingState& state, BytesView key);
/// Fails with kProtocol, as Cassandra does, when the bytes are not what encode_paging_state() made
/// with this key, and with kInvalid when they belong to another statement than `statement`.
Result<PagingState> decode_paging_state(BytesView bytes, const StatementHash& statement,
                                        BytesView key);

}  // namespace tetrad::cql
