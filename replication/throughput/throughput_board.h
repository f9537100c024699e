// SPDX-License-Identifier: Apache-2.0
// What holders of buckets tell of the use of their throughputs (used_throughput.h): each shard 0
// tells all nodes what has changed, every five seconds, and all of it once in a minute.
//
//   kThroughputUse, one-way
//   report := u8 version (1), varint count, entry*
//   entry  := varint key, varint used RU/s, varint busiest RU/s, varint busiest RU/s of the hour before,
//             varint hour, varint refused, varint banked RU
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/reactor.h"
#include "base/result.h"
#include "replication/throughput/used_throughput.h"

namespace tetrad::replication {

/// Buckets whose use has changed, each once.
using ThroughputReport = std::vector<std::pair<ThroughputKey, UsedThroughput>>;
/// More go in another report.
inline constexpr size_t kThroughputReportEntriesMax = 2048;

Bytes encode_throughput_report(const ThroughputReport& report);
/// Errors: kCorruption.
Result<ThroughputReport> decode_throughput_report(BytesView body);

/// On shard 0 of every node. What nobody has reported for two hours is forgotten.
class ThroughputBoard {
 public:
  /// The newest report of a bucket, and when it came, by this node's clock.
  struct Told {
    UsedThroughput use;
    base::MonotonicUs at_us = 0;
  };
  using ByKey = std::unordered_map<ThroughputKey, Told>;

  void take(const ThroughputReport& report, base::MonotonicUs now_us);
  const ByKey& all() const { return told_; }
  /// Nothing: nobody has reported it.
  UsedThroughput of(ThroughputKey key) const;
  /// Rises with each change.
  uint64_t version() const { return version_; }

 private:
  ByKey told_;
  uint64_t version_ = 0;
  base::MonotonicUs forgotten_us_ = 0;
};

}  // namespace tetrad::replication
