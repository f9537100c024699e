// SPDX-License-Identifier: Apache-2.0
#include "replication/membership/leaving_runner.h"

#include "base/assert.h"

namespace tetrad::replication {

namespace {
constexpr int64_t kProposeUs = 5'000'000;
}

LeavingRunner::LeavingRunner(base::Reactor& reactor, MetaServiceImpl& meta, LeavingOptions options,
                             std::function<bool(HostId)> is_drained, Logger logger)
    : reactor_(reactor),
      meta_(meta),
      options_(options),
      is_drained_(std::move(is_drained)),
      logger_(std::move(logger)) {}

LeavingRunner::~LeavingRunner() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void LeavingRunner::start() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.period_us, [this] { look(); });
}

void LeavingRunner::look() {
  start();
  if (!meta_.is_leader() || proposing_) return;
  const MetaSnapshot state = meta_.snapshot();
  for (const auto& [host, node] : state->nodes) {
    if (node.state != NodeState::kLeaving || replicas_on(*state, host) != 0) continue;
    // Of one that is down another node holds the batches, too.
    if (state->format >= kFormatBatches && meta_.is_live(host) && !is_drained_(host)) continue;
    proposing_ = true;
    tasks_.spawn(set_state(host, NodeState::kRemoved));
    return;
  }
  if (options_.replace_after_us == 0) return;
  const auto host = node_to_replace(
      *state, [this](HostId node) { return meta_.is_live(node); },
      [this](HostId node) { return meta_.ticks_away(node); },
      meta_.ticks_of(options_.replace_after_us));
  if (!host) return;
  logger_.warn("node has been away for too long and is replaced host={} address={}",
               host->to_string(), state->node(*host)->address);
  proposing_ = true;
  tasks_.spawn(set_state(*host, NodeState::kLeaving));
}

/// Refused or lost: the next look repeats it.
Task<void> LeavingRunner::set_state(HostId host, NodeState state) {
  const std::string address = meta_.snapshot()->address_of(host);
  MetaCommandBody body(SetNodeState{host, state});
  const base::Deadline deadline{reactor_.now_us() + kProposeUs};
  Result<MetaIndex> done = co_await meta_.propose(std::move(body), deadline);
  TETRAD_ASSERT(proposing_);
  proposing_ = false;
  if (done && state == NodeState::kRemoved)
    logger_.info("node removed from the cluster host={} address={}", host.to_string(), address);
}

}  // namespace tetrad::replication
