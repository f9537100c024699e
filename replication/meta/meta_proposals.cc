// SPDX-License-Identifier: Apache-2.0
// How a command gets into the metadata group, from whichever node it is made on.
//
// A proposal:
//   1. It gets a random id, which stays the same over all attempts: a command that is committed
//      twice changes nothing the second time (apply_meta_command).
//   2. The leader's node appends it to the Raft log; another node sends it to the leader, or asks a
//      live peer, which passes it on once.
//   3. It is committed and applied on each node; its proposer gets the outcome, an error of the
//      command included.
//   4. The proposer waits until its own node has applied it, so that what it reads next shows it.
//
// Everything here runs on shard 0.
#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/meta/lost_nodes.h"
#include "replication/meta/meta_service_impl.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kAttemptUs = 1'000'000;  // for one attempt to bring a proposal to the leader
constexpr int64_t kRetryPauseUs = 20'000;
/// After so long without a majority of live voters a proposal is given up before its deadline:
/// drivers give up after ten seconds, and then their users do not learn the reason.
constexpr int64_t kWithoutMajorityUs = 5'000'000;
// A proposal is passed on once: who has it then either leads or refuses.
constexpr uint8_t kHopsMax = 2;

// Errors after which the same command, with the same id, is worth another attempt. All else is the
// command's own outcome.
bool may_retry(ErrorCode code) {
  return code == ErrorCode::kNotLeader || code == ErrorCode::kTimedOut ||
         code == ErrorCode::kUnavailable || code == ErrorCode::kOverloaded ||
         code == ErrorCode::kNotFound || code == ErrorCode::kBootstrapping ||
         code == ErrorCode::kConfig;
}

/// A command that all nodes of the cluster read. What is asked of those that stay alone, all of this
/// program read; check_start() looks at them.
Result<MetaCommand> decode_proposal(BytesView encoded, ClusterFormat of_all, ClusterFormat own) {
  auto command = decode_meta_command(encoded, of_all);
  if (command || command.error().code != ErrorCode::kConfig) return command;
  auto newer = decode_meta_command(encoded, own);
  if (newer && std::holds_alternative<RemoveLostNodes>(newer->body)) return newer;
  return command;
}

Bytes encode_answer(MetaIndex index, const Result<void>& outcome) {
  Bytes body;
  base::ByteWriter writer(body);
  writer.u64(index.value);
  writer.u8(outcome ? 0 : 1);
  if (!outcome) encode_error(outcome.error(), body);
  return body;
}

}  // namespace

Task<Result<MetaIndex>> MetaServiceImpl::propose(MetaCommandBody body, base::Deadline deadline) {
  const Uuid id = base::make_random_uuid(random_);
  Result<MetaIndex> proposed = co_await propose_as(id, std::move(body), deadline);
  co_return proposed;
}

Task<Result<MetaIndex>> MetaServiceImpl::propose_as(Uuid id, MetaCommandBody body,
                                                    base::Deadline deadline) {
  if (!driver_) co_return fail(ErrorCode::kBootstrapping, "this node has no cluster yet");
  MetaCommand command;
  command.id = id;
  command.origin = self();
  command.body = std::move(body);
  // In the format that all nodes of the cluster read, not the newest that this program knows.
  const Bytes encoded = encode_meta_command(
      command, TETRAD_MUTANT(formats_ungated) ? options_.format : state_->format);
  if (encoded.size() > kMetaCommandBytesMax)
    co_return fail(ErrorCode::kLimit, "a metadata command of {} bytes, at most {}", encoded.size(),
                   kMetaCommandBytesMax);
  Error last(ErrorCode::kTimedOut, "the metadata group did not answer in time");
  base::MonotonicUs majority_us = reactor_.now_us();  // when there last was one
  while (reactor_.now_us() < deadline.at_us &&
         reactor_.now_us() < majority_us + kWithoutMajorityUs) {
    // Attempts are short, since the leader may change while one waits.
    const base::Deadline attempt{std::min(deadline.at_us, reactor_.now_us() + kAttemptUs)};
    Result<Answer> answer = co_await propose_once(encoded, id, attempt);
    if (answer) {
      const MetaIndex index = answer->index;
      std::function<bool()> applied_here = [this, index] { return applied_index() >= index; };
      const bool applied = co_await wait_for(std::move(applied_here), deadline.at_us);
      // The outcome comes after the wait: a refused command, too, has been applied as refused.
      if (!answer->outcome) co_return std::unexpected<Error>(answer->outcome.error());
      if (!applied)
        co_return fail(ErrorCode::kTimedOut, "metadata index {} has not come to this node",
                       index.value);
      co_return index;
    }
    last = answer.error();
    if (!may_retry(last.code)) co_return std::unexpected<Error>(last);
    co_await base::sleep_for(reactor_, kRetryPauseUs);
    const Presence voters = live_voters();
    if (voters.all == 0 || 2 * voters.live > voters.all) majority_us = reactor_.now_us();
  }
  // The message names how many voters are live, since a group without a majority is the usual
  // cause.
  const Presence voters = live_voters();
  const bool has_reason = last.code != ErrorCode::kTimedOut;
  co_return fail(ErrorCode::kTimedOut,
                 "the metadata group did not answer in time: {} of its {} voters are live{}{}{}",
                 voters.live, voters.all, voters.away.empty() ? "" : "; away:" + voters.away,
                 has_reason ? "; " : "", has_reason ? last.message : "");
}

