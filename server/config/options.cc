// SPDX-License-Identifier: Apache-2.0
// The one table of options, and the texts that are made of it. Options of TLS, the audit log and
// guardrails are in files of their own beside this one.
#include "server/config/options.h"

#include <algorithm>
#include <cctype>

#include "replication/repair/purge_horizon.h"
#include "server/config/audit.h"
#include "server/config/encryption.h"
#include "server/config/guardrails.h"
#include "server/config/option_themes.h"

namespace tetrad::server {
namespace {

/// What was deleted is purged once no request can be under way that began before (rule 18).
constexpr uint64_t kRequestTimeoutMax_ms =
    static_cast<uint64_t>(replication::HorizonSlack().longest_deadline_us) / 1000;

std::string default_text(const OptionEntry& entry) { return option_text(Options(), entry); }

// "1 to 65535", "true or false", or the words that may be said.
std::string allowed_text(const OptionEntry& entry) {
  if (std::holds_alternative<uint64_t Options::*>(entry.target)) {
    const char* const units = entry.unit == OptionUnit::kBytes     ? "; B, KiB, MiB, GiB"
                              : entry.unit == OptionUnit::kSeconds ? "; s, m, h, d"
                                                                   : "";
    return fmt::format("{} to {}{}{}", entry.least, entry.most, units,
                       may_be_automatic(entry) ? "; auto" : "");
  }
  if (std::holds_alternative<bool Options::*>(entry.target)) return "true or false";
  std::string out;
  for (const auto choice : entry.choices) out += (out.empty() ? "" : ", ") + std::string(choice);
  return out;
}

// What reads as something else in YAML, or ends early, stands in quotes.
std::string yaml_text(const std::string& value) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == ',' || c == '/';
  };
  const bool begins_well = !value.empty() && value[0] != '-' && value[0] != ',';
  const bool is_null = value == "null" || value == "Null" || value == "NULL";
  if (begins_well && !is_null && std::ranges::all_of(value, is_plain)) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out.push_back('\\');
    if (static_cast<unsigned char>(c) < ' ')
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      out.push_back(c);
  }
  return out + "\"";
}

// The rest of the table, in the order of conf/tetrad.yaml.
std::vector<OptionEntry> with_themes(std::vector<OptionEntry> table) {
  append_encryption_options(table);
  append_audit_options(table);
  append_guardrail_options(table);
  return table;
}

}  // namespace

