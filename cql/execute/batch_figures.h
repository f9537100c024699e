// SPDX-License-Identifier: Apache-2.0
// How many partitions the batches of a shard's clients are over, for system_views.batch_metrics.
#pragma once

#include <array>

#include "base/recent_histogram.h"
#include "cql/protocol/request.h"

namespace tetrad::cql {

/// By the type of the batch: logged, unlogged, of counters. Conditional ones have one partition and
/// do not count, as in Cassandra. Belongs to its shard and thread; less than two kilobytes.
class BatchFigures {
 public:
  void note(BatchType type, size_t partitions, int64_t now_us) {
    of_[static_cast<size_t>(type)].record(partitions, 1, now_us);
  }
  const base::RecentHistogram& of(BatchType type) const { return of_[static_cast<size_t>(type)]; }

 private:
  std::array<base::RecentHistogram, 3> of_;
};

}  // namespace tetrad::cql
