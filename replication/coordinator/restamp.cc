// SPDX-License-Identifier: Apache-2.0
#include "replication/coordinator/restamp.h"

#include <algorithm>

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

void make_later(int64_t& deletion_time_s, int64_t to_s) {
  deletion_time_s = std::max(deletion_time_s, to_s);
}

void make_later(int32_t ttl_s, int64_t& expiry_s, int64_t to_s) {
  expiry_s = std::max(expiry_s, to_s + ttl_s);
}

Result<Bytes> redated(BytesView encoded, int64_t to_s) {
  TETRAD_TRY(storage::RowRecord record, storage::decode_row_record(encoded));
  if (record.liveness.present() && record.liveness.ttl_s != 0)
    make_later(record.liveness.ttl_s, record.liveness.expiry_s, to_s);
  if (record.deletion.present()) make_later(record.deletion.deletion_time_s, to_s);
  for (storage::Cell& cell : record.cells) {
    if (cell.kind != storage::CellKind::kValue)
      make_later(cell.expiry_s, to_s);
    else if (cell.ttl_s != 0)
      make_later(cell.ttl_s, cell.expiry_s, to_s);
  }
  Bytes out;
  storage::encode_row_record(record, out);
  return out;
}

Result<Bytes> without_stripped(BytesView encoded, int64_t from_s) {
  TETRAD_TRY(storage::RowRecord record, storage::decode_row_record(encoded));
  std::erase_if(record.cells, [from_s](const storage::Cell& cell) {
    return cell.kind == storage::CellKind::kValue && cell.ttl_s != 0 && cell.value.empty() &&
           cell.expiry_s >= from_s;
  });
  Bytes out;
  if (!record.empty()) storage::encode_row_record(record, out);
  return out;
}

}  // namespace

Result<void> leave_out_stripped(storage::Mutation& mutation, int64_t from_s) {
  if (!mutation.header.empty()) {
    TETRAD_TRY(mutation.header, without_stripped(mutation.header, from_s));
  }
  for (storage::RowChange& row : mutation.rows) {
    TETRAD_TRY(row.record, without_stripped(row.record, from_s));
  }
  std::erase_if(mutation.rows, [](const storage::RowChange& row) { return row.record.empty(); });
  return {};
}

Result<void> redate(storage::Mutation& mutation, int64_t to_s) {
  if (!mutation.header.empty()) {
    TETRAD_TRY(mutation.header, redated(mutation.header, to_s));
  }
  for (storage::RangeTombstone& tombstone : mutation.range_tombstones)
    make_later(tombstone.deletion.deletion_time_s, to_s);
  for (storage::RowChange& row : mutation.rows) {
    TETRAD_TRY(row.record, redated(row.record, to_s));
  }
  return {};
}

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
