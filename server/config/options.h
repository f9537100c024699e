// SPDX-License-Identifier: Apache-2.0
// Every option of the server, in one table: name with unit, default, bounds, a sentence. The
// command line, --help and conf/tetrad.yaml come from it.
//
// To add one: a member of Options with its default, a line in options.cc, `tetrad --print-config`
// for conf/tetrad.yaml, and the README of conf. Options are read once, at the start; what changes
// while a node runs goes through Serving or a setting of the cluster.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/log.h"
#include "base/result.h"

namespace tetrad::server {

/// Of a number: the node chooses, by the memory it may use.
inline constexpr uint64_t kAutomatic = UINT64_MAX;

/// The options of one node, as defaults, file and command line give them. option_table() has the
/// meaning and the bounds of each.
struct Options {
  // Where and who. Addresses are texts here; addresses_of() makes and checks the real ones.
  std::string data_directory = "data";
  std::string listen_address = "127.0.0.1";
  std::string broadcast_address;      // empty: listen_address
  std::string rpc_address;            // empty: listen_address
  std::string broadcast_rpc_address;  // empty: rpc_address if it is said, else broadcast_address
  std::string admin_address;          // empty: listen_address if on loopback, else 127.0.0.1
  uint64_t shards = 0;                // 0: what it was first started with, 1
  uint64_t native_port = 9042, internode_port = 7000, admin_port = 9180;
  uint64_t broadcast_native_port = 0;  // 0: native_port
  // The cluster.
  std::string seeds;  // comma separated addresses, each with an optional :port
  bool found = false;
  std::string cluster_name = "tetrad";
  std::string datacenter = "datacenter1", rack = "rack1";
  std::string log_level = "info";
  std::string commit_log_sync = "periodic";
  bool insecure_listen = false;
  // Logins. The names of the classes are Cassandra's, since its configuration has them.
  std::string authenticator = "AllowAllAuthenticator";
  std::string cidr_authorizer = "AllowAllCIDRAuthorizer", cidr_authorizer_mode = "MONITOR";
  bool cidr_checks_for_superusers = false;
  std::string init_superuser;  // a role's name; empty: none is made
  std::string init_superuser_password_file;
  std::string reset_superuser;  // a role's name, as init_superuser; whoever can log in
  // TLS: paths are empty where nothing is encrypted.
  bool client_encryption_enabled = false, client_encryption_optional = false;
  bool client_encryption_require_client_auth = false;
  std::string client_encryption_certificate_file, client_encryption_key_file;
  std::string client_encryption_ca_file;
  std::string client_certificate_identity = "none";
  bool admin_encryption_enabled = false;
  std::string internode_encryption = "none";
  std::string internode_encryption_certificate_file, internode_encryption_key_file;
  std::string internode_encryption_ca_file;
  std::string cluster_secret_file;  // empty: nodes without TLS are not asked who they are
  bool cluster_secret_required = true;

  // The audit log. Lists of names have commas between.
  bool audit_log_enabled = false;
  std::string audit_log_directory;  // empty: in the data directory
  uint64_t audit_log_file_mb = 64, audit_log_files = 16;
  std::string audit_log_included_categories, audit_log_excluded_categories;
  std::string audit_log_included_keyspaces;
  std::string audit_log_excluded_keyspaces = "system,system_schema,system_virtual_schema";
  std::string audit_log_included_users, audit_log_excluded_users;

  // Durability, memory and threads; kAutomatic and 0: the node chooses by the machine
  // (memory_plan.h).
  uint64_t commit_log_sync_period_ms = 100;
  uint64_t block_cache_mb = kAutomatic, row_cache_mb = kAutomatic, write_buffer_mb = kAutomatic,
           vector_graphs_mb = kAutomatic;
  uint64_t background_threads = 0, io_threads = 0;
  uint64_t connections_max = 65'536, requests_in_flight_per_connection_max = 4'096;
  uint64_t request_memory_mb = 0;  // 0: a tenth of the memory
  uint64_t native_frame_mb_max = 16, mutation_mb_max = 16;
  // Limits of requests. The timeouts are what requests begin with; Serving::set_timeout() changes
  // them.
  uint64_t throughput_wait_ms = 100;
  uint64_t read_timeout_ms = 5'000, range_timeout_ms = 10'000, write_timeout_ms = 2'000;
  uint64_t counter_write_timeout_ms = 5'000, cas_contention_timeout_ms = 1'000;
  uint64_t truncate_timeout_ms = 60'000;
  uint64_t slow_query_log_timeout_ms = 500;
  uint64_t prepared_statements_max = 10'000;
  bool request_charge = false;
  // Data that moves, splits and is checked by itself.
  uint64_t replace_after_s = 3'600;
  bool split_by_heat = true;
  bool merge_when_cold = true;
  uint64_t merge_after_s = 60;
  uint64_t heat_split_ru_per_s = 8'000, heat_split_mb_per_s = 64, heat_split_busy_percent = 60;
  uint64_t scrub_period_s = 14 * 24 * 3'600;
  std::string disk_encryption_key_file;
  uint64_t change_feed_retention_hours = 24;
  uint64_t batch_warn_kb = 5, batch_fail_kb = 50;

  // Functions and masks.
  bool user_defined_functions_enabled = false;
  bool dynamic_data_masking_enabled = false;
  uint64_t user_defined_functions_steps_max = 1'000'000, user_defined_functions_memory_mb = 16;

