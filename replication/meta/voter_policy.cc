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

/// Whether most of the voters but `without` answer: a change of members needs a majority of those
/// that it leaves, so one that leaves two voters of which one is dead would stop the group for good.
bool keeps_majority(const RaftConfiguration& configuration,
                    const std::vector<VoterCandidate>& nodes, HostId self, HostId without) {
  size_t voters = 0, live = 0;
  for (const HostId voter : configuration.voters) {
    if (voter == without) continue;
    const VoterCandidate* node = find(nodes, voter);
    ++voters;
    live += voter == self || (node != nullptr && !node->away && node->caught_up) ? 1 : 0;
  }
  return 2 * live > voters || TETRAD_MUTANT(voter_lost_beside_dead);
}

}  // namespace

std::optional<RaftMembershipChange> next_membership_change(const RaftConfiguration& configuration,
                                                           const std::vector<VoterCandidate>& nodes,
                                                           HostId self) {
  const auto may_lose = [&](HostId voter) {
    return keeps_majority(configuration, nodes, self, voter);
  };
  for (const HostId server : configuration.servers()) {
    if (server != self && find(nodes, server) == nullptr &&
        (!configuration.is_voter(server) || may_lose(server)))
      return RaftMembershipChange{Kind::kRemove, server};
  }
  for (const VoterCandidate& node : nodes) {
    if (!configuration.contains(node.host) && !node.away)
      return RaftMembershipChange{Kind::kAddLearner, node.host};
  }

  std::map<std::string, int> voters_on_rack;
  const VoterCandidate* away_voter = nullptr;
  const VoterCandidate* leaving_voter = nullptr;  // one that this leader may demote
  bool votes_on = false;                          // one that leaves, and lives
  size_t voters = 0;                              // that stay
  for (const HostId voter : configuration.voters) {
    const VoterCandidate* node = find(nodes, voter);
    if (node == nullptr) continue;
    if (node->leaving) {
      votes_on = votes_on || (!node->away && !node->removed);
      if (voter != self && (leaving_voter == nullptr || node->away)) leaving_voter = node;
      continue;
    }
    ++voters;
    ++voters_on_rack[node->rack];
    if (node->away && away_voter == nullptr) away_voter = node;
  }
  const VoterCandidate* promotable = nullptr;
  size_t staying = 0, promotables = 0;
  for (const VoterCandidate& node : nodes) {
    if (node.leaving) continue;
    ++staying;
    // One that does not answer could cost the group its majority.
    if (node.away || !node.caught_up || !configuration.is_learner(node.host)) continue;
    ++promotables;
    if (promotable == nullptr || voters_on_rack[node.rack] < voters_on_rack[promotable->rack])
      promotable = &node;
  }

  // Of three voters of whom one leaves the others would be an even two, for as long as moving its
  // tablets takes. A dead voter goes first all the same: the one that leaves lives now.
  const bool is_third =
      votes_on && away_voter == nullptr && voters == 2 && configuration.voters.size() == 3;
  const size_t wanted = TETRAD_MUTANT(voters_even) && staying > 1 ? 2 : voters_wanted(staying);
  if (is_third && voters >= wanted && !TETRAD_MUTANT(third_voter_early)) return std::nullopt;
  if (voters >= wanted && leaving_voter != nullptr && may_lose(leaving_voter->host))
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
    if (surplus != nullptr && may_lose(surplus->host))
      return RaftMembershipChange{Kind::kDemote, surplus->host};
  } else if (voters == 1 && configuration.voters.size() == 1 && wanted >= 3 && promotables == 1 &&
             !TETRAD_MUTANT(second_voter_alone)) {
    // Two voters stop when either is lost, one only when that one is: the second comes when the
    // third can follow at once.
    return std::nullopt;
  } else if (promotable != nullptr && (voters < wanted || away_voter != nullptr)) {
    // An away voter is replaced by one more first: it is demoted when that one votes.
    return RaftMembershipChange{Kind::kPromote, promotable->host};
  }
  return std::nullopt;
}

}  // namespace tetrad::replication
