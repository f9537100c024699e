// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "server/node_views.h"

namespace tetrad::server {

namespace {

/// A timeout as nodetool calls it, and the names of its setting.
struct TimeoutName {
  std::string_view type;
  const char *ours, *cassandras;
};

constexpr TimeoutName kTimeouts[] = {
    {"read", "read_timeout_ms", "read_request_timeout"},
    {"range", "range_timeout_ms", "range_request_timeout"},
    {"write", "write_timeout_ms", "write_request_timeout"},
    {"counterwrite", "counter_write_timeout_ms", "counter_write_request_timeout"},
    {"cascontention", "cas_contention_timeout_ms", "cas_contention_timeout"},
    {"truncate", "truncate_timeout_ms", "truncate_request_timeout"},
};

/// A number under Cassandra's name, with its unit.
struct NumberName {
  const char* cassandras;
  uint64_t Options::*number;
  const char* unit;
};

constexpr NumberName kNumbers[] = {
    {"batch_size_warn_threshold", &Options::batch_warn_kb, "KiB"},
    {"batch_size_fail_threshold", &Options::batch_fail_kb, "KiB"},
    {"max_mutation_size", &Options::mutation_mb_max, "MiB"},
    {"native_transport_max_frame_size", &Options::native_frame_mb_max, "MiB"},
    {"native_transport_max_concurrent_connections", &Options::connections_max, ""},
    {"native_transport_port", &Options::native_port, ""},
    {"storage_port", &Options::internode_port, ""},
};

}  // namespace

std::vector<std::pair<std::string, std::string>> settings_of(
    const Options& options, const std::vector<StatementTimeout>& timeouts) {
  std::map<std::string, std::string> out;
  for (const OptionEntry& entry : option_table()) out[entry.name] = option_text(options, entry);
  for (const NumberName& name : kNumbers)
    out[name.cassandras] = fmt::format("{}{}", options.*name.number, name.unit);
  for (const StatementTimeout& timeout : timeouts) {
    const auto name = std::ranges::find(kTimeouts, timeout.type, &TimeoutName::type);
    if (name == std::end(kTimeouts)) continue;
    out[name->ours] = std::to_string(timeout.timeout_ms);
    out[name->cassandras] = fmt::format("{}ms", timeout.timeout_ms);
  }
  out["commitlog_sync"] = options.commit_log_sync;
  out["data_file_directories"] = fmt::format("[{}]", options.data_directory);
  out["partitioner"] = "org.apache.cassandra.dht.Murmur3Partitioner";
  return {out.begin(), out.end()};
}

}  // namespace tetrad::server
