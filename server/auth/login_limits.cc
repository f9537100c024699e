// SPDX-License-Identifier: Apache-2.0
// Two leaky buckets of failed logins: one for each address, one for each role. A bucket is stored
// as its level and the time of that level; count_of() computes the level now. Successes add
// nothing.
//
// An address with a full bucket is refused. A role with a full bucket is refused only from
// addresses that have failed lately: otherwise anybody could lock a role out by failing on purpose.
#include "server/auth/login_limits.h"

#include <algorithm>
#include <utility>

#include <boost/asio/ip/address.hpp>

#include "base/assert.h"

namespace tetrad::server {
namespace {

std::unexpected<Error> too_many_from(const std::string& address) {
  return fail(ErrorCode::kBadCredentials,
              "Too many logins from {} have failed; try again in some seconds", address);
}

// kOverloaded, not kBadCredentials: the client may try again at once elsewhere.
std::unexpected<Error> too_many_wait() {
  return fail(ErrorCode::kOverloaded, "Too many logins wait on this node; try again");
}

}  // namespace

std::string limited_part(const std::string& address) {
  namespace ip = boost::asio::ip;
  boost::system::error_code error;
  const ip::address parsed = ip::make_address(address, error);
  if (error || parsed.is_v4()) return address;
  ip::address_v6 v6 = parsed.to_v6();
  if (v6.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, v6).to_string();
  auto bytes = v6.to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), uint8_t{0});
  return ip::address_v6(bytes).to_string() + "/64";
}

double LoginLimits::count_of(const Remembered& in, const std::string& name, double forgotten_per_s,
                             base::MonotonicUs now_us) {
  const auto found = in.find(name);
  if (found == in.end()) return 0;
  const double passed_s = static_cast<double>(now_us - found->second.at_us) / 1e6;
  return std::max(0.0, found->second.count - passed_s * forgotten_per_s);
}

void LoginLimits::add(Remembered& in, const std::string& name, double forgotten_per_s,
                      base::MonotonicUs now_us) {
  // Bounded: names and addresses come from outside. Empty buckets go first, they say nothing. If
  // none is empty, the one with the oldest failure goes.
  if (in.size() >= kRememberedMax && !in.contains(name)) {
    std::erase_if(in, [&](const auto& entry) {
      return count_of(in, entry.first, forgotten_per_s, now_us) <= 0;
    });
    if (in.size() >= kRememberedMax)
      in.erase(
          std::ranges::min_element(in, {}, [](const auto& entry) { return entry.second.at_us; }));
  }
  const double before = count_of(in, name, forgotten_per_s, now_us);
  in[name] = {before + 1, now_us};
}

double LoginLimits::failures_of(const std::string& address, base::MonotonicUs now_us) const {
  return count_of(addresses_, address, kForgottenOfAddress_per_s, now_us);
}

LoginLimits::Id LoginLimits::begin(const std::string& address, const std::string& role,
                                   base::MonotonicUs now_us, Turn turn) {
  const std::lock_guard lock(mutex_);
  const Id id = ++last_;
  logins_.emplace(id, Login{address, role, std::move(turn)});
  if (failures_of(address, now_us) >= kOfAddressMax) {
    answer(id, too_many_from(address));
  } else if (waiting_ >= kWaitingMax && !make_room(address)) {
    answer(id, too_many_wait());
  } else {
    lines_[address].waiting.push_back(id);
    ++waiting_;
    queue(address, now_us);
    go_on(now_us);
  }
  return id;
}

void LoginLimits::end(Id id, Outcome outcome, base::MonotonicUs now_us) {
  const std::lock_guard lock(mutex_);
  const auto found = logins_.find(id);
  TETRAD_ASSERT(found != logins_.end());
  const Login login = std::move(found->second);
  logins_.erase(found);
  if (login.turn != nullptr) {
    std::erase(lines_.at(login.address).waiting, id);
    --waiting_;
    forget_if_empty(login.address);
    return;
  }
  if (!login.is_under_way) return;  // it was refused
  --under_way_;
  --lines_.at(login.address).under_way;
  if (outcome == Outcome::kFailed) {
    add(addresses_, login.address, kForgottenOfAddress_per_s, now_us);
    add(roles_, login.role, kForgottenOfRole_per_s, now_us);
  }
  queue(login.address, now_us);
  forget_if_empty(login.address);
  go_on(now_us);
}

