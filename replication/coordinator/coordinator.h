// SPDX-License-Identifier: Apache-2.0
// The coordinator: what the node that took the client's request does with mutations and reads. One
// per shard.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/consistency_level.h"
#include "base/reactor.h"
#include "base/result.h"
#include "base/task.h"
#include "replication/coordinator/changes.h"
#include "replication/coordinator/conditional.h"
#include "replication/coordinator/nearest_names.h"
#include "replication/counters/counter_messages.h"
#include "replication/trace.h"
#include "storage/row/mutation.h"
#include "storage/row/read_command.h"

namespace tetrad::replication {

struct LoggedRun;

/// What is asked of a write besides its mutations. A value; what it points to outlives the task.
struct WriteOptions {
  ConsistencyLevel level = ConsistencyLevel::kOne;
  base::Deadline deadline;
  base::WriteType write_type = base::WriteType::kSimple;
  /// Gets sentences for the client; may be null; outlives the task.
  std::vector<std::string>* warnings = nullptr;
  /// Set when the mutations carry this timestamp of next_timestamp_us(): it is raised before they
  /// are acknowledged where a replica has seen a later one.
  std::optional<int64_t> server_timestamp_us = {};
  TracePtr trace = {};  // null: nobody asked
  /// What the mutations delete, and what expires in them, is dated at this now_us(); it is dated
  /// anew where a replica finds that too long ago. Unset: nothing is.
  std::optional<int64_t> dated_us = {};
  /// A store of this shard that has the only mutation already, since this epoch: it is not written
  /// there again, as long as the epoch is the tablet's.
  struct Held {
    StoreAddress replica;
    SetEpoch epoch;
  };
  std::optional<Held> held = {};
  /// Set: what was taken then, of hybrid time, is written again. Whether it may be was decided
  /// then, and a hint of it is as old as that.
  std::optional<int64_t> taken_us = {};
  LoggedRun* logged = nullptr;  // write_logged()'s own
  /// The mutations are as small as they can be: no limit on their size refuses them.
  bool is_cut = false;
};

/// What is asked of a read besides its command. A value; what it points to outlives the task.
struct ReadOptions {
  ConsistencyLevel level = ConsistencyLevel::kOne;
  base::Deadline deadline;
  bool background = false;  // no client's: not counted among the requests
  TracePtr trace = {};      // null: nobody asked
  /// In the stage "read new": the old set is not asked. Only for the settling of a set of two.
  bool leaves_old_out = false;
};

/// What count() has found.
struct Counted {
  uint64_t rows = 0;
  uint64_t weight = 0;  // of these, see row_weight()
  /// What `command.fold` came to; unset without one, or when it was given up: then read() must do.
  std::optional<Bytes> folded;
};

/// The text of kStaleSchema: DROP or TRUNCATE has ended the incarnation of a table that the request
/// was prepared for. Nothing of a write or an increment that fails so is in the table as it is now,
/// or comes to be: prepared anew it may be asked for again.
inline constexpr const char* kTableGone = "the table was dropped or truncated meanwhile";

/// What the rooms above ask for rows: each request is planned by one snapshot of the metadata, sent
/// to the members of its tablets, and answered when enough of them have. One per shard, on its
/// thread.
class Coordinator {
 public:
  virtual ~Coordinator() = default;

  /// Sends every mutation to all replicas of its tablet and answers when each is on the level's
  /// number of them, never fewer than W (design, section 7). Mutations of one partition and table
  /// are applied together; the others are independent (UNLOGGED). Errors: kUnavailable,
  /// kWriteTimeout, kWriteFailure, kOverloaded (also: this node's clock is off), kInvalid (a full
  /// logical partition), kStaleSchema (the table is gone; of several tables this is kWriteTimeout, as
  /// the others may have their rows).
  virtual Task<Result<void>> write(std::vector<storage::Mutation> mutations,
                                   WriteOptions options) = 0;

