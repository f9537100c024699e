// SPDX-License-Identifier: Apache-2.0
// A member's answers to Paxos messages.
//
//   1. A message waits until this node's map has its epoch (when_in_map), then for the turn of its
//      partition (paxos_keys.h); both end at its deadline.
//   2. In its turn it is looked at once more: the map may have changed while it waited.
//   3. The acceptor (acceptor.h) changes a copy of the registers; the copy is written with a pass
//      of the fence, for a commit together with the rows.
//
// Every ballot that a member answers for is synced before the answer leaves (rule 21); a refusal
// writes nothing and waits for nothing. A message that fails in its turn leaves the registers as
// they were. The time of ballots feeds this node's clock, within its bound.
//   4. The turn goes on when the write is seen, the answer leaves when it is on the disk.
#include "replication/paxos/paxos_service.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/paxos/acceptor.h"
#include "replication/replica/place.h"

namespace tetrad::replication {

using storage::Ballot;
using storage::PartitionName;
using storage::PaxosRegisters;
using storage::RegistersWrite;

namespace {

// Messages that wait for the map, of all partitions of the shard.
constexpr size_t kWaitingMax = 10'000;           // beyond it: refused, the sender tries again
constexpr int64_t kWaitingLookEveryUs = 20'000;  // for deadlines
constexpr Verb kVerbs[] = {Verb::kPaxosPrepare, Verb::kPaxosAccept, Verb::kPaxosCommit,
                           Verb::kPaxosSettled, Verb::kPaxosFollowed};

PartitionName partition_of(const storage::ReadCommand& command) {
  return {command.incarnation, command.position, command.partition_key};
}

PartitionName partition_of(const ProposeRequest& request) {
  return {request.incarnation, request.position, request.partition_key};
}

/// The rows of a commit.
Result<storage::Mutation> mutation_of(const ProposeRequest& request) {
  TETRAD_TRY(storage::Mutation mutation, storage::decode_mutation(request.proposal.value));
  if (mutation.incarnation != request.incarnation || mutation.position != request.position ||
      mutation.partition_key != request.partition_key)
    return fail(ErrorCode::kCorruption, "a commit whose rows are of another partition");
  return mutation;
}

/// Yes, or why not.
// A vote is only a vote once it is on the disk.
PaxosKeys::SyncedCallback vote_when_synced(PaxosService::VoteCallback done) {
  return [done = std::move(done)](Result<void> synced) mutable {
    if (!synced) return done(std::unexpected(std::move(synced.error())));
    done(PaxosVote{true, {}});
  };
}

}  // namespace

void PaxosMetrics::register_in(base::MetricsRegistry& registry, const std::string& labels) const {
  const auto counter = [&](const char* name, const char* help, const base::Counter& value) {
    registry.add(fmt::format("tetrad_replication_paxos_{}_total", name), help, labels, value);
  };
  counter("promises", "Ballots of conditional statements promised as a replica.", promises);
  counter("accepts", "Proposals of conditional statements accepted as a replica.", accepts);
  counter("commits", "Decided conditional statements written as a replica.", commits);
  counter("refused", "Ballots refused as a replica because a later one was known.", refused);
}

PaxosService::PaxosService(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                           HybridClock& clock, HorizonSlack slack,
                           std::vector<storage::Store*> stores, const Fences& fences,
                           StoreCleanup& cleanup, ChangeLogs& changes, BehindStores& behind,
                           ReplicaService& replicas, PaxosKeys& keys)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      clock_(clock),
      slack_(slack),
      stores_(std::move(stores)),
      fences_(fences),
      cleanup_(cleanup),
      changes_(changes),
      behind_(behind),
      replicas_(replicas),
      keys_(keys) {
  register_verbs();
  subscription_ = meta_.subscribe([this](const MetaSnapshot& before, const MetaSnapshot& now) {
    if (before != now) run_waiting();
  });
}

PaxosService::~PaxosService() {
  for (const Verb verb : kVerbs) rpc_.handle(verb, nullptr);
  reactor_.cancel(timer_);
}

void PaxosService::register_verbs() {
  rpc_.handle(Verb::kPaxosPrepare,
              [this](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
                auto request = decode_prepare(body);
                if (!request) return reply.error(request.error());
                prepare(context.store, std::move(*request), context.deadline,
                        [reply = std::move(reply)](Result<PrepareAnswer> answer) mutable {
                          if (!answer) return reply.error(answer.error());
                          reply.ok(encode_prepare_answer(*answer));
                        });
              });
  const auto votes_by =
      [this](void (PaxosService::*take)(uint32_t, ProposeRequest, base::Deadline, VoteCallback)) {
        return [this, take](const RpcContext& context, BytesView body, RpcNode::Reply reply) {
          auto request = decode_propose(body);
          if (!request) return reply.error(request.error());
          (this->*take)(context.store, std::move(*request), context.deadline,
                        [reply = std::move(reply)](Result<PaxosVote> vote) mutable {
                          if (!vote) return reply.error(vote.error());
                          reply.ok(encode_vote(*vote));
                        });
        };
      };
  rpc_.handle(Verb::kPaxosAccept, votes_by(&PaxosService::accept));
  rpc_.handle(Verb::kPaxosCommit, votes_by(&PaxosService::commit));
  rpc_.handle(Verb::kPaxosFollowed,
              [this](const RpcContext&, BytesView body, RpcNode::Reply reply) {
                const auto asked = decode_followed_request(body);
                if (!asked) return reply.error(asked.error());
                reply.ok(encode_followed_answer(followed_.before(asked->first, asked->second)));
              });
  rpc_.handle(Verb::kPaxosSettled, [this](const RpcContext& context, BytesView body,
                                          const RpcNode::Reply&) {
    auto request = decode_propose(body);
    // How long a settle may wait for its turn: it is only housekeeping.
    constexpr int64_t kSettleUs = 1'000'000;
    if (request)
      settle(context.store, std::move(*request), base::Deadline{reactor_.now_us() + kSettleUs});
  });
}

// Asked when a message comes and again in its turn. kBehind waits for a newer map; all else is the
// sender's to solve.
std::optional<Error> PaxosService::refusal(uint32_t store, TableIncarnation incarnation,
                                           RingPosition position, SetEpoch epoch, Asks asks) {
  if (store >= stores_.size() || stores_[store] == nullptr)
    return Error(ErrorCode::kNotFound, fmt::format("store {} is not of this shard", store));
  const MetaSnapshot state = meta_.snapshot();
  const Place place = place_of(*state, incarnation, position, epoch);
  switch (place.standing) {
    case MapStanding::kCurrent:
      break;
    case MapStanding::kAhead:
      return Error(ErrorCode::kBehind, "this node has not heard of the table yet");
    case MapStanding::kStaleEpoch:
      return Error(ErrorCode::kStaleEpoch, "the replica set has changed");
    case MapStanding::kStaleSchema:
      return Error(ErrorCode::kStaleSchema, "the table was dropped or truncated");
  }
  if (place.tablet == nullptr || place.table == nullptr)
    return Error(ErrorCode::kStaleSchema, "the table was dropped or truncated");
  // While members change a store may hold remains of an earlier stay (rule 11).
  if (place.tablet->stage != partitioner::TabletStage::kNormal &&
      !cleanup_.may_take(incarnation, *place.tablet, store))
    return Error(ErrorCode::kBehind, "what an earlier stay has left is being erased");
  if (place.table->change_log.has_value() && !changes_.may_take(*place.table, store))
    return Error(ErrorCode::kBehind, "the change log is being opened");
  // A commit is a write: a store that is behind takes it, as soon as it knows what it lacks. A vote
  // needs all rows and registers that were promised before (rule 20).
  if (asks == Asks::kWrite) {
    if (behind_.any() && behind_.writes_wait(store, *place.tablet))
      return Error(ErrorCode::kBehind, "what a power cut took is not known yet");
  } else if (behind_.is_behind(store, incarnation, position) && !TETRAD_MUTANT(behind_reads)) {
    return BehindStores::refusal();
  }
  return std::nullopt;
}

void PaxosService::when_in_map(uint32_t store, TableIncarnation incarnation, RingPosition position,
                               SetEpoch epoch, Asks asks, base::Deadline deadline,
                               std::move_only_function<void(Result<void>)> go) {
  std::optional<Error> refused = refusal(store, incarnation, position, epoch, asks);
  if (!refused) return go({});
  const bool waits = refused->code == ErrorCode::kBehind && reactor_.now_us() < deadline.at_us &&
                     waiting_.size() < kWaitingMax;
  if (!waits) return go(std::unexpected(std::move(*refused)));
  // Each of them comes again with the whole question: the map may have moved on by more than one
  // epoch.
  waiting_.push_back(
      {deadline.at_us,
       [this, store, incarnation, position, epoch, asks, deadline, go = std::move(go)]() mutable {
         when_in_map(store, incarnation, position, epoch, asks, deadline, std::move(go));
       }});
  if (timer_ != 0) return;
  timer_ = reactor_.call_at(reactor_.now_us() + kWaitingLookEveryUs, [this] {
    timer_ = 0;
    run_waiting();
  });
}

void PaxosService::run_waiting() {
  std::deque<Waiting> due;
  due.swap(waiting_);  // those that must go on waiting queue again
  for (Waiting& item : due) item.retry();
}

/// The guard of a message that is let in; refusal() has said so in this turn. Its pass is of the
/// current snapshot: a confirmation of a newer epoch waits for this write, or makes it void (rule
/// 8).
storage::WriteGuard PaxosService::guard_of(uint32_t store, TableIncarnation incarnation,
                                           RingPosition position, base::Deadline deadline) {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* const table = state->table(incarnation);
  TETRAD_ASSERT(table != nullptr);
  TETRAD_ASSERT(fences_[store] != nullptr);
  return {fences_[store]->enter(state, *table, table->tablets.find(position)), deadline.at_us};
}

// The purge horizon as the floor of ballots: rows below it may have been purged without their
// tombstones, so a value from before it must not be decided any more.
PaxosFloor PaxosService::floor_of(TableIncarnation incarnation, RingPosition position) const {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* const table = state->table(incarnation);
  if (table == nullptr || TETRAD_MUTANT(lwt_floor_off)) return storage::kNoTimestamp;
  return paxos_floor_us(table->tablets.find(position), slack_);
}

/// A coordinator whose clock is far ahead would bar the partition to everybody else. That a
/// client's timestamp is ahead is not its fault: this replica need not have seen it yet.
Result<void> PaxosService::check_clock(const Ballot& ballot) const {
  const int64_t own_us = clock_.own_us(reactor_);
  const int64_t made_us = ballot.made_us();
  if (made_us <= own_us || made_us - own_us <= 2 * clock_.skew_max_us()) return {};
  return fail(ErrorCode::kClockOff, "its ballot is {} ms ahead of this node's time",
              (made_us - own_us) / 1000);
}

void PaxosService::prepare(uint32_t store, PrepareRequest request, base::Deadline deadline,
                           PrepareCallback done) {
  const storage::ReadCommand& of = request.command;
  const auto [incarnation, position, epoch] =
      std::tuple(of.incarnation, of.position, request.epoch);
  // Before it is refused or promised: this node's later stamps are above it in either case, if it
  // is within the bound.
  clock_.observe(request.ballot.made_us(), reactor_);
  if (TETRAD_MUTANT(lwt_rows_before_promise) && request.rows == PaxosRows::kData)
    return prepare_after_reading(store, std::move(request), deadline, std::move(done));
  when_in_map(store, incarnation, position, epoch, Asks::kVote, deadline,
              [this, store, deadline, request = std::move(request),
               done = std::move(done)](Result<void> in_map) mutable {
                if (!in_map) return done(std::unexpected(std::move(in_map.error())));
                // Shared: enter() gets a view of the key, and the callback that owns it.
                auto shared = std::make_shared<PrepareRequest>(std::move(request));
                keys_.enter(store, partition_of(shared->command), deadline,
                            [this, alive = std::weak_ptr<char>(alive_), store, deadline, shared,
                             done = std::move(done)](Result<PaxosKeys::Turn> turn) mutable {
                              if (!turn) return done(std::unexpected(std::move(turn.error())));
                              if (alive.expired()) return;
                              promise_in_turn(store, std::move(*shared), deadline, std::move(*turn),
                                              std::move(done));
                            });
              });
}

/// A known mistake: what is answered was read before the promise.
void PaxosService::prepare_after_reading(uint32_t store, PrepareRequest request,
                                         base::Deadline deadline, PrepareCallback done) {
  storage::ReadCommand command = request.command;
  const SetEpoch epoch = request.epoch;
  replicas_.read(store, epoch, std::move(command), deadline,
                 [this, store, deadline, request = std::move(request),
                  done = std::move(done)](Result<storage::ReadResult> rows) mutable {
                   if (!rows) return done(std::unexpected(std::move(rows.error())));
                   request.rows = PaxosRows::kNone;
                   prepare(store, std::move(request), deadline,
                           [rows = std::move(*rows),
                            done = std::move(done)](Result<PrepareAnswer> answer) mutable {
                             if (answer && answer->promised) {
                               answer->rows = PaxosRows::kData;
                               answer->data = std::move(rows);
                             }
                             done(std::move(answer));
                           });
                 });
}

void PaxosService::promise_in_turn(uint32_t store, PrepareRequest request, base::Deadline deadline,
                                   PaxosKeys::Turn turn, PrepareCallback done) {
  const auto [incarnation, position, key] = partition_of(request.command);
  if (auto refused = refusal(store, incarnation, position, request.epoch, Asks::kVote))
    return done(std::unexpected(std::move(*refused)));
  PaxosRegisters changed = turn.registers();
  PrepareAnswer answer;
  answer.floor_us = floor_of(incarnation, position);
  answer.last = last_of(changed, answer.floor_us);
  if (auto fits = check_clock(request.ballot); !fits)
    return done(std::unexpected(std::move(fits.error())));
  // Refused without a write: nothing changed, and the later ballot that is in the way is on its way
  // to the disk or there.
  if (!promise(changed, request.ballot, answer.floor_us)) {
    metrics_.refused.add();
    return done(std::move(answer));
  }
  answer.promised = true;
  // As they were before the promise: the coordinator judges what earlier statements left.
  answer.registers = turn.registers();
  // With the promise, so that the coordinator can choose a timestamp above all that this store has.
  answer.mark_us = stores_[store]->high_water_timestamp(incarnation, position);
  // Memory is ahead of the write that is handed over now; if it fails, they are read anew
  // (Turn::forget).
  turn.registers() = changed;
  metrics_.promises.add();
  storage::WriteGuard guard = guard_of(store, incarnation, position, deadline);
  const RegistersWrite write{turn.partition(), changed, nullptr,
                             !TETRAD_MUTANT(lwt_promise_unsynced)};
  // Rows that are newer than the registers do no harm.
  write_in_turn(store, write, std::move(guard), std::move(turn), nullptr,
                [this, store, request = std::move(request), deadline, answer = std::move(answer),
                 done = std::move(done)](Result<void> synced) mutable {
                  if (!synced) return done(std::unexpected(std::move(synced.error())));
                  read_rows(store, std::move(request), deadline, std::move(answer),
                            std::move(done));
                });
}

/// The turn is over when the write is seen: who comes next answers after it, since a sync covers
/// what was written before. `done` runs when it is on the disk, if the write is to be.
// `written` runs before `done` or not at all.
void PaxosService::write_in_turn(uint32_t store, const RegistersWrite& write,
                                 storage::WriteGuard guard, PaxosKeys::Turn turn,
                                 base::Callback passed_on, PaxosKeys::SyncedCallback done) {
  struct Writing {
    PaxosKeys::Turn turn;
    std::optional<PaxosKeys::Unsynced> unsynced;
  };
  const auto writing = std::make_shared<Writing>(std::move(turn));
  const std::weak_ptr<char> alive = alive_;
  auto written = [alive, writing, passed_on = std::move(passed_on)]() mutable {
    if (alive.expired()) return;
    TETRAD_ASSERT(!writing->unsynced);
    writing->unsynced.emplace(writing->turn.pass_on());
    if (passed_on != nullptr) passed_on();
  };
  stores_[store]->write_registers(
      write, std::move(guard), std::move(written),
      [alive, writing, done = std::move(done)](Result<void> synced) mutable {
        if (alive.expired()) return;
        if (writing->unsynced) {
          writing->unsynced->end(synced);
        } else {
          // The write failed, or was never seen: what memory has may differ from the disk.
          if (!synced) writing->turn.forget();
          writing->turn.end();
        }
        done(std::move(synced));
      });
}

/// After the promise: what the registers tell of is in the rows then.
void PaxosService::read_rows(uint32_t store, PrepareRequest request, base::Deadline deadline,
                             PrepareAnswer answer, PrepareCallback done) {
  // A member that is only being filled has a vote, but its rows are not asked for.
  if (request.rows == PaxosRows::kNone) return done(std::move(answer));
  const PaxosRows as = request.rows;
  replicas_.read(store, request.epoch, std::move(request.command), deadline,
                 [as, answer = std::move(answer),
                  done = std::move(done)](Result<storage::ReadResult> rows) mutable {
                   if (!rows) return done(std::unexpected(std::move(rows.error())));
                   answer.rows = as;
                   if (as == PaxosRows::kDigest) {
                     answer.digest = digest_reply_of(*rows);
                   } else {
                     answer.data = std::move(*rows);
                   }
                   done(std::move(answer));
                 });
}

void PaxosService::accept(uint32_t store, ProposeRequest request, base::Deadline deadline,
                          VoteCallback done) {
  auto shared = std::make_shared<ProposeRequest>(std::move(request));
  when_in_map(store, shared->incarnation, shared->position, shared->epoch, Asks::kVote, deadline,
              [this, store, deadline, shared, done = std::move(done)](Result<void> in_map) mutable {
                if (!in_map) return done(std::unexpected(std::move(in_map.error())));
                keys_.enter(store, partition_of(*shared), deadline,
                            [this, alive = std::weak_ptr<char>(alive_), store, deadline, shared,
                             done = std::move(done)](Result<PaxosKeys::Turn> turn) mutable {
                              if (!turn) return done(std::unexpected(std::move(turn.error())));
                              if (alive.expired()) return;
                              accept_in_turn(store, *shared, deadline, std::move(*turn),
                                             std::move(done));
                            });
              });
}

void PaxosService::accept_in_turn(uint32_t store, const ProposeRequest& request,
                                  base::Deadline deadline, PaxosKeys::Turn turn,
                                  VoteCallback done) {
  if (auto refused =
          refusal(store, request.incarnation, request.position, request.epoch, Asks::kVote))
    return done(std::unexpected(std::move(*refused)));
  const PaxosFloor floor_us = floor_of(request.incarnation, request.position);
  PaxosRegisters changed = turn.registers();
  if (!replication::accept(changed, request.proposal, floor_us)) {
    metrics_.refused.add();
    return done(PaxosVote{false, last_of(changed, floor_us)});
  }
  // Accepted is what may be decided: the value itself is in the registers, so that any later
  // coordinator can complete it.
  metrics_.accepts.add();
  followed_.note(request.proposal);
  turn.registers() = changed;
  storage::WriteGuard guard = guard_of(store, request.incarnation, request.position, deadline);
  const RegistersWrite write{turn.partition(), changed, nullptr,
                             !TETRAD_MUTANT(lwt_accept_unsynced)};
  write_in_turn(store, write, std::move(guard), std::move(turn), nullptr,
                vote_when_synced(std::move(done)));
}

void PaxosService::commit(uint32_t store, ProposeRequest request, base::Deadline deadline,
                          VoteCallback done) {
  auto shared = std::make_shared<ProposeRequest>(std::move(request));
  when_in_map(store, shared->incarnation, shared->position, shared->epoch, Asks::kWrite, deadline,
              [this, store, deadline, shared, done = std::move(done)](Result<void> in_map) mutable {
                if (!in_map) return done(std::unexpected(std::move(in_map.error())));
                keys_.enter(store, partition_of(*shared), deadline,
                            [this, alive = std::weak_ptr<char>(alive_), store, deadline, shared,
                             done = std::move(done)](Result<PaxosKeys::Turn> turn) mutable {
                              if (!turn) return done(std::unexpected(std::move(turn.error())));
                              if (alive.expired()) return;
                              commit_in_turn(store, *shared, deadline, std::move(*turn),
                                             std::move(done));
                            });
              });
}

/// The rows are written always: one that was committed later does not have them.
void PaxosService::commit_in_turn(uint32_t store, const ProposeRequest& request,
                                  base::Deadline deadline, PaxosKeys::Turn turn,
                                  VoteCallback done) {
  if (auto refused =
          refusal(store, request.incarnation, request.position, request.epoch, Asks::kWrite))
    return done(std::unexpected(std::move(*refused)));
  // A late commit from before the horizon could bring back rows whose tombstones are purged (rule
  // 18).
  if (!is_above_floor(request.proposal.origin, floor_of(request.incarnation, request.position)))
    return done(fail(ErrorCode::kInvalid, "a commit from before the purge horizon"));
  PaxosRegisters changed = turn.registers();
  const bool is_newest = replication::commit(changed, request.proposal);
  if (!is_newest && TETRAD_MUTANT(lwt_late_commit_ignored)) return done(PaxosVote{true, {}});
  write_commit(store, request, changed, deadline, std::move(turn), nullptr, std::move(done));
}

void PaxosService::write_commit(uint32_t store, const ProposeRequest& request,
                                const PaxosRegisters& changed, base::Deadline deadline,
                                PaxosKeys::Turn turn, base::Callback passed_on, VoteCallback done) {
  const Result<storage::Mutation> mutation = mutation_of(request);
  if (!mutation) return done(std::unexpected(mutation.error()));
  // Rows and registers are one batch: either is never on the disk without the other.
  storage::WriteGuard guard = guard_of(store, request.incarnation, request.position, deadline);
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* const table = state->table(request.incarnation);
  fences_[store]->heat().note_write(*table, table->tablets.find(request.position), *mutation,
                                    reactor_.now_us());
  // Noted before the write, as a plain write's rows are.
  if (table->change_log.has_value()) {
    if (Result<void> noted = changes_.note(*table, store, *mutation, guard); !noted)
      return done(std::unexpected(std::move(noted.error())));
  }
  metrics_.commits.add();
  followed_.note(request.proposal);
  turn.registers() = changed;
  const RegistersWrite write{turn.partition(), changed, &*mutation,
                             !TETRAD_MUTANT(lwt_commit_unsynced)};
  write_in_turn(store, write, std::move(guard), std::move(turn), std::move(passed_on),
                timed_commit(request.incarnation, vote_when_synced(std::move(done))));
}

PaxosKeys::SyncedCallback PaxosService::timed_commit(TableIncarnation table,
                                                     PaxosKeys::SyncedCallback done) {
  TableLatencies& latencies = replicas_.latencies();
  const TableLatencies::Timing timing = latencies.begin(TableFigure::kLocalWrite, table);
  if (!timing.is_timed()) return done;
  return [this, alive = std::weak_ptr<char>(alive_), timing,
          done = std::move(done)](Result<void> synced) mutable {
    if (!alive.expired()) replicas_.latencies().end(timing);
    done(std::move(synced));
  };
}

// For the coordinator on this shard whose store is the only member: one turn covers read, decision
// and write, so no promise is needed.
void PaxosService::enter_alone(uint32_t store, const storage::ReadCommand& of, SetEpoch epoch,
                               base::Deadline deadline, AloneCallback done) {
  const auto [incarnation, position, key] = partition_of(of);
  when_in_map(store, incarnation, position, epoch, Asks::kVote, deadline,
              [this, store, incarnation, position, epoch, deadline, key = Bytes(key),
               done = std::move(done)](Result<void> in_map) mutable {
                if (!in_map) return done(std::unexpected(std::move(in_map.error())));
                keys_.enter(
                    store, {incarnation, position, key}, deadline,
                    [this, alive = std::weak_ptr<char>(alive_), store, incarnation, position, epoch,
                     done = std::move(done)](Result<PaxosKeys::Turn> turn) mutable {
                      if (!turn) return done(std::unexpected(std::move(turn.error())));
                      if (alive.expired()) return;
                      if (auto refused = refusal(store, incarnation, position, epoch, Asks::kVote))
                        return done(std::unexpected(std::move(*refused)));
                      const int64_t mark_us =
                          stores_[store]->high_water_timestamp(incarnation, position);
                      done(Alone{std::move(*turn), floor_of(incarnation, position), mark_us});
                    });
              });
}

// Accept, commit and settle in one write and one sync.
void PaxosService::decide_alone(uint32_t store, Alone alone, const ProposeRequest& request,
                                base::Deadline deadline, base::Callback passed_on,
                                VoteCallback done) {
  if (auto refused =
          refusal(store, request.incarnation, request.position, request.epoch, Asks::kVote))
    return done(std::unexpected(std::move(*refused)));
  const PaxosFloor floor_us = floor_of(request.incarnation, request.position);
  PaxosRegisters changed = alone.turn.registers();
  if (!replication::accept(changed, request.proposal, floor_us)) {
    metrics_.refused.add();
    return done(PaxosVote{false, last_of(changed, floor_us)});
  }
  replication::commit(changed, request.proposal);
  replication::settle(changed, request.proposal.origin);
  write_commit(store, request, changed, deadline, std::move(alone.turn), std::move(passed_on),
               std::move(done));
}

void PaxosService::close_alone(uint32_t store, Alone alone, const ProposeRequest& request,
                               base::Deadline deadline, VoteCallback done) {
  TETRAD_ASSERT(request.proposal.value.empty());
  accept_in_turn(store, request, deadline, std::move(alone.turn), std::move(done));
}

/// Nobody waits for it, and nothing is lost if it does not happen.
void PaxosService::settle(uint32_t store, ProposeRequest request, base::Deadline deadline) {
  if (refusal(store, request.incarnation, request.position, request.epoch, Asks::kWrite)) return;
  auto shared = std::make_shared<ProposeRequest>(std::move(request));
  keys_.enter(
      store, partition_of(*shared), deadline,
      [this, alive = std::weak_ptr<char>(alive_), store, deadline,
       shared](Result<PaxosKeys::Turn> turn) {
        if (!turn || alive.expired()) return;
        if (refusal(store, shared->incarnation, shared->position, shared->epoch, Asks::kWrite))
          return;
        PaxosRegisters changed = turn->registers();
        if (!replication::settle(changed, shared->proposal.origin)) return;
        if (TETRAD_MUTANT(lwt_ballots_pruned)) changed = {};
        turn->registers() = changed;
        storage::WriteGuard guard =
            guard_of(store, shared->incarnation, shared->position, deadline);
        // Unsynced: after a power cut the value is settled once more.
        const RegistersWrite write{turn->partition(), changed, nullptr, false};
        stores_[store]->write_registers(
            write, std::move(guard),
            [alive, turn = std::move(*turn)](Result<void> written) mutable {
              if (alive.expired()) return;
              if (!written) turn.forget();
              turn.end();
            });
      });
}

}  // namespace tetrad::replication
