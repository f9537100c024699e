// SPDX-License-Identifier: Apache-2.0
// Keeps the token buckets of limited tables and keyspaces for coordinators to borrow from (rule
// 31). A table's own throughput has a bucket for each tablet, in the memory of its acting member's
// node; a keyspace's has one, on a live node that its name chooses. Coordinators borrow slices and
// spend them without asking; what one spent beyond its slice it reports with the next request, and
// what it has not spent it gives back (throughput_gate.h, throughput_messages.h).
//
//   - Who does not hold the bucket as it knows the cluster lends nothing, nor for a tablet that is
//     not in its map: kStaleEpoch, to be asked anew with the newest map.
//   - A bucket that is new has what has flowed in since this node certainly holds it: since the
//     node began, nodes came or went, or the table's members changed. A new table's is full.
//   - Buckets follow splits and merges (held_table.h). One whose holder is another node now is
//     given to it, debt and all.
//   - A tablet that is asked for more than its part gets what others of its table do not use, from
//     this node and, asked one after another, from those that hold the others; up to what a
//     physical partition may give. What is given is taken from the giver's bucket before it is
//     sent, and lost if it does not arrive: so all of a table's tablets together never lend more
//     than its throughput, whoever dies.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/reactor.h"
#include "base/task_group.h"
#include "replication/meta/meta_service.h"
#include "replication/rpc/rpc.h"
#include "replication/throughput/held_table.h"
#include "replication/throughput/throughput_board.h"
#include "replication/throughput/throughput_messages.h"

namespace tetrad::replication {

/// What a bucket may give of what its tablet has not used in the last five minutes, beside its
/// part; 0: nothing is banked.
inline constexpr const char* kSettingBurstRuPerS = "burst_ru_per_s";
inline constexpr uint64_t kBurstRuPerSDefault = 0;

/// The bucket of a tablet of a limited table.
struct BucketName {
  uint64_t key = 0;  // one for each bucket of the cluster
  uint64_t per_s = 0;
};
BucketName bucket_of(const TableInfo& table, TabletId tablet);
/// A table through which the bucket is asked for: `last`, or of a keyspace's, where that is gone or
/// has a throughput of its own now, another one. Null: it is no more.
const TableInfo* table_of(const MetaState& state, uint64_t key, TableIncarnation last);
/// Who lends for the tablet, as this node sees the cluster: others may see it differently for a
/// moment, and refuse with kStaleEpoch.
HostId holder_of(const MetaState& state, const MetaService& meta, const TableInfo& table,
                 const partitioner::Tablet& tablet);

/// On shard 0 of every node.
class ThroughputHolder {
 public:
  ThroughputHolder(base::Reactor& reactor, RpcNode& rpc, MetaService& meta);
  ~ThroughputHolder();
  ThroughputHolder(const ThroughputHolder&) = delete;
  ThroughputHolder& operator=(const ThroughputHolder&) = delete;

 private:
  /// A table that this node holds some tablets of.
  struct OfTable {
    HeldTable held;
    bool is_collecting = false;
    /// By which map and which nodes the following is: whose places this node holds, and who holds
    /// others.
    uint64_t version = 0, changes = 0;
    std::vector<size_t> own;
    std::vector<HostId> peers;
    size_t next_own = 0, next_peer = 0;  // to be asked for what they do not use
  };

  /// Errors: kCorruption; kStaleSchema (no such table here, or it has no limit); kStaleEpoch (no
  /// such tablet, or this node does not hold it).
  Result<Loan> borrow(HostId from, BytesView body);
  /// Errors as borrow().
  Result<void> take_back(BytesView body);
  /// Errors: kCorruption, kStaleSchema.
  Result<uint64_t> share(BytesView body);
  Result<HeldBucket*> held_for(const MetaState& state, const TableInfo& table, TabletId tablet,
                               const std::optional<RingPosition>& place);
  HeldBucket& held_for(const TableInfo& table, const partitioner::Tablet& tablet);
  OfTable& follow(const TableInfo& table);
  /// Brings `own` and `peers` up to date, after a change of the map or of who is live.
  void look_who_holds(const TableInfo& table, OfTable& of);
  /// With what has flowed in while this node certainly held it, and no more (rule 31).
  HeldBucket new_bucket(BucketName name, TableIncarnation table) const;
  int64_t idle_us(TableIncarnation table) const;

  void on_state(const MetaSnapshot& before, const MetaSnapshot& now);
  void on_table(const TableInfo* was, const TableInfo* is);
  /// Every 100 ms while there are buckets: hands over, collects, reports, forgets.
  void arm();
  void tick();
  void hand_over();
  Task<void> hand_over(uint64_t key, ReturnRequest request);
  uint64_t give(const TableInfo& table, uint64_t wanted);
  /// What the table's tablets here lack: first from this node, then from the others that hold some.
  void collect(const MetaState& state, const TableInfo& table);
  Task<void> collect_from_others(TableIncarnation incarnation, uint64_t wanted);
  void report(bool all);
  /// Drops buckets that nobody has used for so long that new ones would hold the same.
  void forget_idle();

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  /// Ordered maps: what is sent must not depend on the order of a hash.
  std::map<TableIncarnation, OfTable> tables_;
  std::map<uint64_t, HeldBucket> keyspaces_;
  /// Of limited tables whose buckets' holders have changed since this node began: when they did
  /// last.
  std::unordered_map<TableIncarnation, base::MonotonicUs> since_us_;
  base::MonotonicUs all_since_us_;
  uint64_t changes_ = 1;  // of liveness
  bool holders_changed_ = false;
  base::MonotonicUs forgotten_us_ = 0;
  uint64_t ticks_ = 0;
  base::Reactor::TimerId timer_ = 0;
  std::shared_ptr<void> subscription_;
  base::TaskGroup tasks_;  // last: goes first
};

}  // namespace tetrad::replication