  // Guardrails, as Cassandra 5.0 names them (config/guardrails.cc); 0: no limit.
  uint64_t keyspaces_warn_threshold = 0, keyspaces_fail_threshold = 0;
  uint64_t tables_warn_threshold = 0, tables_fail_threshold = 0;
  uint64_t columns_per_table_warn_threshold = 0, columns_per_table_fail_threshold = 0;
  uint64_t secondary_indexes_per_table_warn_threshold = 0,
           secondary_indexes_per_table_fail_threshold = 0;
  uint64_t materialized_views_per_table_warn_threshold = 0,
           materialized_views_per_table_fail_threshold = 0;
  uint64_t fields_per_udt_warn_threshold = 0, fields_per_udt_fail_threshold = 0;
  uint64_t vector_dimensions_warn_threshold = 0, vector_dimensions_fail_threshold = 0;
  uint64_t items_per_collection_warn_threshold = 0, items_per_collection_fail_threshold = 0;
  uint64_t page_size_warn_threshold = 0, page_size_fail_threshold = 0;
  uint64_t partition_keys_in_select_warn_threshold = 0, partition_keys_in_select_fail_threshold = 0;
  uint64_t in_select_cartesian_product_warn_threshold = 0,
           in_select_cartesian_product_fail_threshold = 0;
  uint64_t minimum_replication_factor_warn_threshold = 0,
           minimum_replication_factor_fail_threshold = 0;
  uint64_t maximum_replication_factor_warn_threshold = 0,
           maximum_replication_factor_fail_threshold = 0;
  uint64_t collection_size_warn_threshold = 0, collection_size_fail_threshold = 0;      // bytes
  uint64_t column_value_size_warn_threshold = 0, column_value_size_fail_threshold = 0;  // bytes
  uint64_t maximum_timestamp_warn_threshold = 0, maximum_timestamp_fail_threshold = 0;  // seconds
  uint64_t minimum_timestamp_warn_threshold = 0, minimum_timestamp_fail_threshold = 0;  // seconds
  uint64_t data_disk_usage_percentage_warn_threshold = 0,
           data_disk_usage_percentage_fail_threshold = 0;
  uint64_t data_disk_usage_max_disk_size = 0;                                     // bytes
  uint64_t partition_size_warn_threshold = 0, partition_size_fail_threshold = 0;  // bytes
  uint64_t partition_tombstones_warn_threshold = 0, partition_tombstones_fail_threshold = 0;
  // Names with commas between.
  std::string table_properties_warned, table_properties_ignored, table_properties_disallowed;
  std::string write_consistency_levels_warned, write_consistency_levels_disallowed;
  std::string read_consistency_levels_warned, read_consistency_levels_disallowed;
  // Switches: false refuses what the name says.
  bool user_timestamps_enabled = true, group_by_enabled = true, allow_filtering_enabled = true;
  bool drop_truncate_table_enabled = true, drop_keyspace_enabled = true;
  bool alter_table_enabled = true, read_before_write_list_operations_enabled = true;
  bool simplestrategy_enabled = true, uncompressed_tables_enabled = true;
  bool compact_tables_enabled = true, drop_compact_storage_enabled = true;
  bool zero_ttl_on_twcs_enabled = true, zero_ttl_on_twcs_warned = false;
  bool secondary_indexes_enabled = true, sasi_indexes_enabled = false;
};

// Of stores, too: each shard has one.
inline constexpr uint64_t kShardsMax = 256;

/// What may stand behind a number: 64KiB, 30d; without it bytes or seconds are meant.
enum class OptionUnit : uint8_t { kNone, kBytes, kSeconds };

/// One line of the table.
struct OptionEntry {
  using Target = std::variant<std::string Options::*, uint64_t Options::*, bool Options::*>;
  std::string name;  // in the file; on the command line with '-' for '_'
  // Which member it sets. The kind of the member is the kind of the option.
  Target target;
  uint64_t least = 0, most = 0;                // of a number
  std::vector<std::string_view> choices = {};  // of a text; empty: any
  std::string sentence;
  OptionUnit unit = OptionUnit::kNone;  // of a number
  bool is_list = false;                 // of a text: names with commas between, or a list of YAML
};

/// Made once; in the order of conf/tetrad.yaml.
const std::vector<OptionEntry>& option_table();
/// As it is written in the file.
std::string option_text(const Options& options, const OptionEntry& entry);
/// A number of which the node may choose the value itself: its default is kAutomatic.
bool may_be_automatic(const OptionEntry& entry);
/// "--listen-address".
std::string command_line_name(const OptionEntry& entry);

/// What the command line asks for.
struct CommandLine {
  Options options;
  bool show_help = false, show_version = false, print_config = false, check_config = false;
};

/// Reads the file named by --config first, then the command line over it. Errors: kConfig, a line
/// for each thing that is wrong: the option, the value and what is allowed. Touches nothing but the
/// file.
Result<CommandLine> read_command_line(int argc, const char* const* argv);

/// "debug", "info", "warn" or "error".
base::LogLevel log_level_named(std::string_view name);

std::string help_text();
/// A file that says every option. Of the defaults: conf/tetrad.yaml.
std::string config_text(const Options& options);

}  // namespace tetrad::server
