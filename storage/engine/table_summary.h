// SPDX-License-Identifier: Apache-2.0
// What every SST file says about itself in its properties, so that a store knows the marks of its
// tables, and which have headers and range tombstones, without reading rows at start.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "storage/engine/tables_known.h"

namespace rocksdb {
class TablePropertiesCollectorFactory;
}

namespace tetrad::storage {

/// Adds what a file's properties say. Errors: kCorruption (also when they are missing).
Result<void> join_summary(const std::map<std::string, std::string>& properties,
                          TablesKnown& tables);

/// Collects while a file is written, by flush or compaction. The format is in table_summary.cc.
std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_table_summary_collector();

}  // namespace tetrad::storage
