// SPDX-License-Identifier: Apache-2.0
// What coordinators and holders of throughputs say to each other, to shard 0 of a holder's node.
// Amounts are weights of requests: storage::kWeightOfUnit is one request unit.
//
//   kBorrowThroughput, a slice of a bucket
//   request := varint incarnation, varint tablet, varint debt, [place, varint shard, refusals]
//   answer  := varint granted, varint us until there is more (0 unless nothing was granted),
//              [varint granted per second of late]
//   kReturnThroughput, to be kept for others
//   request := varint incarnation, varint tablet, place, varint returned, varint debt,
//              u8 (1: by the holder before, 0: by who has borrowed it)
//   answer  := nothing
//   kShareThroughput, what the tablets of a table do not use that the asked node lends for
//   request := varint incarnation, varint wanted
//   answer  := varint given
//   place    := i64 token, u64 hash: where in its table's ring the tablet is
//   refusals := varint requests, varint their weight: of the shard since it last asked
// What stands in brackets is there from kFormatThroughput on; older programs pass over it.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/ring_position.h"

namespace tetrad::replication {

/// What a shard has let in since it last asked, and asks for more.
struct BorrowRequest {
  TableIncarnation table;
  TabletId tablet;
  uint64_t debt = 0;
  std::optional<RingPosition> place = std::nullopt;  // unset: of an older program
  uint32_t shard = 0;
  uint64_t refused = 0, refused_weight = 0;
};
Bytes encode_borrow_request(const BorrowRequest& request);
/// Errors: kCorruption.
Result<BorrowRequest> decode_borrow_request(BytesView body);

/// What may be let in, or when to come again.
struct Loan {
  uint64_t granted = 0;
  int64_t retry_us = 0;
  uint64_t per_s = 0;  // of late; 0: unknown
};
Bytes encode_loan(const Loan& loan);
/// Errors: kCorruption.
Result<Loan> decode_loan(BytesView body);

/// What a shard has borrowed and not spent, or what the previous holder hands over to the present
/// one. One of `returned` and `debt` is 0.
struct ReturnRequest {
  TableIncarnation table;
  TabletId tablet;
  RingPosition place;
  uint64_t returned = 0, debt = 0;
  /// By the holder before: the new one leaves out what has flowed into its own bucket meanwhile.
  bool is_handed_over = false;
};
Bytes encode_return_request(const ReturnRequest& request);
/// Errors: kCorruption.
Result<ReturnRequest> decode_return_request(BytesView body);

/// Asks a node for what its tablets of the table leave unused. What it answers it has taken from
/// its own buckets already; if the answer is lost, nobody has it.
struct ShareRequest {
  TableIncarnation table;
  uint64_t wanted = 0;
};
Bytes encode_share_request(const ShareRequest& request);
/// Errors: kCorruption.
Result<ShareRequest> decode_share_request(BytesView body);
Bytes encode_share(uint64_t given);
/// Errors: kCorruption.
Result<uint64_t> decode_share(BytesView body);

}  // namespace tetrad::replication
