// SPDX-License-Identifier: Apache-2.0
#include "cql/system/size_estimates.h"

#include <catch2/catch.hpp>

namespace tetrad::cql {
namespace {

RingRange whole() { return {RingPosition::lowest(), RingPosition::highest()}; }

storage::ReadResult partitions_up_to(int64_t token, size_t count, bool exhausted) {
  storage::ReadResult out;
  for (size_t i = 0; i < count; ++i) {
    storage::PartitionData partition;
    partition.position = {token, 0};
    partition.partition_key = "key";
    out.partitions.push_back(partition);
  }
  out.exhausted = exhausted;
  return out;
}

TEST_CASE("a range read to its end is counted, a longer one is scaled by its part of the ring") {
  CHECK(estimate_tablet(whole(), partitions_up_to(0, 0, true), 1000).partitions == 0);
  const TabletEstimate small = estimate_tablet(whole(), partitions_up_to(0, 10, true), 1000);
  CHECK(small.partitions == 10);
  CHECK(small.mean_bytes == 100);
  // 500 partitions lie on the first quarter of the ring.
  const TabletEstimate large =
      estimate_tablet(whole(), partitions_up_to(INT64_MIN / 2, 500, false), 4'000'000);
  CHECK(large.partitions == 2000);
  CHECK(large.mean_bytes == 2000);
  CHECK(estimate_tablet(whole(), partitions_up_to(0, 2, true), 0).mean_bytes == 3);
}

TEST_CASE("the replicas of a tablet cut its range into parts without gap or overlap") {
  partitioner::Tablet tablet;
  tablet.range = whole();
  std::vector<HostId> hosts;
  for (uint8_t i = 0; i < 4; ++i) {
    HostId host;
    host.value.octets[0] = static_cast<uint8_t>(i + 1);
    hosts.push_back(host);
    tablet.replicas.push_back({host, 0});
  }
  RingPosition at = tablet.range.start;
  for (const HostId& host : hosts) {
    const auto part = primary_part(tablet, host);
    REQUIRE(part.has_value());
    CHECK(part->start == at);
    CHECK(part->start < part->end);
    at = part->end;
  }
  CHECK(at == tablet.range.end);
  CHECK_FALSE(primary_part(tablet, HostId{}).has_value());
  tablet.range = {{5, 0}, {6, 0}};  // too narrow to be cut
  CHECK(primary_part(tablet, hosts[0]).has_value());
  CHECK_FALSE(primary_part(tablet, hosts[1]).has_value());
}

}  // namespace
}  // namespace tetrad::cql
