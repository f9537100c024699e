// SPDX-License-Identifier: Apache-2.0
// Folding of rows that were read: what a coordinator does with a merged page.
#include "storage/row/row_fold.h"

namespace tetrad::storage {

Result<Bytes> fold_rows(const FoldPlan& plan, BytesView state, int64_t now_s,
                        const ReadResult& rows) {
  TETRAD_TRY(const std::unique_ptr<RowFold> fold, plan.go_on(state, now_s));
  RowRecord record;
  for (const PartitionData& partition : rows.partitions) {
    record = RowRecord();
    if (!partition.header.empty())
      TETRAD_TRY_VOID(decode_row_record_into(partition.header, record));
    TETRAD_TRY_VOID(fold->begin_partition(partition.position, partition.partition_key, record,
                                          !partition.rows.empty()));
    for (const RowData& row : partition.rows) {
      TETRAD_TRY_VOID(decode_row_record_into(row.record, record));
      TETRAD_TRY_VOID(fold->take_row(row.clustering_key, record));
    }
  }
  return fold->state();
}

}  // namespace tetrad::storage
