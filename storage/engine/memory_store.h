// SPDX-License-Identifier: Apache-2.0
// The model engine: the contract of Store and LocalLog over ordered maps, deterministic, with sync
// marks, so that a simulated crash can drop what was not synced. Most simulation seeds and the
// model tests of RocksStore use it.
#pragma once

#include <memory>

#include "base/random.h"
#include "storage/engine/local_log.h"
#include "storage/engine/store.h"

namespace tetrad::storage {

/// What survives a crash of one simulated node: give it to the factory again after the restart.
class MemoryDisk {
 public:
  MemoryDisk();
  ~MemoryDisk();
  /// Power cut: drops what was not synced, but for a random prefix of it. A kill of the process
  /// drops nothing.
  void lose_unsynced(base::Random& random) { lose_unsynced(random, false); }
  /// `with_hole`: of stores, something before the end of what is left may be missing, too.
  void lose_unsynced(base::Random& random, bool with_hole);
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

std::unique_ptr<StoreFactory> make_memory_store_factory(std::shared_ptr<MemoryDisk> disk,
                                                        const StoreOptions& options);
std::unique_ptr<LocalLog> make_memory_local_log(std::shared_ptr<MemoryDisk> disk,
                                                base::Reactor& reactor,
                                                const std::string& directory = "local log");

}  // namespace tetrad::storage
