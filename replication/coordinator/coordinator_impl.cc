// SPDX-License-Identifier: Apache-2.0
#include "replication/coordinator/coordinator_impl.h"

#include <algorithm>

namespace tetrad::replication {

void CoordinatorMetrics::register_in(base::MetricsRegistry& registry,
                                     const std::string& labels) const {
  const std::string comma = labels.empty() ? "" : labels + ",";
  for (size_t i = 0; i < kLevels; ++i) {
    const auto level = base::name_of(static_cast<ConsistencyLevel>(i));
    const std::string of_level = fmt::format("{}level=\"{}\"", comma, level);
    registry.add("tetrad_replication_write_seconds", "Latency of writes at the coordinator.",
                 of_level, write[i]);
    registry.add("tetrad_replication_read_seconds", "Latency of reads at the coordinator.",
                 of_level, read[i]);
  }
  const auto counter = [&](const char* name, const char* help, const base::Counter& value) {
    registry.add(fmt::format("tetrad_replication_{}_total", name), help, labels, value);
  };
  counter("unavailable", "Requests refused because too few replicas were live.", unavailable);
  counter("write_timeouts", "Writes that ran out of time.", write_timeouts);
  counter("read_timeouts", "Reads that ran out of time.", read_timeouts);
  counter("failures", "Requests that replicas failed.", failures);
  counter("digest_mismatches", "Reads whose replicas differed.", digest_mismatches);
  counter("read_repairs", "Mutations that read repair wrote.", read_repairs);
  counter("restamped", "Writes stamped anew because a replica had seen a later timestamp.",
          restamped);
  counter("speculative_retries", "Reads that asked one replica more because an answer was late.",
          speculative_retries);
}

CoordinatorImpl::CoordinatorImpl(base::Reactor& reactor, RpcNode& rpc, MetaService& meta,
                                 ReplicaService& replicas, HintStore& hints, HybridClock& clock,
                                 CoordinatorOptions options, Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      replicas_(replicas),
      hints_(hints),
      clock_(clock),
      options_(options),
      logger_(std::move(logger)) {}

CoordinatorImpl::~CoordinatorImpl() = default;

int64_t CoordinatorImpl::next_timestamp_us() {
  last_timestamp_us_ = std::max(last_timestamp_us_ + 1, clock_.now_us(reactor_.wall_time_us()));
  return last_timestamp_us_;
}

}  // namespace tetrad::replication
