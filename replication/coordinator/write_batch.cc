// SPDX-License-Identifier: Apache-2.0
// Logged batches (design, rule 26): the entry on two nodes, then the parts as any write, then the
// entry is removed. Whoever dies, a holder of the entry writes all parts.
//
// A batch that is stamped or dated anew is stored anew first, on both: else a holder could repeat
//
//   1. Tests: level, format, room, disks and enough members of every part, so that what cannot
//      succeed is never stored.
//   2. Two holders are chosen: live nodes of this data centre, in other racks than this node's and
//      each other's, if there are any.
//   3. The entry is stored on both, synced (rule 26).
//   4. The parts are written as one write of several partitions (write.cc), which stores the entry
//      anew before any other stamp is used.
//   5. On W: both holders are asked to forget the entry. Failed after 3: they replay it, so the
//      client gets a timeout that says the batch will be applied (write type BATCH); failed before:
//      BATCH_LOG.
// the old stamp where the new one is on some partitions only.
#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/batches/batch_entry.h"
#include "replication/consistency.h"
#include "replication/coordinator/coordinator_impl.h"
#include "replication/coordinator/replica_sets.h"

namespace tetrad::replication {

/// A logged batch on its way.
struct LoggedRun {
  Uuid id;
  int64_t created_us = 0;
  std::vector<HostId> holders;  // by rank
  std::vector<HostId> asked;    // may hold a version
  uint32_t version = 0;         // of the last that was sent to them
  bool is_stored = false;       // they all hold one
};

/// Answers of the holders that one round of stores asks.
struct LoggedStored {
  size_t left = 0;
  std::vector<bool> acks;  // by rank
  size_t refusals = 0;
  std::optional<Error> refusal;
  base::OneShot<bool> done;
};

namespace {

constexpr size_t kHolders = 2;

}  // namespace

Result<std::vector<HostId>> CoordinatorImpl::choose_holders(const MetaState& state) {
  const NodeInfo* own = state.node(meta_.self());
  if (own == nullptr) return fail(ErrorCode::kServerError, "this node is in no cluster");
  std::vector<const NodeInfo*> others;
  size_t nodes = 0;
  for (const auto& [host, node] : state.nodes) {
    if (node.state != NodeState::kNormal) continue;
    ++nodes;
    if (host != meta_.self() && meta_.is_live(host)) others.push_back(&node);
  }
  // Shuffled: holders of all coordinators are spread evenly.
  for (size_t i = others.size(); i > 1; --i) std::swap(others[i - 1], others[random_.below(i)]);
  std::vector<const NodeInfo*> chosen;
  const auto is_apart = [&](const NodeInfo* node) {
    const auto same_rack = [node](const NodeInfo* other) {
      return other->data_center == node->data_center && other->rack == node->rack;
    };
    return !same_rack(own) && std::ranges::none_of(chosen, same_rack);
  };
  const auto take = [&](auto fits) {
    while (chosen.size() < kHolders) {
      const auto found = std::ranges::find_if(others, fits);
      if (found == others.end()) return;
      chosen.push_back(*found);
      others.erase(found);
    }
  };
  const auto is_near = [own](const NodeInfo* node) {
    return node->data_center == own->data_center;
  };
  // The best first: near and apart, near, any, this node itself.
  take([&](const NodeInfo* node) { return is_near(node) && is_apart(node); });
  take(is_near);
  take([](const NodeInfo*) { return true; });
  // A node that leaves takes no entry, not even its own.
  const bool leaves = own->state == NodeState::kLeaving || own->state == NodeState::kRemoved;
  if (chosen.size() < kHolders && !leaves) chosen.push_back(own);
  // A cluster of one node has one holder.
  const size_t needed = std::clamp<size_t>(nodes, 1, kHolders);
  if (chosen.size() < needed) {
    const ConsistencyLevel level = needed == 1 ? ConsistencyLevel::kOne : ConsistencyLevel::kTwo;
    return std::unexpected(
        Error(ErrorCode::kUnavailable,
              fmt::format("Cannot achieve consistency level {}", base::name_of(level)),
              base::UnavailableDetail{level, static_cast<int32_t>(needed),
                                      static_cast<int32_t>(chosen.size())}));
  }
  std::vector<HostId> holders;
  for (const NodeInfo* node : chosen) holders.push_back(node->host);
  if (TETRAD_MUTANT(batch_one_holder)) holders.resize(1);
  return holders;
}

// Everything that write() would refuse for all parts.
Result<void> CoordinatorImpl::check_parts(const std::vector<storage::Mutation>& mutations,
                                          const WriteOptions& options,
                                          const MetaState& state) const {
  if (!meta_.filling_disks().empty()) TETRAD_TRY_VOID(check_disks(state, mutations));
  const Levels levels = this->levels(state);
  for (const storage::Mutation& mutation : mutations) {
    const TableInfo* table = state.table(mutation.incarnation);
    if (table == nullptr) return fail(ErrorCode::kStaleSchema, kTableGone);
    const partitioner::Tablet& tablet = table->tablets.find(mutation.position);
    TETRAD_TRY_VOID(check_room(state, tablet, mutation, options));
    const WriteSets sets = write_sets(tablet);
    for (const auto* set : {&sets.old_set, &sets.new_set}) {
      if (set->empty()) continue;
      TETRAD_TRY_VOID(check_enough(*set, options.level, levels.writing(options.level, *set)));
    }
  }
  return {};
}

// For a holder that does not answer.
/// A live node that no entry was sent to yet; unset: there is none.
std::optional<HostId> CoordinatorImpl::another_holder(const LoggedRun& run) {
  std::vector<HostId> others;
  const MetaSnapshot state = meta_.snapshot();
  for (const auto& [host, node] : state->nodes) {
    if (node.state == NodeState::kNormal && host != meta_.self() && meta_.is_live(host) &&
        std::ranges::find(run.asked, host) == run.asked.end())
      others.push_back(host);
  }
  if (others.empty()) return std::nullopt;
  return others[random_.below(others.size())];
}

void CoordinatorImpl::send_entry(LoggedRun& run, size_t rank,
                                 const std::vector<storage::Mutation>& mutations,
                                 const WriteOptions& options, base::Deadline deadline,
                                 const std::shared_ptr<LoggedStored>& stored) {
  TETRAD_ASSERT(rank < run.holders.size());
  TETRAD_ASSERT(run.holders.size() <= kHolders);
  BatchHead head;
  head.id = run.id;
  head.version = run.version;
  head.stamp_us = options.server_timestamp_us.value_or(storage::kNoTimestamp);
  head.created_us = run.created_us;
  head.applied = meta_.snapshot()->applied;
  head.rank = static_cast<uint8_t>(rank);
  // Each knows the other, so that a replay can ask it.
  head.other = run.holders.size() > 1 ? run.holders[1 - rank] : HostId();
  if (std::ranges::find(run.asked, run.holders[rank]) == run.asked.end())
    run.asked.push_back(run.holders[rank]);
  if (options.trace != nullptr)
    options.trace->add(fmt::format("Storing the batch on {}", place_text({run.holders[rank], 0})));
  call_replica(options.trace, {run.holders[rank], 0}, Verb::kBatchLogStore,
               encode_batch_entry(head, mutations), deadline, [stored, rank](Result<Bytes> answer) {
                 if (answer) {
                   stored->acks[rank] = true;
                 } else {
                   // Nothing was sent, or the other side said so itself.
                   const ErrorCode code = answer.error().code;
                   if (code != ErrorCode::kTimedOut) ++stored->refusals;
                   if (code == ErrorCode::kOverloaded) stored->refusal = std::move(answer).error();
                 }
                 TETRAD_ASSERT(stored->left != 0);
                 if (--stored->left == 0) stored->done.setter().set(true);
               });
}

/// A holder that does not answer in half of the time, or refuses, is left out for another node: it
/// may have the entry, and what it repeats then does no harm.
Task<Result<void>> CoordinatorImpl::store_logged(LoggedRun& run,
                                                 const std::vector<storage::Mutation>& mutations,
                                                 const WriteOptions& options) {
  if (TETRAD_MUTANT(batch_parts_first)) co_return Result<void>();
  // A later version replaces the one before at each holder.
  ++run.version;
  if (run.version > 1) metrics_.logged_restored.add();
  std::vector<bool> acks(run.holders.size());
  size_t refusals = 0, sent = 0;
  std::optional<Error> refusal;
  const auto is_stored = [&] { return std::find(acks.begin(), acks.end(), false) == acks.end(); };
  while (true) {
    const auto stored = std::make_shared<LoggedStored>();
    stored->acks = acks;
    stored->left = static_cast<size_t>(std::count(acks.begin(), acks.end(), false));
    sent += stored->left;
    base::Deadline deadline = options.deadline;
    // Half of the time, where there is another node to ask.
    if (another_holder(run)) deadline.at_us -= (deadline.at_us - reactor_.now_us()) / 2;
    for (size_t rank = 0; rank < run.holders.size(); ++rank)
      if (!acks[rank]) send_entry(run, rank, mutations, options, deadline, stored);
    co_await stored->done;
    acks = stored->acks;
    refusals += stored->refusals;
    if (stored->refusal) refusal = std::move(stored->refusal);
    if (is_stored()) {
      run.is_stored = true;
      co_return Result<void>();
    }
    // Holders that refused or are late are replaced one by one; those that have it stay.
    bool changed = false;
    for (size_t rank = 0; rank < run.holders.size(); ++rank) {
      if (acks[rank]) continue;
      const auto other = another_holder(run);
      if (!other) continue;
      run.holders[rank] = *other;
      run.asked.push_back(*other);
      changed = true;
    }
    if (!changed || reactor_.now_us() >= options.deadline.at_us) break;
  }
  // Only where all have refused, and said so: nothing was stored.
  if (run.version == 1 && refusals == sent && refusal) {
    run.version = 0;  // none holds it
    co_return std::unexpected(std::move(*refusal));
  }
  const auto count = static_cast<int32_t>(run.holders.size());
  const auto received = static_cast<int32_t>(std::count(acks.begin(), acks.end(), true));
  base::TimeoutDetail detail{count == 1 ? ConsistencyLevel::kOne : ConsistencyLevel::kTwo, received,
                             count};
  detail.write_type = base::WriteType::kBatchLog;
  co_return std::unexpected(
      Error(ErrorCode::kWriteTimeout,
            fmt::format("Operation timed out - received only {} responses.", received), detail));
}

Error CoordinatorImpl::logged_error(const LoggedRun& run, Error error,
                                    const WriteOptions& options) const {
  // Nobody holds it; or it is not known whether anybody does.
  // Not stored on both: the client gets the plain error.
  if (run.version == 0 || !run.is_stored) return error;
  // What is repeated of it finds its table gone.
  if (error.code == ErrorCode::kWriteFailure || error.code == ErrorCode::kStaleSchema) return error;
  base::TimeoutDetail detail{options.level, 0, 1};
  if (error.code == ErrorCode::kWriteTimeout && error.detail != nullptr) {
    const auto* known = std::get_if<base::TimeoutDetail>(&*error.detail);
    // An earlier version is on both holders, so the batch will be applied all the same.
    // A later version that is not on both: that before will be replayed.
    if (known != nullptr && known->write_type != base::WriteType::kBatchLog) detail = *known;
  }
  detail.write_type = base::WriteType::kBatch;
  return Error(ErrorCode::kWriteTimeout,
               fmt::format("Operation timed out - received only {} responses.", detail.received),
               detail);
}

Task<Result<void>> CoordinatorImpl::write_logged(std::vector<storage::Mutation> mutations,
                                                 WriteOptions options) {
  options.write_type = base::WriteType::kBatch;
  // One partition is atomic by itself (rule 26).
  if (mutations.size() == 1) {
    auto result = co_await write(std::move(mutations), options);
    co_return result;
  }
  TETRAD_CO_TRY_VOID(check_write_level(options.level));
  const MetaSnapshot state = meta_.snapshot();
  if (state->format < kFormatBatches) {
    co_return fail(ErrorCode::kInvalid,
                   "logged batches over several partitions wait until all nodes run a program that "
                   "knows them");
  }
  TETRAD_CO_TRY_VOID(check_parts(mutations, options, *state));
  LoggedRun run;
  TETRAD_CO_TRY(run.holders, choose_holders(*state));
  run.id = base::make_random_uuid(random_);
  run.created_us = now_us();
  options.logged = &run;
  metrics_.logged_batches.add();
  Result<void> written = co_await write(std::move(mutations), options);
  if (!written) {
    co_return std::unexpected(logged_error(run, std::move(written).error(), options));
  }
  // Unsynced and one way: an entry that stays is replayed, which does no harm.
  const Bytes id = encode_batch_id(run.id);
  for (const HostId holder : run.asked) rpc_.one_way(holder, 0, Verb::kBatchLogRemove, id);
  co_return Result<void>();
}

}  // namespace tetrad::replication
