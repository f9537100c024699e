// SPDX-License-Identifier: Apache-2.0
// The local log: a small ordered map of bytes, one per node, whose batches are synced before they
// are acknowledged. It holds Raft state, hints, the batch log and the node's own state, so that a
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
#include "base/reactor.h"
#include "base/result.h"

namespace tetrad::storage {

class LocalLog {
 public:
  struct Operation {
    Bytes key;
    std::optional<Bytes> value;  // unset: erase
  };
  using DoneCallback = std::move_only_function<void(Result<void>)>;

  virtual ~LocalLog() = default;
  /// One atomic batch. Batches are written in the order of the calls; `done` runs on the reactor
  /// once it is on disk
  /// (`sync`) or with the operating system. After a failure every later call fails too (fsyncgate):
  /// end the process.
  virtual void write(std::vector<Operation> batch, bool sync, DoneCallback done) = 0;
  /// Reads what has been acknowledged. Small things at start; blocks for page-cache reads.
  virtual Result<std::optional<Bytes>> get(BytesView key) = 0;
  /// Up to `limit` pairs with start <= key < end, ascending.
  virtual Result<std::vector<std::pair<Bytes, Bytes>>> scan(BytesView start, BytesView end,
                                                            size_t limit) = 0;
  /// Erases every key with start <= key < end; not synced.
  virtual void erase_range(Bytes start, Bytes end, DoneCallback done) = 0;
  virtual Result<void> close() = 0;
};

/// Errors: kCorruption, kIo, kConfig. Blocks.
Result<std::unique_ptr<LocalLog>> open_rocks_local_log(const std::string& directory,
                                                       base::Reactor& reactor, base::IoPool& pool);

}  // namespace tetrad::storage
