// SPDX-License-Identifier: Apache-2.0
#include "replication/coordinator/restamp.h"

namespace tetrad::replication {
namespace {

void move(int64_t& timestamp_us, int64_t from_us, int64_t to_us) {
  if (timestamp_us == from_us) timestamp_us = to_us;
}

Result<Bytes> restamped(BytesView encoded, int64_t from_us, int64_t to_us) {
  TETRAD_TRY(storage::RowRecord record, storage::decode_row_record(encoded));
  move(record.liveness.timestamp_us, from_us, to_us);
  move(record.deletion.timestamp_us, from_us, to_us);
  for (storage::Cell& cell : record.cells) {
    if (cell.kind == storage::CellKind::kColumnDeletion && cell.timestamp_us == from_us - 1)
      cell.timestamp_us = to_us - 1;
    move(cell.timestamp_us, from_us, to_us);
  }
  Bytes out;
  storage::encode_row_record(record, out);
  return out;
}

}  // namespace

Result<void> restamp(storage::Mutation& mutation, int64_t from_us, int64_t to_us) {
  if (!mutation.header.empty()) {
    TETRAD_TRY(mutation.header, restamped(mutation.header, from_us, to_us));
  }
  for (storage::RangeTombstone& tombstone : mutation.range_tombstones)
    move(tombstone.deletion.timestamp_us, from_us, to_us);
  for (storage::RowChange& row : mutation.rows) {
    TETRAD_TRY(row.record, restamped(row.record, from_us, to_us));
  }
  return {};
}

}  // namespace tetrad::replication
