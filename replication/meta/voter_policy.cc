// SPDX-License-Identifier: Apache-2.0
// Choice of voters.
#include "replication/meta/voter_policy.h"

#include <algorithm>
#include <map>

#include "base/data_mutants.h"

namespace tetrad::replication {

namespace {

using Kind = RaftMembershipChange::Kind;

const VoterCandidate* find(const std::vector<VoterCandidate>& nodes, HostId host) {
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const VoterCandidate& node) { return node.host == host; });
  return found == nodes.end() ? nullptr : &*found;
}

}  // namespace

std::optional<RaftMembershipChange> next_membership_change(const RaftConfiguration& configuration,
                                                           const std::vector<VoterCandidate>& nodes,
                                                           HostId self) {
  for (const HostId server : configuration.servers()) {
    if (server != self && find(nodes, server) == nullptr)
      return RaftMembershipChange{Kind::kRemove, server};
  }
  for (const VoterCandidate& node : nodes) {
    if (!configuration.contains(node.host) && !node.away)
      return RaftMembershipChange{Kind::kAddLearner, node.host};
  }

  std::map<std::string, int> voters_on_rack;
  const VoterCandidate* away_voter = nullptr;
  const VoterCandidate* leaving_voter = nullptr;  // one that this leader may demote
  size_t voters = 0;                              // that stay
  for (const HostId voter : configuration.voters) {
    const VoterCandidate* node = find(nodes, voter);
    if (node == nullptr) continue;
    if (node->leaving) {
      if (voter != self) leaving_voter = node;
      continue;
    }
    ++voters;
    ++voters_on_rack[node->rack];
    if (node->away && away_voter == nullptr) away_voter = node;
  }
  const VoterCandidate* promotable = nullptr;
  size_t staying = 0;
  for (const VoterCandidate& node : nodes) {
    if (node.leaving) continue;
    ++staying;
    // One that does not answer could cost the group its majority.
    if (node.away || !node.caught_up || !configuration.is_learner(node.host)) continue;
    if (promotable == nullptr || voters_on_rack[node.rack] < voters_on_rack[promotable->rack])
      promotable = &node;
  }

  const size_t wanted = TETRAD_MUTANT(voters_even) && staying > 1 ? 2 : voters_wanted(staying);
  if (voters >= wanted && leaving_voter != nullptr)
    return RaftMembershipChange{Kind::kDemote, leaving_voter->host};
  if (voters > wanted) {
    if (away_voter != nullptr) return RaftMembershipChange{Kind::kDemote, away_voter->host};
    const VoterCandidate* surplus = nullptr;
    for (const HostId voter : configuration.voters) {
      const VoterCandidate* node = find(nodes, voter);
      if (node == nullptr || voter == self || node->leaving) continue;
      if (surplus == nullptr || voters_on_rack[node->rack] > voters_on_rack[surplus->rack])
        surplus = node;
    }
    if (surplus != nullptr) return RaftMembershipChange{Kind::kDemote, surplus->host};
  } else if (promotable != nullptr && (voters < wanted || away_voter != nullptr)) {
    // An away voter is replaced by one more first: it is demoted when that one votes.
    return RaftMembershipChange{Kind::kPromote, promotable->host};
  }
  return std::nullopt;
}

}  // namespace tetrad::replication
