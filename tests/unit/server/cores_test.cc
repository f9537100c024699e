// SPDX-License-Identifier: Apache-2.0
#include "server/runtime/cores.h"

#include <catch2/catch.hpp>

namespace tetrad::server {

TEST_CASE("a control group's limit counts in whole cores") {
  CHECK(cores_of_cpu_max("max 100000") == 0);
  CHECK(cores_of_cpu_max("200000 100000") == 2);
  CHECK(cores_of_cpu_max("150000 100000") == 2);
  CHECK(cores_of_cpu_max("50000 100000") == 1);
  CHECK(cores_of_cpu_max("") == 0);
  CHECK(cores_of_cpu_max("nonsense here") == 0);
  CHECK(usable_cores() >= 1);
}

}  // namespace tetrad::server
