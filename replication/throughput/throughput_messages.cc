// SPDX-License-Identifier: Apache-2.0
// Encodings of borrowing, returning and sharing; the grammar is in the header. What older programs
// do not send is missing at the end of a body, so a decoder stops where the body ends.
#include "replication/throughput/throughput_messages.h"

#include "base/byte_io.h"
#include "replication/throughput/token_bucket.h"

namespace tetrad::replication {

namespace {

using base::ByteReader;
using base::ByteWriter;

Result<TableIncarnation> read_incarnation(ByteReader& in) {
  TETRAD_TRY(const uint64_t table, in.read_varint());
  if (table > UINT32_MAX) return fail(ErrorCode::kCorruption, "{} is no incarnation", table);
  return TableIncarnation{static_cast<uint32_t>(table)};
}

/// More than anybody lends is taken for garbage: it would be lent to others.
Result<uint64_t> read_amount(ByteReader& in) {
  TETRAD_TRY(const uint64_t amount, in.read_varint());
  if (amount > TokenBucket::kPerSecondMax)
    return fail(ErrorCode::kCorruption, "{} of a throughput", amount);
  return amount;
}

void write_place(RingPosition place, ByteWriter& out) {
  out.i64(place.token);
  out.u64(place.hash);
}

Result<RingPosition> read_place(ByteReader& in) {
  RingPosition place;
  TETRAD_TRY(place.token, in.read_i64());
  TETRAD_TRY(place.hash, in.read_u64());
  return place;
}

}  // namespace

Bytes encode_borrow_request(const BorrowRequest& request) {
  Bytes out;
  ByteWriter writer(out);
  writer.varint(request.table.value);
  writer.varint(request.tablet.value);
  writer.varint(request.debt);
  // Unset only in a cluster whose format is older than kFormatThroughput.
  if (!request.place) return out;
  write_place(*request.place, writer);
  writer.varint(request.shard);
  writer.varint(request.refused);
  writer.varint(request.refused_weight);
  return out;
}

Result<BorrowRequest> decode_borrow_request(BytesView body) {
  ByteReader in(body);
  BorrowRequest out;
  TETRAD_TRY(out.table, read_incarnation(in));
  TETRAD_TRY(out.tablet.value, in.read_varint());
  TETRAD_TRY(out.debt, in.read_varint());
  if (in.at_end()) return out;
  TETRAD_TRY(out.place, read_place(in));
  TETRAD_TRY(const uint64_t shard, in.read_varint());
  if (shard > UINT32_MAX) return fail(ErrorCode::kCorruption, "{} is no shard", shard);
  out.shard = static_cast<uint32_t>(shard);
  TETRAD_TRY(out.refused, in.read_varint());
  TETRAD_TRY(out.refused_weight, in.read_varint());
  return out;
}

Bytes encode_loan(const Loan& loan) {
  Bytes out;
  ByteWriter writer(out);
  writer.varint(loan.granted);
  writer.varint(static_cast<uint64_t>(loan.retry_us));
  writer.varint(loan.per_s);
  return out;
}

Result<Loan> decode_loan(BytesView body) {
  ByteReader in(body);
  Loan out;
  TETRAD_TRY(out.granted, read_amount(in));
  TETRAD_TRY(const uint64_t retry_us, in.read_varint());
  // A minute: a shard would sleep for as long as another node says.
  constexpr uint64_t kRetryMaxUs = 60'000'000;
  if (retry_us > kRetryMaxUs)
    return fail(ErrorCode::kCorruption, "a loan of {} and {} us", out.granted, retry_us);
  out.retry_us = static_cast<int64_t>(retry_us);
  if (in.at_end()) return out;
  TETRAD_TRY(out.per_s, read_amount(in));
  return out;
}

Bytes encode_return_request(const ReturnRequest& request) {
  Bytes out;
  ByteWriter writer(out);
  writer.varint(request.table.value);
  writer.varint(request.tablet.value);
  write_place(request.place, writer);
  writer.varint(request.returned);
  writer.varint(request.debt);
  writer.u8(request.is_handed_over ? 1 : 0);
  return out;
}

Result<ReturnRequest> decode_return_request(BytesView body) {
  ByteReader in(body);
  ReturnRequest out;
  TETRAD_TRY(out.table, read_incarnation(in));
  TETRAD_TRY(out.tablet.value, in.read_varint());
  TETRAD_TRY(out.place, read_place(in));
  TETRAD_TRY(out.returned, read_amount(in));
  TETRAD_TRY(out.debt, in.read_varint());
  TETRAD_TRY(const uint8_t by, in.read_u8());
  if (by > 1) return fail(ErrorCode::kCorruption, "a throughput returned by {}", by);
  out.is_handed_over = by == 1;
  return out;
}

Bytes encode_share_request(const ShareRequest& request) {
  Bytes out;
  ByteWriter writer(out);
  writer.varint(request.table.value);
  writer.varint(request.wanted);
  return out;
}

Result<ShareRequest> decode_share_request(BytesView body) {
  ByteReader in(body);
  ShareRequest out;
  TETRAD_TRY(out.table, read_incarnation(in));
  TETRAD_TRY(out.wanted, read_amount(in));
  return out;
}

Bytes encode_share(uint64_t given) {
  Bytes out;
  ByteWriter(out).varint(given);
  return out;
}

Result<uint64_t> decode_share(BytesView body) {
  ByteReader in(body);
  return read_amount(in);
}

}  // namespace tetrad::replication
