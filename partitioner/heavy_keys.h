// SPDX-License-Identifier: Apache-2.0
// The keys that get most of a tablet's work: 64 of them, found in one pass (Metwally's
// space-saving). A key that is not in the list takes the place of the lightest one, and its weight,
// which is how much too heavy it may be taken for. Weights halve with each half-life. Pure: time is
// handed in.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/ring_position.h"

namespace tetrad::partitioner {

/// The list of one tablet: 24 KiB at most. Owned by the store's thread.
class HeavyKeys {
 public:
  static constexpr size_t kSize = 64;
  static constexpr size_t kKeyBytesMax = 256;  // of longer keys the beginning is kept
  static constexpr int64_t kHalfLifeUs = 10'000'000;
  /// One of this many requests is counted, and counts for all of them.
  static constexpr uint64_t kEvery = 8;

  /// One key, and what it gets.
  struct Heavy {
    RingPosition position;
    Bytes key;  // at most kKeyBytesMax
    bool is_cut = false;
    double reads = 0, writes = 0;  // work per second
    double at_most_less = 0;       // how much too high their sum may be
    double share = 0;              // of all work
  };

  explicit HeavyKeys(int64_t now_us) : begun_us_(now_us), advanced_us_(now_us) {}

  void add(RingPosition position, BytesView key, uint64_t work, bool is_write) {
    if (++requests_ % kEvery == 0)
      take(position, key, static_cast<double>(work * kEvery), is_write);
  }
  /// Time passes: what was added before counts less.
  void advance(int64_t now_us);
  /// The heaviest first; of equal ones the lower position.
  std::vector<Heavy> heaviest(size_t most) const;

 private:
  /// A key that is counted. `inherited` is the count of the key whose place it took: that much its
  /// own count may be too high.
  struct Entry {
    RingPosition position;
    Bytes key;
    bool is_cut = false;
    double reads = 0, writes = 0, inherited = 0;
    double weight() const { return reads + writes + inherited; }
  };
  void take(RingPosition position, BytesView key, double work, bool is_write);

  const int64_t begun_us_;
  int64_t advanced_us_;
  uint64_t requests_ = 0;
  double all_ = 0;  // the weight of what was looked at, whatever the key
  std::vector<Entry> entries_;
};

}  // namespace tetrad::partitioner
