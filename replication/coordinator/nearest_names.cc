// SPDX-License-Identifier: Apache-2.0
#include "replication/coordinator/nearest_names.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/byte_io.h"
#include "replication/coordinator/nearest_limits.h"
#include "storage/row/storage_key.h"

namespace tetrad::replication {
namespace {

using Row = NearestNames::Row;

int compare_places(const Row& a, const Row& b) {
  const int order =
      storage::compare_partitions(a.position, a.partition_key, b.position, b.partition_key);
  return order != 0 ? order : a.clustering_key.compare(b.clustering_key);
}

bool is_before(const Row& a, const Row& b) {
  return a.distance != b.distance ? a.distance < b.distance : compare_places(a, b) < 0;
}

/// The distance that a member gives with a row.
Result<double> distance_of(const storage::RowData& row) {
  double distance = std::numeric_limits<double>::quiet_NaN();
  if (row.record.size() == sizeof(uint64_t))
    distance = std::bit_cast<double>(base::load_big_endian<uint64_t>(row.record.data()));
  if (std::isfinite(distance)) return distance;
  return fail(ErrorCode::kCorruption, "a named row with {} bytes that are no distance",
              row.record.size());
}

}  // namespace

Result<NearestNames> join_names(std::span<const storage::ReplicaReply> replies) {
  NearestNames names;
  for (const storage::ReplicaReply& reply : replies) {
    double furthest = -std::numeric_limits<double>::infinity();
    for (const storage::PartitionData& partition : reply.result.partitions) {
      for (const storage::RowData& row : partition.rows) {
        TETRAD_TRY(const double distance, distance_of(row));
        furthest = std::max(furthest, distance);
        names.rows.push_back({distance, partition.position, Bytes(partition.partition_key),
                              Bytes(row.clustering_key)});
      }
    }
    if (!reply.result.exhausted) names.beyond = std::min(names.beyond.value_or(furthest), furthest);
  }
  std::ranges::sort(names.rows, [](const Row& a, const Row& b) {
    const int order = compare_places(a, b);
    return order != 0 ? order < 0 : a.distance < b.distance;
  });
  const auto again = std::ranges::unique(
      names.rows, [](const Row& a, const Row& b) { return compare_places(a, b) == 0; });
  names.rows.erase(again.begin(), again.end());
  std::ranges::sort(names.rows, is_before);
  return names;
}

void add_names(NearestNames& names, NearestNames others) {
  const auto middle = static_cast<std::ptrdiff_t>(names.rows.size());
  std::ranges::move(others.rows, std::back_inserter(names.rows));
  std::ranges::inplace_merge(names.rows, names.rows.begin() + middle, is_before);
  if (others.beyond) names.beyond = std::min(names.beyond.value_or(*others.beyond), *others.beyond);
}

void keep_nearest(NearestNames& names, size_t rows_max, size_t key_bytes_max) {
  size_t kept = 0, key_bytes = 0;
  for (; kept < std::min(rows_max, names.rows.size()); ++kept) {
    key_bytes += names.rows[kept].partition_key.size() + names.rows[kept].clustering_key.size();
    if (key_bytes > key_bytes_max && kept > 0) break;
  }
  if (kept == names.rows.size()) return;
  const double left_out = names.rows[kept].distance;
  names.beyond = std::min(names.beyond.value_or(left_out), left_out);
  names.rows.resize(kept);
}

}  // namespace tetrad::replication
