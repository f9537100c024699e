// SPDX-License-Identifier: Apache-2.0
// What coordinators and replicas say to each other.
//
//   mutate      := u8 version (4), u8 size of the head, head, mutation to the end
//                                                  answer: nothing, or the i64 mark that is not
//                                                  below it
//   head        := varint set epoch, zigzag server timestamp (0: the client's own), zigzag when
//                  its deletions were dated (us since 1970; 0: it has none), or if it is merged the
//                  start of the tablet's last repair as the sender knows it, [u8 1: to be on disk
//                  before it is answered]; what a later program appends is passed over
//   Version 3, of the cluster's first format, has no size of the head.
//   read        := u8 version (1), varint set epoch, read command to the end   answer: read result
//   read digest := as read                    answer: u8 (1: settled, 2: exhausted; no other bits),
//                                             16 bytes of the rows, 16 bytes of where they end
#pragma once

#include <optional>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "replication/meta/cluster_format.h"
#include "storage/row/mutation.h"
#include "storage/row/read_command.h"

namespace tetrad::replication {

/// Stamps of coordinators are at most one bound of clocks ahead of the furthest of their own times,
/// and these are within two of each other. What is further ahead of a good clock is a client's.
inline constexpr int64_t kMarkBoundsMax = 3;

/// kMutate and kMutateMerged: rows to apply to a store.
struct MutateRequest {
  SetEpoch epoch;
  /// The stamp a coordinator gave (rule 28): the replica answers with what it knows that is not
  /// older.
  std::optional<int64_t> server_timestamp_us;
  /// Of rows that were read, or kept as a hint: `repaired_us` of the tablet when that was. Of a
  /// write: see WriteOptions::dated_us.
  int64_t as_of_us = 0;
  /// See ReplicaService::Merged.
  bool synced = false;
  storage::Mutation mutation;
};
/// `format`: of the metadata that the sender knows.
Bytes encode_mutate(ClusterFormat format, SetEpoch epoch, const storage::Mutation& mutation,
                    std::optional<int64_t> server_timestamp_us = {}, int64_t as_of_us = 0,
                    bool synced = false);
/// Errors: kCorruption.
Result<MutateRequest> decode_mutate(BytesView body);

/// The answer to a mutation; `mark_us` when it is not below the server timestamp.
Bytes encode_mutate_answer(std::optional<int64_t> mark_us);
Result<std::optional<int64_t>> decode_mutate_answer(BytesView body);

/// kRead and kReadDigest: rows to read from a store.
struct ReadRequest {
  SetEpoch epoch;
  storage::ReadCommand command;
};
Bytes encode_read(SetEpoch epoch, const storage::ReadCommand& command);
/// `read_fold`: see storage::decode_read_command().
Result<ReadRequest> decode_read(BytesView body, storage::FoldReader read_fold = nullptr);

/// The answer to kReadDigest.
struct DigestReply {
  base::Hash128 digest;
  bool settled = false;
  bool exhausted = true;
  /// Of where the answer ends: two with one digest of rows may end at different places. Zero when
  /// exhausted.
  base::Hash128 end;
};
/// Of a whole answer.
DigestReply digest_reply_of(const storage::ReadResult& result);
base::Hash128 hash_of_end(const storage::ReadEnd& end);
/// Errors of decoding: kCorruption.
Bytes encode_digest_reply(const DigestReply& reply);
Result<DigestReply> decode_digest_reply(BytesView body);

}  // namespace tetrad::replication
