// SPDX-License-Identifier: Apache-2.0
// What several facts say together, in nodetool's forms: nodes, tokens, ranges.
#include <map>

#include <fmt/format.h>

#include "tools/tetractl/orders.h"
#include "tools/tetractl/text_table.h"

namespace tetrad::tools {

using nlohmann::json;

namespace {

/// nodetool's "UN": up or down, normal, leaving or joining.
std::string letters_of(const json& node) {
  const std::string state = node.at("state").get<std::string>();
  const char* letter = state == "normal" ? "N" : state == "leaving" ? "L" : "J";
  return std::string(node.at("live").get<bool>() ? "U" : "D") + letter;
}

// "?" where the keyspace has no table.
std::string share_text(const json& share) {
  return share.is_null() ? "?" : fmt::format("{:.1f}%", 100 * share.get<double>());
}

// "?" for what no node knows, of a node that is down.
std::string known_text(const json& value) { return value.is_null() ? "?" : cell_text(value); }

// Addresses are what the other facts name nodes by.
std::map<std::string, json> nodes_by_address(const json& status) {
  std::map<std::string, json> out;
  for (const auto& node : status.at("nodes")) out.emplace(node.at("address"), node);
  return out;
}

/// "[10.0.0.1, 10.0.0.2]", as nodetool writes addresses.
std::string in_brackets(const json& addresses) {
  return fmt::format("[{}]", fmt::join(addresses.get<std::vector<std::string>>(), ", "));
}

/// What nodes differ in and nodetool's table has no column for: scripts take the rack for its last.
void print_differences(const json& nodes) {
  std::map<std::string, json> of_version;
  for (const auto& one : nodes) {
    of_version[cell_text(one.at("version"))].push_back(one.at("address"));
    const json& stores = one.at("stores");
    if (!stores.is_null() && stores != "serving")
      fmt::print("Stores of {}: {}\n", cell_text(one.at("address")), cell_text(stores));
  }
  if (of_version.size() < 2) return;
  for (const auto& [version, addresses] : of_version)
    fmt::print("Version {}: {}\n", version, in_brackets(addresses));
}

// nodetool's words, of what /status tells of the nodes.
void print_node_counts(const json& nodes) {
  std::map<std::string, int> of_state;
  std::map<std::string, std::pair<int, int>> of_center;  // all, and those that are down
  std::map<std::string, json> of_version;
  int live = 0;
  for (const auto& one : nodes) {
    const bool is_live = one.at("live").get<bool>();
    live += is_live;
    ++of_state[one.at("state").get<std::string>()];
    auto& [all, down] = of_center[one.at("data_center").get<std::string>()];
    ++all;
    down += !is_live;
    of_version[one.at("version").get<std::string>()].push_back(one.at("address"));
  }
  fmt::print(
      "Stats for all nodes:\n\tLive: {}\n\tJoining: {}\n\tMoving: 0\n\tLeaving: {}\n"
      "\tUnreachable: {}\n\nData Centers: \n",
      live, of_state["joining"], of_state["leaving"], static_cast<int>(nodes.size()) - live);
  for (const auto& [center, counts] : of_center)
    fmt::print("\t{} #Nodes: {} #Down: {}\n", center, counts.first, counts.second);
  fmt::print("\nDatabase versions:\n");
  for (const auto& [version, addresses] : of_version)
    fmt::print("\t{}: {}\n", version, in_brackets(addresses));
  fmt::print("\n");
}

}  // namespace

// The first lines as nodetool's describecluster, then everything.
int show_cluster(AdminClient& node, const Invocation& call) {
  json cluster = node.fact("/describe-cluster");
  if (call.as_json) {
    fmt::print("{}\n", cluster.dump(2));
    return 0;
  }
  fmt::print("Cluster Information:\n\tName: {}\n\tPartitioner: {}\n\tSchema versions:\n",
             cell_text(cluster.at("cluster")), cell_text(cluster.at("partitioner")));
  // Of a node that is behind the version is not known, only that it is an older one.
  const json& of_schema = cluster.at("schema_nodes");
  const std::string version = cell_text(cluster.at("schema_version"));
  for (const auto& [name, key] :
       {std::pair(version, "current"), {"OLDER", "older"}, {"UNREACHABLE", "unreachable"}})
    if (!of_schema.at(key).empty())
      fmt::print("\t\t{}: {}\n", name, in_brackets(of_schema.at(key)));
  fmt::print("\n");
  print_node_counts(node.fact("/status").at("nodes"));
  cluster.erase("schema_nodes");
  print_object(cluster);
  return 0;
}

// A table for each data centre, as nodetool prints them, and one line of the node's health above.
int show_status(AdminClient& node, const Invocation& call) {
  const json body = node.fact("/status", {{"keyspace", call.text("keyspace")}});
  const std::string health = body.at("health").get<std::string>();
  // "serving, no quorum" serves, too: what can be read is read.
  const int code = health.starts_with("serving") ? 0 : 1;
  if (call.as_json) {
    fmt::print("{}\n", body.dump(2));
    return code;
  }
  // A node that waits for its cluster has no name of it yet.
  const std::string cluster = cell_text(body.at("cluster"));
  fmt::print("cluster: {}   this node: {}\n", cluster.empty() ? "?" : cluster, health);
  for (const auto& line : body.at("warnings")) fmt::print("WARNING: {}\n", cell_text(line));
  std::map<std::string, Lines> centers;
  for (const auto& one : body.at("nodes")) {
    Lines& lines = centers[one.at("data_center")];
    if (lines.empty())
      lines.push_back({"--", "Address", "Load", "Tokens", "Owns (effective)", "Host ID", "Rack"});
    lines.push_back({letters_of(one), one.at("address"), load_text(one.at("bytes")),
                     cell_text(one.at("tokens")), share_text(one.at("owns")), one.at("host_id"),
                     one.at("rack")});
  }
  for (const auto& [center, lines] : centers) {
    fmt::print("Datacenter: {}\n{:=<{}}\nStatus=Up/Down\n|/ State=Normal/Leaving/Joining/Moving\n",
               center, "", center.size() + 12);
    print_lines(lines);
    fmt::print("\n");
  }
  print_differences(body.at("nodes"));
  // Otherwise it is taken for the part of the ring.
  if (!call.has("keyspace"))
    fmt::print(
        "Owns is the node's part of all bytes, of all keyspaces; name a keyspace for its own\n");
  return code;
}

// A line for each token, in the order of the ring, by data centre.
int show_ring(AdminClient& node, const Invocation& call) {
  const json status = node.fact("/status", {{"keyspace", call.text("keyspace")}});
  const json ring = node.fact("/ring");
  if (call.as_json) {
    fmt::print("{}\n", ring.dump(2));
    return 0;
  }
  const auto nodes = nodes_by_address(status);
  std::map<std::string, Lines> centers;
  for (const auto& token : ring) {
    const auto found = nodes.find(token.at("address"));
    if (found == nodes.end()) continue;  // it has gone between the two questions
    const json& one = found->second;
    Lines& lines = centers[one.at("data_center")];
    if (lines.empty())
      lines.push_back({"Address", "Rack", "Status", "State", "Load", "Owns", "Token"});
    std::string state = one.at("state").get<std::string>();
    if (!state.empty() && state[0] >= 'a') state[0] = static_cast<char>(state[0] - 'a' + 'A');
    lines.push_back({one.at("address"), one.at("rack"), one.at("live").get<bool>() ? "Up" : "Down",
                     state, load_text(one.at("bytes")), share_text(one.at("owns")),
                     cell_text(token.at("token"))});
  }
  for (const auto& [center, lines] : centers) {
    fmt::print("\nDatacenter: {}\n==========\n", center);
    print_lines(lines);
  }
  return 0;
}

// Tables have ranges of their own here, so each line ends with its table, which nodetool's does not
// have.
int show_ranges(AdminClient& node, const Invocation& call) {
  const json cluster = node.fact("/describe-cluster");
  const auto nodes = nodes_by_address(node.fact("/status"));
  const json partitions = node.fact(
      "/partitions", {{"keyspace", call.text("keyspace")}, {"table", call.text("table")}});
  if (call.as_json) {
    fmt::print("{}\n", partitions.dump(2));
    return 0;
  }
  fmt::print("Schema Version:{}\nTokenRange: \n", cell_text(cluster.at("schema_version")));
  for (const auto& partition : partitions) {
    std::string endpoints, details;
    for (const auto& replica : partition.at("replicas")) {
      const std::string address = replica.get<std::string>();
      const auto found = nodes.find(address);
      endpoints += (endpoints.empty() ? "" : ", ") + address;
      if (found == nodes.end()) continue;
      details += fmt::format(
          "{}EndpointDetails(host:{}, datacenter:{}, rack:{})", details.empty() ? "" : ", ",
          address, cell_text(found->second.at("data_center")), cell_text(found->second.at("rack")));
    }
    fmt::print(
        "\tTokenRange(start_token:{}, end_token:{}, endpoints:[{}], rpc_endpoints:[{}], "
        "endpoint_details:[{}], table:{})\n",
        cell_text(partition.at("range_start")), cell_text(partition.at("range_end")), endpoints,
        endpoints, details, cell_text(partition.at("table")));
  }
  return 0;
}

// Of the metadata and heartbeats, in the words of nodetool's gossipinfo.
int show_gossip(AdminClient& node, const Invocation& call) {
  const json status = node.fact("/status");
  if (call.as_json) {
    fmt::print("{}\n", status.at("nodes").dump(2));
    return 0;
  }
  const std::string schema = cell_text(node.fact("/describe-cluster").at("schema_version"));
  // As drivers read it; all nodes speak alike.
  const std::string release = cell_text(node.fact("/info").at("release_version"));
  for (const auto& one : status.at("nodes")) {
    std::string state = one.at("state").get<std::string>();
    for (char& c : state) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const std::string address = cell_text(one.at("address"));
    fmt::print(
        "/{}\n  LIVE:{}\n  STATUS:{}\n  LOAD:{}\n  SCHEMA:{}\n  DC:{}\n  RACK:{}\n"
        "  RELEASE_VERSION:{}\n  TETRAD_VERSION:{}\n  RPC_ADDRESS:{}\n  HOST_ID:{}\n  "
        "NATIVE_ADDRESS_AND_PORT:{}:{}\n",
        address, cell_text(one.at("live")), state, known_text(one.at("bytes")), schema,
        cell_text(one.at("data_center")), cell_text(one.at("rack")), release,
        cell_text(one.at("version")), address, cell_text(one.at("host_id")), address,
        cell_text(one.at("native_port")));
  }
  return 0;
}

}  // namespace tetrad::tools
