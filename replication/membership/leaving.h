// SPDX-License-Identifier: Apache-2.0
// Nodes that go (design, section 7 and rule 30): which may, and when one that stays away is taken
// out by itself. Pure. A node that leaves is kLeaving until its last replica has been rebuilt on
// others, then kRemoved for ever: its host id is never taken in again.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replication/meta/meta_state.h"

namespace tetrad::replication {

using IsLive = std::function<bool(HostId)>;

/// Replicas that name the host, also of changes under way.
size_t replicas_on(const MetaState& state, HostId host);

/// Whether an operator may take out a node that does not run (`dead`) or one that does. Errors:
/// kNotFound, kConflict (another is leaving, or it is alive), kUnavailable (too few members of a
/// tablet are alive to rebuild it), with sentences for the operator.
Result<void> check_leaving(const MetaState& state, HostId host, bool dead, const IsLive& is_live);

/// What goes with nodes that are gone for good.
struct LossWith {
  size_t partitions = 0;           // physical partitions that lose members
  size_t in_doubt = 0;             // of these: too few are left to have all that was acknowledged
  size_t without_any = 0;          // of these: no member is left, all rows are lost
  std::vector<std::string> named;  // those in doubt, the first of them
  std::map<std::string, size_t> by_table;  // "keyspace.table": how many in doubt, all of them
};
/// Whether an operator may give up these nodes. Errors: kNotFound; kConflict: one is alive or removed
/// already, or nothing would be lost, so that they may leave one by one. The others decide: no
/// keyspace may be without a node.
Result<LossWith> check_lost(const MetaState& state, const std::vector<HostId>& hosts,
                            const IsLive& is_live);

/// What the rows in the data center of a node lose when it leaves. Dead nodes count, too: they come
/// back.
struct CopiesWithout {
  std::string data_center;
  size_t nodes_then = 0;                   // that remain in it
  size_t copies_now = 0, copies_then = 0;  // of each row, as far as there are nodes for them
};
CopiesWithout copies_without(const MetaState& state, HostId host);

/// Whether a quorum of three copies is left where there was one: the data center had three nodes
/// and has two then. Errors: kConflict, with a sentence for the operator.
Result<void> check_copies(const CopiesWithout& without);

/// The node that an operator names by its host id, or by its address where that is of one node
/// only. Errors: kNotFound, kConflict.
Result<HostId> host_named(const MetaState& state, const std::string& name);

/// The node to take out by itself: away for `ticks_max` ticks or longer, with W of every set it is
/// in alive and another node to take each of its replicas. None while a third of the nodes or more
/// look down, or while another one leaves.
std::optional<HostId> node_to_replace(const MetaState& state, const IsLive& is_live,
                                      const std::function<uint64_t(HostId)>& ticks_away,
                                      uint64_t ticks_max);

}  // namespace tetrad::replication
