// SPDX-License-Identifier: Apache-2.0
// How many logins may fail, and whose password is looked at next. One per node, for all its shards:
// guessing passwords is slow from one address and against one role, and who guesses holds up nobody
// else.
//
// Failures of an address or a role are a leaking bucket: each adds one, time takes some away, and
// at the maximum logins are refused before any hash is computed. Hashes cost the processor much by
// design, so few are computed at once; the other logins wait, a line for each address:
//
//   1. begin() puts the login into its address's line.
//   2. When a hash is done, the next address has its turn: of those that have not failed lately,
//      and every kSuspectedEvery-th time of the others. The first of its line goes on.
//   3. An address gets no turn while its failures and its logins under way reach the maximum: each
//      of them may fail. When its failures reach it, all of its line are refused.
//   4. When kWaitingMax wait, the last of the longest line makes room for one of a shorter line.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/reactor.h"
#include "base/result.h"
#include "base/task.h"

namespace tetrad::server {

/// Set while a login waits for its turn: how to end it, as its client has gone. Where clients give
/// up and come again, hashes for those that have gone would leave none for the others.
using LoginWait = std::optional<base::OneShot<Result<void>>::Setter>;

/// What is limited as one address: an IPv4 address, also one mapped into IPv6; of an IPv6 address
/// its network of 64 bits, in which who has one has all ("2001:db8:0:1::/64").
std::string limited_part(const std::string& address);

/// Thread-safe. Bounded in memory, whatever names and addresses come.
class LoginLimits {
 public:
  /// Of failures: how many at once, and how many more are forgiven in each second.
  static constexpr double kOfAddressMax = 20, kOfRoleMax = 200;
  static constexpr double kForgottenOfAddress_per_s = 0.5, kForgottenOfRole_per_s = 5;
  static constexpr size_t kWaitingMax = 1024, kRememberedMax = 20'000;
  /// One thread hashes; with a second login at hand it does not wait for the loops.
  static constexpr size_t kUnderWayMax = 2;
  static constexpr uint64_t kSuspectedEvery = 4;

  using Id = uint64_t;
  /// Nothing: the password may be looked at now. Errors: kBadCredentials, too many have failed from
  /// there, or (from where one has failed lately) against that role: others log in as it
  /// undisturbed; kOverloaded, too many wait. Called once, on the thread of whichever call of this
  /// object decides it, inside of it: it must not call back. Not called after end().
  using Turn = std::function<void(Result<void>)>;
  enum class Outcome : uint8_t {
    kFailed,  // wrong password or unknown role; anything else costs the client nothing
    kPassed,
    kGivenUp,  // by the client, while it waited or later
  };

  /// Before the password is looked at; each is followed by one end(), refused ones, too.
  Id begin(const std::string& address, const std::string& role, base::MonotonicUs now_us,
           Turn turn);
  void end(Id id, Outcome outcome, base::MonotonicUs now_us);

 private:
  /// Failed logins, fewer as time passes, up to when they were last counted.
  struct Failures {
    double count = 0;
    base::MonotonicUs at_us = 0;
  };
  using Remembered = std::map<std::string, Failures>;
  struct Login {
    std::string address, role;
    Turn turn;  // null once it was called
    bool is_under_way = false;
  };
  /// The logins of one address.
  struct Line {
    std::deque<Id> waiting;  // none of them is under way
    size_t under_way = 0;
    bool has_place = false;  // in one of the two rounds
  };
  static double count_of(const Remembered& in, const std::string& name, double forgotten_per_s,
                         base::MonotonicUs now_us);
  static void add(Remembered& in, const std::string& name, double forgotten_per_s,
                  base::MonotonicUs now_us);
  double failures_of(const std::string& address, base::MonotonicUs now_us) const;
  /// Gives the address a place at the end of its round, if it has none and somebody waits.
  void queue(const std::string& address, base::MonotonicUs now_us);
  /// Starts what may start.
  void go_on(base::MonotonicUs now_us);
  /// Of one address, which has left its round.
  void take_turn(const std::string& address, base::MonotonicUs now_us);
  void refuse_line(const std::string& address);
  /// Takes the last one of the longest line out; false: none is longer than the address's own.
  bool make_room(const std::string& address);
  void answer(Id id, Result<void> result);
  void forget_if_empty(const std::string& address);

  std::mutex mutex_;
  // At most kRememberedMax names in each; those that have been forgiven go first.
  Remembered addresses_, roles_;
  Id last_ = 0;
  std::map<Id, Login> logins_;         // begun and not ended
  std::map<std::string, Line> lines_;  // of addresses that have a login there
  // Addresses whose line has somebody; a place may be of an address that has nobody any more.
  std::deque<std::string> unsuspected_, suspected_;
  uint64_t turns_ = 0;
  size_t waiting_ = 0, under_way_ = 0;
};

}  // namespace tetrad::server
