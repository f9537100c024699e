// SPDX-License-Identifier: Apache-2.0
// What the header of a mutation says: the record that carries a partition's tombstone and its static
// cells.
#pragma once

#include "storage/row/row_record.h"

namespace tetrad::storage {

/// Whether the partition is deleted by it. Empty, or of something that does not decode: it is not.
inline bool deletes_partition(BytesView header) {
  RowRecordReader reader;
  return !header.empty() && reader.open(header) && reader.deletion().present();
}

}  // namespace tetrad::storage
