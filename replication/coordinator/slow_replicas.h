// SPDX-License-Identifier: Apache-2.0
// Replicas that are live and let reads wait: a disk that stalls, a process that hangs, a machine that has just
// died. A read that has waited for one for long asks another replica; if that one, asked later, answers
// first, the former is late. Reads wait as long as 99 in 100 of them take (read_pace.h), so one that is late
// once need not be slow.
//
//   1. note_late(): it is suspected. note_in_time(): it is not any more. Late again when it has been suspected
//      for 25 ms, or late by as much at once: it is slow, and reads ask it last, for a second at first.
//   2. When that is over, and 50 reads have gone by without it, one read asks it as before; the others leave
//      it last meanwhile.
//   3. note_in_time(): it is as all others again. note_late(): twice as long, 16 s at most.
//
// So of the reads that would ask a slow replica one in 50 at most is late by it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/ids.h"
#include "base/reactor.h"

namespace tetrad::replication {

/// Of one shard's coordinator, on its thread. Advice only: it changes the order in which replicas are
/// asked, and nothing of what must answer.
class SlowReplicas {
 public:
  bool is_empty() const { return slow_.empty(); }
  /// A replica that was asked `waited_us` after it has answered before it.
  void note_late(const StoreAddress& replica, int64_t waited_us, base::MonotonicUs now_us);
  /// It has answered a read that waited for nobody too long.
  void note_in_time(const StoreAddress& replica);
  /// Puts slow ones behind the others; both keep their order. Forgets those that no read has had among
  /// its candidates for a minute, which may be gone.
  void ask_last(std::vector<StoreAddress>& candidates, base::MonotonicUs now_us);

 private:
  struct Slow {
    base::MonotonicUs late_since_us = 0;
    base::MonotonicUs until_us = 0;
    int64_t pause_us = 0;           // 0: it is suspected only
    uint32_t left_out = 0;          // reads, since it was late
    bool is_tried = false;          // a read has asked it since
    base::MonotonicUs seen_us = 0;  // when a read last had it among its candidates
  };
  /// Whether this read leaves it last.
  static bool is_left_out(Slow& slow, base::MonotonicUs now_us);

  std::map<StoreAddress, Slow> slow_;
};

}  // namespace tetrad::replication
