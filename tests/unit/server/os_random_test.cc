// SPDX-License-Identifier: Apache-2.0
// A node's ids and secrets come from the kernel: what clients have seen tells nothing of what follows.
#include "server/runtime/os_random.h"

#include <array>

#include <catch2/catch.hpp>

#include "server/shard.h"

namespace tetrad::server {

TEST_CASE("the kernel's numbers differ from call to call") {
  std::array<uint64_t, 8> first{}, second{};
  os_random(first);
  os_random(second);
  CHECK(first != second);
}

TEST_CASE("a shard's randomness cannot be continued from a copy of its state") {
  AsioReactor reactor;
  Shard shard(0, reactor);
  base::Random copy = shard.random;
  // What was drawn ahead is in the copy, too; a seeded generator would agree for ever.
  constexpr int kDrawnAhead = 1'000;
  for (int i = 0; i < kDrawnAhead; ++i) {
    copy.next();
    shard.random.next();
  }
  int equal = 0;
  for (int i = 0; i < 100; ++i) equal += copy.next() == shard.random.next() ? 1 : 0;
  CHECK(equal == 0);
}

}  // namespace tetrad::server
