// SPDX-License-Identifier: Apache-2.0
// What readers see of a store: ordered keys and their values. RocksDB (rocks_view.h) and the model
// (map_view.h) give it, the row cache stands between.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/engine/dead_runs.h"

namespace tetrad::storage {

/// Moves over the keys of a view inside its bounds. After a failure it is not valid and status()
/// says why.
class KeyIterator {
 public:
  virtual ~KeyIterator() = default;
  virtual void seek(BytesView key) = 0;         // the first key that is not smaller
  virtual void seek_before(BytesView key) = 0;  // the last key that is smaller
  virtual void next() = 0;
  virtual void prev() = 0;
  virtual Result<void> status() const = 0;
  bool valid() const { return valid_; }
  /// Views are good until the iterator moves.
  BytesView key() const { return key_; }
  BytesView value() const { return value_; }

 protected:
  bool valid_ = false;
  BytesView key_, value_;  // where it is valid
};

/// One consistent view of a store's keys. An error means "could not be read": whatever was read so
/// far must not be used.
class KeyView {
 public:
  /// What an iterator may touch. Within one partition files are skipped by their Bloom filters.
  struct Bounds {
    Bytes start, end;           // [start, end)
    bool one_partition = true;  // all keys inside have one 20-byte prefix
    bool reversed = false;      // mostly moves backwards
    /// Not 0: all keys inside are rows of one partition; its prefix is this many bytes of start.
    size_t partition_prefix_bytes = 0;
  };
  virtual ~KeyView() = default;
  /// Unset when the key is absent. The view is good until the next call.
  virtual Result<std::optional<BytesView>> get(BytesView key) = 0;
  virtual std::unique_ptr<KeyIterator> iterate(Bounds bounds) = 0;

  /// Of the partition that is read, where its rows are known to be dead; null: nothing is known.
  virtual const DeadRunList* dead_runs() const { return nullptr; }
  /// A read that wants live rows only has found another.
  virtual void found_dead(DeadRun) {}
  /// How many dead entries have been passed over inside this view, in place of its reader.
  virtual uint64_t passed_over() const { return 0; }
};

}  // namespace tetrad::storage
