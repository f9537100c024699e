// SPDX-License-Identifier: Apache-2.0
// The bytes of the change feed: entries of a log, what a coordinator asks a store, and where a
// reader is.
//
//   entry   := u64 sequence, change; the clustering key of a row without cells
//   change  := i64 token, u64 hash, bytes partition key, u8 kind (0 static columns, 1 a row),
//              clustering key: to the end in an entry, bytes in an answer
//   changes := u8 version (1), u32 incarnation of the table, u32 of its log, varint layout,
//              varint after, varint changes max, varint bytes max,
//              u8 0 | u8 1, i64 token, u64 hash, bytes partition key
//   answer  := u8 version (1), u8 exhausted, varint scanned, varint end, varint reach,
//              varint count, (varint sequence less the one before, change)*
//   places  := u8 version (1), u32 incarnation of the table, u32 of its log, zigzag since,
//              varint count, (16 B host, varint store, varint sequence)*, ascending
// Entries are on disk and clients keep places: never change a field or a number.
#pragma once

#include <map>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "replication/coordinator/changes.h"

namespace tetrad::replication {

/// Microseconds since 1970 by the store's clock, or more: rises strictly in each log.
using ChangeSequence = uint64_t;
/// Sequences are times, and times are signed elsewhere.
inline constexpr ChangeSequence kChangeSequenceMax = uint64_t{1} << 62;

/// A change and its place in one store's log. Sequences rise, with gaps.
struct LoggedChange {
  ChangeSequence sequence = 0;
  Change change;
  friend bool operator==(const LoggedChange&, const LoggedChange&) = default;
};

/// `change` as the log's clustering key. `clustering_key` unset: static columns.
void append_log_entry(Bytes& out, ChangeSequence sequence, RingPosition position,
                      BytesView partition_key, std::optional<BytesView> clustering_key);
/// Errors: kCorruption.
Result<LoggedChange> decode_log_entry(BytesView encoded);

/// A page of one store's log.
struct ChangesRequest {
  TableIncarnation table, log;
  /// Of the table as the sender knows it (layout_of()); a store that knows of more refuses.
  uint64_t layout = 0;
  ChangeSequence after = 0;
  uint32_t changes_max = 1;
  uint64_t bytes_max = 1 << 20;
  std::optional<ChangesCommand::Partition> partition;
};
Bytes encode_changes_request(const ChangesRequest& request);
/// Errors: kCorruption.
Result<ChangesRequest> decode_changes_request(BytesView body);

/// A page of one store's log.
struct ChangesAnswer {
  std::vector<LoggedChange> changes;  // by sequence
  bool exhausted = true;
  /// All that is wanted up to this is in `changes`.
  ChangeSequence scanned = 0;
  /// Whatever the log has up to this was written so long ago that it has been acknowledged by now,
  /// or never will be.
  ChangeSequence end = 0;
  /// From here on the log is complete.
  ChangeSequence reach = 0;
};
Bytes encode_changes_answer(const ChangesAnswer& answer);
/// Errors: kCorruption.
Result<ChangesAnswer> decode_changes_answer(BytesView body);

/// Where a reader is in the logs of all stores.
struct ChangePlaces {
  TableIncarnation table, log;
  int64_t since_us = 0;  // where it begins in those that have no place
  std::map<StoreAddress, ChangeSequence> places;
};
Bytes encode_change_places(const ChangePlaces& places);
/// Errors: kInvalid.
Result<ChangePlaces> decode_change_places(BytesView encoded);

}  // namespace tetrad::replication
