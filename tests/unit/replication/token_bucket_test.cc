// SPDX-License-Identifier: Apache-2.0
#include "replication/throughput/token_bucket.h"

#include <catch2/catch.hpp>

#include "replication/throughput/throughput_holder.h"

namespace tetrad::replication {

TEST_CASE("a bucket fills at its rate and holds a second of it") {
  TokenBucket bucket(1000, 5);
  CHECK(bucket.level(5) == 1000);
  CHECK(bucket.level(60'000'000) == 1000);
  bucket.take(900, 60'000'000);
  CHECK(bucket.level(60'000'000) == 100);
  CHECK(bucket.level(60'050'000) == 150);
  CHECK(bucket.us_until(150, 60'050'000) == 0);
  CHECK(bucket.us_until(151, 60'050'000) == 1'000);
  CHECK(bucket.us_until(5000, 60'050'000) == 850'000);  // more than it ever holds
}

TEST_CASE("what is taken beyond the bucket is a debt of ten seconds at most") {
  TokenBucket bucket(1000, 0);
  bucket.take(3000, 0);
  CHECK(bucket.level(0) == -2000);
  CHECK(bucket.us_until(1, 0) == 2'001'000);
  CHECK(bucket.level(2'001'000) == 1);
  bucket.take(UINT64_MAX, 2'001'000);
  CHECK(bucket.level(2'001'000) == -10'000);
  bucket.take(UINT64_MAX, 2'001'000);
  CHECK(bucket.level(12'001'000) == 0);
}

TEST_CASE("parts of a token are not lost, however often the bucket is looked at") {
  TokenBucket bucket(7, 0);
  bucket.take(7, 0);
  for (int64_t now_us = 0; now_us <= 900'000; now_us += 13) bucket.level(now_us);
  CHECK(bucket.level(999'999) == 6);
  CHECK(bucket.level(1'000'000) == 7);
}

TEST_CASE("a clock that stands or steps back fills nothing, and a long time does not overflow") {
  TokenBucket bucket(TokenBucket::kPerSecondMax, 1'000'000);
  bucket.take(UINT64_MAX, 1'000'000);
  const auto debt = bucket.level(1'000'000);
  CHECK(debt == -10 * static_cast<int64_t>(TokenBucket::kPerSecondMax));
  CHECK(bucket.level(5) == debt);
  CHECK(bucket.level(INT64_MAX) == static_cast<int64_t>(TokenBucket::kPerSecondMax));
}

TEST_CASE("a new rate keeps what is there as far as it fits") {
  TokenBucket bucket(1000, 0);
  bucket.set_rate(400, 0);
  CHECK(bucket.level(0) == 400);
  bucket.set_rate(4000, 0);
  CHECK(bucket.level(0) == 400);
  CHECK(bucket.level(100'000) == 800);
  bucket.take(20'800, 100'000);
  CHECK(bucket.level(100'000) == -20'000);
  bucket.set_rate(1000, 100'000);
  CHECK(bucket.level(100'000) == -10'000);
}

TEST_CASE("a bucket lends slices, and nothing rather than crumbs") {
  TokenBucket bucket(1000, 0);
  for (int i = 0; i < 10; ++i) {
    const Loan loan = lend(bucket, 1000, 0);
    CHECK(loan.granted == 100);
    CHECK(loan.retry_us == 0);
  }
  Loan loan = lend(bucket, 1000, 0);
  CHECK(loan.granted == 0);
  CHECK(loan.retry_us == 25'000);
  loan = lend(bucket, 1000, 24'999);
  CHECK(loan.granted == 0);
  loan = lend(bucket, 1000, 25'000);
  CHECK(loan.granted == 25);
  bucket.take(1000, 25'000);
  CHECK(lend(bucket, 1000, 25'000).retry_us == 1'025'000);
}

TEST_CASE("requests for loans and their answers are read as they were written") {
  const BorrowRequest request{TableIncarnation{7}, TabletId{1u << 20}, uint64_t{1} << 60};
  const auto read = decode_borrow_request(encode_borrow_request(request));
  REQUIRE(read);
  CHECK(read->table.value == 7);
  CHECK(read->tablet.value == 1u << 20);
  CHECK(read->debt == uint64_t{1} << 60);
  CHECK(!decode_borrow_request(""));
  CHECK(!decode_borrow_request(Bytes(10, '\xff')));
  const auto loan = decode_loan(encode_loan({12, 34}));
  REQUIRE(loan);
  CHECK(loan->granted == 12);
  CHECK(loan->retry_us == 34);
  CHECK(!decode_loan("\x01"));
  CHECK(!decode_loan(encode_loan({UINT64_MAX, 0})));
  CHECK(!decode_loan(encode_loan({0, int64_t{1} << 40})));
}

}  // namespace tetrad::replication
