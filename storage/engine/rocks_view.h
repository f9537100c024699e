// SPDX-License-Identifier: Apache-2.0
// KeyView over RocksDB.
#pragma once

#include <memory>

#include "storage/engine/partition_reader.h"

namespace rocksdb {
class DB;
class Snapshot;
}  // namespace rocksdb

namespace tetrad::storage {

struct RocksViewOptions {
  const rocksdb::Snapshot* snapshot = nullptr;
  /// Give up instead of reading a file, or after so many steps: the loop is not blocked.
  bool memory_only = false;
  uint64_t steps_max = UINT64_MAX;
  /// False for bulk reads, which would push everything else out of the cache.
  bool fill_cache = true;
};

class RocksView final : public KeyView {
 public:
  RocksView(rocksdb::DB& db, const RocksViewOptions& options);
  ~RocksView() override;
  Result<std::optional<BytesView>> get(BytesView key) override;
  std::unique_ptr<KeyIterator> iterate(Bounds bounds) override;
  /// The view gave up: read again with memory_only off, on the I/O pool.
  bool gave_up() const { return gave_up_; }

 private:
  friend class RocksIterator;
  struct State;  // rocksdb's read options and pinned value
  bool take_step() { return ++steps_ <= options_.steps_max; }

  rocksdb::DB& db_;
  const RocksViewOptions options_;
  uint64_t steps_ = 0;
  bool gave_up_ = false;
  std::unique_ptr<State> state_;
};

}  // namespace tetrad::storage
