// SPDX-License-Identifier: Apache-2.0
// Writes: attempts (write_attempt.cc) until one has ended for good. The steps of one write:
//   1. Is this node's clock in doubt (rule 28)? Then wait until it is settled, and stamp and date
//      anew what was stamped in doubt.
//   2. Raise the server's timestamp above the marks of this shard's own stores: that saves a second
//      round.
//   3. A logged batch whose entry on the holders is out of date is stored with its holders again
//      (rule 26).
//   4. to 6. An attempt.
//   7. A stale epoch, a date or a stamp that is off, or one of several tables was truncated: the same
//      mutations are sent again with what is newer. Merges are idempotent, so members that have them
//      already are not harmed.
//   8. Success, but a member has seen a mark that is not below the stamp: stamp above it and send
//      once more before the client is answered, else a later write could lose against an earlier
//      one.
//   9. Rows of views whose table has no copies on other nodes are waited for (awaited_views.h).
#include <algorithm>
#include <map>
#include <optional>

#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/consistency.h"
#include "replication/coordinator/restamp.h"
#include "replication/coordinator/write_again.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kRenewPauseUs = 20'000;

/// A replica refused the date of a deletion, or the stamp: it is further off than clocks may be.
bool is_for_time(ErrorCode code) {
  return code == ErrorCode::kClockOff || code == ErrorCode::kRedate;
}

/// The error of a write that is not tried again, as the client hears of it.
Result<void> in_clients_words(Result<void> result, const WriteOptions& options,
                              bool is_of_one_table) {
  const ErrorCode code = result.error().code;
  // One of several tables was dropped. The others may have their parts: what lists and the like got
  // there would be there twice if the client's statement began anew.
  if (code == ErrorCode::kStaleSchema && !is_of_one_table) {
    base::TimeoutDetail detail{options.level, 0, 1};
    detail.write_type = options.write_type;
    return std::unexpected(Error(ErrorCode::kWriteTimeout, kTableGone, detail));
  }
  // The deadline is over: the members may have it, so it is a timeout for the client.
  if (code == ErrorCode::kStaleEpoch) {
    base::TimeoutDetail detail{options.level, 0, 1};
    detail.write_type = options.write_type;
    return std::unexpected(
        Error(ErrorCode::kWriteTimeout, "Operation timed out while replicas moved.", detail));
  }
  return result;
}

bool are_of_one_table(const std::vector<storage::Mutation>& mutations) {
  return std::ranges::all_of(mutations, [&](const storage::Mutation& mutation) {
    return mutation.incarnation == mutations.front().incarnation;
  });
}

}  // namespace

bool CoordinatorImpl::is_far_ahead(int64_t timestamp_us) const {
  int64_t own_us = clock_.own_us(reactor_);
  // A machine that stood still may be behind what it has stamped until that is noticed; but what it
  // has stamped before its time was set right is no measure.
  if (last_timestamp_us_ - clock_.now_us(reactor_) <= clock_.skew_max_us())
    own_us = std::max(own_us, last_timestamp_us_);
  return timestamp_us > own_us + kMarkBoundsMax * clock_.skew_max_us();
}

std::optional<int64_t> CoordinatorImpl::timestamp_above(int64_t mark_us) {
  if (is_far_ahead(mark_us)) return std::nullopt;  // a client's
  metrics_.restamped.add();
  return std::max(mark_us + 1, next_timestamp_us());
}

Result<void> CoordinatorImpl::renew_times(std::vector<storage::Mutation>& mutations,
                                          WriteOptions& options, const Again& again) {
  if (again.redate && options.dated_us) {
    metrics_.redated.add();
    options.dated_us = now_us();
    for (storage::Mutation& mutation : mutations)
      TETRAD_TRY_VOID(redate(mutation, *options.dated_us / 1'000'000));
  }
  // A client's own timestamp is never changed; its deletions are dated by the node all the same.
  if (again.restamp && options.server_timestamp_us) {
    metrics_.restamped.add();
    const int64_t stamp_us = next_timestamp_us();
    for (storage::Mutation& mutation : mutations)
      TETRAD_TRY_VOID(restamp(mutation, *options.server_timestamp_us, stamp_us));
    options.server_timestamp_us = stamp_us;
  }
  return {};
}

