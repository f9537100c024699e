// SPDX-License-Identifier: Apache-2.0
// UUIDs: their text, their versions, their time.
#include "base/uuid.h"

#include <catch2/catch.hpp>

#include "base/random.h"

namespace tetrad::base {
namespace {

TEST_CASE("the text of a UUID, and what is none") {
  const std::string text = "0a1b2c3d-4e5f-1071-8293-a4b5c6d7e8f9";
  const auto uuid = Uuid::parse(text);
  REQUIRE(uuid);
  CHECK(uuid->to_string() == text);
  CHECK(Uuid::parse("0A1B2C3D-4E5F-1071-8293-A4B5C6D7E8F9") == uuid);
  CHECK(Uuid::from_bytes(uuid->view()) == *uuid);
  CHECK(uuid->version() == 1);
  CHECK(Uuid{}.is_nil());
  CHECK_FALSE(uuid->is_nil());
  for (const char* bad :
       {"", "0a1b2c3d", "0a1b2c3d4e5f10718293a4b5c6d7e8f9", "0a1b2c3d-4e5f-1071-8293-a4b5c6d7e8f",
        "0a1b2c3d-4e5f-1071-8293-a4b5c6d7e8f90", "0a1b2c3d-4e5f-1071-8293-a4b5c6d7e8fg",
        "0a1b2c3d-4e5f-1071-8293 a4b5c6d7e8f9", "{a1b2c3d-4e5f-1071-8293-a4b5c6d7e8f}",
        "-0a1b2c3-4e5f-1071-8293-a4b5c6d7e8f9", "0a1b2c3d-4e5f-1071-82-3-a4b5c6d7e8f9"}) {
    CHECK_FALSE(Uuid::parse(bad));
  }
}

TEST_CASE("random UUIDs are of version 4 and come back from their text") {
  Random random(9);
  for (int i = 0; i < 1'000; ++i) {
    const Uuid uuid = make_random_uuid(random);
    REQUIRE(uuid.version() == 4);
    REQUIRE(uuid.octets[8] >> 6 == 2);
    REQUIRE(Uuid::parse(uuid.to_string()) == uuid);
  }
}

TEST_CASE("time UUIDs keep their time, clock sequence and node") {
  CHECK(uuid_ticks_of_unix_us(0) == 0x01B21DD213814000ULL);
  Random random(10);
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t ticks = random.next() >> 4;
    const Uuid uuid = make_time_uuid(ticks, static_cast<uint16_t>(random.next()), random.next());
    REQUIRE(uuid.version() == 1);
    REQUIRE(uuid.octets[8] >> 6 == 2);
    REQUIRE(uuid_ticks(uuid) == ticks);
  }
  CHECK(make_time_uuid(0x0123456789ABCDEFULL, 0x3FFF, 0xFFFFFFFFFFFFULL).to_string() ==
        "89abcdef-4567-1123-bfff-ffffffffffff");
}

}  // namespace
}  // namespace tetrad::base
