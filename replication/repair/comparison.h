// SPDX-License-Identifier: Apache-2.0
// Compares what the members of physical partitions hold, page by page by digests as a read does,
// and writes nothing. What differs after a repair says that something is wrong.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/task_group.h"
#include "replication/membership/hybrid_clock.h"
#include "replication/meta/meta_service.h"
#include "replication/repair/purge_horizon.h"
#include "replication/rpc/rpc.h"
#include "storage/row/read_command.h"

namespace tetrad::replication {

/// One comparison at a time, ordered by an operator. Owned by a shard's data plane, on its thread.
class Comparison {
 public:
  /// How far it is, or what the last one came to. `compared` never exceeds `partitions`.
  struct Progress {
    uint64_t partitions = 0, compared = 0, pages = 0;
    uint64_t differing_pages = 0;
    /// Sentences for the operator: which partitions differ, which could not be compared and why.
    std::vector<std::string> differing, failed;
    bool running = false;
  };

  /// Everything outlives it.
  Comparison(base::Reactor& reactor, RpcNode& rpc, MetaService& meta, const HybridClock& clock,
             HorizonSlack slack);

  /// Of the tables named ("": all). False: one is running.
  bool start(const std::string& keyspace, const std::string& table);
  const Progress& progress() const { return progress_; }

  enum class Kind : uint8_t { kRange, kLiveness, kDeletion, kCell, kElement, kDamaged };
  /// Where something is that members may hold differently.
  struct Place {
    RingPosition position;
    Bytes partition_key;
    /// The row's clustering key, or the end of the deleted range; unset: the partition's own.
    std::optional<Bytes> at;
    Kind kind = Kind::kCell;
    uint32_t column_id = 0;  // of cells
    Bytes path;              // of elements
    friend auto operator<=>(const Place&, const Place&) = default;
  };

 private:
  /// A tablet, or a part of its range, as it was when its comparison began.
  struct Target {
    TableIncarnation incarnation;
    std::string name;
    partitioner::Tablet tablet;
    int changes = 0;  // how often it has changed under its comparison
  };
  /// Adds what has become of a tablet that has changed.
  void add_as_it_is(const Target& target, std::vector<Target>& targets);
  /// Whether the members agree on a page, and where it ends.
  struct Page {
    bool same = false, exhausted = true;
    storage::ReadPosition end;
  };
  /// What differs of a page, with the hash that each member has for it (zero: nothing there).
  struct Look {
    std::map<Place, std::vector<base::Hash128>> differing;
    bool exhausted = true;
    storage::ReadPosition end;
  };
  /// One tablet after another; a failed one is noted, and the next begins.
  Task<void> run(std::vector<Target> targets);
  Task<Result<uint64_t>> compare(Target target);
  Task<Result<Page>> compare_page(TableIncarnation incarnation, partitioner::Tablet tablet,
                                  std::optional<storage::ReadPosition> after);
  /// Of a page that differs: whether it is more than writes that are on their way.
  Task<Result<Page>> compare_rows(TableIncarnation incarnation, partitioner::Tablet tablet,
                                  std::optional<storage::ReadPosition> after);
  Task<Result<Look>> look_at(TableIncarnation incarnation, partitioner::Tablet tablet,
                             std::optional<storage::ReadPosition> after);
  storage::ReadCommand page_command(TableIncarnation incarnation, const partitioner::Tablet& tablet,
                                    std::optional<storage::ReadPosition> after) const;

  base::Reactor& reactor_;
  RpcNode& rpc_;
  MetaService& meta_;
  const HybridClock& clock_;
  const HorizonSlack slack_;
  Progress progress_;
  base::TaskGroup tasks_;
};

}  // namespace tetrad::replication
