// SPDX-License-Identifier: Apache-2.0
// What is proposed to the metadata group, and what it does to the state.
//
//   command := u8 version (4; 3 has no numbers of formats in nodes, 2 no throughputs, 1 no change
//              logs), u8 type, 16 B command id, 16 B origin host id, body
// The types are in logs and snapshots: never renumber.
#pragma once

#include <variant>

#include "base/byte_io.h"
#include "replication/meta/meta_state.h"

namespace tetrad::replication {

/// The first command of a cluster.
struct BootstrapCluster {
  Uuid cluster_id;
  std::string cluster_name;
  Bytes secret;
  NodeInfo node;
  uint64_t token_seed = 0;
};

/// A node joins (the host is unknown: it gets tokens) or changed what others should know of it (its
/// tokens stay).
struct PutNode {
  NodeInfo node;
  uint64_t token_seed = 0;
};

/// A node joins fully, leaves, or is removed.
struct SetNodeState {
  HostId host;
  NodeState state = NodeState::kNormal;
};

/// Refused with kConflict when the tablet is no longer exactly `range`, or the table has
/// `tablets_max` tablets.
struct SplitTablet {
  TableIncarnation incarnation;
  TabletId tablet;
  RingRange range;
  RingPosition at;
  uint32_t tablets_max = 0;  // 0: as many as a table may have
};

/// Two neighbours become one, under a number and an epoch of its own: above both halves', so that
/// nothing that was sent to a half is taken for the whole. Refused with kConflict when a half is no
/// longer as it is named here, and unless both have the same members and the same horizon: under a
/// lower one a write could come back that the other half's members have purged the deletion of, under
/// a higher one a deletion be purged that not all members have.
struct MergeTablets {
  TableIncarnation incarnation;
  TabletId left, right;
  SetEpoch left_epoch, right_epoch;
  RingRange range;                                   // of both
  RingPosition cut;                                  // where the left half ends
  uint32_t tablets_min = 1;                          // the table keeps at least these
  uint8_t bounces_most = partitioner::kBouncesMost;  // 0: what was undone here before is long ago
};

/// Enters the next stage of a change of members, or gives it up. Refused with kConflict when the
/// set epoch is no longer `expected`.
struct ChangeTabletStage {
  TableIncarnation incarnation;
  TabletId tablet;
  SetEpoch expected;
  partitioner::TabletStage next = partitioner::TabletStage::kNormal;
  std::vector<StoreAddress> new_replicas;  // with kWriteBoth only
  bool give_up = false;  // with kNormal, out of kWriteBoth or kStream: the old set stays
};

/// The single logical partition of a tablet has reached its size limit, so that inserts are
/// refused, or has room again.
struct SetTabletFull {
  TableIncarnation incarnation;
  TabletId tablet;
  bool full = false;
};

/// All members of the epoch have been repaired over the range, by a repair that began at
/// `repaired_us`. Refused with kConflict when the tablet is no longer as it was.
struct SetTabletRepaired {
  TableIncarnation incarnation;
  TabletId tablet;
  SetEpoch epoch;
  RingRange range;
  int64_t repaired_us = 0;
};

/// A setting of the whole cluster, or none any more.
struct SetSetting {
  std::string name;
  std::optional<std::string> value;
};

/// Every store of every node has retired these.
struct ForgetRetired {
  std::vector<TableIncarnation> incarnations;
};

/// These nodes are gone for good, and with them what their stores alone had: they are removed at once.
/// A tablet goes on with its other members, or, where it has none, on others without any row. It is
/// first read from all of them (design, rule 30), so that what one of them has comes to the others.
/// Refused unless each is a member and another node stays.
struct RemoveLostNodes {
  std::vector<HostId> hosts;
};

/// One entry of the metadata group's log. Applied by every node, in the log's order.
struct MetaCommand {
  Uuid id;
  HostId origin;  // who waits for it
  std::variant<BootstrapCluster, PutNode, SetNodeState, SchemaChange, SplitTablet,
               ChangeTabletStage, SetTabletFull, SetSetting, ForgetRetired, SetTabletRepaired,
               MergeTablets, RemoveLostNodes>
      body;
};

using MetaCommandBody = decltype(MetaCommand::body);

/// Longest command that is taken.
inline constexpr size_t kMetaCommandBytesMax = 16u << 20;

/// `format`: of the state that the proposer knows, which every node reads.
Bytes encode_meta_command(const MetaCommand& command, ClusterFormat format);
/// Errors: kCorruption; kConfig: a later program's, of a format above `known`.
Result<MetaCommand> decode_meta_command(BytesView encoded, ClusterFormat known = kFormatNewest);

/// While the cluster's format is the first, a node's own stands behind its version, as older
/// programs keep and hand on what they take for a version: "0.4.0+format.2".
void encode_node_info(const NodeInfo& node, ClusterFormat format, base::ByteWriter& out);
Result<NodeInfo> decode_node_info(ClusterFormat format, base::ByteReader& in);

/// The state after a command, and what its proposer is answered.
struct MetaApplied {
  MetaSnapshot state;
  Result<void> outcome;
};

///   throughput := varint RU/s (0: no limit), u8 (1: of the keyspace)
void encode_throughput(const Throughput& throughput, base::ByteWriter& out);
Result<Throughput> decode_throughput(base::ByteReader& in);

/// The state after a command. Pure and the same on every node: nothing but its arguments counts. A
/// command that is refused, or cannot be read, changes nothing but `applied`.
MetaApplied apply_meta_command(const MetaSnapshot& before, MetaIndex index,
                               const MetaCommand& command);

}  // namespace tetrad::replication
