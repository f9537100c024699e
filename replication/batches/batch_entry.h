// SPDX-License-Identifier: Apache-2.0
// A logged batch as two nodes keep it until its parts are on their replicas (design, rule 26).
//
//   entry := u8 format (1), 16 B id, varint version, zigzag stamp (us), i64 created (us),
//            varint metadata index, u8 rank, 16 B host of the other holder (0: none),
//            varint count, (varint size, mutation)*
//   id    := u8 format (1), 16 B id
// The entry of id 01..10, version 1, stamp 100, created 200, of metadata index 7, for the first
// holder, without another one, and without parts:
//   01 0102030405060708090a0b0c0d0e0f10 01 c801 00000000000000c8 07 00 00..00 00
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/uuid.h"
#include "storage/row/mutation.h"

namespace tetrad::replication {

/// Of an entry, and of its parts with it.
inline constexpr uint8_t kBatchEntryFormat = 1;

/// What is known of an entry without its parts.
struct BatchHead {
  Uuid id;
  /// A batch that is stamped or dated anew is stored again, with the next version, before a part
  /// is sent with it.
  uint32_t version = 1;
  int64_t stamp_us = 0;    // kNoTimestamp: clients' own
  int64_t created_us = 0;  // hybrid time of the coordinator when it began; of all versions
  /// Whoever has not applied it may not know the tables yet.
  MetaIndex applied;
  uint8_t rank = 0;  // 0: replays first; 1: only when the first has not
  HostId other;      // also holds it
};

/// A logged batch as its two holders keep it on disk: the head, and every part that must be on W
/// replicas before the entry may go.
struct BatchEntry {
  BatchHead head;
  std::vector<storage::Mutation> parts;
};

/// Errors of decoding: kCorruption.
Bytes encode_batch_entry(const BatchHead& head, const std::vector<storage::Mutation>& parts);
Result<BatchHead> decode_batch_head(BytesView encoded);
Result<BatchEntry> decode_batch_entry(BytesView encoded);
Bytes encode_batch_id(const Uuid& id);
Result<Uuid> decode_batch_id(BytesView encoded);

}  // namespace tetrad::replication
