// SPDX-License-Identifier: Apache-2.0
// One attempt of a write: every mutation to all replicas of its tablet, answered when enough of them
// hold it. Replicas that are down or miss it get hints; what still runs when the client is answered
// goes on by itself. All on the shard of the client's connection (what comes before: write.cc):
//   4. Plan: one part for each mutation, with its tablet's epoch, its members and one tally for
//      each set in use (rule 9). Too few live members for the level or the floor: Unavailable, and
//      nothing is sent.
//   5. Send each part to each live member; who is down gets a hint at once (rule 1: a hint is no
//      ack).
//   6. The last part to reach its tally succeeds the write, the first that cannot reach it any more
//      fails it.
//
// Whatever way it fails after step 5, the write may have been applied.
#include <algorithm>
#include <optional>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "partitioner/split_policy.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/coordinator/write_again.h"
#include "replication/replica/replica_calls.h"

namespace tetrad::replication {

/// One write on its way; shared by the callbacks of its replicas.
struct CoordinatorImpl::WriteOperation {
  // One mutation, which is one atomic write of one tablet (rule 26), and who must have it.
  struct Part {
    // Not changed after it is sent: other shards read it through PartCall while they apply it.
    storage::Mutation mutation;
    SetEpoch epoch;
    WriteSets sets;
    // One for each set in use, each in the order of its set. While a tablet moves a member of both
    // sets counts in both tallies, and a member of one set never for the other (rule 9).
    std::optional<WriteTally> old_tally, new_tally;
    std::vector<StoreAddress> live, down;  // of both sets, each once
    bool is_done = false;

    bool contains(const std::vector<StoreAddress>& set, const StoreAddress& replica) const {
      return std::find(set.begin(), set.end(), replica) != set.end();
    }
    void on_ack(const StoreAddress& replica) {
      if (const int at = index_in(sets.old_set, replica); at >= 0) old_tally->on_ack(at);
      if (!new_tally) return;
      if (const int at = index_in(sets.new_set, replica); at >= 0) new_tally->on_ack(at);
    }
    void on_failure(const StoreAddress& replica) {
      if (const int at = index_in(sets.old_set, replica); at >= 0) old_tally->on_failure(at);
      if (!new_tally) return;
      if (const int at = index_in(sets.new_set, replica); at >= 0) new_tally->on_failure(at);
    }
    /// A known mistake: one set of all.
    void mix_sets() {
      for (const StoreAddress& replica : std::exchange(sets.new_set, {}))
        if (!contains(sets.old_set, replica)) sets.old_set.push_back(replica);
    }
    // Failed as soon as one set has failed; succeeded when both have.
    WriteTally::Verdict verdict() const {
      const auto first = old_tally->verdict();
      if (!new_tally || first == WriteTally::Verdict::kFailed) return first;
      const auto second = new_tally->verdict();
      if (second == WriteTally::Verdict::kFailed || first == WriteTally::Verdict::kSucceeded)
        return second;
      return first;
    }
  };
  std::vector<Part> parts;
  // Parts that have not reached their tallies yet; the write succeeds when it is zero.
  size_t parts_pending = 0;
  size_t failed_part = 0;
  // `mark_us`: the highest mark that a member reported as not below the stamp.
  std::optional<int64_t> server_timestamp_us, mark_us;
  ClusterFormat format = kFormatFirst;
  int64_t dated_us = 0;
  int64_t began_us = 0;  // when the coordinator was asked, or took the batch that this is of
  bool redate = false, clock = false;
  // The client's answer is fixed. Acks that come later still run on_written(), for the sake of
  // hints.
  bool decided = false;
  TracePtr trace;
  // Which refusals have come. They are joined over all parts and members, since one is enough to
  // explain why the write as a whole has to be sent again, or in which way it failed.
  bool timed_out = false, stale_schema = false, stale_epoch = false;
  std::string overload;  // what the first replica said that takes no writes, and which one
  base::OneShot<bool> done;