MetaServiceImpl::Presence MetaServiceImpl::presence_of(const std::vector<HostId>& hosts) const {
  Presence out;
  for (const HostId host : hosts) {
    ++out.all;
    if (is_live(host)) {
      ++out.live;
    } else if (const NodeInfo* node = state_->node(host)) {
      out.away += " " + node->address;
    }
  }
  return out;
}

Result<void> MetaServiceImpl::take_over_group() {
  if (!driver_ || state_->cluster_id.is_nil())
    return fail(ErrorCode::kConflict, "this node has no cluster yet");
  const RaftConfiguration& members = driver_->core().configuration();
  const Presence voters = live_voters();
  if (voters.live > voters.all / 2)
    return fail(
        ErrorCode::kConflict,
        "{} of the {} voters of the metadata group are alive, which are enough: nothing of it "
        "is lost",
        voters.live, voters.all);
  const uint64_t reach = driver_->core().options().trailing_entries;
  const auto is_better = [&](const NodeInfo& node) {
    const MetaIndex applied = membership_.applied_of(node.host), own = applied_index();
    if (applied > own) return true;
    // A voter may have what was committed and has not been told to others yet. Where it has less it
    // learns that from them in a moment, unless it was away for so long that their logs begin later.
    const bool votes = members.is_voter(node.host), votes_here = members.is_voter(self());
    if (applied < own) return votes && !votes_here && applied.value + reach >= own.value;
    // Of equals the first alone: two that were ordered at the same time would make two groups.
    return votes != votes_here ? votes : node.host < self();
  };
  for (const auto& [host, node] : state_->nodes)
    if (host != self() && node.state != NodeState::kRemoved && is_live(host) && is_better(node))
      return fail(ErrorCode::kConflict,
                  "node {} knows more of the metadata than this one, or is as good and the first: "
                  "give the order there",
                  node.address);
  logger_.warn(
      "by the operator's word this node is the only voter of the metadata group voters_before={} "
      "away={} applied={}",
      voters.all, voters.away, state_->applied.value);
  return driver_->take_over();
}

// The known leader; otherwise live peers in turn, one each attempt; without any, all that the state
// names.
std::optional<HostId> MetaServiceImpl::whom_to_ask() {
  const auto leader = driver_->core().leader();
  if (leader && *leader != self()) return leader;
  std::vector<HostId> peers = membership_.live_hosts();
  if (peers.empty()) {
    for (const auto& [host, node] : state_->nodes)
      if (host != self() && node.state != NodeState::kRemoved) peers.push_back(host);
  }
  if (peers.empty()) return std::nullopt;
  return peers[ask_round_++ % peers.size()];
}

Task<Result<MetaServiceImpl::Answer>> MetaServiceImpl::propose_once(Bytes command, Uuid id,
                                                                    base::Deadline deadline) {
  if (driver_->core().role() == RaftRole::kLeader) {
    Result<Answer> here = co_await propose_here(std::move(command), id, deadline);
    co_return here;
  }
  const std::optional<HostId> target = whom_to_ask();
  if (!target) co_return fail(ErrorCode::kUnavailable, "no leader of the metadata group is known");
  TETRAD_ASSERT(*target != self());
  Bytes body;
  // Hops so far, then the command.
  base::ByteWriter writer(body);
  writer.u8(0);
  writer.raw(command);
  Result<Bytes> reply = co_await rpc_.ask(*target, 0, Verb::kPropose, std::move(body), deadline);
  if (!reply) co_return std::unexpected<Error>(reply.error());
  base::ByteReader in(*reply);
  TETRAD_CO_TRY(const uint64_t index, in.read_u64());
  TETRAD_CO_TRY(const uint8_t refused, in.read_u8());
  Answer answer{MetaIndex{index}, {}};
  if (refused != 0)
    answer.outcome = std::unexpected<Error>(
        decode_error(BytesView(*reply).substr(reply->size() - in.remaining())));
  co_return answer;
}

