// SPDX-License-Identifier: Apache-2.0
// The reads that wait for a thread: earliest deadline first, no more than a number, none whose time
// is over. Pure.
//
// Earliest deadline first: under overload the reads that can still be answered in time are, and
// those that cannot are refused without touching the disk.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/reactor.h"

namespace tetrad::server {

/// Jobs by deadline, then by arrival; at most jobs_max_. Not synchronized: its owner locks.
template <class Job>
class ReadQueue {
 public:
  explicit ReadQueue(size_t jobs_max) : jobs_max_(jobs_max) {}

  /// False: too many wait; `job` is as it was.
  bool push(base::Deadline deadline, Job&& job) {
    if (jobs_.size() >= jobs_max_) return false;
    jobs_.emplace(Place{deadline.at_us, next_++}, std::move(job));
    return true;
  }
  /// The job with the earliest deadline; unset: none waits.
  std::optional<Job> pop() {
    if (jobs_.empty()) return std::nullopt;
    std::optional<Job> first(std::move(jobs_.begin()->second));
    jobs_.erase(jobs_.begin());
    return first;
  }
  /// Takes out those whose time is over.
  std::vector<Job> take_late(base::MonotonicUs now_us) {
    std::vector<Job> late;
    while (!jobs_.empty() && jobs_.begin()->first.first <= now_us) late.push_back(*pop());
    return late;
  }
  size_t size() const { return jobs_.size(); }
  bool empty() const { return jobs_.empty(); }

 private:
  using Place = std::pair<base::MonotonicUs, uint64_t>;  // deadline, order of arrival

  const size_t jobs_max_;
  uint64_t next_ = 0;
  std::map<Place, Job> jobs_;
};

}  // namespace tetrad::server
