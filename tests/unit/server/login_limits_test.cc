// SPDX-License-Identifier: Apache-2.0
// Guessing passwords is slow from one address and against one role; who guesses locks nobody out.
#include "server/auth/login_limits.h"

#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

constexpr base::MonotonicUs kSecondUs = 1'000'000;
constexpr base::MonotonicUs kStartUs = 100 * kSecondUs;

/// A login at `now_us`; whether the password would have been looked at.
bool try_login(LoginLimits& limits, const std::string& address, const std::string& role, bool fails,
               base::MonotonicUs now_us) {
  if (!limits.begin(address, role, now_us)) return false;
  limits.end(address, role, fails, now_us);
  return true;
}

int failures_taken(LoginLimits& limits, const std::string& address, const std::string& role,
                   int attempts, base::MonotonicUs now_us) {
  int taken = 0;
  for (int i = 0; i < attempts; ++i) taken += try_login(limits, address, role, true, now_us);
  return taken;
}

}  // namespace

TEST_CASE("failed logins from one address are limited, whatever role they name") {
  LoginLimits limits;
  int taken = 0;
  for (int i = 0; i < 100; ++i)
    taken += try_login(limits, "10.0.0.1", "role" + std::to_string(i), true, kStartUs);
  CHECK(taken == LoginLimits::kOfAddressMax);
  const auto refused = limits.begin("10.0.0.1", "ann", kStartUs);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kBadCredentials);
  CHECK(try_login(limits, "10.0.0.2", "ann", true, kStartUs));
}

TEST_CASE("failures are forgotten with time") {
  LoginLimits limits;
  CHECK(failures_taken(limits, "10.0.0.1", "ann", 100, kStartUs) == 20);
  CHECK(failures_taken(limits, "10.0.0.1", "ann", 100, kStartUs + 1 * kSecondUs) == 1);
  CHECK(failures_taken(limits, "10.0.0.1", "ann", 100, kStartUs + 11 * kSecondUs) == 5);
  CHECK(failures_taken(limits, "10.0.0.1", "ann", 100, kStartUs + 1000 * kSecondUs) == 20);
}

TEST_CASE("logins that succeed are not counted") {
  LoginLimits limits;
  for (int i = 0; i < 5000; ++i) REQUIRE(try_login(limits, "10.0.0.1", "ann", false, kStartUs));
}

TEST_CASE("guesses of many addresses at one role are limited and lock nobody else out") {
  LoginLimits limits;
  int taken = 0;
  for (int i = 0; i < 300; ++i)
    taken += failures_taken(limits, "10.0.1." + std::to_string(i), "ann", 2, kStartUs);
  // The first of each address is taken: it may be the role's owner.
  CHECK(taken == LoginLimits::kOfRoleMax + 300 - LoginLimits::kOfRoleMax / 2);
  CHECK(try_login(limits, "10.0.0.1", "ann", false, kStartUs));
  const auto refused = limits.begin("10.0.1.7", "ann", kStartUs);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kBadCredentials);
  CHECK(try_login(limits, "10.0.1.7", "bob", false, kStartUs));
}

TEST_CASE("logins that wait are limited, and one that ends makes room for one") {
  LoginLimits limits;
  for (size_t i = 0; i < LoginLimits::kWaitingMax; ++i)
    REQUIRE(limits.begin("10.0.0.1", "ann", kStartUs).has_value());
  const auto refused = limits.begin("10.0.0.2", "bob", kStartUs);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kOverloaded);
  limits.end("10.0.0.1", "ann", false, kStartUs);
  CHECK(limits.begin("10.0.0.2", "bob", kStartUs).has_value());
  CHECK_FALSE(limits.begin("10.0.0.3", "bob", kStartUs).has_value());
}

TEST_CASE("names that come once push out the oldest of what is remembered, not the latest") {
  LoginLimits limits;
  const auto address = [](size_t i) { return "address " + std::to_string(i); };
  CHECK(failures_taken(limits, "oldest", "r", 100, kStartUs) == 20);
  CHECK(failures_taken(limits, "latest", "s", 100, kStartUs + 2) == 20);
  for (size_t i = 0; i + 1 < LoginLimits::kRememberedMax; ++i)
    REQUIRE(try_login(limits, address(i), "role " + std::to_string(i), true, kStartUs + 1));
  CHECK(try_login(limits, "oldest", "x", false, kStartUs + 2));
  CHECK_FALSE(try_login(limits, "latest", "x", false, kStartUs + 2));
}

TEST_CASE("a time that is a little behind another thread's forgets nothing and adds nothing") {
  LoginLimits limits;
  CHECK(failures_taken(limits, "10.0.0.1", "ann", 10, kStartUs) == 10);
  CHECK(failures_taken(limits, "10.0.0.1", "ann", 100, kStartUs - 1000) == 10);
}

}  // namespace tetrad::server