  /// Adds to counters. Each increment goes to one live member of its tablet, which leads it, and is
  /// answered when the new totals are on the level's number of replicas, never fewer than W.
  /// Increments of several partitions are independent. Errors: nothing of that partition is
  /// applied, now or later: kUnavailable, kOverloaded, kInvalid (a full logical partition),
  /// kStaleSchema (the table is gone); nobody knows whether it is: kWriteTimeout with write type
  /// COUNTER. Of several partitions: the error of one; what is unknown comes first.
  virtual Task<Result<void>> increment(std::vector<CounterIncrement> increments,
                                       WriteOptions options) = 0;
  /// As write(), and of parts of several partitions or tables either all or none are on their
  /// replicas in the end, whatever dies (LOGGED): two nodes hold them until they are. After
  /// kWriteTimeout with write type BATCH, and kWriteFailure, all will be; after BATCH_LOG it is not
  /// known.
  virtual Task<Result<void>> write_logged(std::vector<storage::Mutation> mutations,
                                          WriteOptions options) = 0;

  /// Decides a conditional statement. True: its conditions held, and what it wrote is on the commit
  /// level's number of replicas, never fewer than W. False: they did not hold. Errors: those of
  /// decide(); before anything can have been written kUnavailable (serial level), kWriteTimeout
  /// with write type CAS, kWriteFailure, kOverloaded, kStaleSchema; when it may or may not be
  /// written, now or later, kCasWriteUnknown; when it is decided and not yet on the commit level,
  /// kWriteTimeout with write type SIMPLE.
  virtual Task<Result<bool>> write_if(ConditionalStatement& statement,
                                      ConditionalOptions options) = 0;

  /// Reads one logical partition, or the part of a ring range (over as many tablets as it takes to
  /// fill the limits). The answer has live rows only. `command.live_only` is set by the coordinator
  /// as the level needs it. At SERIAL and LOCAL_SERIAL, of one partition, it is linearizable with
  /// conditional statements. Errors: kUnavailable, kReadTimeout, kReadFailure, kStaleSchema.
  virtual Task<Result<storage::ReadResult>> read(storage::ReadCommand command,
                                                 ReadOptions options) = 0;

  /// As read() of one logical partition when the level asks for one replica, this shard has it, and
  /// all of it is in memory: the rows go to the sink within this call. Unset: it is otherwise; what
  /// the sink got counts for nothing, and read() answers.
  virtual std::optional<Result<storage::ReadEnd>> read_here(storage::ReadCommand& command,
                                                            const ReadOptions& options,
                                                            storage::RowSink& sink) = 0;

  /// Reads several partitions at once (IN); answers in the order of the commands.
  virtual Task<Result<std::vector<storage::ReadResult>>> read_many(
      std::vector<storage::ReadCommand> commands, ReadOptions options) = 0;

  /// Names the rows of a range that may be the nearest to a vector (`command.nearest`): `rows_max` at
  /// most, fewer where their keys are long. Unset: some node runs a program that does not know this.
  /// Errors: as read().
  virtual Task<Result<std::optional<NearestNames>>> nearest(storage::ReadCommand command,
                                                            ReadOptions options) = 0;

  /// The number of live rows that read() would deliver without limits, counted where they are: no
  /// row travels unless replicas differ, then these are repaired as by a read. Ranges of several
  /// tablets are counted side by side, unless `command.fold` is in_order(). Limits of `command` are
  /// not looked at. Errors: as read().
  virtual Task<Result<Counted>> count(storage::ReadCommand command, ReadOptions options) = 0;

  /// A page of the change feed. The level does not count: R members of every tablet asked for are
  /// looked at. Errors: kInvalid (the table keeps no change log; `after` is not of this table),
  /// kUnavailable, kReadTimeout, kReadFailure, kStaleSchema.
  virtual Task<Result<ChangesPage>> changes(ChangesCommand command, ReadOptions options) = 0;

  /// Microseconds since 1970, strictly rising on this shard, fed by other nodes' messages (rule
  /// 28): the timestamp of a statement that names none.
  virtual int64_t next_timestamp_us() = 0;
  /// The hybrid time, microseconds since 1970: what deletions are dated by, and what decides what
  /// has expired.
  virtual int64_t now_us() = 0;
  /// How far nodes' clocks may be apart.
  virtual int64_t clock_skew_us() const = 0;
};

}  // namespace tetrad::replication
