// SPDX-License-Identifier: Apache-2.0
#include "replication/coordinator/slow_replicas.h"

#include <algorithm>

namespace tetrad::replication {

namespace {
constexpr int64_t kPauseFirstUs = 1'000'000, kPauseLastUs = 16'000'000;
// How long the one read that tries it has to show what it is.
constexpr int64_t kTryUs = 200'000;
constexpr uint32_t kReadsBetween = 50;
constexpr int64_t kSureUs = 25'000;
constexpr int64_t kForgottenUs = 60'000'000;
}  // namespace

void SlowReplicas::note_late(const StoreAddress& replica, int64_t waited_us,
                             base::MonotonicUs now_us) {
  const auto [found, is_new] = slow_.try_emplace(replica);
  Slow& slow = found->second;
  slow.seen_us = now_us;
  if (is_new) slow.late_since_us = now_us - waited_us;
  if (slow.pause_us == 0 && now_us - slow.late_since_us < kSureUs) return;
  if (slow.pause_us == 0)
    slow.pause_us = kPauseFirstUs;
  else if (slow.is_tried)
    slow.pause_us = std::min(slow.pause_us * 2, kPauseLastUs);
  else
    return;  // of the reads that had asked it before the first was late
  slow.until_us = now_us + slow.pause_us;
  slow.left_out = 0;
  slow.is_tried = false;
}

// Who answers in time while nobody has tried it is asked for want of others, and may be as slow as before.
void SlowReplicas::note_in_time(const StoreAddress& replica) {
  const auto found = slow_.find(replica);
  if (found != slow_.end() && (found->second.pause_us == 0 || found->second.is_tried))
    slow_.erase(found);
}

bool SlowReplicas::is_left_out(Slow& slow, base::MonotonicUs now_us) {
  if (slow.pause_us == 0) return false;
  if (now_us < slow.until_us || slow.left_out < kReadsBetween) {
    ++slow.left_out;
    return true;
  }
  slow.is_tried = true;
  slow.left_out = 0;
  slow.until_us = now_us + kTryUs;
  return false;
}

void SlowReplicas::ask_last(std::vector<StoreAddress>& candidates, base::MonotonicUs now_us) {
  if (slow_.empty()) return;
  std::ranges::stable_partition(candidates, [&](const StoreAddress& replica) {
    const auto found = slow_.find(replica);
    if (found == slow_.end()) return true;
    found->second.seen_us = now_us;
    return !is_left_out(found->second, now_us);
  });
  std::erase_if(slow_, [&](const auto& one) { return one.second.seen_us + kForgottenUs < now_us; });
}

}  // namespace tetrad::replication
