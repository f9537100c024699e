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
//      the next quorum could miss what this client saw. Steps 4 and 5 are in read_repair.cc.
//   6. A refused epoch, or a member that went away: begin again with the next snapshot while time
//      is left.
//
// A range of the ring is read one tablet after another (read_range.cc). A read at ONE from the only
// member needs no step after 2.
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/consistency.h"
#include "replication/coordinator/gathering.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/coordinator/tablet_round.h"
#include "replication/indexes/index_runner.h"

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

bool same_end(const storage::ReadResult& a, const storage::ReadResult& b) {
  return a.exhausted == b.exhausted && (a.exhausted || a.complete_up_to == b.complete_up_to);
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

// Step 1: what this snapshot says, and what the command becomes under it.
Result<void> CoordinatorImpl::begin_round(TabletRound& round, storage::ReadCommand& command,
                                          RingPosition inside, const ReadOptions& options) {
  const MetaState& state = *round.state;
  round.table = state.table(command.incarnation);
  if (round.table == nullptr) return fail(ErrorCode::kStaleSchema, kTableGone);
  const partitioner::Tablet& tablet = round.table->tablets.find(inside);
  round.tablet = &tablet;
  // A range must lie in one tablet: the epoch in the request is of that tablet alone and fences
  // nothing beside it (rule 8). The caller cuts it anew.
  if (command.is_range && command.range.start < tablet.range.start &&
      !TETRAD_MUTANT(range_fenced_at_end))
    return fail(ErrorCode::kStaleEpoch, "the tablet was split");
  const std::vector<StoreAddress>& set = read_set(tablet);
  round.set = &set;
  round.needed = round.levels.reading(options.level, set);
  const int required = round.needed.least();
  // Members that run an older program do not know the field.
  if (state.format < kFormatIndexes) command.by_index.reset();
  if (command.by_index) {
    round.without_index = command;
    round.without_index->by_index.reset();
    command.by_index->keeps_disproved = round.levels.has_several() || keeps_disproved(set.size());
  }
  if (options.trace != nullptr) {
    options.trace->add(fmt::format("Reading {}.{}, tablet {}: {} of {} replicas must answer",
                                   round.table->keyspace, round.table->name, tablet.id.value,
                                   required, set.size()));
  }
  // ONE promises nothing beyond one member, and so is not held up by the old set.
  round.both = reads_both_sets(tablet) && !options.leaves_old_out &&
               options.level != ConsistencyLevel::kOne &&
               options.level != ConsistencyLevel::kLocalOne && !TETRAD_MUTANT(reads_new_only);
  round.alone = required == 1 && !round.both;
  return {};
}

// Step 2. Errors: kUnavailable; nobody has been asked then.
Result<std::shared_ptr<CoordinatorImpl::Gathering>> CoordinatorImpl::ask_members(
    TabletRound& round, storage::ReadCommand& command, const ReadOptions& options) {
  const partitioner::Tablet& tablet = *round.tablet;
  const std::vector<StoreAddress>& set = *round.set;
  const int required = round.needed.least();
  TETRAD_TRY_VOID(check_enough(set, options.level, round.needed));
  // Who is live is advice. A member that is wrongly taken for live costs time, never a wrong
  // answer.
  std::vector<StoreAddress> candidates = live_members(set);
  std::vector<ReadQuorum> quorums;
  // With two sets, or several data centres, a count of replies is not enough: each quorum has to be
  // met by its own members.
  if (round.both || round.levels.has_several()) quorums.push_back({set, round.needed});
  if (round.both) {
    const Need of_old = round.levels.reading(options.level, tablet.replicas);
    TETRAD_TRY_VOID(check_enough(tablet.replicas, options.level, of_old));
    quorums.push_back({tablet.replicas, of_old});
    for (const StoreAddress& replica : live_members(tablet.replicas)) {
      if (std::find(candidates.begin(), candidates.end(), replica) == candidates.end())
        candidates.push_back(replica);
    }
  }
  // A store that is behind after a power cut refuses reads (rule 20).
  ask_good_ones_first(candidates);
  // With two sets all are asked at once.
  size_t first_asked = round.both ? candidates.size() : static_cast<size_t>(required);
  if (round.levels.has_several()) first_asked = arrange_for(quorums, round.levels, candidates);
  command.live_only = round.alone;
  if (round.both && command.by_index)
    command.by_index->keeps_disproved |= keeps_disproved(tablet.replicas.size());
  // Named by the coordinator so that all cut at the same horizon; else equal members would give
  // different digests (rule 6).
  command.horizon_s = purge_horizon_s(tablet, options_.horizon);
  // Where R members are needed to find a write, one that has it since long counts as one that has
  // it no more once it lost what is young: what others have from now on must last.
  // Of two members both are asked; but what one of them gets must last, too: the set may shrink to
  // that one.
  const bool is_relied_on = options.level != ConsistencyLevel::kAll && required > 1;
  round.seen = TabletSeen{tablet.epoch, tablet.repaired_us, is_relied_on};
  return gather(command, tablet.epoch, std::move(candidates), first_asked,
                !round.alone && !command.count_only, options, std::move(quorums));
}

// Step 3. An own store gives data where others give digests, so there may be more than one.
bool CoordinatorImpl::answers_agree(const Gathering& gathering) {
  const storage::ReadResult& data = gathering.data.front().result;
  const base::Hash128 digest = digest_of_answer(data);
  const base::Hash128 end = gathering.digest_replies.empty() ? base::Hash128() : hash_of_end(data);
  bool agree = true;
  for (const auto& [from, reply] : gathering.digest_replies) {
    agree = agree && reply.digest == digest && reply.exhausted == data.exhausted &&
            (reply.end == end || TETRAD_MUTANT(end_not_compared));
  }
  for (size_t i = 1; i < gathering.data.size(); ++i) {
    agree = agree && digest_of_answer(gathering.data[i].result) == digest &&
            same_end(gathering.data[i].result, data) && same_fold(gathering.data[i].result, data);
  }
  return agree;
}

// The only member is a store of this shard: a call, no message and no gathering.
void CoordinatorImpl::call_own(const StoreAddress& sole, SetEpoch epoch,
                               storage::ReadCommand& command, const ReadOptions& options,
                               const base::OneShot<Result<storage::ReadResult>>& answer) {
  command.live_only = true;  // tombstones are only needed to merge with others
  replicas_.read(sole.store, epoch, std::move(command), options.deadline,
                 [setter = answer.setter()](Result<storage::ReadResult> result) {
                   setter.set(std::move(result));
                 });
}

// The only member is a store of another shard: one crossing each way.
void CoordinatorImpl::cross_to(const StoreAddress& sole, SetEpoch epoch,
                               storage::ReadCommand& command, const ReadOptions& options,
                               const base::OneShot<std::unique_ptr<SoleReadCall>>& back) {
  command.live_only = true;
  if (options.trace != nullptr) options.trace->add(asking_text("READ", sole));
  rpc_.call_shard(std::make_unique<SoleReadCall>(sole, options.deadline, epoch, std::move(command),
                                                 back.setter()),
                  0);
}

Task<Result<storage::ReadResult>> CoordinatorImpl::read_tablet(storage::ReadCommand command,
                                                               RingPosition inside,
                                                               ReadOptions options) {
  while (true) {
    // Each round works with one snapshot from beginning to end; only what is refused or lost begins
    // a new one.
    TabletRound round(meta_.snapshot(), meta_.self());
    TETRAD_CO_TRY_VOID(begin_round(round, command, inside, options));
    const StoreAddress* const sole = round.sole();
    if (sole != nullptr && replicas_.is_local(*sole)) {
      base::OneShot<Result<storage::ReadResult>> answer;
      call_own(*sole, round.tablet->epoch, command, options, answer);
      auto result = co_await answer;
      if (!result && round.drop_unbuilt_index(result.error(), command)) continue;
      if (!result) co_return std::unexpected(own_read_error(result.error(), options.level));
      note_own_read(options.trace, *result, sole->store);
      co_return result;
    }
    if (sole != nullptr && is_other_shards(*sole)) {
      base::OneShot<std::unique_ptr<SoleReadCall>> back;
      cross_to(*sole, round.tablet->epoch, command, options, back);
      const std::unique_ptr<SoleReadCall> call = co_await back;
      if (call->answer) {
        note_own_read(options.trace, *call->answer, call->store());
        co_return std::move(call->answer);
      }
      const Error& error = call->answer.error();
      if (round.drop_unbuilt_index(error, command)) continue;
      if (error.code != ErrorCode::kStaleEpoch || reactor_.now_us() >= options.deadline.at_us)
        co_return std::unexpected(own_read_error(error, options.level));
      co_await base::sleep_for(reactor_, 5'000);  // the newer map is on its way here
      command = std::move(call->command);
      continue;
    }

    TETRAD_CO_TRY(const std::shared_ptr<Gathering> gathering, ask_members(round, command, options));
    const bool complete = co_await gathering->done;
    if (!complete) {
      Error error = read_error(*gathering, options.level);
      if (round.drop_unbuilt_index(error, command)) continue;
      if (error.code == ErrorCode::kStaleEpoch && reactor_.now_us() < options.deadline.at_us) {
        co_await base::sleep_for(reactor_, 5'000);  // the newer map is on its way here
        continue;
      }
      if (error.code == ErrorCode::kStaleEpoch) error = own_read_error(error, options.level);
      co_return std::unexpected(std::move(error));
    }
    // Enough have answered, and all of them belong to one epoch.
    TETRAD_ASSERT(!gathering->data.empty());
    if (round.alone) co_return std::move(gathering->data.front().result);
    if (storage::ReadResult* const withheld = gathering->withheld()) co_return std::move(*withheld);
    const bool agree = answers_agree(*gathering);
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
    auto settled = co_await reconcile(&round, &command, gathering->answered(), &options);
    if (settled) co_return std::move(*settled);
  }
}

// In the client's words, of a read that one member answers.
Error CoordinatorImpl::own_read_error(const Error& error, ConsistencyLevel level) const {
  if (error.code == ErrorCode::kStaleSchema) return Error(ErrorCode::kStaleSchema, kTableGone);
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
  TableLatencies& latencies = replicas_.latencies();
  const TableLatencies::Timing timing =
      latencies.begin(TableFigure::kCoordinatorRead, command.incarnation);
  auto end = replicas_.read_here(own->store, *table, tablet, command, sink);
  // Another member may have what this disk cannot read; a sole member's error is the answer.
  if (!end || (!*end && set.size() > 1 && is_disk_error(end->error()))) {
    latencies.take_back(timing);
    return std::nullopt;
  }
  if (options.trace != nullptr && *end) {
    options.trace->add(fmt::format("Read {}.{}, tablet {}, from local store {}", table->keyspace,
                                   table->name, tablet.id.value, own->store));
  }
  record_read(false, options.level, reactor_.now_us(), latencies.end(timing),
              *end ? nullptr : &end->error());
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
  TableLatencies::Timing timing;
  if (!options.background)
    timing = replicas_.latencies().begin(
        is_range ? TableFigure::kCoordinatorScan : TableFigure::kCoordinatorRead,
        command.incarnation);
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
  if (!options.background) {
    record_read(is_range, options.level, started_us, replicas_.latencies().end(timing),
                result ? nullptr : &result.error());
  }
  co_return result;
}

void CoordinatorImpl::record_read(bool is_range, ConsistencyLevel level,
                                  base::MonotonicUs started_us, std::optional<int64_t> timed_us,
                                  const Error* error) {
  const size_t of = static_cast<size_t>(level) % CoordinatorMetrics::kLevels;
  base::LatencyHistogram& kind = is_range ? metrics_.scan[of] : metrics_.read[of];
  base::RequestLatencies& latencies = is_range ? scan_latencies_ : read_latencies_;
  kind.record(latencies.of(timed_us, reactor_.now_us() - started_us));
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

}  // namespace tetrad::replication
