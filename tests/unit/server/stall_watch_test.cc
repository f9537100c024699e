// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/stall_watch.h"

#include <catch2/catch.hpp>

namespace tetrad::server {

TEST_CASE("each turn of the loop is counted once, from its first statement") {
  StallWatch watch{Logger()};
  watch.turn_ended(1'000, 1'250);
  CHECK(watch.turns().count() == 1);
  CHECK(watch.turns().sum_us() == 250);
  watch.begin("id", "SELECT 1");
  watch.begin("", std::string(10'000, 'x'));
  watch.turn_ended(INT64_MAX, INT64_MAX);  // began with the first statement, long before
  CHECK(watch.turns().count() == 2);
  CHECK(watch.turns().sum_us() > 250 + StallWatch::kStallUs);
  watch.turn_ended(5'000, 5'001);  // of that turn nothing is left
  CHECK(watch.turns().count() == 3);
  CHECK(watch.turns().bucket(0) == 1);
}

TEST_CASE("the text of a statement is logged in ASCII") {
  CHECK(StallWatch::escaped("SELECT 'a\\b' \"C\"") == "SELECT 'a\\\\b' \\\"C\\\"");
  CHECK(StallWatch::escaped("a\nb\x80") == "a\\x0ab\\x80");
}

}  // namespace tetrad::server
