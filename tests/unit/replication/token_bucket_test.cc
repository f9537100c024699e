// SPDX-License-Identifier: Apache-2.0
#include "replication/throughput/token_bucket.h"

#include <catch2/catch.hpp>

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

TEST_CASE("what is put in stays, also above what flows in") {
  TokenBucket bucket(1000, -500, 0);
  CHECK(bucket.level(0) == -500);
  bucket.put(700, 0);
  CHECK(bucket.level(0) == 200);
  bucket.put(5'000, 0);
  CHECK(bucket.level(10'000'000) == 5'200);
  bucket.put(UINT64_MAX, 10'000'000);
  CHECK(bucket.level(10'000'000) == static_cast<int64_t>(TokenBucket::kPerSecondMax));
}

TEST_CASE("what flows past a full bucket is counted once") {
  TokenBucket bucket(1000, 0, 0);
  CHECK(bucket.take_spilled(1'000'000) == 0);
  CHECK(bucket.take_spilled(1'500'000) == 500);
  CHECK(bucket.take_spilled(1'500'000) == 0);
  bucket.take(300, 1'500'000);
  CHECK(bucket.take_spilled(2'000'000) == 200);
  CHECK(bucket.level(2'000'000) == 1000);
}

}  // namespace tetrad::replication
