// SPDX-License-Identifier: Apache-2.0
// What a node says of itself and its clients, in nodetool's forms.
#include <map>

#include <fmt/format.h>

#include "tools/tetractl/orders.h"
#include "tools/tetractl/text_table.h"
#include "tools/tetractl/views.h"

namespace tetrad::tools {

using nlohmann::json;

namespace {

// The column of nodetool's `info`.
void print_fact(std::string_view name, const std::string& value) {
  fmt::print("{:<23}: {}\n", name, value);
}

double hit_rate(uint64_t hits, uint64_t requests) {
  return requests == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(requests);
}

void print_caches(const json& info) {
  // An older node tells of neither.
  const auto found = info.value("block_cache_hits", uint64_t{0});
  const auto read = info.value("block_cache_misses", uint64_t{0});
  // The misses, where those of other caches have their hits: so nodetool.
  print_fact("Chunk Cache", fmt::format("size {}, {} misses, {} requests, {:.3f} hit rate",
                                        size_text(info.at("block_cache_bytes")), read, found + read,
                                        hit_rate(found, found + read)));
  const json& rows = info.at("row_cache");
  const uint64_t hits = rows.at("hits"), requests = hits + rows.at("misses").get<uint64_t>();
  print_fact("Row Cache",
             fmt::format("size {}, {} hits, {} requests, {:.3f} hit rate",
                         size_text(rows.at("bytes")), hits, requests, hit_rate(hits, requests)));
}

/// What a client's driver says of itself, as nodetool; an older node does not tell.
std::string options_text(const json& client) {
  std::string out;
  const json options = client.value("options", json::object());
  for (const auto& [name, value] : options.items())
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name, cell_text(value));
  return out;
}

}  // namespace

// The names on the left are nodetool's; scripts look for them.
int print_info(const json& info, const Invocation& call) {
  print_fact("ID", cell_text(info.at("host_id")));
  print_fact("Gossip active", "true");  // as statusgossip
  print_fact("Native Transport active", cell_text(info.at("native_transport_active")));
  print_fact("Load", load_text(info.value("bytes", json())));
  print_fact("Generation No", cell_text(info.at("start_number")));
  print_fact("Uptime (seconds)", cell_text(info.at("uptime_s")));
  print_fact("Health", cell_text(info.at("health")));
  print_fact("Memory (MB)",
             fmt::format("{:.2f}",
                         static_cast<double>(info.at("memory_bytes").get<uint64_t>()) / (1 << 20)));
  print_fact("Disk Used", size_text(info.at("disk_bytes")));
  print_fact("Memtables", size_text(info.at("memtable_bytes")));
  print_fact("Shards", cell_text(info.at("shards")));
  print_fact("Data Center", cell_text(info.value("data_center", json("?"))));
  print_fact("Rack", cell_text(info.value("rack", json("?"))));
  print_fact("Exceptions", cell_text(info.at("store_errors")));
  print_caches(info);
  // A node that is joining has none.
  const json tokens = info.value("tokens", json::array());
  if (!call.has("tokens") && tokens.size() > 1) {
    print_fact("Token",
               fmt::format("(invoke with -T/--tokens to see all {} tokens)", tokens.size()));
  } else {
    for (const auto& token : tokens) print_fact("Token", cell_text(token));
  }
  return 0;
}

// ReleaseVersion is the version of Cassandra that drivers read; the program's own stands below.
int print_version(const json& info, const Invocation&) {
  fmt::print("ReleaseVersion: {}\nTetrad: {}\n", cell_text(info.at("release_version")),
             cell_text(info.at("version")));
  return 0;
}

// "running" or "not running", as nodetool.
int print_binary(const json& info, const Invocation&) {
  fmt::print("{}running\n", info.at("native_transport_active").get<bool>() ? "" : "not ");
  return 0;
}

// There is no gossip to switch off: a node that answers takes part in the cluster.
int print_gossip_runs(const json&, const Invocation&) {
  fmt::print("running\n");
  return 0;
}

int print_handoff_runs(const json&, const Invocation&) {
  fmt::print("Hinted handoff is running\n");
  return 0;
}

int print_hint_window(const json& info, const Invocation&) {
  fmt::print("Current max hint window: {} ms\n", info.at("hint_window_ms").dump());
  return 0;
}

// Addresses and names without their ports, as nodetool.
int print_seeds(const json& info, const Invocation&) {
  std::string others;
  for (const auto& seed : info.at("seeds")) {
    std::string host = seed.get<std::string>();
    host = host.substr(0, host.rfind(':'));
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    if (host != info.value("address", "")) others += " " + host;
  }
  if (others.empty())
    fmt::print("Seed node list does not contain any remote node IPs\n");
  else
    fmt::print("Current list of seed node IPs, excluding the current node's IP:{}\n", others);
  return 0;
}

int print_default_factor(const json& info, const Invocation&) {
  fmt::print("{}\n", info.at("default_replication_factor").dump());
  return 0;
}

int print_trace_probability(const json& info, const Invocation&) {
  fmt::print("Current trace probability: {}\n", cell_text(info.at("trace_probability")));
  return 0;
}

