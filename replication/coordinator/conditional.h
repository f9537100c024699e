// SPDX-License-Identifier: Apache-2.0
// Conditional statements (IF …, compare and set) as the rooms above see them: which rows a
// statement is about, what it makes of them, and how it ended. One partition each; statements of
// one partition are linearizable among themselves and with SERIAL reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/consistency_level.h"
#include "base/reactor.h"
#include "base/result.h"
#include "base/task.h"
#include "replication/trace.h"
#include "storage/row/mutation.h"
#include "storage/row/read_command.h"

namespace tetrad::replication {

/// When a statement is decided. Both rise from one decision of a partition to the next.
struct ConditionalMoment {
  /// Microseconds since 1970: the timestamp of every cell the statement writes, and of no other
  /// conditional statement of the partition.
  int64_t timestamp_us = 0;
  /// Microseconds since 1970: decides what has expired, and what TTLs count from. now(), list cells
  /// and the like come from it. The timestamp is it too, or later where a client has written with a
  /// timestamp of the future.
  int64_t now_us = 0;

  int64_t now_s() const { return now_us / 1'000'000; }
};

/// A statement, or the statements of a batch, with their values. Lives until the task of write_if()
/// has ended; used on the shard's thread.
class ConditionalStatement {
 public:
  virtual ~ConditionalStatement() = default;

  /// The rows that the conditions and the written values need, of one logical partition. The
  /// coordinator sets `now_s`, `horizon_s` and `live_only`. Limits are as in a plain read; a page
  /// must suffice.
  virtual storage::ReadCommand read_command() const = 0;

  /// What to write if the conditions hold on `rows` (the live rows, merged from the replicas);
  /// unset: they do not. All of the mutation's cells and deletions have the moment's timestamp; it
  /// is of the partition and the table that were read. May be called several times: each call
  /// begins anew, and only the last one counts. An error ends the statement: nothing is written.
  virtual Task<Result<std::optional<storage::Mutation>>> decide(const storage::ReadResult& rows,
                                                                ConditionalMoment moment) = 0;
};

/// How a conditional statement is decided and committed, and until when.
struct ConditionalOptions {
  ConsistencyLevel serial_level = ConsistencyLevel::kSerial;  // or kLocalSerial
  ConsistencyLevel commit_level = ConsistencyLevel::kQuorum;
  base::Deadline deadline;                       // of all of it
  base::Deadline contention_deadline;            // until when it is tried again after others won
  std::vector<std::string>* warnings = nullptr;  // may be null; outlives the task
  TracePtr trace = {};                           // null: nobody asked
};

}  // namespace tetrad::replication
