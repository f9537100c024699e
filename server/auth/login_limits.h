// SPDX-License-Identifier: Apache-2.0
// How many logins may fail, and how many may wait. One per node, for all its shards: guessing
// passwords is slow from one address and against one role, and hashing has a bounded queue.
//
// Failures of an address or a role are a leaking bucket: each adds one, time takes some away, and
// at the maximum logins are refused before any hash is computed. Hashes cost the processor much by
// design, so logins that wait for one are bounded as well.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/reactor.h"
#include "base/result.h"

namespace tetrad::server {

/// Thread-safe. Bounded in memory, whatever names and addresses come.
class LoginLimits {
 public:
  /// Of failures: how many at once, and how many more are forgiven in each second.
  static constexpr double kOfAddressMax = 20, kOfRoleMax = 200;
  static constexpr double kForgottenOfAddress_per_s = 0.5, kForgottenOfRole_per_s = 5;
  static constexpr size_t kWaitingMax = 1024, kRememberedMax = 20'000;

  /// Before the password is looked at; each that succeeds is followed by one end().
  /// Errors: kBadCredentials, too many have failed from there, or (from where one has failed
  /// lately) against that role: others log in as it undisturbed; kOverloaded, too many wait.
  Result<void> begin(const std::string& address, const std::string& role, base::MonotonicUs now_us);
  /// `failed`: wrong password or unknown role; anything else costs the client nothing.
  void end(const std::string& address, const std::string& role, bool failed,
           base::MonotonicUs now_us);

 private:
  /// Failed logins, fewer as time passes, up to when they were last counted.
  struct Failures {
    double count = 0;
    base::MonotonicUs at_us = 0;
  };
  using Remembered = std::map<std::string, Failures>;
  static double count_of(const Remembered& in, const std::string& name, double forgotten_per_s,
                         base::MonotonicUs now_us);
  static void add(Remembered& in, const std::string& name, double forgotten_per_s,
                  base::MonotonicUs now_us);

  std::mutex mutex_;
  // At most kRememberedMax names in each; those that have been forgiven go first.
  Remembered addresses_, roles_;
  size_t waiting_ = 0;
};

}  // namespace tetrad::server
