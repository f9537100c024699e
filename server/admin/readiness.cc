// SPDX-License-Identifier: Apache-2.0
// Counted over all tablets of the metadata, on the first shard. A removed node counts for nothing.
// With all nodes live the tablets are counted, not looked at.
#include "server/admin/readiness.h"

#include <algorithm>

#include "replication/quorum.h"

namespace tetrad::server {

std::vector<std::string> Readiness::obstacles() const {
  std::vector<std::string> out;
  const bool is_short = voters != 0 && (!has_quorum() || unavailable != 0);
  if (is_short) out = disagreements();
  // Nodes are given up only where nobody says that they are there.
  const auto advice = [this](const char* verb) {
    return refused.empty() ? fmt::format(" (if the others are gone for good: `tetractl {}`)", verb)
                           : "";
  };
  if (voters == 0) {
    out.push_back("this node is in no cluster yet: its log says what it waits for");
  } else if (!has_quorum()) {
    out.push_back(fmt::format(
        "no quorum: {} of {} voters of the metadata group are live; schema changes, joins and "
        "repairs wait{}",
        voters_live, voters, advice("recover-metadata")));
  } else if (!leader_known) {
    out.push_back("the metadata group is choosing a leader");
  }
  if (unavailable != 0) {
    out.push_back(fmt::format(
        "{} of {} physical partitions have too few live members for QUORUM and writes{}",
        unavailable, partitions, advice("remove-lost-nodes")));
  }
  return out;
}

std::vector<std::string> Readiness::disagreements() const {
  std::vector<std::string> out;
  for (const auto& [why, addresses] : refused)
    out.push_back(fmt::format("this node and {} of {} nodes refuse each other: {} ({})",
                              addresses.size(), nodes, why, fmt::join(addresses, " ")));
  return out;
}

std::vector<std::string> Readiness::warnings() const {
  std::vector<std::string> out = obstacles();
  for (std::string& line : disagreements())
    if (std::ranges::find(out, line) == out.end()) out.push_back(std::move(line));
  if (!away.empty()) {
    std::string line = fmt::format("{} of {} nodes away:", away.size(), nodes);
    for (const std::string& address : away) line += " " + address;
    line += fmt::format("; {} of {} physical partitions lack a member", partial, partitions);
    out.push_back(std::move(line));
  }
  for (const HostId host : replaced) {
    const std::string id = host.to_string();
    // Where too few are left to rebuild what it had, that order would be refused.
    out.push_back(fmt::format(
        "another node has the address of {}, which is {}", id,
        unavailable == 0
            ? fmt::format("away: `tetractl remove-node {}` gives its replicas to others", id)
            : "gone for good"));
  }
  return out;
}

Readiness measure_readiness(const replication::MetaState& state, HostId self,
                            const std::vector<HostId>& voters, bool leader_known,
                            const std::function<bool(HostId)>& is_live,
                            const std::function<std::string(HostId)>& refusal) {
  const replication::Levels levels(state, self);
  Readiness out;
  out.leader_known = leader_known;
  out.voters = voters.size();
  out.voters_live = static_cast<size_t>(std::ranges::count_if(voters, is_live));
  std::vector<HostId> dead;
  for (const auto& [host, node] : state.nodes) {
    if (node.state == replication::NodeState::kRemoved) continue;
    ++out.nodes;
    if (is_live(host)) continue;
    dead.push_back(host);
    out.away.push_back(node.address);
    if (refusal)
      if (const std::string why = refusal(host); !why.empty())
        out.refused[why].push_back(node.address);
    const bool is_replaced = std::ranges::any_of(state.nodes, [&](const auto& other) {
      return other.first != host && other.second.address == node.address &&
             other.second.state != replication::NodeState::kRemoved && is_live(other.first);
    });
    if (is_replaced) out.replaced.push_back(host);
  }
  for (const auto& [id, table] : state.tables) {
    const auto& tablets = table->tablets.tablets();
    out.partitions += tablets.size();
    if (dead.empty()) continue;
    for (const auto& tablet : tablets) {
      const auto live = replication::members_that(tablet.replicas, [&](const auto& replica) {
        return std::ranges::find(dead, replica.host) == dead.end();
      });
      if (live == replication::all_of(tablet.replicas)) continue;
      ++out.partial;
      const auto needed = levels.writing(base::ConsistencyLevel::kOne, tablet.replicas);
      if (!needed.is_met_by(live)) ++out.unavailable;
    }
  }
  return out;
}

}  // namespace tetrad::server
