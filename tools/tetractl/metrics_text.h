// SPDX-License-Identifier: Apache-2.0
// A node's metrics, as GET /metrics exports them (Prometheus text format 0.0.4).
//
// Example of what is read:
//   tetrad_replication_read_seconds_bucket{shard="0",le="0.001024"} 17
//   tetrad_server_requests_total{shard="0"} 1042
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tetrad::tools {

/// How many values lie at or below a bound, in seconds; ascending, the last bound is infinite.
/// From the buckets, so a value is known to a factor of two.
struct ExportedHistogram {
  std::vector<std::pair<double, uint64_t>> up_to;  // cumulative

  uint64_t count() const { return up_to.empty() ? 0 : up_to.back().second; }
  /// The bound of the bucket at or below which `part` of all values lies, in microseconds; 0
  /// without values. `part` from 0 to 1; 0 is the least value's bucket.
  double at_us(double part) const;
  /// The sum of both, of which one may be empty; and the rest, where the other one is a part of it.
  /// All have the bounds of one node's export.
  ExportedHistogram with(const ExportedHistogram& other) const;
  ExportedHistogram without(const ExportedHistogram& part) const;
};

/// All series of one export. Those of one name with different labels (shards, levels) are added up.
/// Made of one answer of /metrics; keeps nothing of the text.
class MetricsText {
 public:
  /// Lines that are none of the format are left out.
  explicit MetricsText(std::string_view text);

  /// 0: there is no such series.
  /// Of all series of that name: shards, stores, verbs and levels together.
  double sum(std::string_view name) const;
  /// Of how many series of that name the value is not 0: stores with something to do.
  double not_zero(std::string_view name) const;
  /// Empty: there is none of that name. With a level (`SERIAL`), only the series of that level.
  ExportedHistogram histogram(std::string_view name, std::string_view level = {}) const;

 private:
  // Names of buckets are kept without "_bucket", those of other lines as they are.
  struct Figures {
    double sum = 0;
    double not_zero = 0;
  };
  std::map<std::string, Figures, std::less<>> figures_;
  // By name, or name and level ("name SERIAL"); by bound.
  std::map<std::string, std::map<double, uint64_t>, std::less<>> buckets_;
};

}  // namespace tetrad::tools
