// SPDX-License-Identifier: Apache-2.0
// To place a new option, name it under a heading; what is under none is a guardrail.
#include "server/config/option_themes.h"

#include <algorithm>

namespace tetrad::server {

bool OptionTheme::has(std::string_view option) const {
  return std::ranges::any_of(names, [&](std::string_view name) {
    if (!name.ends_with('*')) return name == option;
    return option.starts_with(name.substr(0, name.size() - 1));
  });
}

const std::vector<OptionTheme>& option_themes() {
  static const std::vector<OptionTheme> themes = {
      {"Where and who",
       {"data_directory", "listen_address", "broadcast_address", "rpc_address",
        "broadcast_rpc_address", "native_port", "broadcast_native_port", "internode_port",
        "admin_port", "admin_address", "insecure_listen", "log_level",
        "slow_query_log_timeout_ms"}},
      {"The cluster",
       {"seeds", "found", "cluster_name", "datacenter", "rack", "replace_after_s", "split_by_heat",
        "heat_split_*", "merge_*"}},
      {"Logins and the audit log",
       {"authenticator", "init_superuser*", "reset_superuser", "cidr_*", "audit_log_*"}},
      {"TLS and the secret of a cluster",
       {"client_encryption_*", "client_certificate_identity", "admin_encryption_enabled",
        "internode_encryption*", "cluster_secret_*"}},
      {"Durability and disks",
       {"commit_log_sync*", "scrub_period_s", "disk_encryption_key_file",
        "change_feed_retention_hours"}},
      {"Threads and memory",
       {"shards", "background_threads", "io_threads", "block_cache_mb", "row_cache_mb",
        "vector_graphs_mb", "write_buffer_mb", "connections_max",
        "requests_in_flight_per_connection_max", "request_memory_mb", "prepared_statements_max"}},
      {"Limits of requests",
       {"native_frame_mb_max", "mutation_mb_max", "read_timeout_ms", "range_timeout_ms",
        "write_timeout_ms", "counter_write_timeout_ms", "cas_contention_timeout_ms",
        "truncate_timeout_ms", "throughput_wait_ms", "request_charge", "batch_warn_kb",
        "batch_fail_kb"}},
      {"Functions and masks", {"user_defined_functions_*", "dynamic_data_masking_enabled"}},
      {"Guardrails, as Cassandra 5.0 names them", {"*"}},
  };
  return themes;
}

const OptionTheme& theme_of(std::string_view option) {
  return *std::ranges::find_if(option_themes(),
                               [&](const OptionTheme& theme) { return theme.has(option); });
}

}  // namespace tetrad::server
