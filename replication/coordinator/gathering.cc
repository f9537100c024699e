// SPDX-License-Identifier: Apache-2.0
// Asks replicas for data and digests, one more when one fails or is slow, and says when enough have
// answered.
#include "replication/coordinator/gathering.h"

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/consistency.h"

namespace tetrad::replication {

/// A read that a store of another shard answers, among others or not.
struct CoordinatorImpl::PartReadCall final : ReadCall {
  PartReadCall(CoordinatorImpl& coordinator, std::shared_ptr<Gathering> its_gathering,
               const StoreAddress& its_replica, bool as_digest)
      : ReadCall(as_digest ? Verb::kReadDigest : Verb::kRead, its_replica.store,
                 its_gathering->deadline, its_gathering->epoch, its_gathering->command),
        self(coordinator),
        alive(coordinator.alive_),
        gathering(std::move(its_gathering)),
        replica(its_replica) {}
  void finish(std::unique_ptr<ShardCall>) override {
    if (alive.expired()) return;
    const bool is_digest = verb() == Verb::kReadDigest;
    if (!answer) {
      self.on_failed(gathering, replica, is_digest, answer.error());
      return;
    }
    if (is_digest) {
      self.on_digest(*gathering, replica, digest);
    } else {
      self.on_data(*gathering, replica, std::move(*answer));
    }
  }

