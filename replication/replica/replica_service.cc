// SPDX-License-Identifier: Apache-2.0
// What a member does with a mutation or a read:
//
//   1. Place: is the sender's map this node's? One that is ahead waits for the map (wait), one that is
//      behind is refused.
//   2. Does the store lack something: an earlier stay that is being erased, a change log that is not open,
//      what a power cut took? Then writes wait, and reads are refused.
//   3. A write gets a pass of the fence, is noted in the change log, and goes to the store. A read goes to
//      the store at once.
//
// Between a look at the map and the call of the store there is no suspension: what was checked still holds.
#include "replication/replica/replica_service.h"

#include <exception>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/replica/replica_calls.h"
#include "storage/row/row_weight.h"

namespace tetrad::replication {
namespace {

constexpr int64_t kWaitingLookEveryUs = 20'000;  // for deadlines

/// Whether a mark that is not below a stamp is too far above it for coordinators whose clocks are
/// right, and not too far above this node's time to be of one: the sender's clock is behind. Were
/// it left to the sender, it would take the mark for a client's timestamp of the future.
bool shows_clock_behind(int64_t mark_us, int64_t stamp_us, int64_t own_us, int64_t bound_us) {
  return mark_us - stamp_us > kMarkBoundsMax * bound_us && mark_us - own_us <= 2 * bound_us;
}

/// A call of another shard that `GiveBack` takes back there. It goes back refused when an exception
/// ends what was to answer it; what is dropped as the node ends is dropped. As large as a callback
/// may be without memory of its own.
template <class Call, class GiveBack>
class OwedCall {
 public:
  OwedCall(std::unique_ptr<ShardCall> call, const GiveBack& give_back)
      : call_(std::move(call)), give_back_(give_back) {}
  OwedCall(OwedCall&&) noexcept = default;
  ~OwedCall() {
    if (call_ == nullptr || std::uncaught_exceptions() == 0) return;
    try {
      call_->refuse(Error(ErrorCode::kServerError, "The request failed inside the server"));
      give_back_(std::move(call_));
    } catch (const std::exception&) {  // there is no room for an answer either
    }
  }

  Call& call() { return static_cast<Call&>(*call_); }
  void answer() { give_back_(std::move(call_)); }

 private:
  std::unique_ptr<ShardCall> call_;
  GiveBack give_back_;
};

/// Passes rows on, and weighs them.
class WeighingSink final : public storage::RowSink {
 public:
  WeighingSink(storage::RowSink& to, int64_t now_s, WeighedRead& found)
      : to_(to), now_s_(now_s), found_(found) {}
  Result<void> begin_partition(RingPosition position, BytesView partition_key,
                               const storage::RowRecord& header, bool rows_follow) override {
    return to_.begin_partition(position, partition_key, header, rows_follow);
  }
  Result<void> take_row(BytesView clustering_key, const storage::RowRecord& row) override {
    const uint64_t bytes = clustering_key.size() + storage::live_bytes(row, now_s_);
    found_.weight += storage::row_weight(bytes);
    found_.bytes += bytes;
    return to_.take_row(clustering_key, row);
  }

