// SPDX-License-Identifier: Apache-2.0
// Counters, gauges and latency histograms, exported as Prometheus text. A value is written by one
// shard's thread and read by the exporter at any time (relaxed atomics, no lock on the request
// path).
//
// A component has a struct of counters beside it, and registers pointers to them once. The exporter
// adds nothing up: each shard has series of its own, with a label.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace tetrad::base {

/// A number that only rises. One thread adds, any may read.
class Counter {
 public:
  /// A load and a store, no atomic addition: only one thread writes.
  void add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  /// What the writer had added a moment ago; exact once the writer stands still.
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

/// Latencies in microseconds in buckets of powers of two: 1, 2, 4 ... 2^26 us.
class LatencyHistogram {
 public:
  /// The last bound is 2^26 us, 67 seconds: longer than any deadline of a request by default.
  static constexpr int kBuckets = 27;
  /// Bucket i holds values up to 2^i us, the last one all that are larger; a time below zero counts
  /// as 0.
  void record(int64_t us) {
    const uint64_t v = us < 0 ? 0 : static_cast<uint64_t>(us);
    const int bucket = v <= 1 ? 0 : std::bit_width(v - 1);
    buckets_[bucket < kBuckets ? bucket : kBuckets - 1].add();
    sum_us_.add(v);
    count_.add();
  }
  /// The three are read one after the other while the shard writes, so they may differ by what came
  /// in between.
  uint64_t bucket(int index) const { return buckets_[index].value(); }
  uint64_t sum_us() const { return sum_us_.value(); }
  uint64_t count() const { return count_.value(); }

 private:
  std::array<Counter, kBuckets> buckets_;
  Counter sum_us_, count_;
};

/// What a node exports. Components register once, at start; names are
/// `tetrad_<room>_<noun>_<unit>[_total]`. Registered objects outlive the registry's last export.
/// Thread-safe.
class MetricsRegistry {
 public:
  /// `labels` as in Prometheus text without braces: `verb="read",level="one"`, or "".
  /// `parts`: the counter is divided by it when exported.
  void add(std::string name, std::string help, std::string labels, const Counter& counter,
           uint64_t parts = 1);
  /// Exported as a histogram with `_bucket`, `_sum` and `_count`, its bounds in seconds.
  void add(std::string name, std::string help, std::string labels,
           const LatencyHistogram& histogram);
  /// `read` is called by the exporter's thread at each export.
  void add_gauge(std::string name, std::string help, std::string labels,
                 std::function<double()> read);
  /// Of what only rises and is counted elsewhere.
  void add_counter(std::string name, std::string help, std::string labels,
                   std::function<double()> read);
  /// Prometheus text format 0.0.4.
  std::string export_text() const;

 private:
  /// One exported series, or the help of its family; exactly one of counter, histogram, read is set.
  struct Entry {
    std::string name, help, labels;
    const Counter* counter = nullptr;
    uint64_t parts = 1;
    const LatencyHistogram* histogram = nullptr;
    // Of a gauge or a counter that is read by a function; such a function must be safe on the
    // exporter's thread.
    std::function<double()> read;
    const char* type = "gauge";  // of what is read
  };
  // Registering and exporting may happen on different threads.
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace tetrad::base
