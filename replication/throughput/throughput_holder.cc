// SPDX-License-Identifier: Apache-2.0
// Lends from the buckets that this node holds: never more than a slice at once, so that no shard can hold
// back what others wait for.
#include "replication/throughput/throughput_holder.h"

#include <algorithm>

#include "base/assert.h"
#include "base/hash.h"
#include "replication/tablets/load_report.h"
#include "storage/row/row_weight.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kForgottenAfterUs = 60'000'000;
constexpr uint64_t kKeyspaceKey = uint64_t{1} << 63;  // no tablet's number is so high

/// Rendezvous hashing: all who see the same nodes live choose the same one, and it stays while it
/// lives.
HostId keyspace_holder(const MetaState& state, const MetaService& meta,
                       const std::string& keyspace) {
  HostId chosen = meta.self();
  uint64_t highest = 0;
  for (const auto& [host, node] : state.nodes) {
    if (node.state == NodeState::kRemoved || !meta.is_live(host)) continue;
    const uint64_t score = base::xxh3_64(keyspace + std::string(host.value.view()));
    if (score < highest) continue;
    highest = score;
    chosen = host;
  }
  return chosen;
}

}  // namespace

BucketName bucket_of(const TableInfo& table, TabletId tablet) {
  BucketName out;
  out.per_s = uint64_t{table.throughput.ru_per_s} * storage::kWeightOfUnit;
  if (table.throughput.of_keyspace) {
    out.key = base::xxh3_64(table.keyspace) | kKeyspaceKey;
  } else {
    out.key = tablet.value;
    out.per_s /= table.tablets.tablets().size();
  }
  TETRAD_ASSERT(table.throughput.is_limited());
  out.per_s = std::clamp<uint64_t>(out.per_s, 1, TokenBucket::kPerSecondMax);
  return out;
}

HostId holder_of(const MetaState& state, const MetaService& meta, const TableInfo& table,
                 const partitioner::Tablet& tablet) {
  return table.throughput.of_keyspace ? keyspace_holder(state, meta, table.keyspace)
                                      : acting_member(tablet, meta).host;
}

Bytes encode_borrow_request(const BorrowRequest& request) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.varint(request.table.value);
  writer.varint(request.tablet.value);
  writer.varint(request.debt);
  return out;
}

Result<BorrowRequest> decode_borrow_request(BytesView body) {
  base::ByteReader in(body);
  BorrowRequest out;
  TETRAD_TRY(const uint64_t table, in.read_varint());
  if (table > UINT32_MAX) return fail(ErrorCode::kCorruption, "{} is no incarnation", table);
  out.table.value = static_cast<uint32_t>(table);
  TETRAD_TRY(out.tablet.value, in.read_varint());
  TETRAD_TRY(out.debt, in.read_varint());
  return out;
}

Bytes encode_loan(const Loan& loan) {
  Bytes out;
  base::ByteWriter writer(out);
  writer.varint(loan.granted);
  writer.varint(static_cast<uint64_t>(loan.retry_us));
  return out;
}

Result<Loan> decode_loan(BytesView body) {
  base::ByteReader in(body);
  Loan out;
  TETRAD_TRY(out.granted, in.read_varint());
  TETRAD_TRY(const uint64_t retry_us, in.read_varint());
  constexpr uint64_t kRetryMaxUs = 60'000'000;
  if (out.granted > TokenBucket::kPerSecondMax || retry_us > kRetryMaxUs)
    return fail(ErrorCode::kCorruption, "a loan of {} and {} us", out.granted, retry_us);
  out.retry_us = static_cast<int64_t>(retry_us);
  return out;
}

Loan lend(TokenBucket& bucket, uint64_t per_s, base::MonotonicUs now_us) {
  const auto slice = static_cast<int64_t>(std::max<uint64_t>(slice_of(per_s), 1));
  const int64_t least = std::max<int64_t>(slice / 4, 1);
  Loan loan;
  const int64_t level = bucket.level(now_us);
  if (level < least) {
    loan.retry_us = bucket.us_until(least, now_us);
    return loan;
  }
  TETRAD_ASSERT(level > 0 && slice > 0);
  loan.granted = static_cast<uint64_t>(std::min(level, slice));
  bucket.take(loan.granted, now_us);
  return loan;
}

ThroughputHolder::ThroughputHolder(base::Reactor& reactor, RpcNode& rpc, MetaService& meta)
    : reactor_(reactor), meta_(meta) {
  rpc.handle(Verb::kBorrowThroughput,
             [this](const RpcContext&, BytesView body, RpcNode::Reply reply) {
               const auto loan = borrow(body);
               if (loan) return reply.ok(encode_loan(*loan));
               reply.error(loan.error());
             });
}

Result<Loan> ThroughputHolder::borrow(BytesView body) {
  TETRAD_TRY(const BorrowRequest request, decode_borrow_request(body));
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(request.table);
  if (table == nullptr || !table->throughput.is_limited())
    return fail(ErrorCode::kStaleSchema, "no limited table {} here", request.table.value);
  const BucketName name = bucket_of(*table, request.tablet);
  const base::MonotonicUs now_us = reactor_.now_us();
  if (now_us - forgotten_us_ >= kForgottenAfterUs) forget_idle();
  Held& held = buckets_.try_emplace(name.key, Held{{name.per_s, now_us}}).first->second;
  held.used_us = now_us;
  held.bucket.set_rate(name.per_s, now_us);
  held.bucket.take(request.debt, now_us);
  return lend(held.bucket, name.per_s, now_us);
}

/// They are full again.
void ThroughputHolder::forget_idle() {
  forgotten_us_ = reactor_.now_us();
  std::erase_if(buckets_, [&](const auto& entry) {
    return entry.second.used_us <= forgotten_us_ - kForgottenAfterUs;
  });
}

}  // namespace tetrad::replication
