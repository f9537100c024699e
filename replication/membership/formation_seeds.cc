// SPDX-License-Identifier: Apache-2.0
// A node that has no cluster yet asks its seeds who they are, all at once, again and again, until
// one of them takes it in or the rule of introduction.h lets it found (step 3 of formation.cc). What
// it waits for is named in the log.
#include <algorithm>

#include "base/sleep.h"
#include "replication/membership/formation.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kAskUs = 300'000;  // a seed that is not up yet says nothing
constexpr int64_t kFirstLogUs = 1'500'000;
constexpr int64_t kLogAgainUs = 10'000'000;
// A place that refuses this node is not asked for this long, and named in the log once a minute.
constexpr int64_t kLeaveAloneUs = 10'000'000;

void take_answer(SeedAnswer& answer, const Result<Bytes>& said) {
  if (said) {
    auto introduced = decode_introduction(*said);
    if (introduced) answer.said = std::move(*introduced);
  } else {
    // An older program does not know the verb: it is a node all the same.
    answer.is_older = said.error().code == ErrorCode::kProtocol;
  }
}

}  // namespace

Task<Result<Bytes>> Formation::ask(Endpoint seed, Verb verb, Bytes body) {
  base::OneShot<Result<Bytes>> answered;
  const auto setter = answered.setter();
  RpcNode::ReplyCallback done = [setter](Result<Bytes> result) { setter.set(std::move(result)); };
  const base::Deadline deadline{reactor_.now_us() + kAskUs};
  rpc_.call_endpoint(seed, verb, body, deadline, std::move(done));
  Result<Bytes> answer = co_await answered;
  co_return answer;
}

// What the answer says of the seed itself: that it is this node, or why the connection was refused.
void Formation::learn_seed(SeedAnswer& answer) {
  if (answer.said && answer.said->host == identity_.host) own_seeds_.insert(answer.seed);
  if (!answer.said && !answer.is_older && options_.refusal)
    answer.refusal = options_.refusal(answer.seed);
  if (!answer.said && options_.is_reached) answer.is_reached = options_.is_reached(answer.seed);
}

Task<SeedAnswer> Formation::identify(Endpoint seed) {
  SeedAnswer answer;
  answer.seed = seed;
  Bytes body = encode_introduction(introduction(HostId()));
  Result<Bytes> said = co_await ask(seed, Verb::kIdentify, std::move(body));
  take_answer(answer, said);
  learn_seed(answer);
  co_return answer;
}

/// All at once: what one says counts beside what the others say at the same time.
Task<std::vector<SeedAnswer>> Formation::identify_seeds() {
  struct Round {
    std::vector<SeedAnswer> answers;
    size_t left = 0;
    base::OneShot<bool> done;
  };
  const auto round = std::make_shared<Round>();
  round->answers.resize(options_.seeds.size());
  round->left = options_.seeds.size() + 1;
  const Bytes body = encode_introduction(introduction(HostId()));
  const base::Deadline deadline{reactor_.now_us() + kAskUs};
  for (size_t i = 0; i < options_.seeds.size(); ++i) {
    SeedAnswer& answer = round->answers[i];
    answer.seed = options_.seeds[i];
    // Its own answer, without a message.
    if (answer.seed == rpc_.self_endpoint()) {
      answer.said = introduction(identity_.host);
      --round->left;
      continue;
    }
    rpc_.call_endpoint(answer.seed, Verb::kIdentify, body, deadline,
                       [round, &answer](const Result<Bytes>& said) {
                         take_answer(answer, said);
                         if (--round->left == 0) round->done.setter().set(true);
                       });
  }
  // One more than there are, so that the last answer finds all calls made.
  if (--round->left != 0) co_await round->done;
  for (SeedAnswer& answer : round->answers) learn_seed(answer);
  co_return std::move(round->answers);
}