int print_log_levels(const json& info, const Invocation&) {
  std::string level = info.at("log_level").get<std::string>();
  for (char& c : level) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  fmt::print("\n{:<50}{:>10}\n{:<50}{:>10}\n", "Logger Name", "Log Level", "ROOT", level);
  return 0;
}

int print_compaction_runs(const json& info, const Invocation&) {
  // All stores together: of one that is damaged, which keeps its files as they are, it is not.
  fmt::print("{}running\n", info.at("auto_compaction_running").get<bool>() ? "" : "not ");
  return 0;
}

// The wording and its blanks are nodetool's: scripts cut the lines up.
int show_snapshots(AdminClient& node, const Invocation& call) {
  json answer = node.fact("/snapshots");
  json rows = json::array();
  for (json& row : answer.at("snapshots"))
    if (!call.has("no-ttl") || !row.contains("expires_ms")) rows.push_back(std::move(row));
  if (call.as_json) {
    answer["snapshots"] = std::move(rows);
    fmt::print("{}\n", answer.dump(2));
    return 0;
  }
  fmt::print("Snapshot Details: \n");
  if (rows.empty()) {
    fmt::print("There are no snapshots\n");
    return 0;
  }
  Lines lines = {{"Snapshot name", "Keyspace name", "Column family name", "True size",
                  "Size on disk", "Creation time", "Expiration time"}};
  for (const auto& row : rows) {
    lines.push_back({row.at("tag"), row.at("keyspace"), row.at("table"),
                     size_text(row.at("own_bytes")), size_text(row.at("bytes")),
                     time_text(row.at("created_ms")),
                     row.contains("expires_ms") ? time_text(row.at("expires_ms")) : ""});
  }
  print_lines(lines);
  fmt::print("\nTotal TrueDiskSpaceUsed: {}\n\n",
             size_text(answer.at(call.has("no-ttl") ? "lasting_own_bytes" : "own_bytes")));
  return 0;
}

// An address on each line, as nodetool.
int print_endpoints(const json& answer, const Invocation&) {
  for (const auto& address : answer.at("endpoints")) fmt::print("{}\n", cell_text(address));
  return 0;
}

/// A column, and nothing where there is none, as nodetool.
int print_cidr_groups(const json& answer, const Invocation&) {
  const bool is_of_one = answer.contains("cidrs");
  Lines lines = {{is_of_one ? "CIDRs" : "CIDR Groups"}};
  for (const auto& text : answer.at(is_of_one ? "cidrs" : "groups"))
    lines.push_back({cell_text(text)});
  if (lines.size() > 1) print_lines(lines);
  return 0;
}

int print_cidr_filtering(const json& answer, const Invocation&) {
  Lines lines = {{"name", "value"}};
  for (const char* const what : {"accepted", "rejected"})
    for (const auto& [group, count] : answer.at(what).items())
      lines.push_back({fmt::format("Number of CIDR accesses {} from CIDR group - {}", what, group),
                       count.dump()});
  fmt::print("cidr_filtering_metrics_counts:\n");
  print_lines(lines);
  return 0;
}

// As nodetool shows what a connection without TLS has not.
std::string tls_text(const json& client, const char* what) {
  const std::string text = client.value(what, std::string());
  return text.empty() ? "undefined" : text;
}

// The default is the sums by user; --all prints these after the connections.
int print_clients(const json& answer, const Invocation& call) {
  if (call.has("clear-history")) return 0;  // nothing is shown then, as nodetool
  const bool with_options = call.has("client-options") || call.has("metadata");
  const json& clients = answer.at("clients");
  std::map<std::string, uint64_t> by_user, by_version;
  Lines lines = {{"Address", "SSL", "Cipher", "Protocol", "Version", "User", "Keyspace", "Requests",
                  "Driver-Name", "Driver-Version"}};
  if (with_options) lines.front().push_back("Client-Options");
  for (const auto& client : clients) {
    ++by_user[client.at("user")];
    ++by_version[cell_text(client.at("protocol_version"))];
    lines.push_back(
        {fmt::format("/{}:{}", cell_text(client.at("address")), client.at("port").dump()),
         client.at("encrypted").dump(), tls_text(client, "cipher_suite"),
         tls_text(client, "tls_version"), client.at("protocol_version").dump(), client.at("user"),
         client.at("keyspace"), client.at("requests").dump(), client.at("driver_name"),
         client.at("driver_version")});
    if (with_options) lines.back().push_back(options_text(client));
  }
  if (call.has("all") || call.has("verbose") || with_options) {
    if (lines.size() > 1) print_lines(lines);
    fmt::print("\n");
  } else if (call.has("by-protocol")) {
    fmt::print("Clients by protocol version\n\n");
    Lines versions = {{"Protocol-Version", "Connections"}};
    for (const auto& [version, count] : by_version)
      versions.push_back({"v" + version, std::to_string(count)});
    print_lines(versions);
    fmt::print("\n");
    return 0;
  }
  fmt::print("Total connected clients: {}\n\n", clients.size());
  Lines users = {{"User", "Connections"}};
  for (const auto& [user, count] : by_user) users.push_back({user, std::to_string(count)});
  print_lines(users);
  return 0;
}

}  // namespace tetrad::tools
