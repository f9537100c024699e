// SPDX-License-Identifier: Apache-2.0
// A batch may change one partition many times. Joined, each partition is one mutation, which is
// applied at once: readers see all of it or nothing. Rows are reconciled as replicas would
// (storage/row/reconcile.h), so the result is the same as applying the parts one after another.
#include "cql/execute/join_mutations.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "storage/row/reconcile.h"

namespace tetrad::cql {

namespace {

using storage::Mutation;

/// A record that has what both have.
Result<Bytes> merged_record(BytesView a, BytesView b) {
  TETRAD_TRY(const storage::RowRecord first, storage::decode_row_record(a));
  TETRAD_TRY(const storage::RowRecord second, storage::decode_row_record(b));
  Bytes merged;
  storage::encode_row_record(storage::reconcile(first, second), merged);
  return merged;
}

/// One record of what all have, earlier ones first. In pairs: one after another, a row that grows
/// would be copied for each part.
Result<Bytes> merged_records(std::span<Bytes> records) {
  if (records.size() == 1) return std::move(records.front());
  const size_t half = records.size() / 2;
  TETRAD_TRY(const Bytes first, merged_records(records.first(half)));
  TETRAD_TRY(const Bytes second, merged_records(records.subspan(half)));
  return merged_record(first, second);
}

/// Joins the changes of one partition; rows and headers are merged by join_rows().
void join(Mutation& into, Mutation&& from, std::vector<Bytes>& headers) {
  if (!from.header.empty()) headers.push_back(std::move(from.header));
  // Tombstones may overlap; readers take the newest.
  std::ranges::move(from.range_tombstones, std::back_inserter(into.range_tombstones));
  std::ranges::move(from.rows, std::back_inserter(into.rows));
}

/// So that each row is in it once. `headers`: of the later parts.
Result<void> join_rows(Mutation& mutation, std::vector<Bytes> headers) {
  if (!headers.empty()) {
    if (!mutation.header.empty()) headers.insert(headers.begin(), std::move(mutation.header));
    TETRAD_TRY(mutation.header, merged_records(headers));
  }
  auto& rows = mutation.rows;
  // Stable: parts of one row stay in the order of the statements.
  std::ranges::stable_sort(rows, {}, &storage::RowChange::clustering_key);
  size_t kept = 0;
  std::vector<Bytes> records;
  for (size_t i = 0; i < rows.size();) {
    size_t end = i + 1;
    while (end < rows.size() && rows[end].clustering_key == rows[i].clustering_key) ++end;
    if (kept != i) rows[kept] = std::move(rows[i]);
    if (end != i + 1) {
      records.clear();
      records.push_back(std::move(rows[kept].record));
      for (size_t other = i + 1; other < end; ++other)
        records.push_back(std::move(rows[other].record));
      TETRAD_TRY(rows[kept].record, merged_records(records));
      rows[kept].complete = false;  // parts may differ in their timestamps
    }
    ++kept;
    i = end;
  }
  rows.resize(kept);
  return {};
}

struct PartitionId {
  uint32_t incarnation;
  BytesView key;
  friend bool operator==(const PartitionId&, const PartitionId&) = default;
};
struct PartitionIdHash {
  size_t operator()(const PartitionId& id) const {
    return std::hash<std::string_view>()(id.key) ^ (size_t{id.incarnation} * 0x9E3779B97F4A7C15ULL);
  }
};

}  // namespace

Result<std::vector<Mutation>> join_by_partition(std::vector<Mutation> mutations) {
  std::vector<Mutation> joined;
  joined.reserve(mutations.size());  // keys in `places` are views into its elements
  std::unordered_map<PartitionId, size_t, PartitionIdHash> places;
  std::vector<bool> touched;
  std::vector<std::vector<Bytes>> headers;  // of parts that were joined
  for (Mutation& mutation : mutations) {
    const PartitionId id{mutation.incarnation.value, mutation.partition_key};
    const auto found = places.find(id);
    if (found == places.end()) {
      joined.push_back(std::move(mutation));
      touched.push_back(false);
      headers.emplace_back();
      places.emplace(PartitionId{joined.back().incarnation.value, joined.back().partition_key},
                     joined.size() - 1);
    } else {
      join(joined[found->second], std::move(mutation), headers[found->second]);
      touched[found->second] = true;
    }
  }
  for (size_t i = 0; i < joined.size(); ++i) {
    if (touched[i]) TETRAD_TRY_VOID(join_rows(joined[i], std::move(headers[i])));
  }
  return joined;
}

}  // namespace tetrad::cql
