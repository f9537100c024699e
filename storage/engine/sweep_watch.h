// SPDX-License-Identifier: Apache-2.0
// What is written while a sweep is under way, so that a partition may be purged that is written all
// the time. Nothing is kept while no sweep is.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"

namespace tetrad::storage {

/// One per sweep that is inside a page or a partition. Belongs to the store's thread.
class SweepWatches {
 public:
  using Id = uint64_t;  // 0: none

  /// Of a sweep that drops nothing of `below_us` or newer. Its first page begins. When too many are
  /// open the oldest is given up.
  Id open(int64_t below_us);
  void close(Id id) { watches_.erase(id); }
  /// The next page of a partition begins. False: the watch was given up.
  bool begin_page(Id id);

  bool any() const { return !watches_.empty(); }
  /// A mutation whose oldest timestamp is this.
  void note(uint16_t bucket, int64_t oldest_us);
  void note_key(BytesView key);
  /// Deletions of other keys have been dropped: what other sweeps have read with them is void.
  void note_covers_gone(Id by);

  /// Perhaps, since the page began.
  bool wrote(Id id, BytesView key);
  /// Since the watch was opened the bucket got something that a deletion of `deleted_us` hides.
  bool wrote_hidden(Id id, uint16_t bucket, int64_t deleted_us) const;
  bool is_void(Id id) const;

 private:
  /// What one sweep must know of later writes. `keys` begins anew with each page, `oldest_us` lasts
  /// as long as the watch.
  struct Watch {
    int64_t below_us = 0;
    std::unordered_map<uint16_t, int64_t> oldest_us;  // by bucket, of what is older than below_us
    std::vector<uint64_t> keys;                       // hashes, of the page
    bool sorted = true, all_keys = false;             // all_keys: there were too many
    bool page_void = false;
  };
  static constexpr size_t kWatchesMax = 8, kKeysMax = 32 << 10;

  std::map<Id, Watch> watches_;
  Id next_ = 1;
};

}  // namespace tetrad::storage
