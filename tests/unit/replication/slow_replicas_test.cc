// SPDX-License-Identifier: Apache-2.0
#include "replication/coordinator/slow_replicas.h"

#include <catch2/catch.hpp>

namespace tetrad::replication {

namespace {

StoreAddress replica(uint8_t number) {
  StoreAddress out;
  out.host.value.octets[15] = number;
  return out;
}

/// What a read asks, in its order.
std::vector<StoreAddress> asked(SlowReplicas& slow, base::MonotonicUs now_us) {
  std::vector<StoreAddress> candidates = {replica(1), replica(2), replica(3), replica(4)};
  slow.ask_last(candidates, now_us);
  return candidates;
}

constexpr int64_t kWaitedUs = 30'000;
const std::vector<StoreAddress> kUsual = {replica(1), replica(2), replica(3), replica(4)};
const std::vector<StoreAddress> kSecondLast = {replica(1), replica(3), replica(4), replica(2)};

}  // namespace

TEST_CASE("a slow replica is asked last, and tried by one read in fifty at most") {
  SlowReplicas slow;
  base::MonotonicUs now_us = 5'000'000;
  CHECK(asked(slow, now_us) == kUsual);
  slow.note_late(replica(2), kWaitedUs, now_us);
  // A hundred thousand reads in a hundred seconds, of which each that asks it is late.
  int tried = 0;
  for (int i = 0; i < 100'000; ++i, now_us += 1'000) {
    const auto candidates = asked(slow, now_us);
    if (candidates == kUsual) {
      ++tried;
      slow.note_late(replica(2), kWaitedUs, now_us + 500);
    } else {
      CHECK(candidates == kSecondLast);
    }
  }
  // After 1, 2, 4, 8 and then every 16 seconds.
  CHECK(tried == 9);
  // Reads that are rare: by their number. The first of them is one of many since the last.
  tried = 0;
  for (int i = 0; i < 1'000; ++i, now_us += 20'000'000) {
    if (asked(slow, now_us) != kUsual) continue;
    ++tried;
    slow.note_late(replica(2), kWaitedUs, now_us + 500);
  }
  CHECK(tried == 20);
}

TEST_CASE("a replica that was slow is as all others once it has answered in time") {
  SlowReplicas slow;
  slow.note_late(replica(2), kWaitedUs, 0);
  // Asked for want of others.
  slow.note_in_time(replica(2));
  for (int i = 0; i < 60; ++i) CHECK(asked(slow, 900'000) == kSecondLast);
  CHECK(asked(slow, 1'100'000) == kUsual);
  // One read tries it, and the others do not meanwhile.
  CHECK(asked(slow, 1'100'000) == kSecondLast);
  slow.note_in_time(replica(2));
  CHECK(slow.is_empty());
  CHECK(asked(slow, 1'100'000) == kUsual);
}

TEST_CASE("reads that had asked a slow replica before the first was late count once") {
  SlowReplicas slow;
  for (int i = 0; i < 100; ++i) slow.note_late(replica(2), kWaitedUs, 0);
  for (int i = 0; i < 60; ++i) CHECK(asked(slow, 0) == kSecondLast);
  CHECK(asked(slow, 1'000'000) == kUsual);
}

TEST_CASE("a replica that is late by little is slow when it answers nobody in time meanwhile") {
  SlowReplicas slow;
  slow.note_late(replica(2), 2'000, 10'000);
  slow.note_late(replica(2), 2'000, 30'000);
  CHECK(asked(slow, 30'000) == kUsual);
  slow.note_late(replica(2), 2'000, 33'000);
  CHECK(asked(slow, 33'000) == kSecondLast);

  SlowReplicas pausing;
  pausing.note_late(replica(2), 2'000, 10'000);
  pausing.note_in_time(replica(2));
  CHECK(pausing.is_empty());
  pausing.note_late(replica(2), 2'000, 33'000);
  CHECK(asked(pausing, 33'000) == kUsual);
}

TEST_CASE("a slow replica that is no candidate any more is forgotten") {
  SlowReplicas slow;
  slow.note_late(replica(9), kWaitedUs, 0);
  CHECK(asked(slow, 59'000'000) == kUsual);
  CHECK_FALSE(slow.is_empty());
  CHECK(asked(slow, 61'000'000) == kUsual);
  CHECK(slow.is_empty());
}

TEST_CASE("several slow replicas keep their order behind the others") {
  SlowReplicas slow;
  slow.note_late(replica(3), kWaitedUs, 0);
  slow.note_late(replica(1), kWaitedUs, 0);
  CHECK(asked(slow, 0) ==
        std::vector<StoreAddress>{replica(2), replica(4), replica(1), replica(3)});
}

}  // namespace tetrad::replication
