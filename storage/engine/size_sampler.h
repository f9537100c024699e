// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a range lie, for choosing a split point.
#pragma once

#include <vector>

#include "storage/engine/store.h"

namespace rocksdb {
class DB;
}

namespace tetrad::storage {

/// An estimate from file indexes and memtables; never 0 where there is a key. Cheap.
uint64_t approximate_bytes_of(rocksdb::DB& db, TableIncarnation incarnation,
                              const RingRange& range);

/// About `count` samples, ascending. Small ranges are looked at key by key, of larger ones the
/// heaviest part is halved again and again. Reads files.
/// Blocks: on a maintenance thread. Errors: kCorruption, kIo.
Result<std::vector<SizeSample>> sample_sizes_of(rocksdb::DB& db, TableIncarnation incarnation,
                                                const RingRange& range, size_t count);

}  // namespace tetrad::storage
