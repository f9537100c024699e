// SPDX-License-Identifier: Apache-2.0
// Increments of counters: each goes to one live member of its tablet. What was sent to a leader is
//
//   1. Plan: tablet, epoch, enough live members for the level, and the members of the old set that
//      may lead, those of this data centre first.
//   2. Ask the best one. Its answer is final: applied, or unknown (WriteTimeout of type COUNTER).
//   3. Only a refusal that says "nothing was done" lets another one be asked, or the same one with
//      a newer map.
//
// An increment is not idempotent: nothing is sent twice that may have been applied (rule 25).
// spent: another one is asked only after the first has said that it did nothing.
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "partitioner/split_policy.h"
#include "replication/consistency.h"
#include "replication/coordinator/coordinator_impl.h"
#include "replication/coordinator/last_catch.h"
#include "replication/coordinator/replica_sets.h"

namespace tetrad::replication {

/// Where an increment may go.
struct CoordinatorImpl::IncrementTry {
  SetEpoch epoch;
  std::vector<StoreAddress> leaders;  // the best first
  int required = 1;
};

namespace {

// When all have refused.
constexpr int64_t kRefusedPauseUs = 20'000;

// The true mutation is made by the leader; this one adds data, which is all that the checks look
// at.
/// What the leader's mutation will be like, for checks of room.
storage::Mutation likeness_of(const CounterIncrement& increment) {
  storage::Mutation out;
  out.incarnation = increment.incarnation;
  out.position = increment.position;
  storage::RowRecord record;
  storage::Cell& cell = record.cells.emplace_back();
  cell.column_id = 1;
  cell.timestamp_us = 0;
  storage::encode_row_record(record, out.header);
  return out;
}

/// Whether who answers so has done nothing and will do nothing, as another might.
// Everything else counts as unknown.
bool may_ask_another(const Error& error) {
  switch (error.code) {
    case ErrorCode::kBehind:
    case ErrorCode::kReplicaBehind:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnavailable:  // never sent: nobody knows where it is
    case ErrorCode::kClockOff:
      return true;
    default:
      return false;
  }
}

Error unknown_outcome(ConsistencyLevel level, int acks, int required) {
  base::TimeoutDetail detail{level, acks, required};
  detail.write_type = base::WriteType::kCounter;
  return Error(ErrorCode::kWriteTimeout,
               fmt::format("Operation timed out - received only {} responses.", acks), detail);
}

}  // namespace

Result<CoordinatorImpl::IncrementTry> CoordinatorImpl::plan_increment(
    const CounterIncrement& increment, const WriteOptions& options) const {
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* const table = state->table(increment.incarnation);
  if (table == nullptr) return fail(ErrorCode::kStaleSchema, kTableGone);
  const partitioner::Tablet& tablet = table->tablets.find(increment.position);
  if (tablet.full || partitioner::is_set_apart(tablet))
    TETRAD_TRY_VOID(check_room(*state, tablet, likeness_of(increment), options));
  if (!meta_.filling_disks().empty()) {
    const storage::Mutation likeness = likeness_of(increment);
    TETRAD_TRY_VOID(check_disks(*state, {&likeness, 1}));
  }
  const WriteSets sets = write_sets(tablet);
  IncrementTry out;
  out.epoch = tablet.epoch;
  // While members change both sets must have enough, as for a write.
  for (const auto* set : {&sets.old_set, &sets.new_set}) {
    if (set->empty()) continue;
    const Need needed = levels(*state).writing(options.level, *set);
    TETRAD_TRY_VOID(check_enough(*set, options.level, needed));
    out.required = std::max(out.required, needed.least());
  }
  // Only members of the old set have all totals that were counted under their names.
  out.leaders = live_members(sets.old_set);
  std::ranges::stable_partition(out.leaders, [near = levels(*state)](const StoreAddress& leader) {
    return near.is_near(leader.host);
  });
  // What a leader has counted so far it reads from its store: a damaged one may lack it.
  std::erase_if(out.leaders, [this](const StoreAddress& leader) {
    return meta_.state_of(leader) == storage::StoreState::kDamaged;
  });
  return out;
}

// A coordinator's own store is asked by a call.
Task<Result<CounterAnswer>> CoordinatorImpl::ask_leader(TracePtr trace, StoreAddress leader,
                                                        CounterRequest request,
                                                        base::Deadline deadline) {
  if (replicas_.is_local(leader)) {
    base::OneShot<Result<CounterAnswer>> answered;
    counters_.increment(leader.store, std::move(request), deadline,
                        [setter = answered.setter()](Result<CounterAnswer> answer) {
                          setter.set(std::move(answer));
                        });
    auto answer = co_await answered;
    co_return answer;
  }
  base::OneShot<Result<Bytes>> replied;
  call_replica(trace, leader, Verb::kCounterApply, encode_counter_request(request), deadline,
               [setter = replied.setter()](Result<Bytes> reply) { setter.set(std::move(reply)); });
  Result<Bytes> reply = co_await replied;
  if (!reply) co_return std::unexpected(std::move(reply.error()));
  auto answer = decode_counter_answer(*reply);
  // Who has answered what does not decode may have applied it.
  if (!answer) co_return CounterAnswer{false, 0, 1};
  co_return *answer;
}

Task<Result<void>> CoordinatorImpl::increment_one(CounterIncrement increment,
                                                  WriteOptions options) {
  const TableLatencies::Scope timed(replicas_.latencies(), TableFigure::kCoordinatorWrite,
                                    increment.incarnation);
  std::vector<StoreAddress> refused;  // who has said in this round that it does nothing
  while (true) {
    const uint64_t seen = meta_.snapshot()->applied.value;
    TETRAD_CO_TRY(IncrementTry plan, plan_increment(increment, options));
    ask_last_who_is_behind(plan.leaders);
    std::erase_if(plan.leaders, [&](const StoreAddress& leader) {
      return std::ranges::find(refused, leader) != refused.end();
    });
    // All have refused: begin anew after a pause, until the deadline.
    if (plan.leaders.empty()) {
      refused.clear();
      if (reactor_.now_us() + kRefusedPauseUs >= options.deadline.at_us)
        co_return fail(ErrorCode::kOverloaded, "no replica leads the counter now; try again");
      co_await base::sleep_for(reactor_, kRefusedPauseUs);
      continue;
    }
    const StoreAddress leader = plan.leaders.front();
    if (options.trace != nullptr) options.trace->add(asking_text("COUNTER_MUTATION", leader));
    CounterRequest request{plan.epoch, options.level, increment};
    Result<CounterAnswer> answer =
        co_await ask_leader(options.trace, leader, std::move(request), options.deadline);
    if (answer && answer->is_applied) {
      if (options.trace != nullptr) options.trace->add("Written");
      co_return Result<void>();
    }
    if (answer)
      co_return std::unexpected(
          unknown_outcome(options.level, answer->acks, std::max(answer->required, plan.required)));
    const Error& error = answer.error();
    if (error.code == ErrorCode::kReplicaBehind) note_behind(leader);
    if (may_ask_another(error) ||
        (error.code == ErrorCode::kTimedOut && TETRAD_MUTANT(counter_second_leader))) {
      refused.push_back(leader);
    } else if (error.code == ErrorCode::kStaleEpoch) {
      if (reactor_.now_us() >= options.deadline.at_us)
        co_return fail(ErrorCode::kOverloaded, "replicas of the counter move; try again");
      if (meta_.snapshot()->applied.value == seen) co_await base::sleep_for(reactor_, kNewMapUs);
    } else if (error.code == ErrorCode::kStaleSchema) {
      co_return fail(ErrorCode::kStaleSchema, kTableGone);
    } else if (error.code == ErrorCode::kOverloaded) {
      // The leader refused before it counted.
      co_return fail(ErrorCode::kOverloaded, "{}", error.message);
    } else {
      co_return std::unexpected(unknown_outcome(options.level, 0, plan.required));
    }
  }
}

Task<void> CoordinatorImpl::increment_into(CoordinatorImpl* self, CounterIncrement increment,
                                           WriteOptions options,
                                           std::move_only_function<void(Result<void>)> done) {
  Result<void> result;
  try {
    Result<void> one = co_await self->increment_one(std::move(increment), options);
    result = std::move(one);
  } catch (const std::exception& error) {
    // It may have been sent.
    auto inside = failed_inside(error, self->logger_);
    self->logger_.error("an increment is unknown error={}", inside.error().message);
    result = std::unexpected(unknown_outcome(options.level, 0, 1));
  }
  done(std::move(result));
}

Task<Result<void>> CoordinatorImpl::increment(std::vector<CounterIncrement> increments,
                                              WriteOptions options) {
  TETRAD_CO_TRY_VOID(check_write_level(options.level));
  if (!check_clock()) {
    Result<void> settled = co_await clock_settled(options.deadline);
    TETRAD_CO_TRY_VOID(std::move(settled));
  }
  for (const CounterIncrement& increment : increments) {
    if (increment.size_bytes() > options_.mutation_bytes_max)
      co_return fail(ErrorCode::kInvalid,
                     "Mutation of {} bytes is too large for the maximum size of {}",
                     increment.size_bytes(), options_.mutation_bytes_max);
  }
  if (increments.size() == 1) {
    auto only = co_await increment_one(std::move(increments.front()), options);
    co_return only;
  }
  // Statements of a batch: that many at once.
  constexpr size_t kAtOnce = 64;
  struct Window {
    size_t left = 1;
    bool any_applied = false;
    std::optional<Error> unknown, refused;
    base::OneShot<bool> done;
    void take(Result<void> result) {
      any_applied |= result.has_value();
      if (!result) {
        auto& kept = result.error().code == ErrorCode::kWriteTimeout ? unknown : refused;
        if (!kept) kept = std::move(result.error());
      }
      finish_one();
    }
    void finish_one() {
      TETRAD_ASSERT(left != 0);
      if (--left == 0) done.setter().set(true);
    }
  };
  bool any_applied = false;
  for (size_t first = 0; first < increments.size(); first += kAtOnce) {
    const auto window = std::make_shared<Window>();
    const size_t end = std::min(increments.size(), first + kAtOnce);
    for (size_t i = first; i < end; ++i) {
      ++window->left;
      tasks_.spawn(increment_into(this, std::move(increments[i]), options,
                                  [window](Result<void> one) { window->take(std::move(one)); }));
    }
    window->finish_one();
    co_await window->done;
    any_applied |= window->any_applied;
    // Worst first: one that is unknown makes the whole statement unknown.
    if (window->unknown) co_return std::unexpected(std::move(*window->unknown));
    // Some of them are applied: a client that hears of a refusal would send all of them again.
    if (window->refused && any_applied)
      co_return std::unexpected(unknown_outcome(options.level, 0, 1));
    if (window->refused) co_return std::unexpected(std::move(*window->refused));
  }
  co_return Result<void>();
}

}  // namespace tetrad::replication
