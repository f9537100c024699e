// SPDX-License-Identifier: Apache-2.0
// The local log: a small ordered map of bytes, one per node, whose batches are synced before they
// are acknowledged. It holds Raft state, the batch log and the node's own state, so that a
// synced write never stalls a data store.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/io_pool.h"
#include "base/log.h"
#include "base/reactor.h"
#include "base/result.h"

namespace rocksdb {
class FileSystem;
}

namespace tetrad::storage {

/// The contract of the local log; RocksDB's and the model's keep it. Belongs to one shard's thread,
/// other shards have a front (local_log_front.h).
class LocalLog {
 public:
  /// One key of a batch.
  struct Operation {
    Bytes key;
    std::optional<Bytes> value;  // unset: erase
  };
  using DoneCallback = std::move_only_function<void(Result<void>)>;
  using Pairs = std::vector<std::pair<Bytes, Bytes>>;
  using PairsCallback = std::move_only_function<void(Result<Pairs>)>;

  virtual ~LocalLog() = default;
  /// One atomic batch. Batches are written in the order of the calls; `done` runs on the reactor
  /// once it is on disk
  /// (`sync`) or with the operating system. On a full disk it waits for room. After a failure every
  /// later call fails too (fsyncgate): end the process.
  virtual void write(std::vector<Operation> batch, bool sync, DoneCallback done) = 0;
  /// Reads what has been acknowledged. Small things at start; blocks for page-cache reads.
  virtual Result<std::optional<Bytes>> get(BytesView key) = 0;
  /// Up to `limit` pairs with start <= key < end, ascending.
  virtual Result<std::vector<std::pair<Bytes, Bytes>>> scan(BytesView start, BytesView end,
                                                            size_t limit) = 0;
  /// As scan(), off the loop, and no more than `bytes_max`, but for the first pair: for what may
  /// not be in the page cache. `done` runs on the reactor, never inside the call.
  virtual void scan_later(Bytes start, Bytes end, size_t limit, uint64_t bytes_max,
                          PairsCallback done) = 0;
  /// Erases every key with start <= key < end; not synced.
  virtual void erase_range(Bytes start, Bytes end, DoneCallback done) = 0;
  virtual Result<void> close() = 0;
};

/// Errors: kCorruption, kIo, kConfig. Blocks.
/// `number` is unique among the logs of a node and selects the commit thread. `files`: for tests;
/// null: the system's.
Result<std::unique_ptr<LocalLog>> open_rocks_local_log(
    const std::string& directory, base::Reactor& reactor, base::IoPool& pool, uint32_t number = 0,
    Logger logger = {}, std::shared_ptr<rocksdb::FileSystem> files = nullptr);

}  // namespace tetrad::storage
