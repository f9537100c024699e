// SPDX-License-Identifier: Apache-2.0
// Conditional statements and SERIAL reads.
#include <algorithm>

#include "replication/consistency.h"
#include "replication/coordinator/paxos_run.h"

namespace tetrad::replication {

namespace {

Result<void> check_serial_level(ConsistencyLevel level) {
  if (is_serial(level)) return {};
  return fail(ErrorCode::kInvalid,
              "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL");
}

}  // namespace

Task<Result<bool>> CoordinatorImpl::write_if(ConditionalStatement& statement,
                                             ConditionalOptions options) {
  TETRAD_CO_TRY_VOID(check_serial_level(options.serial_level));
  TETRAD_CO_TRY_VOID(check_write_level(options.commit_level));
  if (!check_clock()) {
    Result<void> settled = co_await clock_settled(options.deadline);
    TETRAD_CO_TRY_VOID(std::move(settled));
  }
  const base::MonotonicUs started_us = reactor_.now_us();
  storage::ReadCommand command = statement.read_command();
  TableLatencies::Scope timed(replicas_.latencies(), TableFigure::kCoordinatorWrite,
                              command.incarnation);
  PaxosRun run{*this,
               &statement,
               std::move(command),
               options.serial_level,
               options.commit_level,
               options.deadline,
               options.contention_deadline,
               options.warnings,
               options.trace};
  Result<void> done = co_await run.run();
  if (done && run.applied && !run.awaited.empty())
    co_await await_views(std::move(run.awaited), options.deadline, options.trace);
  record_write(options.serial_level, started_us, timed.end(), done ? nullptr : &done.error());
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return run.applied;
}

Task<Result<storage::ReadResult>> CoordinatorImpl::read_serial(storage::ReadCommand command,
                                                               ReadOptions options) {
  PaxosRun run{*this,
               nullptr,
               std::move(command),
               options.level,
               ConsistencyLevel::kQuorum,
               options.deadline,
               options.deadline,
               nullptr,
               options.trace};
  Result<void> done = co_await run.run();
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return std::move(run.rows);
}

}  // namespace tetrad::replication
