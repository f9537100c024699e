// SPDX-License-Identifier: Apache-2.0
// What a page of a SELECT has cost. Rows count that were looked at for the page, not those that a
// read brought along: how much that is depends on what was read before.
//
// 1. admit(), before a page: takes the least a page can cost from each partition it will read. The
//    true cost is not known yet.
// 2. charge(), after the page: computes the true cost and puts it into the request's charge.
// 3. settle(): takes the difference, or gives it back, evenly from the partitions that were read.
//
// A table without a limit of throughput skips 1 and 3.
#include <algorithm>
#include <set>

#include "cql/execute/select_run.h"
#include "cql/execute/throughput.h"
#include "replication/coordinator/ring_walk.h"
#include "replication/meta/meta_service.h"

namespace tetrad::cql {

std::span<const partitioner::Tablet> SelectRun::tablets_to(const replication::TableInfo& table,
                                                           RingPosition end) const {
  // Tablets lie in the order of their ranges, without gaps.
  // A page may end where it began: then it has read one tablet.
  const partitioner::Tablet& first = replication::tablet_after(table, range_start_);
  if (end <= range_start_) return {&first, 1};
  return {&first, &table.tablets.find(end) + 1};
}

uint64_t SelectRun::further_partitions(uint64_t partitions) const {
  if (!partitions_.is_range && partitions < 2) return 0;
  const replication::MetaSnapshot state = context_.meta.snapshot();
  const auto* table = state->table(statement_.table_->incarnation);
  if (table == nullptr) return 0;  // a virtual one
  if (partitions_.is_range) return tablets_to(*table, range_end_read()).size() - 1;
  std::set<uint64_t> touched;
  for (uint64_t i = 0; i < partitions; ++i) {
    const PartitionTarget& target = partitions_.partitions[first_partition_ + i];
    touched.insert(table->tablets.find(target.position).id.value);
  }
  return touched.size() - 1;
}

ReadWork SelectRun::work_done() const {
  ReadWork work;
  work.weight = weight_read_;
  if (nothing_) return work;
  if (!partitions_.is_range) {
    // The partition at which the page stopped counts, too: some of its rows were read.
    const size_t begun = next_partition_ - first_partition_ +
                         (next_partition_ < partitions_.partitions.size() && !exhausted_ ? 1 : 0);
    work.partitions = std::max<uint64_t>(begun, 1);
  }
  work.further_partitions = further_partitions(work.partitions);
  return work;
}

Task<Result<void>> SelectRun::admit() {
  // A page of a long IN list rarely gets to all of it; the rest is settled after the page.
  constexpr size_t kKnownPartitionsMax = 32;
  RequestCharge least;
  least.add_read({}, context_.options.consistency);
  const size_t listed = partitions_.is_range ? 0 : partitions_.partitions.size() - first_partition_;
  const auto places = places_read(std::min(listed, kKnownPartitionsMax), range_start_);
  std::vector<replication::ThroughputUse> uses;
  for (const RingPosition place : places)
    uses.push_back({statement_.table_->incarnation, place, least.weight()});
  admitted_weight_ = uses.size() * least.weight();
  return context_.throughput->admit(std::move(uses), deadline_);
}

std::vector<RingPosition> SelectRun::places_read(uint64_t partitions, RingPosition end) const {
  std::vector<RingPosition> out;
  const replication::MetaSnapshot state = context_.meta.snapshot();
  const auto* table = state->table(statement_.table_->incarnation);
  if (table == nullptr) return out;
  if (partitions_.is_range) {
    for (const partitioner::Tablet& tablet : tablets_to(*table, end))
      out.push_back(tablet.range.end);
  } else {
    for (uint64_t i = 0; i < partitions; ++i)
      out.push_back(partitions_.partitions[first_partition_ + i].position);
  }
  return out;
}

void SelectRun::settle(uint64_t weight, uint64_t partitions) const {
  const TableIncarnation table = statement_.table_->incarnation;
  if (admitted_weight_ == 0 || !is_limited(context_, table)) return;
  const auto places = places_read(partitions, range_end_read());
  if (places.empty()) return;
  // May be negative: then the partitions get something back.
  const int64_t difference = static_cast<int64_t>(weight) - static_cast<int64_t>(admitted_weight_);
  const int64_t each = difference / static_cast<int64_t>(places.size());
  for (const RingPosition place : places) context_.throughput->settle(table, place, each);
}

void SelectRun::charge() {
  RequestCharge page;
  const ReadWork work = work_done();
  page.add_read(work, context_.options.consistency);
  settle(page.weight(), work.partitions);
  context_.charge = page;
  if (!statement_.tells_filtering_ || nothing_) return;
  context_.warnings.push_back(
      fmt::format("ALLOW FILTERING read {} rows, returned {} and cost {:.2f} request units.",
                  rows_read_, result_.row_count, page.units()));
}

}  // namespace tetrad::cql
