// SPDX-License-Identifier: Apache-2.0
// Reads inside one tablet: data from one replica, digests from the others; when they differ all
// data is fetched, merged, written back to those that lack it, and only then answered, so that no
// later quorum read goes back.
//
// One tablet at a level above ONE (read_tablet):
//   1. Take a snapshot: tablet, epoch, the set that is read, and how many must answer (rule 1). In
//      the stage "read new" the old set's quorum must answer, too (rule 9).
//   2. Ask that many members: the first for data, the others for digests of the canonical form at
//      the coordinator's `now` and horizon (rule 6).
//   3. All agree, also on where their answers end: what the data says is on W members, and is
//      answered.
//   4. They differ: ask those that answered for data and merge; the merge is cut where the shortest
//      reply is complete (rule 5).
//   5. Send each member what it lacks, wait until all have it, then answer (rule 3). Without that
//      the next quorum could miss what this client saw.
//   6. A refused epoch, or a member that went away: begin again with the next snapshot while time
//      is left.
//
// A range of the ring is read one tablet after another (read_range). A read at ONE from the only
// member needs no step after 2.
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/consistency.h"
#include "replication/coordinator/gathering.h"
#include "replication/coordinator/last_catch.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/coordinator/restamp.h"
#include "replication/coordinator/ring_walk.h"
#include "replication/indexes/index_runner.h"
#include "storage/engine/tombstone_filter.h"

namespace tetrad::replication {

// Moves to the store's shard and comes back with the answer; owned by whoever has it.
/// A read of a tablet whose only replica is another shard's.
struct CoordinatorImpl::SoleReadCall final : ReadCall {
  using Back = base::OneShot<std::unique_ptr<SoleReadCall>>::Setter;
  SoleReadCall(const StoreAddress& replica, base::Deadline until, SetEpoch epoch_of_it,
               storage::ReadCommand its_command, Back back)
      : ReadCall(Verb::kRead, replica.store, until, epoch_of_it, std::move(its_command)),
        done(std::move(back)) {}
  void finish(std::unique_ptr<ShardCall> self) override {
    const Back now = std::move(done);  // what is kept there must not keep it
    now.set(std::unique_ptr<SoleReadCall>(static_cast<SoleReadCall*>(self.release())));
  }

