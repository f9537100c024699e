// SPDX-License-Identifier: Apache-2.0
// Who votes in the metadata group: 1 of up to two nodes, 3 of up to four, 5 of more, over as many
// racks as there are. Everyone else learns. A voter that is away for long is replaced. One that leaves
// hands its vote to another node; where there is none, the third voter goes when it has left, since
// two stop when either is lost. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replication/meta/raft_configuration.h"

namespace tetrad::replication {

/// A node as the policy sees it: it may become a voter of the metadata group, or is one.
struct VoterCandidate {
  HostId host;
  std::string rack;       // with its data centre
  bool away = false;      // not heard of for long
  bool leaving = false;   // on its way out: it votes no longer than it must
  bool removed = false;   // it has left, and is about to hear of it; `leaving`, too
  bool caught_up = true;  // heard of just now, and its log is nearly the leader's
};

/// The next single step towards the members wanted, if any. `nodes` are the members of the cluster,
/// `self` is the leader.
std::optional<RaftMembershipChange> next_membership_change(const RaftConfiguration& configuration,
                                                           const std::vector<VoterCandidate>& nodes,
                                                           HostId self);

/// Voters wanted among `nodes`; odd (rule 30).
constexpr size_t voters_wanted(size_t nodes) { return nodes >= 5 ? 5 : nodes >= 3 ? 3 : 1; }

}  // namespace tetrad::replication
