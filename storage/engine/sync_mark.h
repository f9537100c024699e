// SPDX-License-Identifier: Apache-2.0
// What a store knows of itself across a power cut (rule 20). It numbers what it writes, as RocksDB
// numbers it: from the start of a folder on, through all its lives, without holes.
#pragma once

#include <cstdint>
#include <optional>

namespace tetrad::storage {

/// Everything below `number` was written when the sync of `time_us` began, and that sync has ended:
/// a power cut takes only what was written at `time_us` or later.
struct SyncMark {
  uint64_t life = 0, number = 0;
  int64_t time_us = 0;  // the node's hybrid time

  friend bool operator==(const SyncMark&, const SyncMark&) = default;
};

/// How far a store has written and synced, for other nodes: all below `written` is written, all
/// below `durable` is on the disk. Neither goes back within a life.
struct SyncNumbers {
  uint64_t life = 0, written = 0, durable = 0;

  friend bool operator==(const SyncNumbers&, const SyncNumbers&) = default;
};

/// What a store found when it was opened. All of it is on the disk from then on.
struct Recovered {
  uint64_t life = 0;    // of this open: above that of every open before
  uint64_t number = 0;  // it has what is below, but for what a power cut took since `last_sync`
  uint64_t whole = 0;   // it has all that is below: what a cut took is not; at most `number`
  /// The newest sync record there is, of an earlier life; unset: there is none.
  std::optional<SyncMark> last_sync;
};

}  // namespace tetrad::storage