/// A repair does not begin in the future: what is deleted until then would count as long dead.
Result<void> MetaServiceImpl::check_start(BytesView command) const {
  const auto decoded = decode_meta_command(command);
  if (!decoded) return {};
  if (const auto* lost = std::get_if<RemoveLostNodes>(&decoded->body))
    TETRAD_TRY_VOID(check_readers(*state_, lost->hosts));
  if (TETRAD_MUTANT(horizon_one_clock)) return {};
  const auto* const repaired = std::get_if<SetTabletRepaired>(&decoded->body);
  if (repaired == nullptr) return {};
  HybridClock& clock = membership_.clock();
  if (repaired->repaired_us <= clock.own_us(reactor_) + clock.skew_max_us()) return {};
  return fail(ErrorCode::kInvalid, "a repair that began at {}, which is {} ms ahead of the leader",
              repaired->repaired_us, (repaired->repaired_us - clock.own_us(reactor_)) / 1000);
}

Task<Result<MetaServiceImpl::Answer>> MetaServiceImpl::propose_here(Bytes command, Uuid id,
                                                                    base::Deadline deadline) {
  TETRAD_CO_TRY_VOID(check_start(command));
  base::OneShot<Result<Answer>> answered;
  const AnswerSetter setter = answered.setter();
  // Noted before the proposal: with one voter it may be applied before propose() returns.
  awaited_[id].push_back(setter);
  const auto position = driver_->propose(std::move(command));
  if (!position) {
    // The same command may wait already: a proposal that was repeated.
    std::vector<AnswerSetter>& waiting = awaited_[id];
    TETRAD_ASSERT(!waiting.empty());
    waiting.pop_back();
    if (waiting.empty()) awaited_.erase(id);
    co_return std::unexpected<Error>(position.error());
  }
  const auto timer = reactor_.call_at(deadline.at_us, [setter] {
    setter.set(fail(ErrorCode::kTimedOut, "not committed in time"));
  });
  Result<Answer> answer = co_await answered;
  reactor_.cancel(timer);
  // This attempt's waiter goes; another attempt with the same id may still wait.
  if (!answer) {
    const auto left = awaited_.find(id);
    if (left != awaited_.end()) {
      std::erase_if(left->second, [](const AnswerSetter& s) { return s.is_set(); });
      if (left->second.empty()) awaited_.erase(left);
    }
  }
  co_return answer;
}

Task<void> MetaServiceImpl::serve_proposal(Bytes body, base::Deadline deadline,
                                           RpcNode::Reply reply) {
  // From the network: an empty body is refused as unreadable, not read beyond its end.
  const auto hops = body.empty() ? kHopsMax : static_cast<uint8_t>(body[0]);
  Bytes encoded = body.empty() ? Bytes() : body.substr(1);
  const auto command = decode_proposal(
      encoded, TETRAD_MUTANT(formats_ungated) ? options_.format : state_->format, options_.format);
  if (!command && command.error().code == ErrorCode::kConfig) {
    // Who proposes it knows sooner than this node that all of them read it.
    reply.error(Error(ErrorCode::kUnavailable, command.error().message));
    co_return;
  }
  if (!command || encoded.size() > kMetaCommandBytesMax) {
    reply.error(Error(ErrorCode::kCorruption, "a metadata command that cannot be read"));
    co_return;
  }
  if (!driver_) {
    reply.error(Error(ErrorCode::kBootstrapping, "this node has no cluster yet"));
    co_return;
  }
  if (driver_->core().role() == RaftRole::kLeader) {
    Result<Answer> answer = co_await propose_here(std::move(encoded), command->id, deadline);
    if (answer)
      reply.ok(encode_answer(answer->index, answer->outcome));
    else
      reply.error(answer.error());
    co_return;
  }
  const auto leader = driver_->core().leader();
  // Passed on once at most, so two nodes that take each other for the leader do not send it to and
  // fro.
  if (!leader || *leader == self() || hops + 1 >= kHopsMax) {
    reply.error(Error(ErrorCode::kNotLeader, "no leader of the metadata group is known here"));
    co_return;
  }
  body[0] = static_cast<char>(hops + 1);
  Result<Bytes> forwarded =
      co_await rpc_.ask(*leader, 0, Verb::kPropose, std::move(body), deadline);
  reply.result(std::move(forwarded));
}

}  // namespace tetrad::replication
