// SPDX-License-Identifier: Apache-2.0
#include "base/closest_name.h"

#include <vector>

#include <catch2/catch.hpp>

namespace tetrad::base {

TEST_CASE("the closest name is the one with the fewest edits, or none that is close") {
  const std::vector<std::string> names = {"status", "ring", "repair", "split", "setting"};
  CHECK(closest_name("statsu", names) == "status");
  CHECK(closest_name("stauts", names) == "status");
  CHECK(closest_name("repiar", names) == "repair");
  CHECK(closest_name("rings", names) == "ring");
  CHECK(closest_name("settings", names) == "setting");
  CHECK(closest_name("info", names).empty());
  CHECK(closest_name("", names).empty());
  CHECK(closest_name(std::string(100'000, 'x'), names).empty());
  CHECK(closest_name("ring", {}).empty());
  CHECK(did_you_mean("statsu", names) == "; did you mean status?");
  CHECK(did_you_mean("info", names).empty());
}

}  // namespace tetrad::base
