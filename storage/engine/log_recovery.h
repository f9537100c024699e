// SPDX-License-Identifier: Apache-2.0
// How stores and local logs are opened: what a damaged write-ahead log means, and where compactions
// are noted. Narrow: only who opens needs it.
#pragma once

#include <cstdint>
#include <memory>

#include "storage/engine/local_log.h"
#include "storage/engine/store.h"

namespace tetrad::storage {

/// How strictly an open reads the log: it decides what a torn page means.
enum class LogRecovery : uint8_t {
  /// A torn end is what a killed process leaves. Damage before it is a reason not to open.
  kStrict,
  /// The machine has lost power: of what was not synced, pages may be missing in front of others
  /// that are there. Nothing behind the first damage is taken, and nobody relies on it. Of the next
  /// open only: what is opened again later is opened as ever.
  kAfterPowerCut,
};

class CompactionLog;

/// As those without it, which are strict. `compactions`: where the stores note theirs; null: nowhere.
std::unique_ptr<StoreFactory> make_rocks_store_factory(
    const StoreOptions& options, Logger logger, std::shared_ptr<rocksdb::FileSystem> files,
    LogRecovery recovery, std::shared_ptr<CompactionLog> compactions = nullptr);
Result<std::unique_ptr<LocalLog>> open_rocks_local_log(const std::string& directory,
                                                       base::Reactor& reactor, base::IoPool& pool,
                                                       uint32_t number, Logger logger,
                                                       std::shared_ptr<rocksdb::FileSystem> files,
                                                       LogRecovery recovery);

}  // namespace tetrad::storage
