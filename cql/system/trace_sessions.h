// SPDX-License-Identifier: Apache-2.0
// The traces that clients asked for, of all shards of a node.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.h"

namespace tetrad::cql {

struct TraceSession {
  base::Uuid session;
  std::string command, request, client;
  int64_t started_at_us = 0, duration_us = 0;
  std::vector<std::pair<std::string, std::string>> parameters;
};

/// Thread-safe. Bounded: the oldest go.
class TraceSessions {
 public:
  void add(TraceSession session) {
    constexpr size_t kSessionsMax = 1'000;
    const std::lock_guard lock(mutex_);
    sessions_.push_back(std::move(session));
    if (sessions_.size() > kSessionsMax) sessions_.pop_front();
  }
  std::deque<TraceSession> all() const {
    const std::lock_guard lock(mutex_);
    return sessions_;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<TraceSession> sessions_;
};

}  // namespace tetrad::cql