std::string command_line_name(const OptionEntry& entry) {
  std::string out = "--" + std::string(entry.name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

bool may_be_automatic(const OptionEntry& entry) {
  const auto* number = std::get_if<uint64_t Options::*>(&entry.target);
  return number != nullptr && Options().**number == kAutomatic;
}

std::string option_text(const Options& options, const OptionEntry& entry) {
  if (const auto* text = std::get_if<std::string Options::*>(&entry.target)) return options.**text;
  if (const auto* number = std::get_if<uint64_t Options::*>(&entry.target))
    return options.**number == kAutomatic ? "auto" : std::to_string(options.**number);
  return options.*std::get<bool Options::*>(entry.target) ? "true" : "false";
}

// One table: an entry for each option. An entry is name, member of Options,
// least and largest value (0, 0: no numbers), allowed words, and the sentence of --help.
const std::vector<OptionEntry>& option_table() {
  constexpr uint64_t kPortMax = 65'535;
  static const std::vector<OptionEntry> table = with_themes({
      {"data_directory",
       &Options::data_directory,
       0,
       0,
       {},
       "Where the node keeps its data; made if absent."},
      {"listen_address",
       &Options::listen_address,
       0,
       0,
       {},
       "The IP address where other nodes, and clients unless rpc_address is said, are listened "
       "for; "
       "they use the same one unless the next four say otherwise."},
      {"broadcast_address",
       &Options::broadcast_address,
       0,
       0,
       {},
       "The IP address at which other nodes reach this one, and which seeds name; empty: "
       "listen_address, which may be a wildcard (0.0.0.0) only if this is said."},
      {"rpc_address",
       &Options::rpc_address,
       0,
       0,
       {},
       "The IP address where clients are listened for; empty: listen_address."},
      {"broadcast_rpc_address",
       &Options::broadcast_rpc_address,
       0,
       0,
       {},
       "The IP address at which drivers reach this node; empty: rpc_address if that is set, else "
       "broadcast_address."},
      {"broadcast_native_port",
       &Options::broadcast_native_port,
       0,
       kPortMax,
       {},
       "The port at which drivers reach this node; 0: native_port."},
      {"native_port", &Options::native_port, 1, kPortMax, {}, "Port for CQL clients."},
      {"internode_port", &Options::internode_port, 1, kPortMax, {}, "Port for the other nodes."},
      {"admin_port",
       &Options::admin_port,
       1,
       kPortMax,
       {},
       "Port for tetractl, /health, /ready and /metrics; browsers get a page at / that leads to "
       "the node's facts as JSON (HTTP)."},
      {"admin_address",
       &Options::admin_address,
       0,
       0,
       {},
       "The IP address of the admin port; empty: listen_address if that is on loopback, else "
       "127.0.0.1. At listen_address only /health, /ready and /metrics are answered besides."},
      {"insecure_listen",
       &Options::insecure_listen,
       0,
       0,
       {},
       "Allow a listen_address off loopback although nodes trust whoever reaches their port, or "
       "clients need not log in or encrypt, and an admin_address although anybody may read its "
       "facts."},
      {"authenticator",
       &Options::authenticator,
       0,
       0,
       {"AllowAllAuthenticator", "PasswordAuthenticator"},
       "PasswordAuthenticator: clients log in with a role and its password, and may do what was "
       "granted to it; the same for all nodes. AllowAllAuthenticator: anybody may do everything, "
       "and credentials are taken unread."},
      {"cidr_authorizer",
       &Options::cidr_authorizer,
       0,
       0,
       {"AllowAllCIDRAuthorizer", "CassandraCIDRAuthorizer"},
       "CassandraCIDRAuthorizer: roles WITH ACCESS FROM CIDRS are used from addresses of these "
       "groups "
       "only (tetractl updatecidrgroup makes them); the same for all nodes. "
       "AllowAllCIDRAuthorizer: "
       "nobody looks."},
      {"cidr_authorizer_mode",
       &Options::cidr_authorizer_mode,
       0,
       0,
       {"MONITOR", "ENFORCE"},
       "MONITOR: roles used from elsewhere are logged and counted. ENFORCE: they are refused."},
      {"cidr_checks_for_superusers",
       &Options::cidr_checks_for_superusers,
       0,
       0,
       {},
       "Superusers, too, are bound to the groups of their roles."},
      {"init_superuser",
       &Options::init_superuser,
       0,
       0,
       {},
       "Make this role a superuser who can log in, once, if there is none yet: with the password "
       "of init_superuser_password_file, or of TETRAD_SUPERUSER_PASSWORD in the environment, or "
       "one that is made and printed."},
      {"init_superuser_password_file",
       &Options::init_superuser_password_file,
       0,
       0,
       {},
       "The file whose first line is the password of init_superuser."},
      {"reset_superuser",
       &Options::reset_superuser,
       0,
       0,
       {},
       "For who has lost the password: make this role a superuser who can log in, even if there is "
       "one, with a password as init_superuser has it. At each start: take it out again."},
      {"seeds",
       &Options::seeds,
       0,
       0,
       {},
       "Addresses of nodes of the cluster, separated by commas, each with :port if its internode "
       "port is another; the same for all nodes. A new node joins the cluster of one of them; when "
       "none has one, and all answer, one of them founds it. Empty or only this node: a cluster of "
       "its own.",
       OptionUnit::kNone,
       true},
      {"found",
       &Options::found,
       0,
       0,
       {},
       "Found a cluster although not all seeds answer; for one new node, once. Without effect "
       "where "
       "a seed that answers has a cluster, or the node has one."},
      {"cluster_name",
       &Options::cluster_name,
       0,
       0,
       {},
       "Name of the cluster; fixed when it is first started."},
      {"datacenter",
       &Options::datacenter,
       0,
       0,
       {},
       "The data centre of this node, as drivers see it."},
      {"rack", &Options::rack, 0, 0, {}, "The fault domain of this node."},
      {"log_level",
       &Options::log_level,
       0,
       0,
       {"debug", "info", "warn", "error"},
       "Least level that is logged."},
      {"shards",
       &Options::shards,
       0,
       kShardsMax,
       {},
       "Threads that serve, each with its own event loop, connections and store. Fixed when the "
       "node is first started: another number is refused later; 0: that number, 1 for a new node."},
      {"commit_log_sync",
       &Options::commit_log_sync,
       0,
       0,
       {"periodic", "group"},
       "periodic: an acknowledged write survives the end of the process, and is synced to disk "
       "every "
       "commit_log_sync_period_ms; group: it is on disk before it is acknowledged."},
      {"commit_log_sync_period_ms",
       &Options::commit_log_sync_period_ms,
       1,
       60'000,
       {},
       "Milliseconds between two syncs when commit_log_sync is periodic."},
      {"block_cache_mb",
       &Options::block_cache_mb,
       8,
       1 << 20,
       {},
       "Memory for blocks read from disk, in MiB; auto: an eighth of the memory, 512 at most."},
      {"row_cache_mb",
       &Options::row_cache_mb,
       0,
       1 << 20,
       {},
       "Memory for rows of partitions that are read again and again, in MiB; 0: none is used; "
       "auto: "
       "a 64th of the memory, 64 at most."},
      {"vector_graphs_mb",
       &Options::vector_graphs_mb,
       0,
       1 << 20,
       {},
       "Memory for graphs of indexed vectors, in MiB; queries of those that have no room, or all "
       "with "
       "0, measure every vector; auto: a tenth of the memory."},
      {"write_buffer_mb",
       &Options::write_buffer_mb,
       1,
       4'096,
       {},
       "MiB of rows that a store holds in memory before they go to a file; all stores of the node "
       "together have room for four such, or for two each if there are more than two; auto: "
       "together "
       "an eighth of the memory, 64 each at most."},
      {"background_threads",
       &Options::background_threads,
       0,
       64,
       {},
       "Threads that compact, of all stores; 0: half the cores, at least 2."},
      {"io_threads",
       &Options::io_threads,
       0,
       256,
       {},
       "Threads for reads that miss the cache; 0: 4 for each core, at most 64."},
      {"connections_max",
       &Options::connections_max,
       1,
       1 << 20,
       {},
       "Client connections at a time; more are closed. Fewer if the limit of open files is low."},
      {"requests_in_flight_per_connection_max",
       &Options::requests_in_flight_per_connection_max,
       1,
       32'768,
       {},
       "Requests of one connection at a time; beyond it the node stops reading from it."},
      {"request_memory_mb",
       &Options::request_memory_mb,
       0,
       1 << 20,
       {},
       "MiB of requests in flight, beyond which clients get OVERLOADED; 0: a tenth of the "
       "memory."},
      {"native_frame_mb_max",
       &Options::native_frame_mb_max,
       1,
       256,
       {},
       "Largest request of a client in MiB."},
      {"mutation_mb_max",
       &Options::mutation_mb_max,
       1,
       256,
       {},
       "Largest change of one logical partition in MiB."},
      {"read_timeout_ms",
       &Options::read_timeout_ms,
       1,
       kRequestTimeoutMax_ms,
       {},
       "Time for a read of named partitions, in ms."},
      {"range_timeout_ms",
       &Options::range_timeout_ms,
       1,
       kRequestTimeoutMax_ms,
       {},
       "Time for a page of a scan and for an aggregate, in ms."},
      {"write_timeout_ms",
       &Options::write_timeout_ms,
       1,
       kRequestTimeoutMax_ms,
       {},
       "Time for a write, in ms."},
      {"counter_write_timeout_ms",
       &Options::counter_write_timeout_ms,
       1,
       kRequestTimeoutMax_ms,
       {},
       "Time for a write of counters, in ms."},
      {"cas_contention_timeout_ms",
       &Options::cas_contention_timeout_ms,
       1,
       kRequestTimeoutMax_ms,
       {},
       "Time in which a conditional statement is tried again after others of its partition, in ms; "
       "never beyond that for a write."},
      {"throughput_wait_ms",
       &Options::throughput_wait_ms,
       0,
       60'000,
       {},
       "Requests beyond the throughput of their table or keyspace wait so long at most, in ms; "
       "those "
       "that would wait longer are refused."},
      {"truncate_timeout_ms",
       &Options::truncate_timeout_ms,
       1,
       3'600'000,
       {},
       "Time for a TRUNCATE, in ms."},
      {"prepared_statements_max",
       &Options::prepared_statements_max,
       1,
       10'000'000,
       {},
       "Prepared statements kept; beyond it the least recently used one goes."},
      {"request_charge",
       &Options::request_charge,
       0,
       0,
       {},
       "Each answer tells in its custom payload, as RequestCharge, what the request cost in "
       "request "
       "units; otherwise only to clients that send a payload with that key."},
      {"replace_after_s",
       &Options::replace_after_s,
       1,
       1 << 24,
       {},
       "Seconds that a node stays away before others take its replicas and its vote in the "
       "metadata group."},
      {"split_by_heat",
       &Options::split_by_heat,
       0,
       0,
       {},
       "Splits physical partitions that get much work for seconds, where the work halves; the next "
       "three say what is much."},
      {"heat_split_ru_per_s",
       &Options::heat_split_ru_per_s,
       0,
       1 << 30,
       {},
       "Request units per second of a physical partition, at one replica, from which on it is hot; "
       "0: never by this."},
      {"heat_split_mb_per_s",
       &Options::heat_split_mb_per_s,
       0,
       1 << 20,
       {},
       "The same in MiB read and written per second."},
      {"heat_split_busy_percent",
       &Options::heat_split_busy_percent,
       0,
       100,
       {},
       "A hot physical partition is split when the thread of its store has worked for this "
       "percentage of the last second, or when it uses up its part of its table's throughput."},
      {"merge_when_cold",
       &Options::merge_when_cold,
       0,
       0,
       {},
       "Merges neighbouring physical partitions that are small and get little work, down to as "
       "many "
       "as the table began with or its throughput needs."},
      {"merge_after_s",
       &Options::merge_after_s,
       1,
       1 << 24,
       {},
       "Seconds that both must have been so; where a merge was undone before, 10 and 60 times as "
       "many."},
      {"scrub_period_s",
       &Options::scrub_period_s,
       0,
       1 << 30,
       {},
       "Seconds in which every block on disk is read once, so that rot is found while other "
       "replicas "
       "have what it hit; 0: only when asked, by tetractl verify."},
      {"disk_encryption_key_file",
       &Options::disk_encryption_key_file,
       0,
       0,
       {},
       "A file of keys, the newest first, under which all that the databases of this node write is "
       "encrypted; empty: nothing is."},
      {"change_feed_retention_hours",
       &Options::change_feed_retention_hours,
       1,
       24 * 365,
       {},
       "Hours that the change logs of tables reach back: a reader of a change feed that stays away "
       "longer reads the whole table."},
      {"batch_warn_kb",
       &Options::batch_warn_kb,
       1,
       1 << 20,
       {},
       "Batches above this many KiB carry a warning."},
      {"batch_fail_kb",
       &Options::batch_fail_kb,
       1,
       1 << 20,
       {},
       "Batches above this many KiB are refused."},
      {"slow_query_log_timeout_ms",
       &Options::slow_query_log_timeout_ms,
       0,
       3'600'000,
       {},
       "Requests that take as long are logged with the beginning of their statement, a few in five "
       "seconds; 0: none."},
      {"user_defined_functions_enabled",
       &Options::user_defined_functions_enabled,
       0,
       0,
       {},
       "Allows user-defined functions, written in Lua."},
      {"user_defined_functions_steps_max",
       &Options::user_defined_functions_steps_max,
       1'000,
       1'000'000'000,
       {},
       "Steps of one call of a function: instructions and the work of Lua's library."},
      {"user_defined_functions_memory_mb",
       &Options::user_defined_functions_memory_mb,
       1,
       1'024,
       {},
       "Memory of one call of a function, in MiB."},
      {"dynamic_data_masking_enabled",
       &Options::dynamic_data_masking_enabled,
       0,
       0,
       {},
       "Columns may have masks, which show what a function makes of their values to who has not "
       "the "
       "permission UNMASK; off, none can be attached and those that there are do nothing. The same "
       "for all nodes."},
  });
  return table;
}

// Info for any other word: the table of options lets none through.
base::LogLevel log_level_named(std::string_view name) {
  if (name == "debug") return base::LogLevel::kDebug;
  if (name == "warn") return base::LogLevel::kWarn;
  return name == "error" ? base::LogLevel::kError : base::LogLevel::kInfo;
}

namespace {

/// Visits all options under the headings of their themes.
template <class Theme, class Option>
void by_theme(Theme theme_begins, Option option) {
  for (const OptionTheme& theme : option_themes()) {
    theme_begins(theme);
    for (const OptionEntry& entry : option_table())
      if (&theme_of(entry.name) == &theme) option(entry);
  }
}

}  // namespace

std::string help_text() {
  std::string out =
      "tetrad: a distributed wide-column database server that speaks CQL\n\n"
      "usage: tetrad [--config FILE] [options]\n\n"
      "A node without any option is a working database on 127.0.0.1. Each option is also a line of "
      "the file.\n";
  by_theme([&](const OptionTheme& theme) { out += fmt::format("\n{}:\n\n", theme.title); },
           [&](const OptionEntry& entry) {
             const std::string value = default_text(entry);
             const std::string allowed = allowed_text(entry);
             out += fmt::format("  {} (default {}{})\n      {}\n", command_line_name(entry),
                                value.empty() ? "none" : value,
                                allowed.empty() ? "" : "; " + allowed, entry.sentence);
           });
  out +=
      "\nOf the command line only:\n\n"
      "  --config FILE\n      Reads options from a YAML file; the command line goes before it.\n"
      "  --print-config\n      Prints a file with every option as it is given, or its default, and "
      "ends.\n"
      "  --check-config\n      Checks options and the files that they name, without a start; ends "
      "with 0 if they are good.\n"
      "  -h, --help; -v, --version\n";
  return out;
}

std::string config_text(const Options& options) {
  std::string out;
  bool are_defaults = true;
  by_theme([&](const OptionTheme& theme) { out += fmt::format("\n# --- {} ---\n", theme.title); },
           [&](const OptionEntry& entry) {
             const std::string value = option_text(options, entry);
             are_defaults &= value == default_text(entry);
             const std::string allowed = allowed_text(entry);
             out += fmt::format("\n# {}{}\n{}: {}\n", entry.sentence,
                                allowed.empty() ? "" : " (" + allowed + ")", entry.name,
                                yaml_text(value));
           });
  if (!are_defaults) return "# Options of a Tetrad node, as they were given.\n" + out;
  return "# Options of a Tetrad node with their defaults. None is needed to start one.\n"
         "# Written by `tetrad --print-config`; a test compares the two.\n" +
         out;
}

}  // namespace tetrad::server