Result<void> CoordinatorImpl::renew_doubtful_times(std::vector<storage::Mutation>& mutations,
                                                   WriteOptions& options, bool in_doubt) {
  if (TETRAD_MUTANT(doubtful_stamp_kept)) return {};
  Again again;
  again.redate = in_doubt;
  again.restamp = in_doubt || !replicas_.check_times(options.server_timestamp_us, 0);
  return renew_times(mutations, options, again);
}

/// What this shard's own stores have seen saves the others a second message.
Result<bool> CoordinatorImpl::restamp_above_own_marks(std::vector<storage::Mutation>& mutations,
                                                      std::optional<int64_t>& server_timestamp_us) {
  if (!server_timestamp_us || TETRAD_MUTANT(stale_stamp_acked)) return false;
  const MetaSnapshot state = meta_.snapshot();
  std::optional<int64_t> mark_us;
  // Only members on this shard are asked; the rest report their marks with their acks.
  for (const storage::Mutation& mutation : mutations) {
    const TableInfo* table = state->table(mutation.incarnation);
    if (table == nullptr) return false;
    for (const StoreAddress& replica : table->tablets.find(mutation.position).replicas) {
      if (!replicas_.is_local(replica)) continue;
      const auto mark = replicas_.mark_not_below(replica.store, mutation, *server_timestamp_us);
      if (mark) mark_us = std::max(mark_us.value_or(*mark), *mark);
    }
  }
  if (!mark_us) return false;
  // What is further ahead replicas would not take as the stamp of a coordinator.
  if (!clock_.is_within_bound(*mark_us, reactor_)) return true;
  const auto later_us = timestamp_above(*mark_us);
  if (!later_us) return true;
  for (storage::Mutation& mutation : mutations)
    TETRAD_TRY_VOID(restamp(mutation, *server_timestamp_us, *later_us));
  server_timestamp_us = later_us;
  return false;
}

// Before anything is sent, so that a mutation that is too large changes nothing anywhere. Pieces of a
// large image (`is_cut`) were sized by who cut them.
Result<void> CoordinatorImpl::check_sizes(const std::vector<storage::Mutation>& mutations,
                                          const WriteOptions& options) const {
  for (const storage::Mutation& mutation : mutations) {
    if (mutation.size_bytes() > options_.mutation_bytes_max && !options.is_cut) {
      return fail(ErrorCode::kInvalid,
                  "Mutation of {} bytes is too large for the maximum size of {}",
                  mutation.size_bytes(), options_.mutation_bytes_max);
    }
  }
  return {};
}

// Steps 1 and 2, once the clock is settled.
Result<CoordinatorImpl::Resending> CoordinatorImpl::ready_to_send(
    std::vector<storage::Mutation>& mutations, WriteOptions& options, bool in_doubt) {
  TETRAD_TRY_VOID(renew_doubtful_times(mutations, options, in_doubt));
  TETRAD_TRY_VOID(check_sizes(mutations, options));
  TETRAD_TRY(const bool is_beyond, restamp_above_own_marks(mutations, options.server_timestamp_us));
  Resending resending;
  if (is_beyond) resending.kept = mutations;
  resending.heeds_marks = !TETRAD_MUTANT(stale_stamp_acked);
  resending.is_entry_old = options.logged != nullptr;
  // Rows of views are of the rows that they were made of: where these went with a TRUNCATE, nobody
  // would take them out of the views again.
  if (are_of_one_table(mutations) || options.write_type == base::WriteType::kView) return resending;
  const MetaSnapshot state = meta_.snapshot();
  for (const storage::Mutation& mutation : mutations) {
    const TableInfo* const table = state->table(mutation.incarnation);
    if (table == nullptr) return fail(ErrorCode::kStaleSchema, kTableGone);
    resending.tables.emplace(mutation.incarnation, table->id);
  }
  return resending;
}

// What other nodes would not take this node's own stores do not get either: it would hide what is
// written later.
Result<void> CoordinatorImpl::check_stamp(const WriteOptions& options) const {
  if (TETRAD_MUTANT(doubtful_stamp_kept)) return {};
  return replicas_.check_times(options.server_timestamp_us, 0);
}

// Step 7, after success. Those that took it may purge it before the others have it: all get it with
// a newer date.
Result<void> CoordinatorImpl::prepare_newer_date(std::vector<storage::Mutation>& mutations,
                                                 WriteOptions& options, Again& again,
                                                 Resending& resending) {
  mutations = std::move(again.mutations);
  again.restamp = false;
  TETRAD_TRY_VOID(renew_times(mutations, options, again));
  if (!resending.kept.empty()) resending.kept = mutations;
  options.dated_us.reset();  // once is enough
  resending.is_entry_old = options.logged != nullptr;
  return {};
}

