// SPDX-License-Identifier: Apache-2.0
// nodetool's tables of figures, made of the node's metrics.
//
// One export of /metrics answers each of these verbs: a node keeps no figures only for tetractl.
// Rates are sums since the start of the node, as nodetool shows them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/shown_percentiles.h"
#include "tools/tetractl/metrics_text.h"
#include "tools/tetractl/orders.h"
#include "tools/tetractl/text_table.h"

namespace tetrad::tools {

using nlohmann::json;

namespace {

// Sums are doubles in the text and whole numbers in truth.
int64_t whole(double value) { return std::llround(value); }

// The same percentiles for programs, under names with their unit.
json figures_of(const ExportedHistogram& histogram) {
  json out = {{"count", histogram.count()}};
  for (const auto& [name, part] : base::kShownPercentiles) out[name] = histogram.at_us(part);
  return out;
}

}  // namespace

// Bounds of buckets, not exact latencies: a bucket ends at twice the bound of the one before.
// nodetool's columns and their order; SERIAL reads are among the reads there, and conditional
// statements are not among the writes.
int show_proxy_histograms(AdminClient& node, const Invocation& call) {
  const MetricsText metrics(node.text("/metrics"));
  const auto serial = [&](const char* name) {
    return metrics.histogram(name, "SERIAL").with(metrics.histogram(name, "LOCAL_SERIAL"));
  };
  constexpr const char* kRead = "tetrad_replication_read_seconds";
  constexpr const char* kWrite = "tetrad_replication_write_seconds";
  const ExportedHistogram conditional = serial(kWrite);
  struct Column {
    const char* heading;
    const char* name;  // for programs
    ExportedHistogram histogram;
  };
  const Column columns[] = {
      {"Read Latency", "read", metrics.histogram(kRead)},
      {"Write Latency", "write", metrics.histogram(kWrite).without(conditional)},
      {"Range Latency", "range", metrics.histogram("tetrad_replication_scan_seconds")},
      {"CAS Read Latency", "conditional_read", serial(kRead)},
      {"CAS Write Latency", "conditional_write", conditional},
      {"View Write Latency", "view_write",
       metrics.histogram("tetrad_replication_view_write_seconds")},
      {"CAS Wait", "conditional_wait",
       metrics.histogram("tetrad_replication_conditional_wait_seconds")}};
  if (call.as_json) {
    json out = json::object();
    for (const Column& column : columns) out[column.name] = figures_of(column.histogram);
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  std::string heading = fmt::format("{:<10}", "Percentile"), units = fmt::format("{:<10}", "");
  for (const Column& column : columns) {
    heading += fmt::format("{:>19}", column.heading);
    units += fmt::format("{:>19}", "(micros)");
  }
  fmt::print("proxy histograms\n{}\n{}\n", heading, units);
  for (const auto& [name, part] : {std::pair{"50%", 0.5},
                                   {"75%", 0.75},
                                   {"95%", 0.95},
                                   {"98%", 0.98},
                                   {"99%", 0.99},
                                   {"Min", 0.0},
                                   {"Max", 1.0}}) {
    std::string line = fmt::format("{:<10}", name);
    for (const Column& column : columns)
      line += fmt::format("{:>19.2f}", column.histogram.at_us(part));
    fmt::print("{}\n", line);
  }
  fmt::print("\n");
  return 0;
}

// nodetool shows thread pools, which Tetrad does not have: requests and reads of disk stand for
// them.
int show_pools(AdminClient& node, const Invocation& call) {
  const MetricsText metrics(node.text("/metrics"));
  const auto sum = [&](const char* name) { return whole(metrics.sum(name)); };
  const int64_t in_flight = sum("tetrad_server_requests_in_flight");
  // Requests that were begun: those in flight are not completed yet.
  const int64_t requests = sum("tetrad_server_requests_total");
  const int64_t overloaded = sum("tetrad_server_overloaded_total");
  const int64_t reads_waiting = sum("tetrad_io_reads_waiting");
  const int64_t reads_refused = sum("tetrad_io_reads_refused_total");
  // Names in the table, and the metrics that they are sums of.
  const std::pair<const char*, const char*> dropped[] = {
      {"MESSAGES_DROPPED", "tetrad_replication_messages_dropped_total"},
      {"CALLS_TIMED_OUT", "tetrad_replication_calls_timed_out_total"},
      {"CALLS_OVERLOADED", "tetrad_replication_calls_overloaded_total"},
      {"DISK_READS_LATE", "tetrad_io_reads_late_total"},
      {"HINTS_REFUSED", "tetrad_replication_hints_refused_total"}};
  if (call.as_json) {
    json lost = json::object();
    for (const auto& [name, metric] : dropped) lost[name] = sum(metric);
    fmt::print("{}\n",
               json({{"requests",
                      {{"active", in_flight},
                       {"completed", requests - in_flight},
                       {"refused", overloaded}}},
                     {"disk_reads", {{"pending", reads_waiting}, {"refused", reads_refused}}},
                     {"dropped", lost}})
                   .dump(2));
    return 0;
  }
  print_lines({{"Pool Name", "Active", "Pending", "Completed", "Blocked", "All time blocked"},
               {"Native-Transport-Requests", std::to_string(in_flight), "0",
                std::to_string(requests - in_flight), "0", std::to_string(overloaded)},
               {"DiskReads", "n/a", std::to_string(reads_waiting), "n/a", "0",
                std::to_string(reads_refused)}});
  fmt::print("\n");
  Lines lines = {{"Message type", "Dropped"}};
  for (const auto& [name, metric] : dropped) lines.push_back({name, std::to_string(sum(metric))});
  print_lines(lines);
  return 0;
}

int show_network(AdminClient& node, const Invocation& call) {
  const json info = node.fact("/info");
  const MetricsText metrics(node.text("/metrics"));
  const auto sum = [&](const char* name) { return whole(metrics.sum(name)); };
  // nodetool's word for the state of a node, in capitals.
  std::string mode = cell_text(info.value("state", json("joining")));
  for (char& c : mode) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (info.value("drained", false)) mode = "DRAINED";
  const int64_t streamed = sum("tetrad_replication_streamed_bytes_total");
  const int64_t mismatches = sum("tetrad_replication_digest_mismatches_total");
  const int64_t repairs = sum("tetrad_replication_read_repairs_total");
  const int64_t sent = sum("tetrad_replication_messages_sent_total");
  const int64_t received = sum("tetrad_replication_messages_received_total");
  const int64_t lost = sum("tetrad_replication_messages_dropped_total");
  const int64_t hints = sum("tetrad_replication_hints_pending");
  if (call.as_json) {
    fmt::print("{}\n", json({{"mode", mode},
                             {"streamed_bytes", streamed},
                             {"digest_mismatches", mismatches},
                             {"read_repairs", repairs},
                             {"messages_sent", sent},
                             {"messages_received", received},
                             {"messages_dropped", lost},
                             {"hints_pending", hints}})
                           .dump(2));
    return 0;
  }
  fmt::print("Mode: {}\nStreamed since the start: {}\n", mode,
             size_text(static_cast<uint64_t>(streamed)));
  fmt::print("Read Repair Statistics:\nMismatch (Blocking): {}\nMutations written: {}\n",
             mismatches, repairs);
  print_lines({{"Pool Name", "Active", "Pending", "Completed", "Dropped"},
               {"Messages sent", "n/a", "n/a", std::to_string(sent), std::to_string(lost)},
               {"Messages received", "n/a", "n/a", std::to_string(received), "n/a"},
               {"Hints", "n/a", std::to_string(hints),
                std::to_string(sum("tetrad_replication_hints_replayed_total")),
                std::to_string(sum("tetrad_replication_hints_refused_total"))}});
  return 0;
}

// Of all stores of the node together.
int show_compactions(AdminClient& node, const Invocation& call) {
  const MetricsText metrics(node.text("/metrics"));
  const auto sum = [&](const char* name) { return whole(metrics.sum(name)); };
  const int64_t running = sum("tetrad_storage_compactions_running");
  const int64_t flushes = sum("tetrad_storage_flushes_running");
  const int64_t pending = sum("tetrad_storage_pending_compaction_bytes");
  const int64_t level0 = sum("tetrad_storage_level0_files");
  const int64_t stopped = sum("tetrad_storage_writes_stopped");
  // nodetool's figure, which scripts wait for to be 0: those that run, and at least one for each
  // store with something to rewrite.
  const int64_t tasks =
      std::max(running, whole(metrics.not_zero("tetrad_storage_pending_compaction_bytes")));
  if (call.as_json) {
    fmt::print("{}\n", json({{"pending_tasks", tasks},
                             {"running", running},
                             {"flushes_running", flushes},
                             {"pending_bytes", pending},
                             {"level0_files", level0},
                             {"stores_that_stop_writes", stopped}})
                           .dump(2));
    return 0;
  }
  print_lines({{"pending tasks", std::to_string(tasks)},
               {"running compactions", std::to_string(running)},
               {"running flushes", std::to_string(flushes)},
               {"pending compaction data", size_text(static_cast<uint64_t>(pending))},
               {"files to sort into levels", std::to_string(level0)},
               {"stores that stop writes", std::to_string(stopped)}});
  return 0;
}

}  // namespace tetrad::tools
