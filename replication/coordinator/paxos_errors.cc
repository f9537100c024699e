// SPDX-License-Identifier: Apache-2.0
// The errors of a conditional statement or SERIAL read that has not succeeded. An error that says
// that nothing was applied needs certainty: while a proposal of the statement may yet be decided,
// the error is kCasWriteUnknown (rule 27).
#include <algorithm>

#include "replication/coordinator/paxos_run.h"

namespace tetrad::replication {

Error CoordinatorImpl::PaxosRun::timed_out() const {
  base::TimeoutDetail detail{serial_level, received, required};
  detail.write_type = base::WriteType::kCas;
  detail.contentions = contentions;
  if (statement == nullptr) {
    return Error(ErrorCode::kReadTimeout,
                 fmt::format("Operation timed out - received only {} responses.", received),
                 detail);
  }
  // A write that timed out here is certain not to be applied, or ended() has made it
  // kCasWriteUnknown.
  return Error(ErrorCode::kWriteTimeout,
               fmt::format("CAS operation timed out: received {} of {} required responses after {} "
                           "contention retries",
                           received, required, contentions),
               detail);
}

// For the figures of an error before any round was begun.
int CoordinatorImpl::PaxosRun::promises_needed() const {
  const MetaSnapshot state = self.meta_.snapshot();
  const TableInfo* const table = state->table(command.incarnation);
  if (table == nullptr) return 1;
  const WriteSets sets = write_sets(table->tablets.find(command.position));
  const auto needed = [&](const std::vector<StoreAddress>& set) {
    return set.empty() ? 0 : self.levels(*state).serial(serial_level, set).least();
  };
  return std::max(needed(sets.old_set), needed(sets.new_set));
}

Error CoordinatorImpl::PaxosRun::failed() const {
  constexpr uint16_t kUnknownReason = 0;
  base::FailureDetail detail{serial_level, received, required, {}, base::WriteType::kCas, false};
  const MetaSnapshot state = self.meta_.snapshot();
  for (const StoreAddress& replica : failed_replicas) {
    const auto node = state->nodes.find(replica.host);
    if (node != state->nodes.end())
      detail.failures.emplace_back(node->second.address, kUnknownReason);
  }
  const ErrorCode code = statement == nullptr ? ErrorCode::kReadFailure : ErrorCode::kWriteFailure;
  return Error(code,
               fmt::format("Operation failed - received {} responses and {} failures", received,
                           failed_replicas.size()),
               detail);
}

Error CoordinatorImpl::PaxosRun::commit_error() const {
  base::TimeoutDetail detail{commit_level, received, required};
  detail.write_type = base::WriteType::kSimple;
  return Error(ErrorCode::kWriteTimeout,
               fmt::format("Operation timed out - received only {} responses.", received), detail);
}

Error CoordinatorImpl::PaxosRun::unknown() const {
  self.metrics_.conditional_unknown.add();
  size_t accepted = 0;  // of the last one, by those who have answered
  if (!proposed.empty() && proposed.back().round != nullptr) accepted = proposed.back().round->yes;
  base::TimeoutDetail detail{serial_level, static_cast<int>(accepted), required};
  detail.write_type = base::WriteType::kCas;
  detail.contentions = contentions;
  return Error(
      ErrorCode::kCasWriteUnknown,
      fmt::format("CAS operation result is unknown - proposal accepted by {} but not a quorum.",
                  accepted),
      detail);
}

}  // namespace tetrad::replication