// Step 7, after a refusal for time.
Result<void> CoordinatorImpl::prepare_newer_times(std::vector<storage::Mutation>& mutations,
                                                  WriteOptions& options, Again& again,
                                                  Resending& resending) {
  mutations = std::move(again.mutations);
  TETRAD_TRY_VOID(renew_times(mutations, options, again));
  // What is asked for must carry the newest times.
  if (!resending.kept.empty()) resending.kept = mutations;
  resending.heeds_marks =
      resending.heeds_marks || (again.restamp && !TETRAD_MUTANT(stale_stamp_acked));
  resending.is_entry_old = options.logged != nullptr && !TETRAD_MUTANT(batch_restamp_unlogged);
  return {};
}

// Step 7, after a TRUNCATE of one of several tables: its part is for the table as it is now. A write
// that began before the TRUNCATE was answered may take effect after it.
// False: this node does not know of it yet. Errors: kStaleSchema, the table was dropped.
Result<bool> CoordinatorImpl::prepare_for_truncated(std::vector<storage::Mutation>& mutations,
                                                    const WriteOptions& options, Again& again,
                                                    Resending& resending) {
  mutations = std::move(again.mutations);
  const MetaSnapshot state = meta_.snapshot();
  std::map<TableIncarnation, TableId> tables;
  bool is_changed = false;
  for (storage::Mutation& mutation : mutations) {
    const TableId id = resending.tables.at(mutation.incarnation);
    const TableInfo* const table = state->table(id);
    if (table == nullptr) return fail(ErrorCode::kStaleSchema, kTableGone);
    is_changed |= table->incarnation != mutation.incarnation;
    mutation.incarnation = table->incarnation;
    tables.emplace(table->incarnation, id);
  }
  resending.tables = std::move(tables);
  if (!resending.kept.empty()) resending.kept = mutations;
  // Else a replay would leave that part out.
  if (is_changed) resending.is_entry_old = options.logged != nullptr;
  return is_changed;
}

// Step 8: nothing is looked at where nobody knows a mark that is not below the stamp. Once is
// enough: every write acknowledged before this one began is on a replica that has answered now.
bool CoordinatorImpl::must_heed_marks(std::vector<storage::Mutation>& mutations,
                                      const WriteOptions& options, Again& again,
                                      Resending& resending) {
  if (!options.server_timestamp_us || !resending.heeds_marks ||
      (!again.mark_us && resending.kept.empty()))
    return false;
  resending.heeds_marks = false;
  mutations = again.mutations.empty() ? std::move(resending.kept) : std::move(again.mutations);
  return true;
}

Result<void> CoordinatorImpl::prepare_later_stamp(std::vector<storage::Mutation>& mutations,
                                                  WriteOptions& options, int64_t later_us,
                                                  Resending& resending) {
  for (storage::Mutation& mutation : mutations)
    TETRAD_TRY_VOID(restamp(mutation, *options.server_timestamp_us, later_us));
  options.server_timestamp_us = later_us;  // replicas still say whether it is too far ahead
  resending.is_entry_old = options.logged != nullptr && !TETRAD_MUTANT(batch_restamp_unlogged);
  return {};
}

