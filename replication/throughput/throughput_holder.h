// SPDX-License-Identifier: Apache-2.0
// Keeps the token buckets of limited tables and keyspaces for coordinators to borrow from (rule
// 31). A table's own throughput has a bucket for each tablet, in the memory of its acting member's
// node; a keyspace's has one, on a live node that its name chooses. Coordinators borrow slices of a
// tenth of a second and spend them without asking; what one spent beyond its slice it reports with
// the next request. A bucket that is new is full, so a change of holders gives a second's worth at
// most.
//
//   kBorrowThroughput, to shard 0
//   request := varint incarnation, varint tablet, varint debt
//   answer  := varint granted, varint us until there is more (0 unless nothing was granted)
// Amounts are weights of requests: storage::kWeightOfUnit is one request unit.
#pragma once

#include <unordered_map>

#include "base/reactor.h"
#include "replication/meta/meta_service.h"
#include "replication/rpc/rpc.h"
#include "replication/throughput/token_bucket.h"

namespace tetrad::replication {

/// The bucket of a tablet of a limited table.
struct BucketName {
  uint64_t key = 0;  // one for each bucket of the cluster
  uint64_t per_s = 0;
};
BucketName bucket_of(const TableInfo& table, TabletId tablet);
HostId holder_of(const MetaState& state, const MetaService& meta, const TableInfo& table,
                 const partitioner::Tablet& tablet);

/// The most that is lent at once.
constexpr uint64_t slice_of(uint64_t per_s) { return per_s / 10; }

/// kBorrowThroughput: what a shard has let in since it last asked, and asks for more.
struct BorrowRequest {
  TableIncarnation table;
  TabletId tablet;
  uint64_t debt = 0;
};
Bytes encode_borrow_request(const BorrowRequest& request);
/// Errors: kCorruption.
Result<BorrowRequest> decode_borrow_request(BytesView body);

/// The answer: what may be let in, or when to come again.
struct Loan {
  uint64_t granted = 0;
  int64_t retry_us = 0;
};
Bytes encode_loan(const Loan& loan);
/// Errors: kCorruption.
Result<Loan> decode_loan(BytesView body);

/// What a bucket that flows in at `per_s` lends: nothing rather than crumbs.
Loan lend(TokenBucket& bucket, uint64_t per_s, base::MonotonicUs now_us);

/// On shard 0 of every node.
class ThroughputHolder {
 public:
  ThroughputHolder(base::Reactor& reactor, RpcNode& rpc, MetaService& meta);
  ThroughputHolder(const ThroughputHolder&) = delete;
  ThroughputHolder& operator=(const ThroughputHolder&) = delete;

 private:
  /// A bucket, and when it was last asked for.
  struct Held {
    TokenBucket bucket;
    base::MonotonicUs used_us = 0;
  };

  /// Errors: kCorruption; kStaleSchema (no such table here, or it has no limit).
  Result<Loan> borrow(BytesView body);
  void forget_idle();

  base::Reactor& reactor_;
  MetaService& meta_;
  std::unordered_map<uint64_t, Held> buckets_;
  base::MonotonicUs forgotten_us_ = 0;
};

}  // namespace tetrad::replication
