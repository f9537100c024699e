// SPDX-License-Identifier: Apache-2.0
// Two leaky buckets of failed logins: one for each address, one for each role. A bucket is stored
// as its level and the time of that level; count_of() computes the level now. Successes add
// nothing.
//
// An address with a full bucket is refused. A role with a full bucket is refused only from
// addresses that have failed lately: otherwise anybody could lock a role out by failing on purpose.
#include "server/auth/login_limits.h"

#include <algorithm>

#include "base/assert.h"

namespace tetrad::server {

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

Result<void> LoginLimits::begin(const std::string& address, const std::string& role,
                                base::MonotonicUs now_us) {
  const std::lock_guard lock(mutex_);
  const double of_address = count_of(addresses_, address, kForgottenOfAddress_per_s, now_us);
  if (of_address >= kOfAddressMax)
    return fail(ErrorCode::kBadCredentials,
                "Too many logins from {} have failed; try again in some seconds", address);
  if (of_address > 0 && count_of(roles_, role, kForgottenOfRole_per_s, now_us) >= kOfRoleMax)
    return fail(ErrorCode::kBadCredentials,
                "Too many logins as {} have failed; try again in some seconds", role);
  // kOverloaded, not kBadCredentials: the client may try again at once elsewhere.
  if (waiting_ >= kWaitingMax)
    return fail(ErrorCode::kOverloaded, "Too many logins wait on this node; try again");
  ++waiting_;
  return {};
}

void LoginLimits::end(const std::string& address, const std::string& role, bool failed,
                      base::MonotonicUs now_us) {
  const std::lock_guard lock(mutex_);
  TETRAD_ASSERT(waiting_ > 0);
  --waiting_;
  if (!failed) return;
  add(addresses_, address, kForgottenOfAddress_per_s, now_us);
  add(roles_, role, kForgottenOfRole_per_s, now_us);
}

}  // namespace tetrad::server
