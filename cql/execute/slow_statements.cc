// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/slow_statements.h"

#include <utility>

namespace tetrad::cql {
namespace {

/// Clients chose it: it ends where its quotes do.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

bool SlowStatements::has_room(base::MonotonicUs now_us) {
  if (now_us - period_began_us_ >= kPeriodUs) {
    period_began_us_ = now_us;
    lines_ = 0;
  }
  if (lines_ < kLinesPerPeriod) {
    ++lines_;
    return true;
  }
  ++left_out_;
  return false;
}

void SlowStatements::log(const Slow& slow, const Logger& logger) {
  logger.info(
      "slow statement took_ms={} statement={} keyspace={} client={} role={} failed={} "
      "not_logged={}",
      slow.took_us / 1000, quoted(slow.task), quoted(slow.keyspace), slow.client_address,
      quoted(slow.user), slow.failed, std::exchange(left_out_, 0));
}

}  // namespace tetrad::cql