void LoginLimits::queue(const std::string& address, base::MonotonicUs now_us) {
  Line& line = lines_.at(address);
  if (line.has_place || line.waiting.empty()) return;
  line.has_place = true;
  (failures_of(address, now_us) > 0 ? suspected_ : unsuspected_).push_back(address);
}

void LoginLimits::go_on(base::MonotonicUs now_us) {
  while (under_way_ < kUnderWayMax && !(unsuspected_.empty() && suspected_.empty())) {
    const bool prefers_suspected = ++turns_ % kSuspectedEvery == 0;
    auto& round = suspected_.empty() || (!prefers_suspected && !unsuspected_.empty()) ? unsuspected_
                                                                                      : suspected_;
    const std::string address = std::move(round.front());
    round.pop_front();
    // It may have failed since it got its place.
    if (&round == &unsuspected_ && failures_of(address, now_us) > 0) {
      suspected_.push_back(address);
      continue;
    }
    take_turn(address, now_us);
  }
}

void LoginLimits::take_turn(const std::string& address, base::MonotonicUs now_us) {
  const auto found = lines_.find(address);
  if (found == lines_.end()) return;
  Line& line = found->second;
  line.has_place = false;
  if (line.waiting.empty()) return;
  const double failures = failures_of(address, now_us);
  if (failures >= kOfAddressMax) return refuse_line(address);
  // Queued again when one of those under way ends.
  if (line.under_way != 0 && failures + static_cast<double>(line.under_way) >= kOfAddressMax)
    return;
  const Id id = line.waiting.front();
  line.waiting.pop_front();
  --waiting_;
  queue(address, now_us);
  Login& login = logins_.at(id);
  if (failures > 0 && count_of(roles_, login.role, kForgottenOfRole_per_s, now_us) >= kOfRoleMax) {
    answer(id, fail(ErrorCode::kBadCredentials,
                    "Too many logins as {} have failed; try again in some seconds", login.role));
    return forget_if_empty(address);
  }
  login.is_under_way = true;
  ++line.under_way;
  ++under_way_;
  answer(id, {});
}

void LoginLimits::refuse_line(const std::string& address) {
  std::deque<Id> waiting = std::move(lines_.at(address).waiting);
  lines_.at(address).waiting.clear();
  waiting_ -= waiting.size();
  for (const Id id : waiting) answer(id, too_many_from(address));
  forget_if_empty(address);
}

bool LoginLimits::make_room(const std::string& address) {
  const auto longest = std::ranges::max_element(
      lines_, {}, [](const auto& entry) { return entry.second.waiting.size(); });
  const auto own = lines_.find(address);
  const size_t own_size = own == lines_.end() ? 0 : own->second.waiting.size();
  if (longest == lines_.end() || longest->second.waiting.size() <= own_size + 1) return false;
  const Id id = longest->second.waiting.back();
  longest->second.waiting.pop_back();
  --waiting_;
  answer(id, too_many_wait());
  return true;
}

void LoginLimits::answer(Id id, Result<void> result) {
  // Only posts, so it may be called with the lock held; without it the shard that waits could be
  // gone by now.
  std::exchange(logins_.at(id).turn, nullptr)(std::move(result));
}

void LoginLimits::forget_if_empty(const std::string& address) {
  const auto found = lines_.find(address);
  if (found == lines_.end() || !found->second.waiting.empty() || found->second.under_way != 0)
    return;
  if (found->second.has_place) {
    std::erase(unsuspected_, address);
    std::erase(suspected_, address);
  }
  lines_.erase(found);
}

}  // namespace tetrad::server
