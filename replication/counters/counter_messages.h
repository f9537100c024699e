// SPDX-License-Identifier: Apache-2.0
// Increments of counters on their way to a leader (design, rule 25). They are a type of their own:
// nothing stores, hints or streams them, and no node gets them but one. What the leader makes of
// them, new totals of its shards, are ordinary mutations.
//
//   increment := u8 version (1), varint set epoch, u8 consistency level, varint incarnation,
//                varint schema version, i64 token, u64 hash, partition key with its size,
//                deltas of static columns, varint count of rows, row*
//   row       := clustering key with its size, key cell with its size, deltas
//   deltas    := varint count, (varint column id, zigzag delta)*
//   answer    := u8 (1: applied, 0: nobody knows), varint acknowledged by, varint required
//                an error: nothing is applied, and another leader may be asked
//
// A shard of a counter is a cell with a path, as an element of a collection; its value is the
// shard's total as a big-endian i64, its timestamp the shard's clock:
//   path := 16 bytes host id, u32 store, u64 life of the leader, varint set epoch, varint sequence
#pragma once

#include <optional>
#include <vector>

#include "base/consistency_level.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/ring_position.h"

namespace tetrad::replication {

/// What is added to one counter.
struct CounterDelta {
  uint32_t column_id = 0;
  int64_t delta = 0;  // sums wrap around, as Cassandra's
  friend bool operator==(const CounterDelta&, const CounterDelta&) = default;
};

/// The increments of one row.
struct CounterRow {
  Bytes clustering_key;
  Bytes key_cell;  // the value of column 0, where the clustering key is lossy; "" otherwise
  std::vector<CounterDelta> deltas;
  friend bool operator==(const CounterRow&, const CounterRow&) = default;
};

/// Of one logical partition. A column may come several times.
struct CounterIncrement {
  TableIncarnation incarnation;
  SchemaVersion schema_version;
  RingPosition position;
  Bytes partition_key;
  std::vector<CounterDelta> statics;
  std::vector<CounterRow> rows;

  size_t size_bytes() const;
  friend bool operator==(const CounterIncrement&, const CounterIncrement&) = default;
};

/// kCounterApply: increments for the leader of a partition.
struct CounterRequest {
  SetEpoch epoch;
  ConsistencyLevel level = ConsistencyLevel::kOne;
  CounterIncrement increment;
};

/// What became of a CounterRequest.
struct CounterAnswer {
  bool is_applied = false;  // false: nobody knows
  int acks = 0, required = 1;
};

/// Who may change a shard's total: a store, in one life of its process, in one stay of the tablet,
/// after `sequence` errors. No two leaders have the same name at any time, and one that has lost a
/// total never writes under the total's name again.
struct CounterShardName {
  StoreAddress store;
  uint64_t life = 0;
  SetEpoch epoch;
  uint64_t sequence = 0;
};

Bytes encode_shard_name(const CounterShardName& name);
Bytes encode_total(int64_t total);
/// Unset: it is none.
std::optional<int64_t> decode_total(BytesView value);

/// Errors of decoding: kCorruption.
Bytes encode_counter_request(const CounterRequest& request);
Result<CounterRequest> decode_counter_request(BytesView body);
Bytes encode_counter_answer(const CounterAnswer& answer);
Result<CounterAnswer> decode_counter_answer(BytesView body);

}  // namespace tetrad::replication
