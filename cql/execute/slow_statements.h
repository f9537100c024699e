// SPDX-License-Identifier: Apache-2.0
// The log's lines about requests that took long (the option slow_query_log_timeout_ms).
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "base/reactor.h"

namespace tetrad::cql {

/// Belongs to a shard and its thread. A node on which all is slow logs a few lines every five
/// seconds, not one for each request: the others are counted, and the next line has their number.
class SlowStatements {
 public:
  struct Slow {
    std::string task;  // the kind of the request and the beginning of its statement, no password
    int64_t took_us = 0;
    const std::string& keyspace;  // of USE
    const std::string& client_address;
    const std::string& user;
    bool failed = false;
  };

  /// Whether one that is slow now gets a line; counts it if not.
  bool has_room(base::MonotonicUs now_us);
  /// After has_room().
  void log(const Slow& slow, const Logger& logger);

 private:
  static constexpr int64_t kPeriodUs = 5'000'000;
  static constexpr uint32_t kLinesPerPeriod = 5;

  base::MonotonicUs period_began_us_ = 0;
  uint32_t lines_ = 0;     // in this period
  uint64_t left_out_ = 0;  // since the last line
};

}  // namespace tetrad::cql