/// One round. True when it is over: this node has founded a cluster or was taken into one.
Task<Result<bool>> Formation::join_or_found() {
  std::vector<SeedAnswer> answers = co_await identify_seeds();
  bool all_answered = true;
  for (const SeedAnswer& answer : answers) {
    all_answered &= answer.said || answer.is_older;
    // Every member knows it: nobody may found a cluster with this id.
    // Known there by the host id that it stored before its end: only a new one can come in.
    if (answer.said && answer.said->standing == Standing::kRemoved) {
      be_removed(answer.seed);
      co_return true;
    }
  }
  FormationStep step = next_formation_step(introduction(HostId()), answers);
  if (step.kind == FormationStep::Kind::kFound) {
    Result<void> founded = co_await found();
    if (!founded) co_return std::unexpected<Error>(founded.error());
    co_return true;
  }
  if (step.kind == FormationStep::Kind::kWait) {
    log_waiting(step.waits_for, step.needs_order);
    co_return false;
  }
  // Members are asked one after another; the first that takes this node in ends it.
  Result<bool> joined = co_await join_through(std::move(step.members), all_answered);
  co_return joined;
}

/// Refusals are final only when there is no other seed left that may take this node in.
Task<Result<bool>> Formation::join_through(std::vector<Endpoint> members, bool all_answered) {
  std::optional<Error> refused;
  std::string why;
  for (const Endpoint& seed : members) {
    Bytes request = join_request();
    Result<Bytes> answer = co_await ask(seed, Verb::kJoin, std::move(request));
    if (!answer) {
      if (answer.error().code == ErrorCode::kConfig)
        refused = Error(ErrorCode::kConfig,
                        fmt::format("seed {} refuses this node: {}", seed, answer.error().message));
      why = fmt::format("seed {} has a cluster: {}", seed, answer.error().message);
      continue;
    }
    const auto cluster_id = uuid_of(BytesView(*answer).substr(0, 16));
    // An answer without an id is not of a cluster.
    if (!cluster_id || cluster_id->is_nil()) continue;
    Result<void> begun = co_await begin_joined(*cluster_id);
    TETRAD_CO_TRY_VOID(std::move(begun));
    logger_.info("taken into a cluster id={} by={}", cluster_id->to_string(), seed);
    TETRAD_CO_TRY_VOID(learn_members(*answer));
    co_return true;
  }
  // With a silent seed the refusal need not be the last word; with data of a cluster it never is.
  if (refused && all_answered && identity_.cluster_id.is_nil())
    co_return std::unexpected<Error>(*refused);
  log_waiting(why);
  co_return false;
}

Task<Result<void>> Formation::begin_joined(Uuid cluster_id) {
  identity_.cluster_id = cluster_id;
  std::vector<storage::LocalLog::Operation> nothing_more;
  Result<void> stored = co_await write_identity(std::move(nothing_more));
  TETRAD_CO_TRY_VOID(std::move(stored));
  // Empty: the leader sends the log or an image to the new member.
  RaftDriver::Stored nothing;
  nothing.raft = RaftStored::joining();
  TETRAD_CO_TRY_VOID(meta_.start(cluster_id, std::move(nothing)));
  co_return Result<void>();
}

void Formation::log_waiting(const std::string& what_for, bool needs_order) {
  const base::MonotonicUs now_us = reactor_.now_us();
  if (waiting_since_us_ == 0) {
    waiting_since_us_ = now_us;
    // The first line after a moment, then seldom.
    next_log_us_ = now_us + kFirstLogUs;
  }
  if (now_us < next_log_us_) return;
  next_log_us_ = now_us + kLogAgainUs;
  logger_.warn(
      "still waiting for {}: {}{}",
      identity_.cluster_id.is_nil() ? "a cluster" : "the other nodes of the cluster", what_for,
      needs_order ? " (if none of the seeds has one, and some are gone for good: start one "
                    "node with --found)"
                  : "");
}

void Formation::leave_alone(const Endpoint& seed, const std::string& why) {
  LeftAlone& alone = left_alone_[seed];
  const base::MonotonicUs now_us = reactor_.now_us();
  alone.until_us = now_us + kLeaveAloneUs;
  if (alone.said_us != 0 && now_us < alone.said_us + kSayAgainUs) return;
  alone.said_us = now_us;
  logger_.warn("{} is not asked for a while: {}", seed, why);
}

}  // namespace tetrad::replication
