// SPDX-License-Identifier: Apache-2.0
#include "replication/tablets/held_tablets.h"

#include <catch2/catch.hpp>

#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::replication {

namespace {

using partitioner::host_number;

}  // namespace

TEST_CASE("held tablets: the example of the header") {
  const Bytes body("\x01\x02\x21\x22");
  const std::set<TabletId> tablets{TabletId{33}, TabletId{34}};
  CHECK(encode_held_tablets(tablets) == body);
  const auto decoded = decode_held_tablets(body);
  REQUIRE(decoded);
  CHECK(*decoded == tablets);
}

TEST_CASE("held tablets: a body that is cut, of another version or too long is refused") {
  for (const BytesView body :
       {BytesView("\x01\x02\x21"), BytesView("\x02\x00", 2), BytesView("\x01\x41"), BytesView("")})
    CHECK_FALSE(decode_held_tablets(body));
}

TEST_CASE("held tablets: what a node says takes the place of what it said before, and ends") {
  HeldTablets held;
  held.hear(host_number(1), {TabletId{1}, TabletId{2}}, 1'000);
  held.hear(host_number(2), {TabletId{7}, TabletId{8}}, 2'000);
  CHECK(held.held(2'000).size() == 4);
  held.hear(host_number(1), {TabletId{3}}, 3'000);
  CHECK(held.held(3'000) == std::set<TabletId>{TabletId{3}, TabletId{7}, TabletId{8}});
  CHECK(held.held(2'001 + HeldTablets::kHeldUs) == std::set<TabletId>{TabletId{3}});
  CHECK(held.held(3'001 + HeldTablets::kHeldUs).empty());
}

}  // namespace tetrad::replication
