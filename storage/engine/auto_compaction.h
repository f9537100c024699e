// SPDX-License-Identifier: Apache-2.0
// Compactions that a store begins by itself, which an operator may switch off for a while. Apart from
// Store: only a store with files has any.
//
// RocksDB limits writes by what compactions have left to do, and drops those limits with them. So they
// are off only while a store is far from the limits: at kLevel0FilesMax unsorted files the store begins
// them again, before reads get slow and before writes would have to wait when they come back.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"

namespace tetrad::storage {

/// Belongs to its store and its thread.
class AutoCompaction {
 public:
  /// RocksDB slows writes down at 20.
  static constexpr uint64_t kLevel0FilesMax = 16;

  virtual ~AutoCompaction() = default;
  /// Off until it is said otherwise, the store is opened again, or it has kLevel0FilesMax unsorted
  /// files. `done` runs on the store's thread. Errors: kConflict: a damaged store keeps its files as
  /// they are; those of an order to the store.
  virtual void set_auto_compaction(bool runs, std::move_only_function<void(Result<void>)> done) = 0;
  virtual bool auto_compaction_runs() const = 0;
};

}  // namespace tetrad::storage
