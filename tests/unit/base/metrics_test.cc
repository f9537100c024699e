// SPDX-License-Identifier: Apache-2.0
// The text that Prometheus reads.
#include "base/metrics.h"

#include <catch2/catch.hpp>

namespace tetrad::base {
namespace {

TEST_CASE("counters and gauges of one name stand together under one header") {
  MetricsRegistry registry;
  Counter reads, writes;
  reads.add();
  writes.add(41);
  writes.add();
  registry.add("tetrad_b_total", "Requests.", "verb=\"read\"", reads);
  registry.add_gauge("tetrad_a_bytes", "Bytes.", "", [] { return 2.5; });
  registry.add_counter("tetrad_c_total", "Hits.", "", [] { return 3.0; });
  registry.add("tetrad_b_total", "Requests.", "verb=\"write\"", writes);
  CHECK(registry.export_text() ==
        "# HELP tetrad_a_bytes Bytes.\n# TYPE tetrad_a_bytes gauge\ntetrad_a_bytes 2.5\n"
        "# HELP tetrad_b_total Requests.\n# TYPE tetrad_b_total counter\n"
        "tetrad_b_total{verb=\"read\"} 1\ntetrad_b_total{verb=\"write\"} 42\n"
        "# HELP tetrad_c_total Hits.\n# TYPE tetrad_c_total counter\ntetrad_c_total 3\n");
  CHECK(MetricsRegistry().export_text().empty());
}

TEST_CASE("a histogram's buckets are powers of two, cumulative, up to +Inf") {
  LatencyHistogram histogram;
  for (const int64_t us : {-5, 0, 1, 2, 3, 4, 5, 1024, 1025}) histogram.record(us);
  histogram.record(int64_t{1} << 40);
  CHECK(histogram.bucket(0) == 3);
  CHECK(histogram.bucket(1) == 1);
  CHECK(histogram.bucket(2) == 2);
  CHECK(histogram.bucket(3) == 1);
  CHECK(histogram.bucket(10) == 1);
  CHECK(histogram.bucket(11) == 1);
  CHECK(histogram.bucket(LatencyHistogram::kBuckets - 1) == 1);
  CHECK(histogram.count() == 10);
  MetricsRegistry registry;
  registry.add("tetrad_seconds", "Time.", "verb=\"x\"", histogram);
  const std::string text = registry.export_text();
  const auto has = [&](const char* line) { return text.find(line) != std::string::npos; };
  CHECK(has("# TYPE tetrad_seconds histogram\n"));
  CHECK(has("tetrad_seconds_bucket{verb=\"x\",le=\"1e-06\"} 3\n"));
  CHECK(has("tetrad_seconds_bucket{verb=\"x\",le=\"2e-06\"} 4\n"));
  CHECK(has("tetrad_seconds_bucket{verb=\"x\",le=\"+Inf\"} 10\n"));
  CHECK(has("tetrad_seconds_count{verb=\"x\"} 10\n"));
  CHECK(has("tetrad_seconds_sum{verb=\"x\"} "));
}

}  // namespace
}  // namespace tetrad::base
