// SPDX-License-Identifier: Apache-2.0
// When a change of a tablet's members may enter its next stage (design, section 12, rules 8 to 10).
// Pure: the runner acts on its decisions and reports the results.
//
//   kNormal -> kWriteBoth -> kStream -> kReadNew -> kWriteNew -> kNormal
// A stage is left when W of the old and W of the new set, in each data centre, have confirmed its
// epoch: from then on they refuse the one before, so that only two neighbouring stages are ever in
// use. kStream is left when every new member, besides, has been filled from R members of the old
// set (finding() of quorum.h); kReadNew when all
// of the tablet has been read once at the quorums of both sets (repair/repair_runner.h).
//
// The settling brings rows to the quorum of the new set, not Paxos registers. Where so few members
// decide in the new set that all of them may have missed what the old one has decided (four become
// one, or a data centre goes), those that stay fill their registers in kStream, too: without them a
// statement that was decided would count as never done, and one that was passed over as open.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "partitioner/placement.h"
#include "partitioner/topology.h"
#include "replication/meta/meta_state.h"
#include "replication/quorum.h"

namespace tetrad::replication {

/// What is known of one epoch of one tablet.
struct MoveProgress {
  SetEpoch epoch;
  std::set<StoreAddress> confirmed;
  std::set<StoreAddress> filled;  // in kReadNew: by whom the tablet was settled
};

/// Members of either set, each once.
std::vector<StoreAddress> all_members(const partitioner::Tablet& tablet);
/// Members of the new set that the old one does not have.
std::vector<StoreAddress> added_members(const partitioner::Tablet& tablet);
/// Who is asked to fill itself in kStream: these, and members that stay and may lack registers.
std::vector<StoreAddress> members_to_fill(const partitioner::Tablet& tablet,
                                          const DataCenters* centers);

/// Members were lost for good (RemoveLostNodes), and what any of the others has comes to all: no other
/// change is one from a set to itself.
inline bool has_lost_members(const partitioner::Tablet& tablet) {
  return tablet.stage == partitioner::TabletStage::kReadNew &&
         tablet.replicas == tablet.new_replicas;
}

/// Whether enough members know the epoch, and have written what they took of earlier ones, so that
/// nobody can meet a quorum in the stage before any more (rule 8).
bool is_confirmed(const partitioner::Tablet& tablet, const MoveProgress& progress,
                  const DataCenters* centers);

/// The stage to enter now; unset: something is still to be waited for, or no change is under way.
std::optional<partitioner::TabletStage> next_stage(const partitioner::Tablet& tablet,
                                                   const MoveProgress& progress,
                                                   const DataCenters* centers = nullptr);

/// What the leader knows of a store when it chooses members.
struct StoreOutlook {
  bool is_live = true;      // it, and its node
  bool may_get = true;      // tablets it has not got: it is sound, and has room
  bool may_give = true;     // what it has: it is not damaged
  bool is_vacated = false;  // what it has goes elsewhere
  bool is_gone = false;     // its node has been away for so long that nobody waits for it
};
using Outlook = std::function<StoreOutlook(const StoreAddress&)>;

/// The members a tablet should have if not those it has: without nodes that are not on the ring
/// (they leave) and stores that are vacated, and with more nodes up to min(4, nodes) in each data
/// centre. A new member is in the rack with the fewest; when nothing else is to do, a member in a
/// rack that has too many is exchanged for one elsewhere, where the ring has one. Unset: it is as
/// it should be, a change is under way, W of either set are not live, R of the old one cannot give
/// what they have, or it would shrink although a store that it lacks may yet come back, or get
/// room. Only live stores that may take it are added; others are healed later. `of_table` and
/// `load` count the tablets of each store: a new member gets its node's store with the fewest.
std::optional<std::vector<StoreAddress>> wanted_members(const partitioner::Ring& ring,
                                                        const partitioner::Tablet& tablet,
                                                        const partitioner::StoreLoad& of_table,
                                                        const partitioner::StoreLoad& load,
                                                        const Outlook& outlook,
                                                        const DataCenters* centers = nullptr);

}  // namespace tetrad::replication
