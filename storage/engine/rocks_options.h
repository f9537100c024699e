// SPDX-License-Identifier: Apache-2.0
// The RocksDB options of stores and local logs. What was measured to choose them: ceilings of the
// project's notes; the reasons stand beside each.
#pragma once

#include <atomic>
#include <memory>

#include "storage/engine/log_recovery.h"
#include "storage/engine/row_merge_operator.h"
#include "storage/engine/store.h"
#include "storage/engine/tombstone_filter.h"

namespace rocksdb {
class Cache;
class Env;
class FileSystem;
class WriteBufferManager;
struct Options;
struct ReadOptions;
}  // namespace rocksdb

namespace tetrad::storage {

/// What the stores of one node share.
struct SharedResources {
  std::shared_ptr<rocksdb::Cache> block_cache;
  std::shared_ptr<rocksdb::WriteBufferManager> write_buffers;  // null: no common budget
  std::shared_ptr<rocksdb::Env> memory;                        // files in memory; null: on a disk
  std::shared_ptr<rocksdb::FileSystem> files;                  // of the disk; null: the system's
  std::shared_ptr<std::atomic<uint32_t>> stores;               // how many have been opened
};
/// `files`: null: as `options` says.
SharedResources make_shared_resources(const StoreOptions& options,
                                      std::shared_ptr<rocksdb::FileSystem> files);

/// Options of one store. The filter and the report live as long as the database.
rocksdb::Options store_options(const StoreOptions& options, const SharedResources& shared,
                               std::shared_ptr<MergeReport> merges,
                               std::shared_ptr<FilterState> filter);
/// Of a local log: a few MiB of memory, no merge operator, no filter.
rocksdb::Options local_log_options();
/// What every read begins with. No range of keys is ever deleted as a range (DeleteRange), and an
/// iterator that looks for such ranges drops the error of the next file of a level: where that file
/// cannot be read, or may not for the read is of memory only, the data seems to end (7.8.3;
/// file_ends_test.cc).
rocksdb::ReadOptions read_options();
/// As `recovery` says, which is of one open.
void set_recovery(rocksdb::Options& options, LogRecovery recovery);

}  // namespace tetrad::storage
