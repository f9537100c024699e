// SPDX-License-Identifier: Apache-2.0
// What refuses a request before anything is sent: a full logical partition or disk, where the
// mutation adds data, and too few live members. None of it changes anything, so the client may try
// again.
#include <algorithm>
#include <bit>

#include "partitioner/split_policy.h"
#include "replication/coordinator/coordinator_impl.h"
#include "replication/coordinator/replica_sets.h"
#include "replication/tablets/split_runner.h"

namespace tetrad::replication {

namespace {

/// Whether a mutation adds data, so that a full logical partition must refuse it.
bool adds_data(const storage::Mutation& mutation) {
  const auto has_value = [](BytesView record) {
    storage::RowRecordReader reader;
    if (record.empty() || !reader.open(record)) return false;
    if (reader.liveness().present()) return true;
    storage::Cell cell;
    while (reader.next(cell)) {
      if (cell.kind == storage::CellKind::kValue) return true;
    }
    return false;
  };
  return has_value(mutation.header) ||
         std::any_of(mutation.rows.begin(), mutation.rows.end(),
                     [&](const auto& row) { return has_value(row.record); });
}

}  // namespace

Result<void> CoordinatorImpl::check_room(const MetaState& state, const partitioner::Tablet& tablet,
                                         const storage::Mutation& mutation,
                                         const WriteOptions& options) const {
  if (!tablet.full && !partitioner::is_set_apart(tablet)) return {};
  // A deletion is always let in: it is what makes room in a partition that is full.
  if (!adds_data(mutation)) return {};
  const uint64_t limit = logical_partition_bytes_max(state);
  if (tablet.full)
    return fail(ErrorCode::kInvalid, "Partition key reached maximum size of {}", size_text(limit));
  if (options.warnings == nullptr ||
      meta_.tablet_bytes(tablet.id) < logical_partition_bytes_warned(state))
    return {};
  auto warning =
      fmt::format("Partition key reached 80% of its maximum size of {}", size_text(limit));
  auto& warnings = *options.warnings;
  if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
    warnings.push_back(std::move(warning));
  return {};
}

Result<void> CoordinatorImpl::check_disks(const MetaState& state,
                                          std::span<const storage::Mutation> mutations) const {
  // A mutation that adds nothing passes: DELETE must work on a full disk. One member without room
  // is enough to refuse, so that no member falls behind the others for want of room (rule 13).
  const FillingDisks& disks = meta_.filling_disks();
  for (const storage::Mutation& mutation : mutations) {
    const TableInfo* table = state.table(mutation.incarnation);
    if (table == nullptr || !adds_data(mutation)) continue;
    const WriteSets sets = write_sets(table->tablets.find(mutation.position));
    for (const auto* set : {&sets.old_set, &sets.new_set}) {
      for (const StoreAddress& replica : *set) {
        // Who is down is brought up to date by hints and repair when there is room again.
        if (!meta_.is_replica_live(replica)) continue;
        const auto found = disks.find(replica.host);
        if (found == disks.end() || found->second != DiskUsage::kNoRoom) continue;
        return fail(ErrorCode::kOverloaded,
                    "the disk of {} is full; deletions, DROP and TRUNCATE make room",
                    state.address_of(replica.host));
      }
    }
  }
  return {};
}

Result<void> CoordinatorImpl::check_enough(const std::vector<StoreAddress>& set,
                                           ConsistencyLevel level, const Need& need) const {
  const Members live = members_that(
      set, [this](const StoreAddress& replica) { return meta_.is_replica_live(replica); });
  const Need::Group* const unmet = need.first_unmet(live);
  if (unmet == nullptr) return {};
  return std::unexpected(
      Error(ErrorCode::kUnavailable,
            fmt::format("Cannot achieve consistency level {}", base::name_of(level)),
            base::UnavailableDetail{level, unmet->count, std::popcount(live & unmet->members)}));
}

Result<void> CoordinatorImpl::check_not_full(const std::vector<StoreAddress>& set,
                                             const Need& need) const {
  if (meta_.store_troubles().empty()) return {};
  const auto is_full = [this](const StoreAddress& replica) {
    return meta_.state_of(replica) == storage::StoreState::kFull;
  };
  if (need.is_met_by(members_that(set, [&](const StoreAddress& replica) {
        return meta_.is_replica_live(replica) && !is_full(replica);
      })))
    return {};
  const auto found = std::ranges::find_if(set, is_full);
  if (found == set.end()) return {};
  return fail(ErrorCode::kOverloaded,
              "Replicas take no more writes at the moment; try again (store {} of {} is full)",
              found->store, meta_.snapshot()->address_of(found->host));
}

}  // namespace tetrad::replication
