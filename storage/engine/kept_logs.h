// SPDX-License-Identifier: Apache-2.0
// Logs of a database whose rows are in files already, kept for Store::recent(). RocksDB moves them
// to a folder of its own and deletes them by age; here they are deleted by size, oldest first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace rocksdb {
class Env;
class EventListener;
}  // namespace rocksdb

namespace tetrad::storage {

/// Deletes logs that are kept for the database in `directory` until they are no more than
/// `bytes_max`. What cannot be deleted is left. Blocks; on any thread.
void trim_kept_logs(rocksdb::Env& env, const std::string& directory, uint64_t bytes_max);
/// Trims them after each flush. All of `stores` together, on one disk, get a share of what it has
/// free together with them.
std::shared_ptr<rocksdb::EventListener> make_log_trimmer(
    double share, std::shared_ptr<const std::atomic<uint32_t>> stores);

}  // namespace tetrad::storage