Task<Result<void>> CoordinatorImpl::write(std::vector<storage::Mutation> mutations,
                                          WriteOptions options) {
  TETRAD_CO_TRY_VOID(check_write_level(options.level));
  const bool in_doubt = !check_clock();
  if (in_doubt) {
    Result<void> settled = co_await clock_settled(options.deadline);
    TETRAD_CO_TRY_VOID(std::move(settled));
  }
  TETRAD_CO_TRY(Resending resending, ready_to_send(mutations, options, in_doubt));
  const base::MonotonicUs started_us = reactor_.now_us();
  // A table's increments are counted where clients ask for them, and what is replayed was counted
  // then. Rows of views are no client's.
  TableLatencies::Timings timings;
  const base::WriteType kind = options.write_type;
  if (kind != base::WriteType::kCounter && kind != base::WriteType::kView && !options.taken_us)
    timings = replicas_.latencies().begin_write(mutations);
  const int64_t began_us = options.taken_us.value_or(now_us());
  const bool is_of_one = are_of_one_table(mutations);
  std::vector<AwaitedView> awaited;
  if (!options.taken_us) awaited = views_to_await(mutations);
  // Each way out is counted once, however many attempts it took.
  const auto finished = [&](Result<void> outcome) {
    const std::optional<int64_t> timed_us = replicas_.latencies().end(timings);
    if (kind == base::WriteType::kView)
      metrics_.view_write.record(reactor_.now_us() - started_us);
    else
      record_write(options.level, started_us, timed_us, outcome ? nullptr : &outcome.error());
    return outcome;
  };
  while (true) {
    if (resending.is_entry_old) {
      Result<void> stored = co_await store_logged(*options.logged, mutations, options);
      if (!stored) co_return finished(std::move(stored));
      resending.is_entry_old = false;
    }
    // If the map has not moved when the attempt is refused, the loop waits for it.
    const uint64_t seen = meta_.snapshot()->applied.value;
    Again again;
    Result<void> result = check_stamp(options);
    if (result) {
      Result<void> written =
          co_await write_to_replicas(std::move(mutations), options, began_us, &again);
      result = std::move(written);
    } else {
      again.restamp = true;
      again.mutations = std::move(mutations);
    }
    if (result && again.redate) {
      TETRAD_CO_TRY_VOID(prepare_newer_date(mutations, options, again, resending));
      continue;
    }
    if (result) {
      if (options.server_timestamp_us && is_far_ahead(*options.server_timestamp_us))
        co_return finished(fail(ErrorCode::kOverloaded, "{}", kClockWords));
      if (!must_heed_marks(mutations, options, again, resending)) break;
      std::optional<int64_t> later_us =
          again.mark_us ? timestamp_above(*again.mark_us) : std::nullopt;
      if (!later_us) {
        Result<std::optional<int64_t>> above =
            co_await timestamp_above_hiding(mutations, *options.server_timestamp_us, options);
        if (above) later_us = *above;
      }
      if (!later_us) break;
      TETRAD_CO_TRY_VOID(prepare_later_stamp(mutations, options, *later_us, resending));
      continue;
    }
    const ErrorCode code = result.error().code;
    if (code == ErrorCode::kStaleEpoch && reactor_.now_us() < options.deadline.at_us) {
      // Applying twice is harmless; the newer map is on its way here.
      if (meta_.snapshot()->applied.value == seen) co_await base::sleep_for(reactor_, kNewMapUs);
      mutations = std::move(again.mutations);
      continue;
    }
    if (code == ErrorCode::kStaleSchema && !resending.tables.empty() && !again.mutations.empty() &&
        reactor_.now_us() < options.deadline.at_us) {
      auto changed = prepare_for_truncated(mutations, options, again, resending);
      if (!changed) {
        co_return finished(
            in_clients_words(std::unexpected(std::move(changed.error())), options, is_of_one));
      }
      if (!*changed) co_await base::sleep_for(reactor_, kNewMapUs);
      continue;
    }
    if (!is_for_time(code) || again.mutations.empty())
      co_return finished(in_clients_words(std::move(result), options, is_of_one));
    if (reactor_.now_us() >= options.deadline.at_us)
      co_return finished(fail(ErrorCode::kOverloaded, "{}", kClockWords));
    co_await base::sleep_for(reactor_, kRenewPauseUs);
    // The clock may have been found to be off meanwhile.
    if (auto good = check_clock(); !good) co_return finished(std::move(good));
    TETRAD_CO_TRY_VOID(prepare_newer_times(mutations, options, again, resending));
  }
  if (!awaited.empty()) co_await await_views(std::move(awaited), options.deadline, options.trace);
  co_return finished({});
}

void CoordinatorImpl::record_write(ConsistencyLevel level, base::MonotonicUs started_us,
                                   std::optional<int64_t> timed_us, const Error* error) {
  const size_t of = static_cast<size_t>(level) % CoordinatorMetrics::kLevels;
  metrics_.write[of].record(write_latencies_.of(timed_us, reactor_.now_us() - started_us));
  if (error == nullptr) return;
  if (error->code == ErrorCode::kUnavailable) metrics_.unavailable[of].add();
  if (error->code == ErrorCode::kWriteTimeout) metrics_.write_timeouts[of].add();
  if (error->code == ErrorCode::kWriteFailure) metrics_.failures[of].add();
}

}  // namespace tetrad::replication
