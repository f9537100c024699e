// SPDX-License-Identifier: Apache-2.0
// Guessing passwords is slow from one address and against one role; who guesses locks nobody out.
#include "server/auth/login_limits.h"

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace tetrad::server {
namespace {

constexpr base::MonotonicUs kSecondUs = 1'000'000;
constexpr base::MonotonicUs kStartUs = 100 * kSecondUs;

using Outcome = LoginLimits::Outcome;

/// One login, and what it was answered.
struct Login {
  Login(LoginLimits& limits, const std::string& address, const std::string& role,
        base::MonotonicUs now_us = kStartUs)
      : id(limits.begin(address, role, now_us, [told = answer](Result<void> result) {
          REQUIRE_FALSE(told->has_value());
          told->emplace(std::move(result));
        })) {}
  bool waits() const { return !answer->has_value(); }
  bool is_under_way() const { return !waits() && (*answer)->has_value(); }
  bool is_refused() const { return !waits() && !(*answer)->has_value(); }
  ErrorCode code() const { return (*answer)->error().code; }

  const std::shared_ptr<std::optional<Result<void>>> answer =
      std::make_shared<std::optional<Result<void>>>();
  const LoginLimits::Id id;
};

/// A login at `now_us`; whether the password would have been looked at.
bool try_login(LoginLimits& limits, const std::string& address, const std::string& role, bool fails,
               base::MonotonicUs now_us) {
  const Login login(limits, address, role, now_us);
  REQUIRE_FALSE(login.waits());
  limits.end(login.id, fails ? Outcome::kFailed : Outcome::kPassed, now_us);
  return login.is_under_way();
}

/// Ends the logins that are under way, and those that come to be, until none is. Returns how many
/// passwords were looked at. Those of `good` are right, all others are wrong.
int hash_all(LoginLimits& limits, std::vector<Login>& logins, const std::string& good = "") {
  int hashed = 0;
  std::set<LoginLimits::Id> ended;
  for (bool found = true; std::exchange(found, false);) {
    for (const Login& login : logins) {
      if (!login.is_under_way() || !ended.insert(login.id).second) continue;
      ++hashed;
      found = true;
      limits.end(login.id, good.empty() ? Outcome::kFailed : Outcome::kPassed, kStartUs);
    }
  }
  return hashed;
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
  const Login refused(limits, "10.0.0.1", "ann");
  REQUIRE(refused.is_refused());
  CHECK(refused.code() == ErrorCode::kBadCredentials);
  CHECK(try_login(limits, "10.0.0.2", "ann", true, kStartUs));
}

TEST_CASE("an IPv6 network of 64 bits is one address") {
  CHECK(limited_part("10.0.0.1") == "10.0.0.1");
  CHECK(limited_part("::ffff:10.0.0.1") == "10.0.0.1");
  CHECK(limited_part("2001:db8:0:1:2:3:4:5") == "2001:db8:0:1::/64");
  CHECK(limited_part("2001:db8:0:1::9%3") == "2001:db8:0:1::/64");
  CHECK(limited_part("2001:db8:0:2::1") == "2001:db8:0:2::/64");
  CHECK(limited_part("somewhere") == "somewhere");
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
  const Login refused(limits, "10.0.1.7", "ann");
  REQUIRE(refused.is_refused());
  CHECK(refused.code() == ErrorCode::kBadCredentials);
  CHECK(try_login(limits, "10.0.1.7", "bob", false, kStartUs));
}

TEST_CASE("logins that come at once are no way around the limit of an address") {
  LoginLimits limits;
  std::vector<Login> guesses;
  for (int i = 0; i < 500; ++i) guesses.emplace_back(limits, "10.0.0.1", "ann");
  CHECK(hash_all(limits, guesses) == LoginLimits::kOfAddressMax);
  for (const Login& guess : guesses) CHECK_FALSE(guess.waits());
  CHECK(guesses.back().code() == ErrorCode::kBadCredentials);
  // The other way round, too: who has failed 19 times has one more, not one for each hash under way.
  LoginLimits others;
  CHECK(failures_taken(others, "10.0.0.1", "ann", 19, kStartUs) == 19);
  const Login first(others, "10.0.0.1", "ann"), second(others, "10.0.0.1", "ann");
  CHECK(first.is_under_way());
  CHECK(second.waits());
  others.end(first.id, Outcome::kPassed, kStartUs);
  CHECK(second.is_under_way());
}

TEST_CASE("many right logins at once from one address all pass") {
  LoginLimits limits;
  std::vector<Login> logins;
  for (int i = 0; i < 500; ++i) logins.emplace_back(limits, "10.0.0.1", "ann");
  CHECK(hash_all(limits, logins, "all") == 500);
}

TEST_CASE("a login from elsewhere waits for those under way, not for a line of guesses") {
  LoginLimits limits;
  std::vector<Login> guesses;
  for (int from = 0; from < 10; ++from)
    for (int i = 0; i < 30; ++i)
      guesses.emplace_back(limits, "10.0.0." + std::to_string(from), "ann");
  // Each guesser has failed once, so it comes after who has not.
  int hashes = 0;
  std::set<LoginLimits::Id> ended;
  const auto end_one = [&] {
    for (const Login& guess : guesses) {
      if (!guess.is_under_way() || !ended.insert(guess.id).second) continue;
      limits.end(guess.id, Outcome::kFailed, kStartUs);
      return;
    }
    FAIL("nothing is under way");
  };
  for (int i = 0; i < 20; ++i) end_one();
  const Login good(limits, "10.0.1.1", "ann");
  for (; good.waits(); ++hashes) end_one();
  CHECK(good.is_under_way());
  CHECK(hashes <= 2);
  limits.end(good.id, Outcome::kPassed, kStartUs);
  // An address that has failed is not held up for ever by others that have not.
  std::vector<Login> good_ones;
  for (int i = 0; i < 100; ++i)
    good_ones.emplace_back(limits, "10.0.2." + std::to_string(i), "ann");
  int passed_before = 0;
  while (ended.size() < 30) {
    for (const Login& one : good_ones) {
      if (!one.is_under_way() || !ended.insert(one.id).second) continue;
      limits.end(one.id, Outcome::kPassed, kStartUs);
      ++passed_before;
    }
    for (const Login& guess : guesses)
      if (guess.is_under_way() && ended.insert(guess.id).second)
        limits.end(guess.id, Outcome::kFailed, kStartUs);
    REQUIRE(passed_before <= 20);
  }
}

TEST_CASE("of logins that wait the last of the longest line makes room") {
  LoginLimits limits;
  std::vector<Login> crowd;
  for (size_t i = 0; i < LoginLimits::kWaitingMax + LoginLimits::kUnderWayMax; ++i)
    crowd.emplace_back(limits, "10.0.0.1", "ann");
  const Login another(limits, "10.0.0.1", "ann");
  REQUIRE(another.is_refused());
  CHECK(another.code() == ErrorCode::kOverloaded);
  const Login elsewhere(limits, "10.0.0.2", "bob");
  CHECK(elsewhere.waits());
  REQUIRE(crowd.back().is_refused());
  CHECK(crowd.back().code() == ErrorCode::kOverloaded);
  limits.end(crowd.front().id, Outcome::kPassed, kStartUs);
  limits.end(crowd[1].id, Outcome::kPassed, kStartUs);
  limits.end(crowd[2].id, Outcome::kPassed, kStartUs);
  CHECK(elsewhere.is_under_way());
  const Login next(limits, "10.0.0.3", "bob");
  CHECK(next.waits());
}

TEST_CASE("who gives up leaves the line, and counts for nothing") {
  LoginLimits limits;
  std::vector<Login> logins;
  for (int i = 0; i < 100; ++i) logins.emplace_back(limits, "10.0.0.1", "ann");
  for (const Login& login : logins) limits.end(login.id, Outcome::kGivenUp, kStartUs);
  CHECK(failures_taken(limits, "10.0.0.1", "ann", 100, kStartUs) == 20);
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
