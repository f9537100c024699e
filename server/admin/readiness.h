// SPDX-License-Identifier: Apache-2.0
// Whether a cluster can serve, as one node sees it.
//
// /health is about this process, /ready about what its clients can do: a node is ready when it
// serves and obstacles() is empty. Orchestrators take nodes down one after another by it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replication/meta/meta_state.h"

namespace tetrad::server {

/// How much of the cluster can serve, as this node sees it now; a value.
/// "Live" is what this node's failure detector says; another node may see it otherwise.
struct Readiness {
  size_t nodes = 0;               // members of the cluster
  std::vector<std::string> away;  // addresses of those that are not live
  /// Of these, by the reason, those that can be reached and do not speak with this node: as this node
  /// hears it, a disagreement about the cluster's secret or TLS. Whoever answers so is not lost.
  std::map<std::string, std::vector<std::string>> refused;
  /// Of `away` the ones whose address a live node has now, as after the loss of a disk.
  std::vector<HostId> replaced;
  size_t voters = 0, voters_live = 0;
  bool leader_known = false;
  size_t partitions = 0;   // physical ones
  size_t partial = 0;      // of them, with a member away
  size_t unavailable = 0;  // of those, with too few for a write that comes to this node

  /// Enough voters of the metadata group are live; without them no table is made and nobody joins.
  bool has_quorum() const { return voters_live * 2 > voters; }
  /// Why not everything is served, a line each; empty: everything is.
  std::vector<std::string> obstacles() const;
  /// As obstacles(), and what does not stop anything: nodes that are away.
  std::vector<std::string> warnings() const;

 private:
  /// A line for each reason of `refused`.
  std::vector<std::string> disagreements() const;
};

/// Seen from `self`. `voters`: of the metadata group. `refusal`: why that node and this one refuse
/// each other, "" if they do not; null: nobody does. Looks at the tablets only when a node is away.
Readiness measure_readiness(const replication::MetaState& state, HostId self,
                            const std::vector<HostId>& voters, bool leader_known,
                            const std::function<bool(HostId)>& is_live,
                            const std::function<std::string(HostId)>& refusal = nullptr);

}  // namespace tetrad::server