 private:
  storage::RowSink& to_;
  const int64_t now_s_;
  WeighedRead& found_;
};

Place place_of_read(const MetaState& state, const storage::ReadCommand& command, SetEpoch epoch) {
  return command.is_range ? place_of_range(state, command.incarnation, command.range, epoch)
                          : place_of(state, command.incarnation, command.position, epoch);
}

}  // namespace

ReplicaService::ReplicaService(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                               HybridClock& clock, HorizonSlack slack,
                               std::vector<storage::Store*> stores, const Fences& fences,
                               StoreCleanup& cleanup, ChangeLogs& changes, BehindStores& behind,
                               storage::FoldReader read_fold, ReplicaOptions options, Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      slack_(slack),
      self_(rpc.self()),
      stores_(std::move(stores)),
      fences_(fences),
      cleanup_(cleanup),
      changes_(changes),
      behind_(behind),
      read_fold_(read_fold),
      options_(options),
      logger_(std::move(logger)),
      latencies_(reactor) {
  const auto mutate = [this](bool merged) {
    return [this, merged](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
      on_mutate(merged, context, body, std::move(reply));
    };
  };
  rpc.handle(Verb::kMutate, mutate(false));
  rpc.handle(Verb::kMutateMerged, mutate(true));
  const auto read_as = [this](bool digest) {
    return [this, digest](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
      on_read(digest, context, body, std::move(reply));
    };
  };
  rpc.handle(Verb::kRead, read_as(false));
  rpc.handle(Verb::kReadDigest, read_as(true));
  rpc.handle_shard_calls([this](std::unique_ptr<ShardCall> call) { take(std::move(call)); });
  subscription_ = meta_.subscribe([this](const MetaSnapshot& before, const MetaSnapshot& now) {
    if (before == now) return;
    if (before == nullptr || before->schema_version != now->schema_version) latencies_.follow(*now);
    run_waiting();
  });
  changes_.on_opened([this] { run_waiting(); });
}

ReplicaService::~ReplicaService() {
  for (const Verb verb : {Verb::kMutate, Verb::kMutateMerged, Verb::kRead, Verb::kReadDigest})
    rpc_.handle(verb, nullptr);
  changes_.on_opened(nullptr);
  reactor_.cancel(timer_);
}

void ReplicaService::on_mutate(bool merged, const RpcContext& context, BytesView body,
                               RpcNode::Reply reply) {
  auto request = decode_mutate(body);
  if (!request) {
    reply.error(request.error());
    return;
  }
  std::optional<int64_t> mark_us;
  if (const auto stamp_us = request->server_timestamp_us) {
    mark_us = mark_not_below(context.store, request->mutation, *stamp_us);
    clock_.observe(*stamp_us, reactor_);
    if (mark_us && !TETRAD_MUTANT(server_stamp_any) &&
        shows_clock_behind(*mark_us, *stamp_us, clock_.own_us(reactor_), clock_.skew_max_us())) {
      metrics_.refused_times.add();
      reply.error(Error(ErrorCode::kClockOff, "a later timestamp is here, of a coordinator"));
      return;
    }
  }
  std::optional<Merged> as_merged;
  if (merged) {
    as_merged = Merged{request->as_of_us, request->synced};
  } else if (auto fits = check_times(request->server_timestamp_us, request->as_of_us); !fits) {
    metrics_.refused_times.add();
    reply.error(fits.error());
    return;
  }
  const uint32_t store = context.store;
  const TableIncarnation incarnation = request->mutation.incarnation;
  const RingPosition position = request->mutation.position;
  const std::optional<int64_t> stamp_us = request->server_timestamp_us;
  apply(store, request->epoch, request->mutation, as_merged, context.deadline,
        [this, alive = std::weak_ptr<char>(alive_), store, incarnation, position, stamp_us,
         reply = std::move(reply), mark_us](Result<void> applied) mutable {
          if (alive.expired()) return;
          if (applied) {
            if (stamp_us)
              mark_us = mark_after_cut(store, incarnation, position, *stamp_us, mark_us);
            reply.ok(encode_mutate_answer(mark_us));
          } else {
            reply.error(applied.error());
          }
        });
}

void ReplicaService::on_read(bool digest, const RpcContext& context, BytesView body,
                             RpcNode::Reply reply) {
  if (digest) metrics_.digests.add();
  auto request = decode_read(body, read_fold_);
  if (!request) {
    reply.error(request.error());
    return;
  }
  // A digest is made of the whole answer.
  const uint64_t bytes_max =
      digest ? storage::ReadCommand::kNoBytesMax : request->command.bytes_max;
  request->command.bytes_max = bytes_max;
  read(context.store, request->epoch, std::move(request->command), context.deadline,
       [digest, bytes_max, reply = std::move(reply)](Result<storage::ReadResult> result) mutable {
         if (!result) {
           reply.error(result.error());
           return;
         }
         if (digest) {
           reply.ok(encode_digest_reply(digest_reply_of(*result)));
           return;
         }
         storage::withhold_if_larger(*result, bytes_max);
         Bytes out;
         storage::encode_read_result(*result, out);
         reply.ok(std::move(out));
       });
}

void ReplicaService::take(std::unique_ptr<ShardCall> call) {
  if (call->verb() == Verb::kMutate)
    take_mutation(std::move(call));
  else
    take_read(std::move(call));
}

void ReplicaService::take_mutation(std::unique_ptr<ShardCall> owned) {
  const auto give_back = [this](std::unique_ptr<ShardCall> back) {
    auto& call = static_cast<MutateCall&>(*back);
    if (call.answer && call.server_timestamp_us)
      call.answer =
          mark_after_cut(call.store(), call.mutation().incarnation, call.mutation().position,
                         *call.server_timestamp_us, *call.answer);
    rpc_.answer_shard(std::move(back));
  };
  OwedCall<MutateCall, decltype(give_back)> owed(std::move(owned), give_back);
  MutateCall& call = owed.call();
  if (auto fits = check_times(std::nullopt, call.dated_us); !fits) {
    call.refuse(std::move(fits.error()));
    return owed.answer();
  }
  if (call.server_timestamp_us)
    call.answer = mark_not_below(call.store(), call.mutation(), *call.server_timestamp_us);
  apply(call.store(), call.epoch, call.mutation(), std::nullopt, call.deadline(),
        [owed = std::move(owed)](Result<void> applied) mutable {
          if (!applied) owed.call().refuse(std::move(applied.error()));
          owed.answer();
        });
}

void ReplicaService::take_read(std::unique_ptr<ShardCall> owned) {
  const auto give_back = [this](std::unique_ptr<ShardCall> back) {
    rpc_.answer_shard(std::move(back));
  };
  OwedCall<ReadCall, decltype(give_back)> owed(std::move(owned), give_back);
  ReadCall& call = owed.call();
  const bool digest = call.verb() == Verb::kReadDigest;
  if (digest) metrics_.digests.add();
  // A sender that is refused because of its map gets its command back.
  const MetaSnapshot state = meta_.snapshot();
  const bool goes_on =
      place_of_read(*state, call.command, call.epoch).standing == MapStanding::kCurrent;
  storage::ReadCommand command = goes_on ? std::move(call.command) : call.command;
  if (digest) command.bytes_max = storage::ReadCommand::kNoBytesMax;  // made of the whole answer
  read(call.store(), call.epoch, std::move(command), call.deadline(),
       [owed = std::move(owed)](Result<storage::ReadResult> result) mutable {
         ReadCall& back = owed.call();
         if (result && back.verb() == Verb::kReadDigest) {
           back.digest = digest_reply_of(*result);
         } else {
           back.answer = std::move(result);
           if (back.answer) storage::withhold_if_larger(*back.answer, back.command.bytes_max);
         }
         owed.answer();
       });
}

/// In a tablet and an epoch that are current.
MapStanding ReplicaService::standing_of_rows(uint32_t store, const storage::Mutation& mutation,
                                             const partitioner::Tablet& tablet,
                                             const std::optional<Merged>& merged) {
  if (merged && merged->repaired_us < tablet.repaired_us && !TETRAD_MUTANT(late_repair_taken))
    return MapStanding::kStaleEpoch;
  if (tablet.stage == partitioner::TabletStage::kNormal) return MapStanding::kCurrent;
  return cleanup_.may_take(mutation.incarnation, tablet, store) ? MapStanding::kCurrent
                                                                : MapStanding::kAhead;
}

Error ReplicaService::refusal(MapStanding standing) {
  if (standing == MapStanding::kStaleEpoch)
    return Error(ErrorCode::kStaleEpoch, "the replica set has changed");
  return Error(ErrorCode::kStaleSchema, "the table was dropped or truncated");
}

void ReplicaService::wait(base::Deadline deadline, base::Callback retry) {
  metrics_.waited_for_metadata.add();
  waiting_.push_back({deadline.at_us, std::move(retry)});
  if (timer_ != 0) return;
  timer_ = reactor_.call_at(reactor_.now_us() + kWaitingLookEveryUs, [this] {
    timer_ = 0;
    run_waiting();
  });
}

void ReplicaService::run_waiting() {
  std::deque<Waiting> due;
  due.swap(waiting_);  // those that must go on waiting queue again
  for (Waiting& item : due) item.retry();
}

// What the store itself waits for counts as a map that is behind: the write goes on when that has
// come.
MapStanding ReplicaService::standing_to_apply(uint32_t store, const storage::Mutation& mutation,
                                              const Place& place,
                                              const std::optional<Merged>& merged, bool is_logged) {
  MapStanding now = place.standing;
  if (now == MapStanding::kCurrent && place.tablet != nullptr)
    now = standing_of_rows(store, mutation, *place.tablet, merged);
  if (is_logged && now == MapStanding::kCurrent && !changes_.may_take(*place.table, store))
    now = MapStanding::kAhead;
  if (behind_.any() && now == MapStanding::kCurrent && place.tablet != nullptr &&
      behind_.writes_wait(store, *place.tablet))
    now = MapStanding::kAhead;
  return now;
}

void ReplicaService::apply(uint32_t store, SetEpoch epoch, const storage::Mutation& mutation,
                           std::optional<Merged> merged, base::Deadline deadline,
                           ApplyCallback done) {
  if (store >= stores_.size() || stores_[store] == nullptr) {
    done(fail(ErrorCode::kNotFound, "store {} is not of this shard", store));
    return;
  }
  const MetaSnapshot state = meta_.snapshot();
  const Place place = place_of(*state, mutation.incarnation, mutation.position, epoch);
  const auto [standing, tablet, table] = place;
  const bool is_logged = table != nullptr && table->change_log.has_value() &&
                         !(merged && TETRAD_MUTANT(merged_not_logged));
  const MapStanding now = standing_to_apply(store, mutation, place, merged, is_logged);
  if (now == MapStanding::kAhead && reactor_.now_us() < deadline.at_us &&
      waiting_.size() < options_.waiting_max) {
    wait(deadline,
         [this, store, epoch, mutation, merged, deadline, done = std::move(done)]() mutable {
           apply(store, epoch, mutation, merged, deadline, std::move(done));
         });
    return;
  }
  if (now == MapStanding::kAhead) {
    done(fail(ErrorCode::kBehind, "this node has not heard of the table yet"));
    return;
  }
  if (now != MapStanding::kCurrent) {
    metrics_.refused_stale.add();
    done(std::unexpected(refusal(now)));
    return;
  }
  TETRAD_ASSERT((tablet == nullptr) == (table == nullptr));
  TETRAD_ASSERT(fences_[store] != nullptr);
  storage::WriteGuard guard;
  if (tablet != nullptr) guard.pass = fences_[store]->enter(state, *table, *tablet);
  if (!TETRAD_MUTANT(own_node_no_deadline)) guard.deadline_us = deadline.at_us;
  if (is_logged) {
    Result<void> noted = changes_.note(*table, store, mutation, guard);
    if (!noted) return done(std::move(noted));
  }
  if (TETRAD_MUTANT(limits_at_replica) && tablet != nullptr && tablet->full)
    return done(fail(ErrorCode::kInvalid, "the tablet is full"));
  if (TETRAD_MUTANT(batch_torn) && mutation.rows.size() > 1) {
    storage::Mutation first = mutation, rest = mutation;
    first.rows.resize(1);
    rest.rows.erase(rest.rows.begin());
    stores_[store]->apply(first, [](Result<void>) {});
    wait(deadline, [this, store, epoch, rest, merged, deadline, done = std::move(done)]() mutable {
      apply(store, epoch, rest, merged, deadline, std::move(done));
    });
    return;
  }
  metrics_.mutations.add();
  if (tablet != nullptr && !merged) {
    fences_[store]->heat().note_write(*table, *tablet, mutation, reactor_.now_us());
    done = timed_write(mutation.incarnation, std::move(done));
  }
  if (merged && merged->synced && !TETRAD_MUTANT(writeback_unsynced)) {
    done = [this, alive = std::weak_ptr<char>(alive_), store,
            done = std::move(done)](Result<void> applied) mutable {
      if (alive.expired()) return;
      if (!applied) return done(std::move(applied));
      stores_[store]->sync(std::move(done));
    };
  }
  if (merged) {
    stores_[store]->apply_merged(mutation, std::move(guard), std::move(done));
  } else {
    stores_[store]->apply(mutation, std::move(guard), std::move(done));
  }
}

bool ReplicaService::has_views(TableIncarnation table) const {
  // Every store knows the views of every table.
  const auto own =
      std::ranges::find_if(stores_, [](const auto* store) { return store != nullptr; });
  return own != stores_.end() && (*own)->views().has_views(table);
}

ReplicaService::ApplyCallback ReplicaService::timed_write(TableIncarnation table,
                                                          ApplyCallback done) {
  const TableLatencies::Timing timing = latencies_.begin(TableFigure::kLocalWrite, table);
  if (!timing.is_timed()) return done;
  return [this, alive = std::weak_ptr<char>(alive_), timing,
          done = std::move(done)](Result<void> applied) mutable {
    if (!alive.expired()) latencies_.end(timing);
    done(std::move(applied));
  };
}

ReplicaService::ReadCallback ReplicaService::timed_read(const storage::ReadCommand& command,
                                                        ReadCallback done) {
  const TableLatencies::Timing timing = latencies_.begin(
      command.is_range ? TableFigure::kLocalScan : TableFigure::kLocalRead, command.incarnation);
  if (!timing.is_timed()) return done;
  return [this, alive = std::weak_ptr<char>(alive_), timing,
          done = std::move(done)](Result<storage::ReadResult> result) mutable {
    if (!alive.expired()) {
      latencies_.end(timing);
      if (result) latencies_.note_found(timing, result->live_row_count, result->tombstones);
    }
    done(std::move(result));
  };
}

std::optional<int64_t> ReplicaService::mark_not_below(uint32_t store,
                                                      const storage::Mutation& mutation,
                                                      int64_t server_timestamp_us) const {
  if (store >= stores_.size() || stores_[store] == nullptr) return std::nullopt;
  const int64_t mark_us =
      stores_[store]->high_water_timestamp(mutation.incarnation, mutation.position);
  if (mark_us < server_timestamp_us) return std::nullopt;
  return mark_us;
}

std::optional<int64_t> ReplicaService::mark_after_cut(uint32_t store, TableIncarnation incarnation,
                                                      RingPosition position,
                                                      int64_t server_timestamp_us,
                                                      std::optional<int64_t> mark_us) const {
  if (!behind_.any()) return mark_us;
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(incarnation);
  if (table == nullptr) return mark_us;
  const int64_t floor_us = behind_.mark_floor_us(store, table->tablets.find(position));
  if (floor_us < server_timestamp_us) return mark_us;
  return std::max(floor_us, mark_us.value_or(floor_us));
}

bool ReplicaService::lacks(uint32_t store, const storage::ReadCommand& command) const {
  if (TETRAD_MUTANT(behind_reads)) return false;
  return command.is_range ? behind_.is_behind(store, command.incarnation, command.range)
                          : behind_.is_behind(store, command.incarnation, command.position);
}

std::optional<Result<storage::ReadEnd>> ReplicaService::read_here(
    uint32_t store, const TableInfo& table, const partitioner::Tablet& tablet,
    const storage::ReadCommand& command, storage::RowSink& sink) {
  if (is_behind(store, command)) return std::nullopt;
  HeatMeters& heat = fences_[store]->heat();
  const TableLatencies::Timing timing =
      latencies_.begin(TableFigure::kLocalRead, command.incarnation);
  WeighedRead found;
  std::optional<Result<storage::ReadEnd>> end;
  if (heat.is_weighed()) {
    WeighingSink weighing(sink, command.now_s, found);
    end = stores_[store]->read_here(command, weighing);
  } else {
    end = stores_[store]->read_here(command, sink);
  }
  if (!end) {
    latencies_.take_back(timing);
    return end;
  }
  latencies_.end(timing);
  if (*end) latencies_.note_found(timing, (*end)->live_row_count, (*end)->tombstones);
  metrics_.reads.add();
  heat.note_read_here(table, tablet, command, reactor_.now_us(), found);
  return end;
}

Result<void> ReplicaService::check_times(std::optional<int64_t> server_timestamp_us,
                                         int64_t dated_us) const {
  const int64_t own_us = clock_.own_us(reactor_);
  // No repair that this node has been asked for begins later than its own time.
  const int64_t oldest_us = own_us - slack_.clock_skew_us - slack_.longest_deadline_us;
  if (dated_us != 0 && dated_us < oldest_us && !TETRAD_MUTANT(redate_skipped))
    return fail(ErrorCode::kRedate, "what it deletes is dated {} ms ago",
                (own_us - dated_us) / 1000);
  if (!server_timestamp_us || TETRAD_MUTANT(server_stamp_any)) return {};
  const int64_t low_us = own_us - clock_.skew_max_us() - slack_.longest_deadline_us;
  // A coordinator may be ahead by the bound, and has stamped above a mark that is within its own.
  const int64_t high_us = own_us + 2 * clock_.skew_max_us();
  if (*server_timestamp_us >= low_us && *server_timestamp_us <= high_us) return {};
  return fail(ErrorCode::kClockOff, "its timestamp is {} ms ahead of this node's time",
              (*server_timestamp_us - own_us) / 1000);
}

void ReplicaService::read(uint32_t store, SetEpoch epoch, storage::ReadCommand command,
                          base::Deadline deadline, ReadCallback done) {
  if (store >= stores_.size() || stores_[store] == nullptr) {
    done(fail(ErrorCode::kNotFound, "store {} is not of this shard", store));
    return;
  }
  const MetaSnapshot state = meta_.snapshot();
  const auto [now, tablet, table] = place_of_read(*state, command, epoch);
  if (now == MapStanding::kAhead && reactor_.now_us() < deadline.at_us &&
      waiting_.size() < options_.waiting_max) {
    wait(deadline, [this, store, epoch, command = std::move(command), deadline,
                    done = std::move(done)]() mutable {
      read(store, epoch, std::move(command), deadline, std::move(done));
    });
    return;
  }
  if (now == MapStanding::kAhead) {
    done(fail(ErrorCode::kBehind, "this node has not heard of the table yet"));
    return;
  }
  if (now != MapStanding::kCurrent) {
    metrics_.refused_stale.add();
    done(std::unexpected(refusal(now)));
    return;
  }
  if (is_behind(store, command)) return done(std::unexpected(BehindStores::refusal()));
  TETRAD_ASSERT((tablet == nullptr) == (table == nullptr));
  TETRAD_ASSERT(fences_[store] != nullptr);
  metrics_.reads.add();
  if (TETRAD_MUTANT(replica_takes_own_now)) command.now_s = reactor_.wall_time_us() / 1'000'000;
  if (tablet != nullptr) {
    done = fences_[store]->heat().note_read(*table, *tablet, command, reactor_.now_us(),
                                            std::move(done));
    done = timed_read(command, std::move(done));
  }
  stores_[store]->read(std::move(command), deadline, std::move(done));
}

}  // namespace tetrad::replication
