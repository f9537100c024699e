// SPDX-License-Identifier: Apache-2.0
// The options of RocksDB, with the reason for each that is not its default.
#include "storage/engine/rocks_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <rocksdb/write_buffer_manager.h>

#include "storage/engine/kept_logs.h"
#include "storage/engine/table_summary.h"
#include "storage/row/storage_key.h"

namespace tetrad::storage {
namespace {

constexpr int kMemtablesPerFlush = 4;
constexpr size_t kDeletionsWindow = 4096;

/// What holds for every database of ours: a quick open, a small idle footprint, checks everywhere.
rocksdb::Options common_options() {
  rocksdb::Options o;
  o.create_if_missing = true;
  o.paranoid_checks = true;
  set_recovery(o, LogRecovery::kStrict);
  // Recycled logs hold old records behind the new ones, which makes a torn end harder to tell.
  o.recycle_log_file_num = 0;
  // A log that was synced and is missing or shorter at the next start is damage.
  o.track_and_verify_wals_in_manifest = true;
  // Nothing resumes by itself after an error: store_health.cc says when.
  o.max_bgerror_resume_count = 0;
  o.skip_stats_update_on_db_open = true;
  o.skip_checking_sst_file_sizes_on_db_open = true;
  o.avoid_unnecessary_blocking_io = true;
  o.stats_dump_period_sec = 0;
  o.stats_persist_period_sec = 0;
  o.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  o.keep_log_file_num = 2;
  o.max_log_file_size = 4 << 20;
  o.max_open_files = 1024;
  o.table_cache_numshardbits = 2;
  o.max_manifest_file_size = 16 << 20;
  return o;
}

}  // namespace

SharedResources make_shared_resources(const StoreOptions& options,
                                      std::shared_ptr<rocksdb::FileSystem> files) {
  SharedResources shared;
  shared.stores = std::make_shared<std::atomic<uint32_t>>(0);
  rocksdb::LRUCacheOptions cache;
  cache.capacity = options.block_cache_bytes;
  cache.num_shard_bits = options.block_cache_bytes >= (64u << 20) ? 4 : 1;
  shared.block_cache = rocksdb::NewLRUCache(cache);
  if (options.write_buffers_total_bytes > 0)
    shared.write_buffers =
        std::make_shared<rocksdb::WriteBufferManager>(options.write_buffers_total_bytes);
  rocksdb::Env* system = rocksdb::Env::Default();
  if (options.in_memory_files) shared.memory.reset(rocksdb::NewMemEnv(system));
  shared.files = std::move(files);
  system->IncBackgroundThreadsIfNeeded(static_cast<int>(options.background_threads),
                                       rocksdb::Env::LOW);
  system->IncBackgroundThreadsIfNeeded(1, rocksdb::Env::HIGH);
  return shared;
}

rocksdb::Options store_options(const StoreOptions& options, const SharedResources& shared,
                               std::shared_ptr<MergeReport> merges,
                               std::shared_ptr<FilterState> filter) {
  rocksdb::Options o = common_options();
  o.max_open_files = static_cast<int>(options.open_files_max);
  o.max_background_jobs = static_cast<int>(options.background_threads) + 1;

  // An insert into a skip list of 64 MB misses the processor's caches at every step: four small
  // memtables cost a fifth less for each write than a large one, and one flush writes all of them.
  o.write_buffer_size = options.write_buffer_bytes / kMemtablesPerFlush;
  o.min_write_buffer_number_to_merge = kMemtablesPerFlush;
  o.max_write_buffer_number = 4 * kMemtablesPerFlush;
  o.write_buffer_manager = shared.write_buffers;
  o.arena_block_size = std::min<uint64_t>(1u << 20, o.write_buffer_size / 8);
  // A lookup in a full memtable costs as much as one in a file. A fiftieth of the buffer is some 25
  // bits for each row of 300 bytes, and 1.3 MB of memory at once for 64 MB.
  o.memtable_prefix_bloom_size_ratio = 0.02;
  o.memtable_whole_key_filtering = true;
  o.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(kKeyPrefixBytes));

  o.merge_operator = make_row_merge_operator(std::move(merges));
  o.compaction_filter_factory = make_tombstone_filter(std::move(filter));
  o.table_properties_collector_factories.push_back(make_table_summary_collector());

  // A file half of which, somewhere, is deletions is compacted soon: reads have to pass over them.
  o.table_properties_collector_factories.push_back(
      rocksdb::NewCompactOnDeletionCollectorFactory(kDeletionsWindow, kDeletionsWindow / 2));

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = shared.block_cache;
  table.block_size = 8 << 10;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = true;
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));

  // Files of level 0 live for a short time: they are not worth the processor's.
  o.compression_per_level = {rocksdb::kNoCompression, rocksdb::kLZ4Compression};
  o.level_compaction_dynamic_level_bytes = true;
  o.target_file_size_base = std::min<uint64_t>(64u << 20, options.write_buffer_bytes);
  o.max_bytes_for_level_base = 4 * options.write_buffer_bytes;
  if (options.logs_kept_s > 0 && options.logs_kept_of_free_disk > 0) {
    o.WAL_ttl_seconds = static_cast<uint64_t>(options.logs_kept_s);
    o.listeners.push_back(make_log_trimmer(options.logs_kept_of_free_disk, shared.stores));
  }
  // The periodic sync then finds little left to do (rule 22).
  o.wal_bytes_per_sync = 512 << 10;
  o.bytes_per_sync = 1 << 20;
  return o;
}

rocksdb::ReadOptions read_options() {
  rocksdb::ReadOptions read;
  read.ignore_range_deletions = true;
  return read;
}

void set_recovery(rocksdb::Options& options, LogRecovery recovery) {
  // A record cut short at the end of the log is what the end of a process leaves. Damage before the
  // end is no such thing: the store does not open, rather than forget what was acknowledged behind
  // it. But after a power cut it is: pages come to the disk in any order.
  options.wal_recovery_mode = recovery == LogRecovery::kAfterPowerCut
                                  ? rocksdb::WALRecoveryMode::kPointInTimeRecovery
                                  : rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
}

rocksdb::Options local_log_options() {
  rocksdb::Options o = common_options();
  o.write_buffer_size = 8 << 20;
  o.max_write_buffer_number = 2;
  o.arena_block_size = 256 << 10;
  o.max_background_jobs = 2;
  o.max_open_files = 64;
  o.compression = rocksdb::kLZ4Compression;
  rocksdb::BlockBasedTableOptions table;
  rocksdb::LRUCacheOptions cache;
  cache.capacity = 2 << 20;
  cache.num_shard_bits = 0;
  table.block_cache = rocksdb::NewLRUCache(cache);
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return o;
}

}  // namespace tetrad::storage