  Back done;
};

namespace {

// A read repair gets half of the time that is left. With less than this in all there is no second
// attempt worth keeping time for.
constexpr int64_t kRepairAttemptMinUs = 400'000;

bool same_end(const storage::ReadResult& a, const storage::ReadResult& b) {
  return a.exhausted == b.exhausted && (a.exhausted || a.complete_up_to == b.complete_up_to);
}

// The walk stops between tablets, so the end is named by the last partition that was found: rule 5
// asks for a key, never a tablet.
/// There is more behind what a walk over tablets has found.
storage::ReadResult ended_with_its_last_partition(storage::ReadResult result) {
  TETRAD_ASSERT(!result.partitions.empty());
  const storage::PartitionData& last = result.partitions.back();
  result.exhausted = false;
  result.complete_up_to = {last.position, Bytes(last.partition_key), std::nullopt};
  return result;
}

base::Hash128 digest_of_answer(const storage::ReadResult& result) {
  return result.count ? result.count->digest : storage::digest_of(result);
}

/// Of the same rows; of those that were not folded, too.
bool same_fold(const storage::ReadResult& a, const storage::ReadResult& b) {
  return !a.count || !b.count || a.count->folded == b.count->folded;
}

// What a client may see as a failure of the read, and what lets a coordinator try another member.
bool is_disk_error(const Error& error) {
  return error.code == ErrorCode::kCorruption || error.code == ErrorCode::kIo ||
         error.code == ErrorCode::kLimit;
}

}  // namespace

Task<Result<storage::ReadResult>> CoordinatorImpl::read_and_repair(
    storage::ReadCommand command, TabletSeen seen, std::vector<StoreAddress> replicas,
    ReadOptions options) {
  const SetEpoch epoch = seen.epoch;
  metrics_.digest_mismatches.add();
  if (options.trace != nullptr) {
    options.trace->add(
        fmt::format("Digest mismatch: reading data from {} replicas", replicas.size()));
  }
  // All who answered the first time must answer again: a merge over fewer than W could show a value
  // that is not on W.
  const size_t need = replicas.size();
  // Nobody beside them is asked: the next attempt of read_tablet() looks for others.
  const auto gathering = gather(command, epoch, std::move(replicas), need, false, options, {});
  const bool complete = co_await gathering->done;
  if (!complete) co_return std::unexpected(read_error(*gathering, options.level));
  // The answer would not fit in the memory that it may take: that is answered instead of rows, and
  // nothing is repaired.
  if (storage::ReadResult* const withheld = gathering->withheld()) co_return std::move(*withheld);
  TETRAD_CO_TRY(storage::MergedRead merged, storage::merge_replies(command, gathering->data));

  struct Repairs {
    // Starts at one for the loop below, so that `done` is not set before the last repair is sent.
    size_t left = 1;
    bool failed = false;
    base::OneShot<bool> done;
    void finish_one() {
      TETRAD_ASSERT(left != 0);
      if (--left == 0) done.setter().set(!failed);
    }
  };
  const auto repairs = std::make_shared<Repairs>();
  const ClusterFormat format = meta_.snapshot()->format;
  if (TETRAD_MUTANT(merge_not_written)) merged.repairs.clear();
  const int64_t now_s = now_us() / 1'000'000;
  // A client's now_in_seconds ahead of the clock makes values expired that are live: such forms of
  // them must not be written to anybody.
  if (command.now_s > now_s) {  // a client's now_in_seconds
    for (std::vector<storage::Mutation>& lacking : merged.repairs)
      for (storage::Mutation& mutation : lacking)
        TETRAD_CO_TRY_VOID(leave_out_stripped(mutation, now_s - storage::kExpiredValueMargin_s));
  }
  TETRAD_ASSERT(merged.repairs.size() <= gathering->data.size());
  for (size_t i = 0; i < merged.repairs.size(); ++i) {
    const StoreAddress replica = gathering->data[i].from;
    for (const storage::Mutation& mutation : merged.repairs[i]) {
      metrics_.read_repairs.add();
      if (options.trace != nullptr) {
        options.trace->add(
            fmt::format("Read repair: sending what it lacks to {}", place_text(replica)));
      }
      ++repairs->left;
      const auto finished = [repairs](bool ok) {
        repairs->failed |= !ok;
        // As merged, never Put (rule 15), and with the repair horizon that was read: a member whose
        // horizon has risen since refuses it (rule 18), since it may have purged what hides these
        // rows.
        repairs->finish_one();
      };
      if (replicas_.is_local(replica)) {
        replicas_.apply(replica.store, epoch, mutation,
                        ReplicaService::Merged{seen.repaired_us, seen.is_relied_on},
                        options.deadline,
                        [finished](Result<void> result) { finished(result.has_value()); });
      } else {
        rpc_.call(replica.host, replica.store, Verb::kMutateMerged,
                  encode_mutate(format, epoch, mutation, {}, seen.repaired_us, seen.is_relied_on),
                  options.deadline,
                  [finished](Result<Bytes> answer) { finished(answer.has_value()); });
      }
    }
  }
  repairs->finish_one();
  const bool repaired = co_await repairs->done;
  // Not answered, though the merge is known: rule 3 does not hold for it.
  if (!repaired) {
    const auto count = static_cast<int32_t>(need);
    base::TimeoutDetail detail{options.level, count - 1, count};
    detail.data_present = true;
    co_return std::unexpected(
        Error(ErrorCode::kReadTimeout,
              "Operation timed out - read repair did not reach enough replicas.", detail));
  }
  if (options.trace != nullptr) {
    options.trace->add(fmt::format("Merged the data of {} replicas: {} live rows", need,
                                   merged.result.live_row_count));
  }
  co_return std::move(merged.result);
}

Task<Result<storage::ReadResult>> CoordinatorImpl::read_tablet(storage::ReadCommand command,
                                                               RingPosition inside,
                                                               ReadOptions options) {
  while (true) {
    // Each round works with one snapshot from beginning to end; only what is refused or lost begins
    // a new one.
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(command.incarnation);
    if (table == nullptr) co_return fail(ErrorCode::kInvalid, "the table was dropped");
    const partitioner::Tablet& tablet = table->tablets.find(inside);
    // A range must lie in one tablet: the epoch in the request is of that tablet alone and fences
    // nothing beside it (rule 8). The caller cuts it anew.
    if (command.is_range && command.range.start < tablet.range.start &&
        !TETRAD_MUTANT(range_fenced_at_end))
      co_return fail(ErrorCode::kStaleEpoch, "the tablet was split");
    const std::vector<StoreAddress>& set = read_set(tablet);
    const Levels levels = this->levels(*state);
    const Need needed = levels.reading(options.level, set);
    const int required = needed.least();
    // Members that run an older program do not know the field.
    if (state->format < kFormatIndexes) command.by_index.reset();
    std::optional<storage::ReadCommand> without_index;  // where an index is not built yet
    if (command.by_index) {
      without_index = command;
      without_index->by_index.reset();
      command.by_index->keeps_disproved = levels.has_several() || keeps_disproved(set.size());
    }
    // Where an index is not built, the round begins again without it: all rows are read, slower and
    // as right.
    const auto is_unbuilt = [&](const Error& error) {
      return error.code == ErrorCode::kIndexNotBuilt && without_index.has_value();
    };

    if (options.trace != nullptr) {
      options.trace->add(fmt::format("Reading {}.{}, tablet {}: {} of {} replicas must answer",
                                     table->keyspace, table->name, tablet.id.value, required,
                                     set.size()));
    }
    // ONE promises nothing beyond one member, and so is not held up by the old set.
    const bool both = reads_both_sets(tablet) && options.level != ConsistencyLevel::kOne &&
                      options.level != ConsistencyLevel::kLocalOne &&
                      !TETRAD_MUTANT(reads_new_only);
    // One member's answer is the answer, nothing is compared.
    const bool alone = required == 1 && !both;

    // The only member is a store of this shard: a call, no message and no gathering.
    if (alone && set.size() == 1 && replicas_.is_local(set.front())) {
      // Tombstones are only needed to merge with others.
      command.live_only = true;
      base::OneShot<Result<storage::ReadResult>> answer;
      replicas_.read(set.front().store, tablet.epoch, std::move(command), options.deadline,
                     [setter = answer.setter()](Result<storage::ReadResult> result) {
                       setter.set(std::move(result));
                     });
      auto result = co_await answer;
      if (!result && is_unbuilt(result.error())) {
        command = std::move(*without_index);
        continue;
      }
      if (!result) co_return std::unexpected(own_read_error(result.error(), options.level));
      if (options.trace != nullptr) {
        options.trace->add(fmt::format("Read {} live rows of {} partitions from local store {}",
                                       result->live_row_count, result->partitions.size(),
                                       set.front().store));
      }
      co_return result;
    }

    // The only member is a store of another shard: one crossing each way.
    if (alone && set.size() == 1 && is_other_shards(set.front())) {
      command.live_only = true;
      if (options.trace != nullptr) options.trace->add(asking_text("READ", set.front()));
      base::OneShot<std::unique_ptr<SoleReadCall>> back;
      rpc_.call_shard(std::make_unique<SoleReadCall>(set.front(), options.deadline, tablet.epoch,
                                                     std::move(command), back.setter()),
                      0);
      const std::unique_ptr<SoleReadCall> call = co_await back;
      if (options.trace != nullptr && call->answer) {
        options.trace->add(fmt::format("Read {} live rows of {} partitions from local store {}",
                                       call->answer->live_row_count,
                                       call->answer->partitions.size(), call->store()));
      }
      if (call->answer) co_return std::move(call->answer);
      const Error& error = call->answer.error();
      if (is_unbuilt(error)) {
        command = std::move(*without_index);
        continue;
      }
      if (error.code != ErrorCode::kStaleEpoch || reactor_.now_us() >= options.deadline.at_us)
        co_return std::unexpected(own_read_error(error, options.level));
      co_await base::sleep_for(reactor_, 5'000);  // the newer map is on its way here
      command = std::move(call->command);
      continue;
    }

    TETRAD_CO_TRY_VOID(check_enough(set, options.level, needed));
    // Who is live is advice. A member that is wrongly taken for live costs time, never a wrong
    // answer.
    std::vector<StoreAddress> candidates = live_members(set);
    std::vector<ReadQuorum> quorums;
    // With two sets, or several data centres, a count of replies is not enough: each quorum has to
    // be met by its own members.
    if (both || levels.has_several()) quorums.push_back({set, needed});
    if (both) {
      const Need of_old = levels.reading(options.level, tablet.replicas);
      TETRAD_CO_TRY_VOID(check_enough(tablet.replicas, options.level, of_old));
      quorums.push_back({tablet.replicas, of_old});
      for (const StoreAddress& replica : live_members(tablet.replicas)) {
        if (std::find(candidates.begin(), candidates.end(), replica) == candidates.end())
          candidates.push_back(replica);
      }
    }
    // A store that is behind after a power cut refuses reads (rule 20).
    ask_last_who_is_behind(candidates);
    // With two sets all are asked at once.
    size_t first_asked = both ? candidates.size() : static_cast<size_t>(required);
    if (levels.has_several()) first_asked = arrange_for(quorums, levels, candidates);
    command.live_only = alone;
    if (both && command.by_index)
      command.by_index->keeps_disproved |= keeps_disproved(tablet.replicas.size());
    // Named by the coordinator so that all cut at the same horizon; else equal members would give
    // different digests (rule 6).
    command.horizon_s = purge_horizon_s(tablet, options_.horizon);
    const SetEpoch epoch = tablet.epoch;
    // Where R members are needed to find a write, one that has it since long counts as one that has
    // it no more once it lost what is young: what others have from now on must last.
    const bool is_relied_on = options.level != ConsistencyLevel::kAll && required > 1 &&
                              (both || read_quorum(static_cast<int>(set.size())) > 1);
    const TabletSeen seen{epoch, tablet.repaired_us, is_relied_on};
    const auto gathering = gather(command, epoch, std::move(candidates), first_asked,
                                  !alone && !command.count_only, options, std::move(quorums));
    const bool complete = co_await gathering->done;
    if (!complete) {
      Error error = read_error(*gathering, options.level);
      if (is_unbuilt(error)) {
        command = std::move(*without_index);
        continue;
      }
      if (error.code == ErrorCode::kStaleEpoch && reactor_.now_us() < options.deadline.at_us) {
        co_await base::sleep_for(reactor_, 5'000);  // the newer map is on its way here
        continue;
      }
      if (error.code == ErrorCode::kStaleEpoch) error = own_read_error(error, options.level);
      co_return std::unexpected(std::move(error));
    }
    // Enough have answered, and all of them belong to one epoch.
    TETRAD_ASSERT(!gathering->data.empty());
    if (alone) co_return std::move(gathering->data.front().result);
    if (storage::ReadResult* const withheld = gathering->withheld()) co_return std::move(*withheld);

    // An own store gives data where others give digests, so there may be more than one.
    const storage::ReadResult& data = gathering->data.front().result;
    const base::Hash128 digest = digest_of_answer(data);
    const base::Hash128 end =
        gathering->digest_replies.empty() ? base::Hash128() : hash_of_end(data);
    bool agree = true;
    for (const auto& [from, reply] : gathering->digest_replies) {
      agree = agree && reply.digest == digest && reply.exhausted == data.exhausted &&
              (reply.end == end || TETRAD_MUTANT(end_not_compared));
    }
    for (size_t i = 1; i < gathering->data.size(); ++i) {
      agree = agree && digest_of_answer(gathering->data[i].result) == digest &&
              same_end(gathering->data[i].result, data) &&
              same_fold(gathering->data[i].result, data);
    }
    // No rows to merge: equal digests mean that all have counted and folded the same rows.
    if (agree && command.count_only) co_return std::move(gathering->data.front().result);
    const bool is_one_enough = command.by_index.has_value() && TETRAD_MUTANT(index_from_one);
    if (agree || is_one_enough || TETRAD_MUTANT(digests_ignored)) {
      // One answer stands for all; the merge of one leaves what the client may see.
      std::vector<storage::ReplicaReply> one;
      one.push_back(std::move(gathering->data.front()));
      TETRAD_CO_TRY(storage::MergedRead merged, storage::merge_replies(command, one));
      co_return std::move(merged.result);
    }
    // All whose answers were compared.
    std::vector<StoreAddress> answered;
    for (const auto& reply : gathering->data) answered.push_back(reply.from);
    for (const auto& [from, reply] : gathering->digest_replies) answered.push_back(from);
    // One of those that answered may be gone by now: half of what time is left is theirs, the rest
    // is for another try with who lives then.
    ReadOptions attempt = options;
    const int64_t left_us = options.deadline.at_us - reactor_.now_us();
    const bool last = left_us < kRepairAttemptMinUs;
    if (!last) attempt.deadline.at_us -= left_us / 2;
    Result<storage::ReadResult> repaired = storage::ReadResult();
    // Which rows match is not known before they are merged (rule 7): what any member names is read
    // by its key.
    if (command.by_index && !TETRAD_MUTANT(index_rows_from_one)) {
      repaired = co_await read_named(command, epoch, std::move(answered), attempt);
      if (!repaired && is_unbuilt(repaired.error())) {
        command = std::move(*without_index);
        continue;
      }
    } else if (command.count_only) {
      repaired = co_await count_and_repair(command, seen, std::move(answered), attempt);
    } else {
      repaired = co_await read_and_repair(command, seen, std::move(answered), attempt);
    }
    // A merge that was not written everywhere is not an answer: it is tried again with half of the
    // time that is left, or fails.
    if (repaired) co_return repaired;
    const ErrorCode code = repaired.error().code;
    if (reactor_.now_us() >= options.deadline.at_us) {
      if (code == ErrorCode::kStaleEpoch)
        co_return std::unexpected(own_read_error(repaired.error(), options.level));
      co_return repaired;
    }
    const bool again =
        code == ErrorCode::kStaleEpoch ||
        (!last && (code == ErrorCode::kReadTimeout || code == ErrorCode::kReadFailure));
    if (!again) co_return repaired;
    co_await base::sleep_for(reactor_, 5'000);
  }
}

// In the client's words, of a read that one member answers.
Error CoordinatorImpl::own_read_error(const Error& error, ConsistencyLevel level) const {
  if (error.code == ErrorCode::kStaleSchema)
    return Error(ErrorCode::kInvalid, "the table was dropped or truncated meanwhile");
  if (error.code == ErrorCode::kStaleEpoch) {
    return Error(ErrorCode::kReadTimeout, "Operation timed out while replicas moved.",
                 base::TimeoutDetail{level, 0, 1});
  }
  if (error.code == ErrorCode::kReplicaBehind) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("Cannot achieve consistency level {}", base::name_of(level)),
                 base::UnavailableDetail{level, 1, 0});
  }
  if (error.code == ErrorCode::kTimedOut) {
    return Error(ErrorCode::kReadTimeout, "Operation timed out - received only 0 responses.",
                 base::TimeoutDetail{level, 0, 1});
  }
  if (!is_disk_error(error)) return error;
  logger_.error("a read failed error={}", error.message);
  base::FailureDetail detail{level, 0, 1, {}, base::WriteType::kSimple, false};
  return Error(ErrorCode::kReadFailure, "Operation failed - received 0 responses and 1 failures",
               detail);
}

// The fast way, without a task: null means that the caller must go the general way. It never waits,
// so the rows are what memory has. Runs on the shard's loop within one call.
std::optional<Result<storage::ReadEnd>> CoordinatorImpl::read_here(storage::ReadCommand& command,
                                                                   const ReadOptions& options,
                                                                   storage::RowSink& sink) {
  if (!check_clock() || is_serial(options.level)) return std::nullopt;
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(command.incarnation);
  if (table == nullptr) return std::nullopt;
  const partitioner::Tablet& tablet = table->tablets.find(command.position);
  const std::vector<StoreAddress>& set = read_set(tablet);
  // Only where one member's word is enough.
  if (levels(*state).reading(options.level, set).least() != 1 || reads_both_sets(tablet))
    return std::nullopt;
  const auto own = std::find_if(set.begin(), set.end(), [this](const StoreAddress& replica) {
    return replicas_.is_local(replica);
  });
  if (own == set.end()) return std::nullopt;
  command.live_only = true;
  auto end = replicas_.read_here(own->store, *table, tablet, command, sink);
  if (!end) return std::nullopt;
  if (options.trace != nullptr && *end) {
    options.trace->add(fmt::format("Read {}.{}, tablet {}, from local store {}", table->keyspace,
                                   table->name, tablet.id.value, own->store));
  }
  // Another member may have what this disk cannot read; a sole member's error is the answer.
  if (!*end && set.size() > 1 && is_disk_error(end->error())) return std::nullopt;  // others may
  record_read(options.level, reactor_.now_us(), *end ? nullptr : &end->error());
  if (!*end) return std::unexpected(own_read_error(end->error(), options.level));
  return end;
}

Task<Result<storage::ReadResult>> CoordinatorImpl::read(storage::ReadCommand command,
                                                        ReadOptions options) {
  TETRAD_CO_TRY_VOID(check_read_level(options.level));
  if (!check_clock()) {
    Result<void> settled = co_await clock_settled(options.deadline);
    TETRAD_CO_TRY_VOID(std::move(settled));
  }
  const base::MonotonicUs started_us = reactor_.now_us();
  const bool is_range = command.is_range;
  // Claims name candidates. A limit that counted them would end a page before rows that match.
  if (command.by_index) {  // rows are counted when they have been tested
    command.per_partition_limit = storage::ReadCommand::kNoLimit;
    command.distinct_partitions = false;
  }
  Result<storage::ReadResult> result = storage::ReadResult();
  if (is_serial(options.level)) {
    if (is_range) {
      co_return fail(ErrorCode::kInvalid,
                     "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a "
                     "time");
    }
    command.by_index.reset();
    result = co_await read_serial(std::move(command), options);
  } else if (command.by_index && is_range) {
    result = co_await read_range_by_index(std::move(command), options);
  } else if (is_range) {
    result = co_await read_range(std::move(command), options);
  } else {
    result = co_await read_partition(std::move(command), options);
  }
  if (!options.background)
    record_read(options.level, started_us, result ? nullptr : &result.error());
  co_return result;
}

void CoordinatorImpl::record_read(ConsistencyLevel level, base::MonotonicUs started_us,
                                  const Error* error) {
  const size_t of = static_cast<size_t>(level) % CoordinatorMetrics::kLevels;
  metrics_.read[of].record(reactor_.now_us() - started_us);
  if (error == nullptr) return;
  if (error->code == ErrorCode::kUnavailable) metrics_.unavailable[of].add();
  if (error->code == ErrorCode::kReadTimeout) metrics_.read_timeouts[of].add();
  if (error->code == ErrorCode::kReadFailure) metrics_.failures[of].add();
}

Task<Result<storage::ReadResult>> CoordinatorImpl::read_partition(storage::ReadCommand command,
                                                                  ReadOptions options) {
  const RingPosition position = command.position;
  auto result = co_await read_tablet(std::move(command), position, options);
  co_return result;
}

// Tablets one after another, in ring order, since a page has to end at one place. Limits count what
// the tablets before have given.
Task<Result<storage::ReadResult>> CoordinatorImpl::read_range(storage::ReadCommand command,
                                                              ReadOptions options) {
  storage::ReadResult out;
  const RingRange whole = command.range;
  RingPosition from = start_of(command);
  const uint64_t bytes_limit = command.bytes_limit;
  const uint32_t row_limit = command.row_limit;
  bool is_first = true;
  while (from < whole.end) {
    // Taken anew for each tablet: a split or merge between two of them only changes where the next
    // part ends.
    const MetaSnapshot state = meta_.snapshot();
    const TableInfo* table = state->table(command.incarnation);
    if (table == nullptr) co_return fail(ErrorCode::kInvalid, "the table was dropped");
    storage::ReadCommand part = command;
    part.range = {from, std::min(whole.end, tablet_after(*table, from).range.end)};
    // The place in a partition belongs to the first part only.
    if (!is_first) {
      part.resume_after.reset();
      part.partition_rows_done = 0;
    }
    if (row_limit != storage::ReadCommand::kNoLimit && !TETRAD_MUTANT(row_limit_anew))
      part.row_limit = row_limit - out.live_row_count;
    const uint64_t bytes_done = out.arena.allocated_bytes();
    // At least 1: a tablet then gives one row past the limit, and the walk comes forward.
    part.bytes_limit = bytes_limit - std::min<uint64_t>(bytes_limit - 1, bytes_done);
    if (command.bytes_max != storage::ReadCommand::kNoBytesMax)
      part.bytes_max = command.bytes_max - std::min(command.bytes_max, bytes_done);
    const RingPosition end = part.range.end;
    if (TETRAD_MUTANT(split_edge_lost) && end < whole.end) --part.range.end.hash;
    auto result = co_await read_tablet(std::move(part), end, options);
    // It was split meanwhile: what is left to be read is cut anew.
    if (!result && result.error().code == ErrorCode::kStaleEpoch) continue;
    if (!result) co_return std::unexpected(std::move(result.error()));
    if (TETRAD_MUTANT(split_edge_twice) && !is_first && !out.partitions.empty())
      out.partitions.push_back(out.partitions.back());
    // Enough for a page was found before: it is answered, and what does not fit is the next page's
    // trouble.
    if (result->withheld_bytes != 0) {
      if (out.partitions.empty()) co_return result;
      co_return ended_with_its_last_partition(std::move(out));
    }
    is_first = false;
    out.live_row_count += result->live_row_count;
    std::move(result->partitions.begin(), result->partitions.end(),
              std::back_inserter(out.partitions));
    out.arena.absorb(std::move(result->arena));
    // The tablet has more: its own end is the end of the page.
    if (!result->exhausted) {
      out.exhausted = false;
      out.complete_up_to = std::move(result->complete_up_to);
      co_return out;
    }
    // The next part begins where this one ended, whichever tablet that is in by then.
    from = end;
    if (TETRAD_MUTANT(page_ends_all)) co_return out;
    const bool is_full =
        out.live_row_count >= row_limit || out.arena.allocated_bytes() >= bytes_limit;
    if (is_full && from < whole.end && !out.partitions.empty())
      co_return ended_with_its_last_partition(std::move(out));
  }
  co_return out;
}

Task<void> CoordinatorImpl::read_into(
    CoordinatorImpl* self, storage::ReadCommand command, ReadOptions options,
    std::move_only_function<void(Result<storage::ReadResult>)> done) {
  std::optional<Result<storage::ReadResult>> result;
  // The last catch of this task: an exception of a library must reach the waiting window as an
  // error, else it would wait forever.
  try {
    auto read = co_await self->read(std::move(command), options);
    result.emplace(std::move(read));
  } catch (const std::exception& error) {
    result.emplace(failed_inside(error, self->logger_));
  }
  done(std::move(*result));
}

Task<Result<std::vector<storage::ReadResult>>> CoordinatorImpl::read_many(
    std::vector<storage::ReadCommand> commands, ReadOptions options) {
  // Commands in flight at once of one statement. It bounds memory, and the share that one client
  // gets of the members' queues.
  constexpr size_t kAtOnce = 64;
  std::vector<storage::ReadResult> out(commands.size());
  struct Window {
    size_t left = 1;
    std::optional<Error> error;
    std::vector<std::pair<size_t, storage::ReadResult>> results;
    base::OneShot<bool> done;
    void finish_one() {
      TETRAD_ASSERT(left != 0);
      if (--left == 0) done.setter().set(true);
    }
  };
  for (size_t first = 0; first < commands.size(); first += kAtOnce) {
    const auto window = std::make_shared<Window>();
    window->results.reserve(kAtOnce);  // nothing throws where a result arrives
    const size_t end = std::min(commands.size(), first + kAtOnce);
    for (size_t i = first; i < end; ++i) {
      ++window->left;
      tasks_.spawn(read_into(this, std::move(commands[i]), options,
                             [window, i](Result<storage::ReadResult> result) {
                               if (result) {
                                 window->results.emplace_back(i, std::move(*result));
                               } else if (!window->error) {
                                 window->error = std::move(result.error());
                               }
                               window->finish_one();
                             }));
    }
    window->finish_one();
    co_await window->done;
    // Only when all of the window have ended, so that none of its tasks is left behind.
    if (window->error) co_return std::unexpected(std::move(*window->error));
    for (auto& [index, result] : window->results) out[index] = std::move(result);
  }
  co_return out;
}

}  // namespace tetrad::replication
