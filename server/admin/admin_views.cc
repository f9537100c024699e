// SPDX-License-Identifier: Apache-2.0
// The facts that the admin port tells, as JSON.
// Each function reads one snapshot of the metadata and what this node has heard of others
// (liveness, bytes, heat), on the first shard. They are facts of different moments; only what comes
// from the one snapshot agrees with itself.
#include <algorithm>

#include "replication/meta/state_names.h"
#include "server/admin/admin_service.h"
#include "server/admin/cluster_settings.h"
#include "server/admin/json_text.h"
#include "server/admin/ownership.h"
#include "storage/engine/store_status.h"

namespace tetrad::server {

using nlohmann::json;

namespace {

// Names come from clients and operators: none may be markup on the page.
std::string html_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

/// "serving", or what those are that do not: "0 full, 2 hung".
std::string stores_text(const replication::StoreTroubles& troubles, HostId host) {
  std::string text;
  for (const auto& [store, state] : troubles) {
    if (store.host == host)
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : ", ", store.store, storage::name_of(state));
  }
  return text.empty() ? "serving" : text;
}

double share_of(const std::map<HostId, double>& shares, HostId host) {
  const auto found = shares.find(host);
  return found == shares.end() ? 0 : found->second;
}

}  // namespace

// For a browser on the machine: who is live, what is wrong, and links to the facts.
std::string AdminService::page() const {
  const auto state = parts_.node.meta().snapshot();
  std::string rows, warnings, links;
  for (const auto& [host, node] : state->nodes) {
    if (node.state == replication::NodeState::kRemoved) continue;
    const bool self = host == parts_.node.self();
    // A node that answers this lives.
    const bool live = self || parts_.node.meta().is_live(host);
    rows += fmt::format("<tr><td>{}{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        html_text(node.address), self ? " (this node)" : "",
                        live ? "live" : "<b>away</b>", replication::name_of(node.state),
                        html_text(node.data_center), html_text(node.rack));
  }
  for (const std::string& line : this->warnings())
    warnings += fmt::format("<p><b>{}</b></p>\n", html_text(line));
  for (const Route& route : routes()) {
    // All that can be read without an order; the page is made of the table of routes.
    // The others say what is missing, which is no use behind a link.
    const bool needs_more = route.path == "/endpoints" || route.path == "/cidr-groups-of";
    if (route.method == "GET" && route.path != "/" && !needs_more)
      links += fmt::format("<a href=\"{0}\">{0}</a> ", route.path);
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html><head><title>Tetrad {0}</title></head><body>\n<h1>Tetrad {0}</h1>\n"
      "<p>Cluster {1}: {2}, {3} tables.</p>\n{4}<table cellpadding=\"4\">\n<tr><th>node</th>"
      "<th></th><th>state</th><th>data centre</th><th>rack</th></tr>\n{5}</table>\n<p>{6}</p>\n"
      "<p>Orders are given by <code>tetractl</code>.</p>\n</body></html>\n",
      html_text(parts_.version), html_text(state->cluster_name), html_text(health()),
      state->tables.size(), warnings, rows, links);
}

std::string AdminService::status(const std::string& keyspace) const {
  const auto state = parts_.node.meta().snapshot();
  const auto bytes_of = [this](TabletId tablet) { return parts_.node.meta().tablet_bytes(tablet); };
  const std::map<HostId, double> shares = shares_of(*state, keyspace, bytes_of);
  const bool is_everywhere = !keyspace.empty() && parts_.controls->is_computed(keyspace, "");
  json nodes = json::array();
  for (const auto& [host, node] : state->nodes) {
    if (node.state == replication::NodeState::kRemoved) continue;
    uint64_t tablets = 0;
    for (const auto& [id, table] : state->tables) {
      for (const auto& tablet : table->tablets.tablets()) {
        tablets +=
            static_cast<uint64_t>(std::ranges::count(tablet.replicas, host, &StoreAddress::host));
      }
    }
    // Every node has all of a keyspace of the system.
    const json owns = is_everywhere    ? json(1.0)
                      : shares.empty() ? json()
                                       : json(share_of(shares, host));
    const bool live = parts_.node.meta().is_live(host);
    const auto bytes = parts_.node.meta_group().host_bytes(host);
    // Of a node that is down nobody knows what its stores do.
    const json stores =
        live ? json(stores_text(parts_.node.meta().store_troubles(), host)) : json();
    nodes.push_back({{"address", node.address},
                     {"host_id", host.to_string()},
                     {"state", replication::name_of(node.state)},
                     {"live", live},
                     {"stores", stores},
                     {"data_center", node.data_center},
                     {"rack", node.rack},
                     {"native_port", node.native_port},
                     {"version", node.version},
                     {"tokens", node.tokens.size()},
                     {"owns", owns},
                     {"partitions", tablets},
                     {"bytes", bytes ? json(*bytes) : json()}});
  }
  json out = {{"cluster", state->cluster_name},
              {"self", parts_.node.self().to_string()},
              {"health", health()},
              {"warnings", warnings()},
              {"nodes", nodes}};
  return json_text(out);
}

