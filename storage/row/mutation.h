// SPDX-License-Identifier: Apache-2.0
// A mutation: the change of rows of one logical partition, all of it applied at once or not at all.
// Rows travel as encoded row records from the coordinator to every store and are never encoded
// twice.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/ring_position.h"
#include "storage/row/row_record.h"

namespace tetrad::storage {

/// A half-open interval [start, end) of encoded clustering keys in memcmp order. Every CQL bound
/// becomes one: an inclusive start at prefix p is p, an exclusive one p + 0xFF; an inclusive end is
/// p + 0xFF, an exclusive one p.
struct ClusteringRange {
  Bytes start;         // "" is the first possible key
  Bytes end = "\xFF";  // this is past the last one: no encoded key begins with 0xFF

  bool contains(BytesView key) const { return start <= key && key < end; }
  bool empty() const { return start >= end; }
  friend bool operator==(const ClusteringRange&, const ClusteringRange&) = default;
};

/// Hides what is not newer in the interval.
struct RangeTombstone {
  ClusteringRange range;
  Deletion deletion;
  friend bool operator==(const RangeTombstone&, const RangeTombstone&) = default;
};

/// What happens to one row.
struct RowChange {
  Bytes clustering_key;  // order-preserving encoding; "" in a table without clustering columns
  Bytes record;          // an encoded RowRecord
  /// An INSERT (it has row liveness) that sets every regular column of `schema_version`: the store
  /// may Put it (rule 14).
  bool complete = false;
};

/// A value. Records in it are encoded once, by the coordinator, and checked when it is decoded.
struct Mutation {
  TableIncarnation incarnation;
  SchemaVersion schema_version;
  RingPosition position;
  Bytes partition_key;  // serialized as drivers hash it
  Bytes header;         // encoded RowRecord: partition tombstone, static cells; "" if none
  std::vector<RangeTombstone> range_tombstones;
  std::vector<RowChange> rows;
  /// Encoded PaxosRegisters of the partition; "" but in a stream that fills a store: nothing that
  /// compares, repairs or repeats writes carries them.
  Bytes registers;

  /// Bytes of keys and values, for limits and accounting.
  size_t size_bytes() const;
};

/// Of a mutation without registers.
void encode_mutation(const Mutation& mutation, Bytes& out);
/// Errors: kCorruption (also when a record inside does not decode, or there are registers).
Result<Mutation> decode_mutation(BytesView encoded);

/// As above, for streams: registers come along.
void encode_streamed_mutation(const Mutation& mutation, Bytes& out);
/// Errors: kCorruption. Of the registers it takes any bytes.
Result<Mutation> decode_streamed_mutation(BytesView encoded);

}  // namespace tetrad::storage
