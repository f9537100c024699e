// SPDX-License-Identifier: Apache-2.0
// How many logical partitions the tablets hold and how large they are: what Spark and others cut
// their scans by. Ring positions are hashes, so the first partitions of a tablet are a fair sample:
// their number, divided by the part of the tablet's range that they cover, estimates the whole.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "base/reactor.h"
#include "base/task.h"
#include "replication/coordinator/coordinator.h"
#include "replication/meta/meta_service.h"

namespace tetrad::cql {

/// Of one node's part of a tablet; zeros: nothing was read, or nothing is there.
struct TabletEstimate {
  int64_t partitions = 0, mean_bytes = 0;
};

/// From the partitions that a read of the start of a range gave, and the bytes of the whole range
/// (0: not known). Pure.
TabletEstimate estimate_tablet(const RingRange& range, const storage::ReadResult& first,
                               uint64_t bytes);

/// The part of a tablet that a replica answers for, so that every node has its share and none is
/// counted twice: the replicas cut its range into equal parts. Unset: the host has no part of it.
std::optional<RingRange> primary_part(const partitioner::Tablet& tablet, HostId host);

/// One per shard. Keeps what it found for a while.
class SizeEstimates {
 public:
  explicit SizeEstimates(replication::MetaService& meta) : meta_(meta) {}

  /// Looks at this node's parts of the tablets of one keyspace, or of all, whose estimate is old;
  /// ends early after some seconds. What cannot be read keeps its old estimate.
  Task<void> refresh(std::optional<std::string> keyspace, base::Reactor& reactor,
                     replication::Coordinator& coordinator);
  TabletEstimate of(TabletId tablet) const;

 private:
  /// The last estimate of a tablet, with what decides whether it is still good.
  struct Entry {
    TabletEstimate estimate;
    base::MonotonicUs made_us = 0;
    uint64_t bytes = 0;  // of the tablet, as reported then
  };
  replication::MetaService& meta_;
  std::unordered_map<TabletId, Entry> entries_;
};

}  // namespace tetrad::cql
