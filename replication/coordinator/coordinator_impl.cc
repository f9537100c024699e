// SPDX-License-Identifier: Apache-2.0
#include "replication/coordinator/coordinator_impl.h"

#include <algorithm>

#include "base/data_mutants.h"
#include "base/sleep.h"
#include "replication/rpc/verb_names.h"

namespace tetrad::replication {

namespace {

constexpr int64_t kClockLookUs = 5'000;
constexpr int64_t kBehindUs = 1'000'000;

}  // namespace

void CoordinatorMetrics::register_in(base::MetricsRegistry& registry,
                                     const std::string& labels) const {
  const std::string comma = labels.empty() ? "" : labels + ",";
  registry.add("tetrad_replication_logged_batches_total",
               "Logged batches over several partitions that were begun.", labels, logged_batches);
  registry.add("tetrad_replication_logged_batches_restored_total",
               "Versions of logged batches after the first, stored for a later timestamp or date.",
               labels, logged_restored);
  for (size_t i = 0; i < kLevels; ++i) {
    const auto level = base::name_of(static_cast<ConsistencyLevel>(i));
    const std::string of_level = fmt::format("{}level=\"{}\"", comma, level);
    registry.add("tetrad_replication_write_seconds", "Latency of writes at the coordinator.",
                 of_level, write[i]);
    registry.add("tetrad_replication_read_seconds",
                 "Latency of reads of one partition at the coordinator.", of_level, read[i]);
    registry.add("tetrad_replication_scan_seconds",
                 "Latency of reads of more than one partition at the coordinator.", of_level,
                 scan[i]);
    registry.add("tetrad_replication_unavailable_total",
                 "Requests refused because too few replicas were live.", of_level, unavailable[i]);
    registry.add("tetrad_replication_write_timeouts_total", "Writes that ran out of time.",
                 of_level, write_timeouts[i]);
    registry.add("tetrad_replication_read_timeouts_total", "Reads that ran out of time.", of_level,
                 read_timeouts[i]);
    registry.add("tetrad_replication_failures_total", "Requests that replicas failed.", of_level,
                 failures[i]);
  }
  const auto counter = [&](const char* name, const char* help, const base::Counter& value) {
    registry.add(fmt::format("tetrad_replication_{}_total", name), help, labels, value);
  };
  counter("digest_mismatches", "Reads whose replicas differed.", digest_mismatches);
  counter("index_mismatches", "Parts of indexes that replicas had differently.", index_mismatches);
  counter("read_repairs", "Mutations that read repair wrote.", read_repairs);
  counter("restamped", "Writes stamped anew because a replica had seen a later timestamp.",
          restamped);
  registry.add("tetrad_replication_conditional_wait_seconds",
               "How long conditional statements and SERIAL reads waited for others of their "
               "partition on this shard.",
               labels, conditional_wait);
  registry.add("tetrad_replication_view_write_seconds", "Latency of writes of rows of views.",
               labels, view_write);
  counter("conditional_contentions",
          "Ballots of conditional statements and SERIAL reads that lost against later ones.",
          conditional_contentions);
  counter("conditional_turns",
          "Turns that were waited for because others coordinate statements of the partition, too.",
          conditional_turns);
  counter("conditional_retries", "Conditional statements and SERIAL reads begun anew.",
          conditional_retries);
  counter("conditional_completed", "Conditional statements of others that were found half done.",
          conditional_completed);
  counter("conditional_alone",
          "Conditional statements and SERIAL reads decided by the only member without votes.",
          conditional_alone);
  counter("conditional_unknown",
          "Conditional statements of which it was not known in time whether they were applied.",
          conditional_unknown);
  counter("redated", "Writes dated anew because a replica found their deletions too old.", redated);
  counter("speculative_retries", "Reads that asked one replica more because an answer was late.",
          speculative_retries);
}

CoordinatorImpl::CoordinatorImpl(base::Reactor& reactor, base::Random& random, RpcNode& rpc,
                                 MetaService& meta, ReplicaService& replicas, PaxosService& paxos,
                                 TurnKeeper& turns, BallotSource ballots, HintStore& hints,
                                 HybridClock& clock, CoordinatorOptions options, Logger logger)
    : reactor_(reactor),
      random_(random),
      rpc_(rpc),
      meta_(meta),
      replicas_(replicas),
      paxos_(paxos),
      ballots_(ballots),
      hints_(hints),
      clock_(clock),
      options_(options),
      logger_(std::move(logger)),
      pace_(options.speculative_retry_least_us, options.speculative_retry_us),
      line_(reactor),
      turns_(reactor, rpc, turns),
      counters_(reactor, rpc, clock, replicas, *this, random.next()) {}

CoordinatorImpl::~CoordinatorImpl() = default;

int64_t CoordinatorImpl::next_timestamp_us() {
  const int64_t now_us = clock_.now_us(reactor_);
  // What was given before the own time was set right is given anew: nothing follows it.
  const bool follows =
      TETRAD_MUTANT(doubtful_stamp_kept) || last_timestamp_us_ - now_us <= clock_.skew_max_us();
  last_timestamp_us_ = follows ? std::max(last_timestamp_us_ + 1, now_us) : now_us;
  return last_timestamp_us_;
}

Result<void> CoordinatorImpl::check_clock() const {
  if (clock_.is_good() || TETRAD_MUTANT(quarantine_off)) return {};
  return std::unexpected(clock_.refusal());
}

Task<Result<void>> CoordinatorImpl::clock_settled(base::Deadline deadline) {
  while (clock_.standing() == ClockStanding::kSuspect && reactor_.now_us() < deadline.at_us)
    co_await base::sleep_for(reactor_, kClockLookUs);
  co_return check_clock();
}

std::string CoordinatorImpl::place_text(const StoreAddress& replica) const {
  if (replicas_.is_local(replica)) return fmt::format("local store {}", replica.store);
  if (replica.host == meta_.self()) return fmt::format("store {} of this node", replica.store);
  const MetaSnapshot state = meta_.snapshot();
  const auto node = state->nodes.find(replica.host);
  if (node == state->nodes.end()) return replica.host.to_string();
  return fmt::format("/{}:{}", node->second.address, node->second.internode_port);
}

std::string CoordinatorImpl::asking_text(std::string_view message,
                                         const StoreAddress& replica) const {
  return fmt::format("{} {} message to {}", replica.host == meta_.self() ? "Handing" : "Sending",
                     message, place_text(replica));
}

void CoordinatorImpl::call_replica(const TracePtr& trace, const StoreAddress& replica, Verb verb,
                                   BytesView body, base::Deadline deadline,
                                   RpcNode::ReplyCallback done) {
  if (trace == nullptr)
    return rpc_.call(replica.host, replica.store, verb, body, deadline, std::move(done));
  std::string name(name_of(verb));
  for (char& c : name) c = c == ' ' ? '_' : static_cast<char>(c - 'a' + 'A');
  std::string received = fmt::format("{} message received from /{}", name, rpc_.self_endpoint());
  rpc_.call_timed(
      replica.host, replica.store, verb, body, deadline,
      [trace, host = replica.host, received = std::move(received), done = std::move(done)](
          Result<Bytes> answer, std::optional<uint32_t> worked_us) mutable {
        if (worked_us)
          trace->add_of(host, *worked_us, std::move(received),
                        fmt::format("{} after {} microseconds{}", answer ? "Answered" : "Refused",
                                    *worked_us, answer ? "" : ": " + answer.error().message));
        done(std::move(answer));
      });
}

std::string CoordinatorImpl::rows_text(const storage::ReadResult& result) {
  if (result.count) return fmt::format("{} live rows, counted there", result.live_row_count);
  return fmt::format("{} live rows of {} partitions", result.live_row_count,
                     result.partitions.size());
}

void CoordinatorImpl::note_own_read(const TracePtr& trace, const storage::ReadResult& result,
                                    uint32_t store) {
  if (trace != nullptr)
    trace->add(fmt::format("Read {} from local store {}", rows_text(result), store));
}

void CoordinatorImpl::note_behind(const StoreAddress& replica) {
  behind_until_us_[replica] = reactor_.now_us() + kBehindUs;
}

void CoordinatorImpl::ask_last_who_is_behind(std::vector<StoreAddress>& candidates) {
  if (behind_until_us_.empty()) return;
  const base::MonotonicUs now_us = reactor_.now_us();
  std::erase_if(behind_until_us_, [now_us](const auto& one) { return one.second < now_us; });
  std::stable_partition(candidates.begin(), candidates.end(), [this](const StoreAddress& replica) {
    return !behind_until_us_.contains(replica);
  });
}

void CoordinatorImpl::ask_good_ones_first(std::vector<StoreAddress>& candidates) {
  slow_replicas_.ask_last(candidates, reactor_.now_us());
  ask_last_who_is_behind(candidates);
}

std::vector<StoreAddress> CoordinatorImpl::live_members(
    const std::vector<StoreAddress>& set) const {
  std::vector<StoreAddress> out;
  out.reserve(set.size());
  for (const StoreAddress& replica : set) {
    if (replicas_.is_local(replica)) out.push_back(replica);
  }
  for (const StoreAddress& replica : set) {
    if (!replicas_.is_local(replica) && replica.host == meta_.self()) out.push_back(replica);
  }
  for (const StoreAddress& replica : set) {
    if (replica.host != meta_.self() && meta_.is_live(replica.host)) out.push_back(replica);
  }
  if (meta_.store_troubles().empty()) return out;
  std::erase_if(out,
                [this](const StoreAddress& replica) { return !meta_.is_replica_live(replica); });
  // A damaged store may fail to read: sound ones are asked first.
  std::ranges::stable_partition(out, [this](const StoreAddress& replica) {
    return meta_.state_of(replica) != storage::StoreState::kDamaged;
  });
  return out;
}

}  // namespace tetrad::replication
