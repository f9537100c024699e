// SPDX-License-Identifier: Apache-2.0
// Request units of one request, counted as weight (kWeightOfUnit of it are 1 RU) so that sums stay
// whole. A read at ONE counts once, at a higher level twice; a written row five times what reading
// it costs.
#include "cql/prepare/request_charge.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/byte_io.h"

namespace tetrad::cql {
namespace {

using storage::kWeightOfUnit;
using storage::row_weight;

constexpr uint64_t kWriteFactor = 5;
// 2.5 RU for each further physical partition that a read asks.
constexpr uint64_t kWeightOfFurtherPartition = 5 * kWeightOfUnit / 2;

bool asks_one_replica(ConsistencyLevel level) {
  return level == ConsistencyLevel::kOne || level == ConsistencyLevel::kLocalOne;
}

uint64_t write_weight(uint64_t bytes) {
  return kWriteFactor * std::max(row_weight(bytes), kWeightOfUnit);
}

}  // namespace

void RequestCharge::add_read(const ReadWork& work, ConsistencyLevel level) {
  const uint64_t once = std::max(work.partitions * kWeightOfUnit, work.weight) +
                        work.further_partitions * kWeightOfFurtherPartition;
  weight_ += asks_one_replica(level) ? once : 2 * once;
}

void RequestCharge::add_write(std::span<const storage::Mutation> mutations) {
  for (const storage::Mutation& mutation : mutations) {
    if (!mutation.header.empty()) weight_ += write_weight(mutation.header.size());
    weight_ += mutation.range_tombstones.size() * write_weight(0);
    for (const storage::RowChange& row : mutation.rows)
      weight_ += write_weight(row.clustering_key.size() + row.record.size());
  }
}

void RequestCharge::add_schema_change() { weight_ += write_weight(0); }

// To two decimals, as clients see it.
double RequestCharge::units() const {
  return std::round(100 * static_cast<double>(weight_) / kWeightOfUnit) / 100;
}

// The value of the custom payload: an IEEE 754 double, big-endian.
Bytes encode_request_charge(double units) {
  Bytes out(8, '\0');
  base::store_big_endian(out.data(), std::bit_cast<uint64_t>(units));
  return out;
}

}  // namespace tetrad::cql
