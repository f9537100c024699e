// SPDX-License-Identifier: Apache-2.0
// What a read does when members have answered differently (rule 3): it asks them for data, merges
// it, and sends each of them what it lacks. Only when all of them hold it is the merge answered:
// otherwise the next quorum could miss what this client has seen.
//
// The same members are asked that were compared. A merge over fewer could be a value that is not on
// W members; others are asked by the next round of read_tablet().
#include "base/assert.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/coordinator/gathering.h"
#include "replication/coordinator/restamp.h"
#include "replication/coordinator/tablet_round.h"
#include "storage/engine/tombstone_filter.h"

namespace tetrad::replication {

namespace {

// A read repair gets half of the time that is left. With less than this in all there is no second
// attempt worth keeping time for.
constexpr int64_t kRepairAttemptMinUs = 400'000;

}  // namespace

/// The repairs of one merge that are on their way; shared by the callbacks of the members.
struct CoordinatorImpl::Repairs {
  // Starts at one for the loop that sends them, so that `done` is not set before the last repair is
  // sent.
  size_t left = 1;
  bool failed = false;
  // True: each member has what it lacked.
  base::OneShot<bool> done;
  void finish_one() {
    TETRAD_ASSERT(left != 0);
    if (--left == 0) done.setter().set(!failed);
  }
};

void CoordinatorImpl::send_repair(const StoreAddress& replica, const storage::Mutation& mutation,
                                  const TabletSeen& seen, ClusterFormat format,
                                  const ReadOptions& options,
                                  const std::shared_ptr<Repairs>& repairs) {
  metrics_.read_repairs.add();
  if (options.trace != nullptr) {
    options.trace->add(
        fmt::format("Read repair: sending what it lacks to {}", place_text(replica)));
  }
  ++repairs->left;
  const auto finished = [repairs](bool ok) {
    repairs->failed |= !ok;
    repairs->finish_one();
  };
  // As merged, never Put (rule 15), and with the repair horizon that was read: a member whose
  // horizon has risen since refuses it (rule 18), since it may have purged what hides these rows.
  if (replicas_.is_local(replica)) {
    replicas_.apply(replica.store, seen.epoch, mutation,
                    ReplicaService::Merged{seen.repaired_us, seen.is_relied_on}, options.deadline,
                    [finished](Result<void> result) { finished(result.has_value()); });
  } else {
    rpc_.call(replica.host, replica.store, Verb::kMutateMerged,
              encode_mutate(format, seen.epoch, mutation, {}, seen.repaired_us, seen.is_relied_on),
              options.deadline, [finished](Result<Bytes> answer) { finished(answer.has_value()); });
  }
}

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
    for (const storage::Mutation& mutation : merged.repairs[i])
      send_repair(replica, mutation, seen, format, options, repairs);
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

// One of those that answered may be gone by now: half of what time is left is theirs, the rest is
// for another round with who lives then.
Task<std::optional<Result<storage::ReadResult>>> CoordinatorImpl::reconcile(
    TabletRound* round, storage::ReadCommand* command, std::vector<StoreAddress> answered,
    const ReadOptions* options) {
  ReadOptions attempt = *options;
  const int64_t left_us = options->deadline.at_us - reactor_.now_us();
  const bool last = left_us < kRepairAttemptMinUs;
  if (!last) attempt.deadline.at_us -= left_us / 2;
  Result<storage::ReadResult> repaired = storage::ReadResult();
  // Which rows match is not known before they are merged (rule 7): what any member names is read by
  // its key.
  if (command->by_index && !TETRAD_MUTANT(index_rows_from_one)) {
    repaired = co_await read_named(*command, round->seen.epoch, std::move(answered), attempt);
    if (!repaired && round->drop_unbuilt_index(repaired.error(), *command)) co_return std::nullopt;
  } else if (command->count_only) {
    repaired = co_await count_and_repair(*command, round->seen, std::move(answered), attempt);
  } else {
    repaired = co_await read_and_repair(*command, round->seen, std::move(answered), attempt);
  }
  // A merge that was not written everywhere is not an answer: it is tried again with half of the
  // time that is left, or fails.
  if (repaired) co_return repaired;
  const ErrorCode code = repaired.error().code;
  if (reactor_.now_us() >= options->deadline.at_us) {
    if (code == ErrorCode::kStaleEpoch)
      co_return std::unexpected(own_read_error(repaired.error(), options->level));
    co_return repaired;
  }
  const bool again =
      code == ErrorCode::kStaleEpoch ||
      (!last && (code == ErrorCode::kReadTimeout || code == ErrorCode::kReadFailure));
  if (!again) co_return repaired;
  co_await base::sleep_for(reactor_, 5'000);
  co_return std::nullopt;
}

}  // namespace tetrad::replication