  CoordinatorImpl& self;
  const std::weak_ptr<char> alive;
  const std::shared_ptr<Gathering> gathering;
  const StoreAddress replica;
};

void CoordinatorImpl::ask(const std::shared_ptr<Gathering>& gathering, bool as_digest) {
  Gathering& g = *gathering;
  TETRAD_ASSERT(g.next < g.candidates.size());
  const StoreAddress replica = g.candidates[g.next++];
  const bool digest = as_digest && !replicas_.is_local(replica);  // here the data is as cheap
  ++g.asked;
  if (!digest) ++g.data_asked;
  if (g.trace != nullptr) {
    g.trace->add(replicas_.is_local(replica)
                     ? fmt::format("Reading data from local store {}", replica.store)
                     : asking_text(digest ? "READ_DIGEST" : "READ", replica));
  }
  const std::weak_ptr<char> alive = alive_;
  if (replicas_.is_local(replica)) {
    replicas_.read(replica.store, g.epoch, g.command, g.deadline,
                   [this, alive, gathering, replica](Result<storage::ReadResult> result) {
                     if (alive.expired()) return;
                     if (!result) {
                       on_failed(gathering, replica, false, result.error());
                       return;
                     }
                     note_own_read(gathering->trace, *result, replica.store);
                     storage::withhold_if_larger(*result, gathering->command.bytes_max);
                     gathering->data.push_back({replica, std::move(*result)});
                     on_reply(*gathering);
                   });
    return;
  }
  if (is_other_shards(replica)) {
    rpc_.call_shard(std::make_unique<PartReadCall>(*this, gathering, replica, digest), 0);
    return;
  }
  if (g.encoded.empty()) g.encoded = encode_read(g.epoch, g.command);
  call_replica(g.trace, replica, digest ? Verb::kReadDigest : Verb::kRead, g.encoded, g.deadline,
               [this, alive, gathering, replica, digest](Result<Bytes> answer) {
                 if (alive.expired()) return;
                 if (!answer) {
                   on_failed(gathering, replica, digest, answer.error());
                   return;
                 }
                 if (digest) {
                   const auto reply = decode_digest_reply(*answer);
                   if (!reply) {
                     on_failed(gathering, replica, true, reply.error());
                     return;
                   }
                   on_digest(*gathering, replica, *reply);
                   return;
                 }
                 auto result = storage::decode_read_result(std::move(*answer));
                 if (!result) {
                   on_failed(gathering, replica, false, result.error());
                   return;
                 }
                 on_data(*gathering, replica, std::move(*result));
               });
}

void CoordinatorImpl::on_digest(Gathering& gathering, const StoreAddress& replica,
                                const DigestReply& reply) {
  if (gathering.trace != nullptr)
    gathering.trace->add(fmt::format("Digest received from {}", place_text(replica)));
  gathering.digest_replies.emplace_back(replica, reply);
  on_reply(gathering);
}

void CoordinatorImpl::on_data(Gathering& gathering, const StoreAddress& replica,
                              storage::ReadResult result) {
  if (gathering.trace != nullptr) {
    gathering.trace->add(fmt::format("Data received from {}: {}, {} bytes", place_text(replica),
                                     rows_text(result), result.arena.allocated_bytes()));
  }
  gathering.data.push_back({replica, std::move(result)});
  on_reply(gathering);
}

void CoordinatorImpl::on_failed(const std::shared_ptr<Gathering>& gathering,
                                const StoreAddress& replica, bool digest, const Error& error) {
  Gathering& now = *gathering;
  if (now.trace != nullptr)
    now.trace->add(fmt::format("Read failed at {}: {}", place_text(replica), error.message));
  ++now.failed;
  TETRAD_ASSERT(now.failed <= now.asked);
  now.failed_replicas.push_back(replica);
  if (!digest) ++now.data_failed;
  now.timed_out |= error.code == ErrorCode::kTimedOut;
  now.overloaded |= error.code == ErrorCode::kOverloaded;
  now.stale_schema |= error.code == ErrorCode::kStaleSchema;
  now.stale_epoch |= error.code == ErrorCode::kStaleEpoch;
  now.index_not_built |= error.code == ErrorCode::kIndexNotBuilt;
  if (error.code == ErrorCode::kReplicaBehind) {
    now.behind = true;
    note_behind(replica);
  }
  if (error.code == ErrorCode::kCorruption) now.corruption = error;
  if (now.complete()) return now.finish(true);
  // Another replica takes over what this one was asked for.
  if (!now.refused() && now.next < now.candidates.size() &&
      reactor_.now_us() < now.deadline.at_us) {
    ask(gathering, digest);
    return;
  }
  now.finish_if_hopeless();
}

void CoordinatorImpl::on_reply(Gathering& gathering) {
  TETRAD_ASSERT(gathering.replies() + gathering.failed <= gathering.asked);
  if (gathering.complete()) {
    if (!gathering.is_over) note_pace(gathering);
    return gathering.finish(true);
  }
  if (!gathering.is_begun || gathering.is_over ||
      gathering.replies() + gathering.failed < gathering.asked)
    return;
  if (TETRAD_MUTANT(last_answer_ignored)) return;
  // All have answered, and not those that a quorum needs.
  if (!gathering.refused() && gathering.next < gathering.candidates.size() &&
      reactor_.now_us() < gathering.deadline.at_us)
    ask(gathering.shared_from_this(), gathering.digests && !gathering.data.empty());
  else
    gathering.finish(false);
}

bool CoordinatorImpl::ReadQuorum::is_met_by(std::span<const StoreAddress> answered) const {
  return need.is_met_by(members_that(set, [&](const StoreAddress& member) {
    return std::ranges::find(answered, member) != answered.end();
  }));
}

bool CoordinatorImpl::ReadQuorum::counts(const StoreAddress& replica) const {
  const int index = index_in(set, replica);
  return index >= 0 && (need.counted() & bit_of(static_cast<size_t>(index))) != 0;
}

size_t CoordinatorImpl::arrange_for(const std::vector<ReadQuorum>& quorums, const Levels& levels,
                                    std::vector<StoreAddress>& candidates) {
  std::erase_if(candidates, [&](const StoreAddress& replica) {
    return std::ranges::none_of(quorums,
                                [&](const ReadQuorum& quorum) { return quorum.counts(replica); });
  });
  std::ranges::stable_partition(
      candidates, [&](const StoreAddress& replica) { return levels.is_near(replica.host); });
  for (size_t first = 1; first < candidates.size(); ++first) {
    const std::span<const StoreAddress> asked(candidates.data(), first);
    if (std::ranges::all_of(quorums, [&](const auto& quorum) { return quorum.is_met_by(asked); }))
      return first;
  }
  return candidates.size();
}

std::shared_ptr<CoordinatorImpl::Gathering> CoordinatorImpl::gather(
    const storage::ReadCommand& command, SetEpoch epoch, std::vector<StoreAddress> candidates,
    size_t need, bool digests, const ReadOptions& options, std::vector<ReadQuorum> quorums) {
  auto gathering = std::make_shared<Gathering>();
  gathering->quorums = std::move(quorums);
  gathering->command = command;
  gathering->epoch = epoch;
  gathering->candidates = std::move(candidates);
  gathering->need = need;
  gathering->digests = digests;
  gathering->deadline = options.deadline;
  gathering->trace = options.trace;
  gathering->reactor = &reactor_;
  if (!command.is_range && need < gathering->candidates.size() && pace_.times_next())
    gathering->timed_from_us = reactor_.now_us();
  for (size_t i = 0; i < need && gathering->next < gathering->candidates.size(); ++i) {
    ask(gathering, digests && i != 0);
  }
  gathering->is_begun = true;
  gathering->finish_if_hopeless();
  speculate_later(gathering);
  return gathering;
}

void CoordinatorImpl::speculate_later(const std::shared_ptr<Gathering>& gathering) {
  if (gathering->complete() || gathering->next >= gathering->candidates.size()) return;
  const std::weak_ptr<Gathering> weak = gathering;
  gathering->speculation =
      reactor_.call_at(reactor_.now_us() + patience_us(gathering->command), [this, weak] {
        const auto now = weak.lock();
        if (now == nullptr) return;
        now->speculation = 0;
        if (now->is_over || now->complete() || now->next >= now->candidates.size()) return;
        metrics_.speculative_retries.add();
        if (now->trace != nullptr) now->trace->add("Speculating: asking one more replica");
        now->waited_for = now->next;
        ask(now, now->digests && !now->data.empty());
        if (!now->is_over) speculate_later(now);
      });
}

void CoordinatorImpl::note_pace(const Gathering& gathering) {
  const int64_t waited_us = patience_us(gathering.command);
  if (gathering.timed_from_us != 0) {
    const base::MonotonicUs now_us = reactor_.now_us();
    pace_.note(now_us - gathering.timed_from_us, now_us);
  }
  if (gathering.waited_for == 0 && slow_replicas_.is_empty()) return;
  const std::vector<StoreAddress> answered = gathering.answered();
  if (gathering.waited_for == 0) {
    for (const StoreAddress& replica : answered) slow_replicas_.note_in_time(replica);
    return;
  }
  const auto has = [](const std::vector<StoreAddress>& replicas, const StoreAddress& one) {
    return std::ranges::find(replicas, one) != replicas.end();
  };
  // Late is who was asked before one that has answered.
  bool is_before_an_answer = false;
  for (size_t i = gathering.next; i-- > 0;) {
    const StoreAddress& replica = gathering.candidates[i];
    if (has(answered, replica))
      is_before_an_answer = true;
    else if (is_before_an_answer && i < gathering.waited_for &&
             !has(gathering.failed_replicas, replica))
      slow_replicas_.note_late(replica, waited_us, reactor_.now_us());
  }
}

Error CoordinatorImpl::read_error(const Gathering& gathering, ConsistencyLevel level) const {
  const auto received = static_cast<int32_t>(gathering.replies());
  const auto required = gathering.quorums.empty()
                            ? static_cast<int32_t>(gathering.need)
                            : static_cast<int32_t>(gathering.quorums.front().need.least());
  if (gathering.stale_schema) return Error(ErrorCode::kStaleSchema, kTableGone);
  if (gathering.index_not_built)
    return Error(ErrorCode::kIndexNotBuilt, "replicas have not built the index");
  if (gathering.stale_epoch) return Error(ErrorCode::kStaleEpoch, "the replica set has changed");
  if (gathering.timed_out || gathering.failed == 0) {
    base::TimeoutDetail detail{level, received, required};
    detail.data_present = !gathering.data.empty();
    return Error(ErrorCode::kReadTimeout,
                 fmt::format("Operation timed out - received only {} responses.", received),
                 detail);
  }
  if (gathering.overloaded)
    return Error(ErrorCode::kOverloaded, "Replicas take no more reads at the moment; try again");
  if (gathering.behind) {
    base::UnavailableDetail detail{level, required, received};
    return Error(ErrorCode::kUnavailable,
                 fmt::format("Cannot achieve consistency level {}", base::name_of(level)), detail);
  }
  base::FailureDetail detail{
      level, received, required, {}, base::WriteType::kSimple, !gathering.data.empty()};
  if (gathering.corruption)
    logger_.error("a replica's data is damaged error={}", gathering.corruption->message);
  return Error(ErrorCode::kReadFailure,
               fmt::format("Operation failed - received {} responses and {} failures", received,
                           gathering.failed),
               detail);
}

}  // namespace tetrad::replication
