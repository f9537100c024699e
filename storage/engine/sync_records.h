// SPDX-License-Identifier: Apache-2.0
// Sync records: keys of a store that say until when it lost nothing (rule 20), and where in its log
// a moment is. A record is written with the first batch after the sync that it stands for: if the
// record survives a power cut, so has everything below its number.
//
//   record key   := u32 0xffffffff, "sync", u32 slot    slot = (time / 10 s) mod 64
//   record value := u64 life, u64 number, i64 time (us)
//   life key     := u32 0xffffffff, "life"              synced before the store is given out
//   life value   := u64 life
//   example: ffffffff 73796e63 00000002                          the key for times from 20 s on
//   example: 0000000000000001 0000000000000064 0000000001406f40   life 1: below 100 at 21 s
//
// So there is the newest record, and one for every ten seconds before, for ten minutes.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/engine/sync_mark.h"

namespace tetrad::storage {

/// What a key and value of the store say if they are a sync record.
std::optional<SyncMark> sync_mark_of(BytesView key, BytesView value);

/// Owned by the store, on its thread. `durable` never falls; of marks there is at most one of a
/// slot, ascending by number.
class SyncRecords {
 public:
  /// A key and value as they are in the store: a record or a life is taken note of, all else left.
  /// Errors: kCorruption.
  Result<void> load(BytesView key, BytesView value);
  /// Once, after what was there has been loaded, of which `number` is the end: what is below was
  /// written in earlier lives, and is on the disk, but for what a power cut took from `whole` on.
  void begin_life(uint64_t number, uint64_t whole);
  void begin_life(uint64_t number) { begin_life(number, number); }
  const Recovered& recovered() const { return recovered_; }
  /// To be written and synced when the life has begun.
  std::pair<Bytes, Bytes> life_entry() const;

  void set_clock(std::function<std::optional<int64_t>()> now_us) { now_us_ = std::move(now_us); }
  bool has_clock() const { return now_us_ != nullptr; }
  /// A sync begins now, after everything below `number` has been written. Its time is unset without
  /// one that is to be trusted.
  struct Begun {
    uint64_t number = 0;
    std::optional<int64_t> time_us;
  };
  Begun begin(uint64_t number) const;
  /// It has ended well, and everything below `durable` is on the disk.
  void end(const Begun& begun, uint64_t durable);
  uint64_t durable() const { return durable_; }

  /// There is a record to be written with what is written next.
  bool is_due() const { return due_.has_value(); }
  /// That record.
  std::pair<Bytes, Bytes> take_due();
  /// A record of this life has been taken.
  bool has_written() const { return has_written_; }

  /// The numbers n, from <= n < until, of everything written from `since_us` to `until_us`; `until`
  /// is max() if later numbers may be of that time. Unset: nobody knows since when.
  struct Window {
    uint64_t from = 0, until = 0;
  };
  std::optional<Window> window(int64_t since_us, int64_t until_us) const;
  /// Nothing below is found by window() any more; 0: nothing is found.
  uint64_t oldest_number() const { return marks_.empty() ? 0 : marks_.front().number; }

 private:
  void keep(const SyncMark& mark);

  Recovered recovered_;
  uint64_t last_life_ = 0;
  std::vector<SyncMark> marks_;  // by number; at most one of a slot
  std::optional<SyncMark> due_;
  uint64_t durable_ = 0;
  bool has_written_ = false;
  std::function<std::optional<int64_t>()> now_us_;
};

}  // namespace tetrad::storage