  void look_at(size_t index) {
    if (decided) return;
    switch (parts[index].verdict()) {
      case WriteTally::Verdict::kPending:
        return;
      case WriteTally::Verdict::kFailed:
        decided = true;
        failed_part = index;
        done.setter().set(false);
        return;
      case WriteTally::Verdict::kSucceeded:
        // Acknowledged by one more than it needs, it does not count for another part.
        if (std::exchange(parts[index].is_done, true)) return;
        TETRAD_ASSERT(parts_pending != 0);
        if (--parts_pending != 0) return;
        decided = true;
        done.setter().set(true);
    }
  }
};

/// A part of a write for a store of another shard.
struct CoordinatorImpl::PartCall final : MutateCall {
  PartCall(CoordinatorImpl& coordinator, std::shared_ptr<WriteOperation> its_operation,
           size_t its_index, const StoreAddress& its_replica, base::Deadline until)
      : MutateCall(its_replica.store, until, its_operation->parts[its_index].epoch,
                   its_operation->server_timestamp_us, its_operation->dated_us),
        self(coordinator),
        alive(coordinator.alive_),
        operation(std::move(its_operation)),
        index(its_index),
        replica(its_replica) {}
  const storage::Mutation& mutation() const override { return operation->parts[index].mutation; }
  // The coordinator may have been destroyed while the call was on the other shard: `alive` tells,
  // and then nobody waits for the answer.
  void finish(std::unique_ptr<ShardCall>) override {
    if (!alive.expired()) self.on_written(*operation, index, replica, answer);
  }

  CoordinatorImpl& self;
  const std::weak_ptr<char> alive;
  const std::shared_ptr<WriteOperation> operation;
  const size_t index;
  const StoreAddress replica;
};

/// A write whose only replica is another shard's.
struct CoordinatorImpl::SoleMutateCall final : MutateCall {
  using Back = base::OneShot<std::unique_ptr<SoleMutateCall>>::Setter;
  SoleMutateCall(const StoreAddress& replica, base::Deadline until, SetEpoch epoch_of_it,
                 const WriteOptions& options, storage::Mutation mutation, Back back)
      : MutateCall(replica.store, until, epoch_of_it, options.server_timestamp_us,
                   options.dated_us.value_or(0)),
        own(std::move(mutation)),
        done(std::move(back)) {}
  const storage::Mutation& mutation() const override { return own; }
  void finish(std::unique_ptr<ShardCall> self) override {
    const Back now = std::move(done);  // what is kept there must not keep it
    now.set(std::unique_ptr<SoleMutateCall>(static_cast<SoleMutateCall*>(self.release())));
  }

