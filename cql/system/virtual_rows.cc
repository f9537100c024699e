// SPDX-License-Identifier: Apache-2.0
#include "cql/system/virtual_rows.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/assert.h"
#include "cql/types/ordered_encoding.h"
#include "partitioner/token.h"
#include "storage/row/row_record.h"

namespace tetrad::cql {
namespace {

struct EncodedRow {
  Bytes clustering_key, record;
};
struct EncodedPartition {
  RingPosition position;
  Bytes key;
  std::vector<EncodedRow> rows;
};

Result<Bytes> partition_key_of(const TableSchema& table, const VirtualRow& row) {
  std::vector<BytesView> parts;
  for (size_t i = 0; i < table.partition_key().size(); ++i) parts.push_back(*row[i]);
  return partitioner::serialize_partition_key(parts);
}

/// The cells of a set that is not frozen, one for each element. Their paths are kept in `paths`.
Result<void> add_elements(const ColumnSchema& column, BytesView set, std::deque<Bytes>& paths,
                          std::vector<storage::Cell>& cells) {
  TETRAD_ASSERT(column.type->kind() == TypeKind::kSet);
  TETRAD_TRY(const auto elements, split_list(set));
  for (const BytesView element : elements) {
    Bytes& path = paths.emplace_back();
    TETRAD_TRY_VOID(append_ordered(path, *column.type->element(), element, false));
    storage::Cell cell;
    cell.column_id = column.id;
    cell.timestamp_us = 0;
    cell.has_path = true;
    cell.path = path;
    cells.push_back(cell);
  }
  return {};
}

Result<EncodedRow> encode_row(const TableSchema& table, const VirtualRow& row) {
  EncodedRow out;
  const size_t keys = table.partition_key().size();
  for (size_t i = 0; i < table.clustering().size(); ++i) {
    TETRAD_TRY_VOID(append_ordered(out.clustering_key, *table.clustering()[i].type,
                                   BytesView(*row[keys + i]), table.clustering()[i].descending));
  }
  storage::RowRecord record;
  std::deque<Bytes> paths;
  record.liveness.timestamp_us = 0;
  for (size_t i = keys + table.clustering().size(); i < row.size(); ++i) {
    if (!row[i]) continue;
    const ColumnSchema& column = table.columns()[i];
    if (column.type->is_multi_cell()) {
      TETRAD_TRY_VOID(add_elements(column, *row[i], paths, record.cells));
      continue;
    }
    storage::Cell cell;
    cell.column_id = column.id;
    cell.timestamp_us = 0;
    cell.value = *row[i];
    record.cells.push_back(cell);
  }
  std::sort(record.cells.begin(), record.cells.end(),
            [](const auto& a, const auto& b) { return storage::compare_cell_places(a, b) < 0; });
  storage::encode_row_record(record, out.record);
  return out;
}

bool wanted(const storage::ReadCommand& command, const Bytes& clustering_key) {
  // Keys of a command ascend (storage/row/read_command.h).
  if (!command.rows.empty()) {
    return std::binary_search(command.rows.begin(), command.rows.end(), clustering_key);
  }
  if (command.clustering_ranges.empty()) return true;
  return std::any_of(command.clustering_ranges.begin(), command.clustering_ranges.end(),
                     [&](const auto& range) { return range.contains(clustering_key); });
}

// The partitions that the command asks for, by ring position and key; rows in the read's order.
// A row of another partition is not encoded: a table may be large where a read of it is small.
Result<std::vector<EncodedPartition>> encode(const TableSchema& table,
                                             const std::vector<VirtualRow>& rows,
                                             const storage::ReadCommand& command) {
  std::map<std::pair<RingPosition, Bytes>, EncodedPartition> partitions;
  for (const VirtualRow& row : rows) {
    TETRAD_TRY(Bytes key, partition_key_of(table, row));
    const RingPosition position = partitioner::position_of(key);
    if (command.is_range ? !command.range.contains(position) : key != command.partition_key)
      continue;
    EncodedPartition& partition = partitions[{position, key}];
    partition.position = position;
    partition.key = std::move(key);
    TETRAD_TRY(EncodedRow encoded, encode_row(table, row));
    partition.rows.push_back(std::move(encoded));
  }
  std::vector<EncodedPartition> out;
  for (auto& [place, partition] : partitions) {
    std::sort(partition.rows.begin(), partition.rows.end(),
              [&](const EncodedRow& a, const EncodedRow& b) {
                return command.reversed ? b.clustering_key < a.clustering_key
                                        : a.clustering_key < b.clustering_key;
              });
    out.push_back(std::move(partition));
  }
  return out;
}

}  // namespace

Result<storage::ReadResult> select_virtual_rows(const TableSchema& table,
                                                std::vector<VirtualRow> rows,
                                                const storage::ReadCommand& command) {
  storage::ReadResult result;
  uint64_t bytes = 0;
  TETRAD_TRY(const std::vector<EncodedPartition> partitions, encode(table, rows, command));
  for (const EncodedPartition& partition : partitions) {
    const storage::ReadPosition* after = command.resume_after ? &*command.resume_after : nullptr;
    bool is_resumed = false;
    if (after != nullptr) {
      const auto here = std::pair(partition.position, BytesView(partition.key));
      const auto there = std::pair(after->position, BytesView(after->partition_key));
      // Without a clustering key the position stands behind all of its partition.
      if (here < there || (here == there && !after->clustering_key)) continue;
      is_resumed = here == there;
    }
    storage::PartitionData data;
    data.position = partition.position;
    data.partition_key = result.arena.copy(partition.key);
    uint32_t in_partition = is_resumed ? command.partition_rows_done : 0;
    bool stopped = false;
    for (const EncodedRow& row : partition.rows) {
      if (is_resumed && (command.reversed ? row.clustering_key >= *after->clustering_key
                                          : row.clustering_key <= *after->clustering_key)) {
        continue;
      }
      if (!wanted(command, row.clustering_key)) continue;
      if (in_partition >= command.per_partition_limit) break;
      if (result.live_row_count >= command.row_limit || bytes >= command.bytes_limit) {
        stopped = true;  // there is a row more: complete_up_to says where to go on
        break;
      }
      data.rows.push_back({result.arena.copy(row.clustering_key), result.arena.copy(row.record)});
      bytes += row.record.size() + row.clustering_key.size();
      ++in_partition;
      ++result.live_row_count;
      result.complete_up_to = {partition.position, partition.key, row.clustering_key};
    }
    if (!data.rows.empty()) result.partitions.push_back(std::move(data));
    if (stopped) {
      result.exhausted = false;
      return result;
    }
  }
  return result;
}

}  // namespace tetrad::cql
