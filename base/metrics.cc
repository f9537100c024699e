// SPDX-License-Identifier: Apache-2.0
// The Prometheus text format: lines of one name stand together, after their help and type.
#include "base/metrics.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace tetrad::base {
namespace {

/// Label sets as Prometheus writes them; `more` is the bound of a histogram's bucket.
std::string braces(const std::string& labels, const std::string& more = "") {
  if (labels.empty() && more.empty()) return "";
  if (labels.empty()) return "{" + more + "}";
  return more.empty() ? "{" + labels + "}" : "{" + labels + "," + more + "}";
}

/// Prometheus counts in each bucket everything up to its bound, so the sums run. The count is taken
/// of the same buckets, since the shard may write meanwhile and both must be equal.
void export_histogram(std::string& out, const std::string& name, const std::string& labels,
                      const LatencyHistogram& histogram) {
  uint64_t below = 0;
  for (int i = 0; i < LatencyHistogram::kBuckets - 1; ++i) {
    below += histogram.bucket(i);
    const double bound_s = static_cast<double>(uint64_t{1} << i) / 1e6;
    out += fmt::format("{}_bucket{} {}\n", name, braces(labels, fmt::format("le=\"{}\"", bound_s)),
                       below);
  }
  below += histogram.bucket(LatencyHistogram::kBuckets - 1);
  out += fmt::format("{}_bucket{} {}\n", name, braces(labels, "le=\"+Inf\""), below);
  out += fmt::format("{}_sum{} {}\n", name, braces(labels),
                     static_cast<double>(histogram.sum_us()) / 1e6);
  out += fmt::format("{}_count{} {}\n", name, braces(labels), below);
}

}  // namespace

void MetricsRegistry::add(std::string name, std::string help, std::string labels,
                          const Counter& counter, uint64_t parts) {
  TETRAD_ASSERT(parts != 0);  // the export divides by it
  const std::lock_guard lock(mutex_);
  entries_.push_back(
      {std::move(name), std::move(help), std::move(labels), &counter, parts, nullptr, {}});
}

void MetricsRegistry::add(std::string name, std::string help, std::string labels,
                          const LatencyHistogram& histogram) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(
      {std::move(name), std::move(help), std::move(labels), nullptr, 1, &histogram, {}});
}

void MetricsRegistry::add_gauge(std::string name, std::string help, std::string labels,
                                std::function<double()> read) {
  TETRAD_ASSERT(read != nullptr);
  const std::lock_guard lock(mutex_);
  entries_.push_back(
      {std::move(name), std::move(help), std::move(labels), nullptr, 1, nullptr, std::move(read)});
}

void MetricsRegistry::add_counter(std::string name, std::string help, std::string labels,
                                  std::function<double()> read) {
  TETRAD_ASSERT(read != nullptr);
  const std::lock_guard lock(mutex_);
  entries_.push_back({std::move(name), std::move(help), std::move(labels), nullptr, 1, nullptr,
                      std::move(read), "counter"});
}

std::string MetricsRegistry::export_text() const {
  const std::lock_guard lock(mutex_);
  std::vector<const Entry*> sorted;  // the format wants all lines of one name together
  for (const Entry& entry : entries_) sorted.push_back(&entry);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](auto* a, auto* b) { return a->name < b->name; });
  std::string out;
  const std::string* last = nullptr;
  for (const Entry* entry : sorted) {
    // HELP and TYPE once for each name, before its first series.
    if (last == nullptr || *last != entry->name) {
      const char* type = entry->counter ? "counter" : entry->histogram ? "histogram" : entry->type;
      out +=
          fmt::format("# HELP {} {}\n# TYPE {} {}\n", entry->name, entry->help, entry->name, type);
    }
    last = &entry->name;
    if (entry->counter && entry->parts != 1) {
      out += fmt::format(
          "{}{} {:.2f}\n", entry->name, braces(entry->labels),
          static_cast<double>(entry->counter->value()) / static_cast<double>(entry->parts));
    } else if (entry->counter) {
      out += fmt::format("{}{} {}\n", entry->name, braces(entry->labels), entry->counter->value());
    } else if (entry->histogram) {
      export_histogram(out, entry->name, entry->labels, *entry->histogram);
    } else {
      out += fmt::format("{}{} {}\n", entry->name, braces(entry->labels), entry->read());
    }
  }
  return out;
}

}  // namespace tetrad::base