  storage::Mutation own;
  Back done;
};

namespace {

/// It takes no writes at the moment, or the one that it took met a full disk (kLimit).
bool is_overload(ErrorCode code) {
  return code == ErrorCode::kOverloaded || code == ErrorCode::kLimit;
}

/// `why`: what a replica has said.
Error overloaded(std::string_view why) {
  return Error(ErrorCode::kOverloaded,
               fmt::format("Replicas take no more writes at the moment; try again ({})", why));
}

/// The client's error for a failed write to the only replica, unless it is tried again.
Error own_write_error(Error error, const WriteOptions& options) {
  if (is_overload(error.code)) return overloaded(error.message);
  if (error.code != ErrorCode::kTimedOut) return error;
  base::TimeoutDetail detail{options.level, 0, 1};
  detail.write_type = options.write_type;
  return Error(ErrorCode::kWriteTimeout, "Operation timed out - received only 0 responses.",
               detail);
}

/// A known mistake: a record's timestamps, which hang on one, rise by one.
[[maybe_unused]] void shift_timestamps(Bytes& record) {
  base::ByteReader reader(BytesView(record).substr(1));
  const auto timestamp = reader.read_zigzag();
  if (!timestamp) return;
  Bytes later(1, record[0]);
  base::ByteWriter(later).zigzag(*timestamp + 1);
  later.append(reader.position(), reader.remaining());
  record = std::move(later);
}

}  // namespace

// Checks everything before it moves a mutation: on an error the caller's mutations are as they
// were, and nothing has been sent.
Result<std::shared_ptr<CoordinatorImpl::WriteOperation>> CoordinatorImpl::plan_write(
    std::vector<storage::Mutation>& mutations, const WriteOptions& options,
    const MetaState& state) {
  auto operation = std::make_shared<WriteOperation>();
  operation->trace = options.trace;
  operation->parts.reserve(mutations.size());
  const Levels levels = this->levels(state);
  for (storage::Mutation& mutation : mutations) {
    const TableInfo* table = state.table(mutation.incarnation);
    if (table == nullptr) return fail(ErrorCode::kStaleSchema, kTableGone);
    const partitioner::Tablet& tablet = table->tablets.find(mutation.position);
    // A batch that was taken earlier (`taken_us`) is never refused for room: its other parts may be
    // written already.
    if (!options.taken_us) TETRAD_TRY_VOID(check_room(state, tablet, mutation, options));
    WriteOperation::Part part;
    part.sets = write_sets(tablet);
    if (TETRAD_MUTANT(pending_writes_old)) part.sets.new_set.clear();
    if (TETRAD_MUTANT(pending_writes_new) && !part.sets.new_set.empty())
      part.sets = {std::move(part.sets.new_set), {}};
    part.epoch = tablet.epoch;
    // Levels::writing() never gives less than the floor of rule 1, whatever the level.
    Need needed = levels.writing(options.level, part.sets.old_set);
    TETRAD_TRY_VOID(check_enough(part.sets.old_set, options.level, needed));
    if (TETRAD_MUTANT(tallies_mixed)) {
      part.mix_sets();
      needed = Need(part.sets.old_set.size(), needed.least());
    }
    const int required = needed.least();
    part.old_tally.emplace(std::move(needed));
    if (!part.sets.new_set.empty()) {
      Need of_new = TETRAD_MUTANT(all_is_w)
                        ? levels.writing(ConsistencyLevel::kQuorum, part.sets.new_set)
                        : levels.writing(options.level, part.sets.new_set);
      TETRAD_TRY_VOID(check_enough(part.sets.new_set, options.level, of_new));
      part.new_tally.emplace(std::move(of_new));
    }
    // Each member gets the mutation once, also where it is in both sets; the tallies sort out what
    // its answer counts for.
    for (const auto* set : {&part.sets.old_set, &part.sets.new_set}) {
      for (const StoreAddress& replica : *set) {
        if (set == &part.sets.new_set && part.contains(part.sets.old_set, replica)) continue;
        (meta_.is_replica_live(replica) ? part.live : part.down).push_back(replica);
      }
    }
    if (options.trace != nullptr) {
      options.trace->add(fmt::format(
          "Writing {} rows to {}.{}, tablet {}: {} of {} replicas must acknowledge, {} live",
          mutation.rows.size(), table->keyspace, table->name, tablet.id.value, required,
          part.sets.old_set.size(), part.live.size()));
    }
    operation->parts.push_back(std::move(part));
  }
  // Only now: nothing below can fail.
  for (size_t i = 0; i < mutations.size(); ++i)
    operation->parts[i].mutation = std::move(mutations[i]);
  TETRAD_ASSERT(operation->parts.size() == mutations.size());
  operation->parts_pending = operation->parts.size();
  return operation;
}

void CoordinatorImpl::on_written(WriteOperation& operation, size_t index,
                                 const StoreAddress& replica,
                                 const Result<std::optional<int64_t>>& result) {
  TETRAD_ASSERT(index < operation.parts.size());
  WriteOperation::Part& part = operation.parts[index];
  if (operation.trace != nullptr) {
    operation.trace->add(result ? fmt::format("Acknowledged by {}", place_text(replica))
                                : fmt::format("Not acknowledged by {}: {}", place_text(replica),
                                              result.error().message));
  }
  // An ack means applied, under the epoch of the part: the member compared it when it took the
  // write and once more before it wrote (rule 8).
  if (result) {
    if (*result) operation.mark_us = std::max(operation.mark_us.value_or(**result), **result);
    part.on_ack(replica);
  } else {
    const ErrorCode code = result.error().code;
    operation.timed_out |= code == ErrorCode::kTimedOut;
    if (is_overload(code) && operation.overload.empty())
      operation.overload =
          fmt::format("{}: {}", meta_.snapshot()->address_of(replica.host), result.error().message);
    if (TETRAD_MUTANT(batch_truncated_part) && code == ErrorCode::kStaleSchema) {
      part.on_ack(replica);
      operation.look_at(index);
      return;
    }
    operation.stale_schema |= code == ErrorCode::kStaleSchema;
    operation.stale_epoch |= code == ErrorCode::kStaleEpoch;
    operation.redate |= code == ErrorCode::kRedate;
    operation.clock |= code == ErrorCode::kClockOff;
    // A hint is kept where the member should have the write and may lack it. Not for a refusal that
    // makes the whole write go again (time, epoch, schema): what is sent next replaces it. An error
    // of this node's own store other than a timeout leaves none either; repair heals that.
    if (code != ErrorCode::kRedate && code != ErrorCode::kClockOff &&
        code != ErrorCode::kStaleSchema && code != ErrorCode::kStaleEpoch &&
        (replica.host != rpc_.self() || code == ErrorCode::kTimedOut)) {
      // Not dated now: a machine that has stood still would give what a repair has passed.
      hints_.add(replica, part.mutation,
                 TETRAD_MUTANT(hint_dated_late) ? now_us() : operation.began_us);
    }
    if (TETRAD_MUTANT(hints_count)) {
      part.on_ack(replica);
      operation.look_at(index);
      return;
    }
    // A failure may still be applied, as after a timeout. It only counts as not acknowledged.
    part.on_failure(replica);
  }
  operation.look_at(index);
}

void CoordinatorImpl::send_part(const std::shared_ptr<WriteOperation>& operation, size_t index,
                                const StoreAddress& replica, Bytes& encoded,
                                base::Deadline deadline) {
  WriteOperation::Part& part = operation->parts[index];
  if (TETRAD_MUTANT(replicas_stamp)) {
    for (storage::RowChange& row : part.mutation.rows) shift_timestamps(row.record);
    encoded.clear();
  }
  const std::weak_ptr<char> alive = alive_;
  if (operation->trace != nullptr) {
    operation->trace->add(replicas_.is_local(replica)
                              ? fmt::format("Appending to local store {}", replica.store)
                              : asking_text("MUTATE", replica));
  }
  if (replicas_.is_local(replica)) {
    // The check that a peer makes of a MUTATE: own stores must not take a date that others refuse.
    // The stamp was checked in write().
    if (auto fits = replicas_.check_times(std::nullopt, operation->dated_us); !fits)
      return on_written(*operation, index, replica, std::unexpected(std::move(fits.error())));
    // The mark is taken before the write raises it to the write's own stamp.
    std::optional<int64_t> mark_us;
    if (operation->server_timestamp_us)
      mark_us =
          replicas_.mark_not_below(replica.store, part.mutation, *operation->server_timestamp_us);
    replicas_.apply(
        replica.store, part.epoch, part.mutation, std::nullopt, deadline,
        [this, alive, operation, index, replica, mark_us](Result<void> result) {
          if (alive.expired()) return;
          if (result) {
            const auto stamp_us = operation->server_timestamp_us;
            const auto& mutation = operation->parts[index].mutation;
            // A store that lost what it had seen in a power cut answers with its floor.
            on_written(*operation, index, replica,
                       stamp_us ? replicas_.mark_after_cut(replica.store, mutation.incarnation,
                                                           mutation.position, *stamp_us, mark_us)
                                : mark_us);
          } else {
            on_written(*operation, index, replica, std::unexpected(result.error()));
          }
        });
    return;
  }
  // Another shard of this process: the mutation crosses as it is, unencoded.
  if (is_other_shards(replica)) {
    const size_t bytes = part.mutation.size_bytes();
    rpc_.call_shard(std::make_unique<PartCall>(*this, operation, index, replica, deadline), bytes);
    return;
  }
  if (encoded.empty())
    encoded =
        encode_mutate(operation->format, part.epoch, part.mutation, operation->server_timestamp_us,
                      operation->dated_us);  // once for all the others
  call_replica(operation->trace, replica, Verb::kMutate, encoded, deadline,
               [this, alive, operation, index, replica](Result<Bytes> answer) {
                 if (alive.expired()) return;
                 if (answer) {
                   on_written(*operation, index, replica, decode_mutate_answer(*answer));
                 } else {
                   on_written(*operation, index, replica,
                              std::unexpected(std::move(answer.error())));
                 }
               });
}

Error CoordinatorImpl::write_error(const WriteOperation& operation,
                                   const WriteOptions& options) const {
  // The order of these matters: the first cause that the client can act upon names the error.
  if (operation.stale_schema) return Error(ErrorCode::kStaleSchema, kTableGone);
  if (!operation.overload.empty()) return overloaded(operation.overload);
  TETRAD_ASSERT(operation.decided);
  const WriteOperation::Part& part = operation.parts[operation.failed_part];
  // Of two sets the failed one gives the figures, so that acks and required belong together.
  const bool old_failed = part.old_tally->verdict() == WriteTally::Verdict::kFailed;
  const WriteTally& tally = old_failed || !part.new_tally ? *part.old_tally : *part.new_tally;
  if (operation.timed_out) {
    base::TimeoutDetail detail{options.level, tally.acks(), tally.required()};
    detail.write_type = options.write_type;
    return Error(ErrorCode::kWriteTimeout,
                 fmt::format("Operation timed out - received only {} responses.", tally.acks()),
                 detail);
  }
  base::FailureDetail detail{options.level,      tally.acks(), tally.required(), {},
                             options.write_type, false};
  return Error(ErrorCode::kWriteFailure,
               fmt::format("Operation failed - received {} responses and {} failures", tally.acks(),
                           tally.failures()),
               detail);
}

// A tablet whose only member is a store of this node, in a stable stage, with nothing to check for
// room. Everything else takes the general way.
const partitioner::Tablet* CoordinatorImpl::sole_tablet(const MetaState& state,
                                                        const TableInfo& table,
                                                        RingPosition position,
                                                        const WriteOptions& options) const {
  const partitioner::Tablet& tablet = table.tablets.find(position);
  const bool alone = tablet.stage == partitioner::TabletStage::kNormal &&
                     tablet.replicas.size() == 1 && tablet.replicas.front().host == rpc_.self() &&
                     !tablet.full && !partitioner::is_set_apart(tablet) &&
                     levels(state).writing(options.level, tablet.replicas).least() == 1;
  return alone ? &tablet : nullptr;
}

void CoordinatorImpl::cross_to(const StoreAddress& sole, SetEpoch epoch,
                               storage::Mutation& mutation, const WriteOptions& options,
                               const base::OneShot<std::unique_ptr<SoleMutateCall>>& back) {
  if (options.trace != nullptr) options.trace->add(asking_text("MUTATE", sole));
  const size_t bytes = mutation.size_bytes();
  rpc_.call_shard(std::make_unique<SoleMutateCall>(sole, options.deadline, epoch, options,
                                                   std::move(mutation), back.setter()),
                  bytes);
}

Result<void> CoordinatorImpl::outcome_of(SoleMutateCall& call, const WriteOptions& options,
                                         Again& again) {
  if (call.answer) {
    if (options.trace != nullptr) options.trace->add("Written");
    // A mark that is not below the stamp: the caller stamps anew, so it needs the mutation back.
    again.mark_us = *call.answer;
    if (again.mark_us) again.mutations.push_back(std::move(call.own));
    return {};
  }
  Error& error = call.answer.error();
  again.redate = error.code == ErrorCode::kRedate;
  if (error.code == ErrorCode::kStaleEpoch || again.redate)
    again.mutations.push_back(std::move(call.own));
  return std::unexpected(own_write_error(std::move(error), options));
}

void CoordinatorImpl::call_own(const StoreAddress& sole, SetEpoch epoch,
                               const storage::Mutation& mutation, const TableInfo& table,
                               TabletId tablet, const WriteOptions& options,
                               const base::OneShot<Result<void>>& applied) {
  replicas_.apply(
      sole.store, epoch, mutation, std::nullopt, options.deadline,
      [setter = applied.setter()](Result<void> result) { setter.set(std::move(result)); });
  if (options.trace != nullptr) {
    options.trace->add(fmt::format("Writing {} rows to {}.{}, tablet {}, in local store {}",
                                   mutation.rows.size(), table.keyspace, table.name, tablet.value,
                                   sole.store));
  }
}

// Step 5.
void CoordinatorImpl::send_parts(const std::shared_ptr<WriteOperation>& operation,
                                 const WriteOptions& options) {
  for (size_t index = 0; index < operation->parts.size(); ++index) {
    const std::vector<StoreAddress> live = operation->parts[index].live,
                                    down = operation->parts[index].down;
    // Counts as a failure, and leaves a hint.
    for (const StoreAddress& replica : down) {
      on_written(*operation, index, replica, fail(ErrorCode::kUnavailable, "down"));
    }
    const auto is_held_by = [&](const StoreAddress& replica) {
      return options.held && options.held->replica == replica &&
             options.held->epoch == operation->parts[index].epoch;
    };
    Bytes encoded;
    // Others first: their work goes on while the local store does its own.
    for (const StoreAddress& replica : live) {
      if (!replicas_.is_local(replica))
        send_part(operation, index, replica, encoded, options.deadline);
    }
    for (const StoreAddress& replica : live) {
      // A store that holds the write already (`held`) acknowledges it without a message.
      if (is_held_by(replica)) {
        on_written(*operation, index, replica, std::optional<int64_t>());
      } else if (replicas_.is_local(replica)) {
        send_part(operation, index, replica, encoded, options.deadline);
      }
    }
  }
}

Result<void> CoordinatorImpl::outcome_of(const WriteOperation& operation, bool succeeded,
                                         const WriteOptions& options, Again& again) const {
  // Also after success: members that took the mutation with an old date must get the new one, see
  // write().
  again.redate = operation.redate;
  again.restamp = operation.clock;
  if (succeeded) {
    again.mark_us = operation.mark_us;
    if (operation.mark_us || operation.redate) {
      for (const auto& part : operation.parts) again.mutations.push_back(part.mutation);
    }
    return {};
  }
  // The mutations go back to write(), which decides by time left whether to send them again.
  const bool has_gone = operation.stale_schema;
  if (has_gone || operation.stale_epoch || operation.redate || operation.clock)
    for (const auto& part : operation.parts) again.mutations.push_back(part.mutation);
  if ((operation.stale_epoch || operation.redate || operation.clock) && !has_gone) {
    if (operation.stale_epoch) return fail(ErrorCode::kStaleEpoch, "the replica set has changed");
    return fail(ErrorCode::kClockOff, "{}", kClockWords);
  }
  return std::unexpected(write_error(operation, options));
}

Task<Result<void>> CoordinatorImpl::write_to_replicas(std::vector<storage::Mutation> mutations,
                                                      WriteOptions options, int64_t began_us,
                                                      Again* again) {
  // One snapshot for the whole attempt. When members change meanwhile, replicas refuse the old
  // epoch and write() begins anew with the next snapshot.
  const MetaSnapshot state = meta_.snapshot();
  if (!meta_.filling_disks().empty()) TETRAD_CO_TRY_VOID(check_disks(*state, mutations));

  // The node that is its own and only replica: no tally, no shared state.
  const TableInfo* const table =
      mutations.size() == 1 ? state->table(mutations.front().incarnation) : nullptr;
  const partitioner::Tablet* const tablet =
      table != nullptr ? sole_tablet(*state, *table, mutations.front().position, options) : nullptr;
  if (tablet != nullptr) {
    const StoreAddress& sole = tablet->replicas.front();
    // The store has it already, by the conditional statement or counter that was decided there.
    if (options.held && options.held->replica == sole && options.held->epoch == tablet->epoch)
      co_return Result<void>();
    if (!replicas_.is_local(sole)) {
      base::OneShot<std::unique_ptr<SoleMutateCall>> back;
      cross_to(sole, tablet->epoch, mutations.front(), options, back);
      const std::unique_ptr<SoleMutateCall> call = co_await back;
      co_return outcome_of(*call, options, *again);
    }
    // This shard's store. Marks were looked at in restamp_above_own_marks(); no other member could
    // know a later one.
    base::OneShot<Result<void>> applied;
    call_own(sole, tablet->epoch, mutations.front(), *table, tablet->id, options, applied);
    auto result = co_await applied;
    if (options.trace != nullptr && result) options.trace->add("Written");
    if (result) co_return result;
    if (result.error().code == ErrorCode::kStaleEpoch) again->mutations = std::move(mutations);
    co_return std::unexpected(own_write_error(std::move(result.error()), options));
  }

  auto planned = plan_write(mutations, options, *state);
  if (!planned) {
    again->mutations = std::move(mutations);  // nothing has been sent
    co_return std::unexpected(std::move(planned.error()));
  }
  const std::shared_ptr<WriteOperation> operation = std::move(*planned);
  operation->server_timestamp_us = options.server_timestamp_us;
  operation->format = state->format;
  operation->dated_us = options.dated_us.value_or(0);
  operation->began_us = began_us;
  send_parts(operation, options);
  const bool succeeded = co_await operation->done;
  co_return outcome_of(*operation, succeeded, options, *again);
}

}  // namespace tetrad::replication
