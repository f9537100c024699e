// SPDX-License-Identifier: Apache-2.0
// What every SST file says about itself in its properties, so that a store knows its bucket marks,
// and which tables have headers and range tombstones, without reading rows at start.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "storage/engine/bucket_marks.h"

namespace rocksdb {
class TablePropertiesCollectorFactory;
}

namespace tetrad::storage {

/// Counts of keys of one table, over files that may hold several versions of one key.
struct TableCounts {
  uint64_t headers = 0, range_tombstones = 0, rows = 0, bytes = 0;
  uint64_t dead = 0;  // tombstones, and what has a TTL
};

struct TableSummary {
  BucketMarks marks;
  std::map<uint32_t, TableCounts> tables;  // by incarnation

  /// Adds what a file's properties say. Errors: kCorruption (also when they are missing).
  Result<void> join(const std::map<std::string, std::string>& properties);
};

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_table_summary_collector();

}  // namespace tetrad::storage