// Drivers read these tokens from the system tables. They place no data: tablets do.
std::string AdminService::ring() const {
  const auto state = parts_.node.meta().snapshot();
  std::vector<std::pair<int64_t, const replication::NodeInfo*>> tokens;
  for (const auto& [host, node] : state->nodes) {
    if (node.state == replication::NodeState::kRemoved) continue;
    for (const int64_t token : node.tokens) tokens.emplace_back(token, &node);
  }
  std::sort(tokens.begin(), tokens.end());
  json out = json::array();
  for (const auto& [token, node] : tokens) {
    out.push_back({{"token", token},
                   {"address", node->address},
                   {"rack", node->rack},
                   {"live", parts_.node.meta().is_live(node->host)}});
  }
  return json_text(out);
}

std::string AdminService::partitions(const std::string& keyspace, const std::string& name) const {
  const auto state = parts_.node.meta().snapshot();
  json out = json::array();
  for (const auto& [id, table] : state->tables) {
    if (!keyspace.empty() && keyspace != table->keyspace) continue;
    if (!name.empty() && name != table->name) continue;
    for (const auto& tablet : table->tablets.tablets()) {
      const replication::TabletHeat heat = parts_.node.meta().tablet_heat(tablet.id);
      out.push_back(
          {{"keyspace", table->keyspace},
           {"table", table->name},
           {"id", tablet.id.value},
           {"range_start", tablet.range.start.token},
           {"range_end", tablet.range.end.token},
           {"replicas", state->addresses_of(tablet.replicas)},
           {"size_bytes", parts_.node.meta().tablet_bytes(tablet.id)},
           {"ru_per_s", heat.ru_per_s()},
           {"read_ru_per_s", heat.read_ru_per_s},
           {"write_ru_per_s", heat.write_ru_per_s},
           {"bytes_per_s", heat.bytes_per_s},
           {"state", tablet.full ? std::string_view("full") : replication::name_of(tablet.stage)}});
    }
  }
  return json_text(out);
}

// The moves of `tetractl rebalance --plan`: nothing is begun.
std::string AdminService::rebalance_plan() const {
  const auto state = parts_.node.meta().snapshot();
  const auto place_of = [&](const StoreAddress& store) {
    return state->address_of(store.host) + "/" + std::to_string(store.store);
  };
  json moves = json::array();
  uint64_t bytes = 0;
  for (const auto& change : parts_.node.balance_plan(*state)) {
    bytes += change.bytes;
    moves.push_back({{"keyspace", change.table->keyspace},
                     {"table", change.table->name},
                     {"id", change.tablet.value},
                     {"bytes", change.bytes},
                     {"from", place_of(change.from)},
                     {"to", place_of(change.to)},
                     {"reason", "bytes"}});
  }
  return json_text({{"moves", moves}, {"bytes", bytes}});
}

std::string AdminService::describe_cluster() const {
  const auto state = parts_.node.meta().snapshot();
  json settings = json::object();
  for (const auto& [name, value] : state->settings) settings[name] = value;
  // Settings that nobody has set show their default; emplace() leaves those that are there.
  for (const ClusterSetting& known : kClusterSettings)
    settings.emplace(std::string(known.name), std::to_string(known.otherwise));
  json voters = json::array();
  std::string leader;
  // Null until the node has a cluster.
  if (const replication::RaftDriver* driver = parts_.node.meta_group().driver()) {
    for (const HostId host : driver->core().configuration().voters)
      voters.push_back(state->address_of(host));
    if (const auto host = driver->core().leader()) leader = state->address_of(*host);
  }
  // A schema has the number of the change that made it: who has applied that has this one.
  json current = json::array(), older = json::array(), unreachable = json::array();
  for (const auto& [host, node] : state->nodes) {
    if (node.state == replication::NodeState::kRemoved) continue;
    const bool is_self = host == parts_.node.self();
    if (!is_self && !parts_.node.meta().is_live(host))
      unreachable.push_back(node.address);
    else if (is_self ||
             parts_.node.membership().applied_of(host).value >= state->schema_version.value)
      current.push_back(node.address);
    else
      older.push_back(node.address);
  }
  json out = {
      {"cluster", state->cluster_name},
      {"schema_nodes", {{"current", current}, {"older", older}, {"unreachable", unreachable}}},
      {"metadata_leader", leader},
      {"metadata_voters", voters},
      {"cluster_id", state->cluster_id.to_string()},
      {"partitioner", "org.apache.cassandra.dht.Murmur3Partitioner"},
      {"schema_version", state->schema_version_uuid().to_string()},
      {"metadata_index", state->applied.value},
      {"nodes", std::ranges::count_if(state->nodes,
                                      [](const auto& entry) {
                                        return entry.second.state !=
                                               replication::NodeState::kRemoved;
                                      })},
      {"tables", state->tables.size()},
      {"settings", settings},
      {"version", parts_.version}};
  return json_text(out);
}

}  // namespace tetrad::server
