// SPDX-License-Identifier: Apache-2.0
// What a page of a SELECT has cost. Rows count that were looked at for the page, not those that a
// read brought along: how much that is depends on what was read before.
#include <algorithm>
#include <set>

#include "cql/execute/select_run.h"
#include "replication/coordinator/ring_walk.h"
#include "replication/meta/meta_service.h"

namespace tetrad::cql {

uint64_t SelectRun::further_partitions(uint64_t partitions) const {
  if (!partitions_.is_range && partitions < 2) return 0;
  const replication::MetaSnapshot state = context_.meta.snapshot();
  const auto* table = state->table(statement_.table_->incarnation);
  if (table == nullptr) return 0;  // a virtual one
  if (!partitions_.is_range) {
    std::set<uint64_t> touched;
    for (uint64_t i = 0; i < partitions; ++i) {
      const PartitionTarget& target = partitions_.partitions[first_partition_ + i];
      touched.insert(table->tablets.find(target.position).id.value);
    }
    return touched.size() - 1;
  }
  const RingPosition end = exhausted_ ? partitions_.range.end : last_position_;
  if (end <= range_start_) return 0;
  // Tablets lie in the order of their ranges, without gaps.
  const partitioner::Tablet& first = replication::tablet_after(*table, range_start_);
  return static_cast<uint64_t>(&table->tablets.find(end) - &first);
}

ReadWork SelectRun::work_done() const {
  ReadWork work;
  work.weight = weight_read_;
  if (nothing_) return work;
  if (!partitions_.is_range) {
    const size_t begun = next_partition_ - first_partition_ +
                         (next_partition_ < partitions_.partitions.size() && !exhausted_ ? 1 : 0);
    work.partitions = std::max<uint64_t>(begun, 1);
  }
  work.further_partitions = further_partitions(work.partitions);
  return work;
}

void SelectRun::charge() {
  RequestCharge page;
  page.add_read(work_done(), context_.options.consistency);
  context_.charge = page;
  if (!statement_.tells_filtering_ || nothing_) return;
  context_.warnings.push_back(
      fmt::format("ALLOW FILTERING read {} rows, returned {} and cost {:.2f} request units.",
                  rows_read_, result_.row_count, page.units()));
}

}  // namespace tetrad::cql
