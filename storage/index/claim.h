// SPDX-License-Identifier: Apache-2.0
// Claims: what an index says of rows. A claim says that a row, or all of a partition, may have a
// value; the row alone is the truth (rule 23). Claims lie behind the rows of all tables:
//
//   key   := u32 0xfffffffe, u32 incarnation of the table, u16 index id, value component, u64 token
//            (sign bit flipped), u64 hash of the partition key, u16 length, partition key, u8 kind,
//            clustering key
//   value := u16 size of the value component
//   example: fffffffe 00000007 0003 6162 7ffffffffffffffe 0000000000000003 0002 706b 02 636b -> 0002
//            table 7, index 3, value "ab", token -2, hash 3, partition key "pk", a row, clustering
//            key "ck"
//
// Fixed integers are big-endian. Kind 0: the partition; 2: a row. No value component of an index is
// the beginning of another one, so keys sort by value, then as the rows do.
//
// In the rows' own column family: with two of them RocksDB (7.8.3) forgets a flush that is asked
// for while another one syncs the log, where several memtables are flushed together; and a claim is
// as safe from a power cut as its row.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/ring_position.h"
#include "storage/row/mutation.h"

namespace tetrad::storage {

inline constexpr size_t kClaimValueBytesMax = 8192;
/// No table's.
inline constexpr TableIncarnation kClaimsIncarnation{0xfffffffe};
/// For every key of a store; it costs next to nothing.
inline bool is_claim_key(BytesView key) { return key.starts_with("\xff\xff\xff\xfe"); }

/// Views point into the key.
struct ClaimView {
  TableIncarnation incarnation;
  uint16_t index_id = 0;
  BytesView value;
  RingPosition position;
  BytesView partition_key;
  bool of_partition = false;  // else of the row at
  BytesView clustering_key;
};

/// What all claims of a table, of an index, begin with.
Bytes claims_of_table(TableIncarnation incarnation);
Bytes claims_of_index(TableIncarnation incarnation, uint16_t index_id);
/// Unset for what is no claim.
std::optional<ClaimView> decode_claim(BytesView key, BytesView value);
/// The first key that does not begin with `prefix`; there is one in the keys of a table.
Bytes past_prefix(Bytes prefix);

/// Takes the values that a row, or a partition, has in indexes.
class ClaimSink {
 public:
  virtual ~ClaimSink() = default;
  /// The view is good during the call.
  virtual void take(uint16_t index_id, BytesView value) = 0;
};

/// Knows the indexes of a table as one schema has them. Made by cql; storage knows no types. An
/// immutable value for all threads. The same value may be given more than once.
class ClaimMaker {
 public:
  virtual ~ClaimMaker() = default;
  /// Ascending.
  virtual const std::vector<uint16_t>& index_ids() const = 0;
  /// Higher than all that the table's indexes ever had: what is lower and not in index_ids() was
  /// dropped.
  virtual uint16_t next_index_id() const = 0;
  /// Of indexes on the partition's key, where `has_rows` or the header has something live, and on
  /// static columns. `header`: an encoded record or "". Cells count that are live at `now_s`.
  virtual void of_partition(BytesView partition_key, BytesView header, bool has_rows, int64_t now_s,
                            ClaimSink& sink) const = 0;
  /// Of indexes on clustering and regular columns. A row counts that has a marker or a cell which
  /// is live at `now_s`.
  virtual void of_row(BytesView clustering_key, BytesView record, int64_t now_s,
                      ClaimSink& sink) const = 0;
};
using ClaimMakerPtr = std::shared_ptr<const ClaimMaker>;

/// So that whatever has a value counts, expired or not.
inline constexpr int64_t kBeforeAllTime_s = std::numeric_limits<int64_t>::min();

/// Keys and values of claims.
using Claims = std::vector<std::pair<Bytes, Bytes>>;
/// Adds what a mutation claims. Deletions claim nothing; what is not the newest does.
void add_claims(const ClaimMaker& maker, const Mutation& mutation, Claims& out);

}  // namespace tetrad::storage
