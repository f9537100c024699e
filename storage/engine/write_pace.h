// SPDX-License-Identifier: Apache-2.0
// When the next batch may go to a RocksDB that is behind with flushes and compactions. RocksDB
// names a rate, or stops. An attempt without waiting that it refuses is charged to its rate
// limiter, so the next one is made only when it can succeed. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/reactor.h"

namespace tetrad::storage {

/// What RocksDB says of itself.
struct WriteLimit {
  bool stopped = false;
  uint64_t bytes_per_s = 0;  // 0: as many as come
};

/// Owned by WriteTurn. due_us never falls: a batch is charged to the rate when it is handed over.
class WritePace {
 public:
  /// Longer than that nobody should wait for a place: what comes then is refused.
  static constexpr int64_t kWaitUsMax = 500'000;

  /// Before each batch that might be handed over.
  void look(const WriteLimit& limit, base::MonotonicUs now_us) {
    if (limit.stopped && !limit_.stopped) stopped_at_us_ = now_us;
    limit_ = limit;
  }
  /// A batch was handed over: the next one is due when the rate has paid for it.
  void wrote(uint64_t bytes, base::MonotonicUs now_us) {
    due_us_ = std::max(due_us_, now_us);
    if (limit_.bytes_per_s != 0)
      due_us_ += static_cast<int64_t>(static_cast<double>(bytes) * 1e6 /
                                      static_cast<double>(limit_.bytes_per_s));
  }
  /// RocksDB keeps up again: nothing needs to wait.
  bool is_over() const { return !limit_.stopped && limit_.bytes_per_s == 0; }
  /// An attempt would not be refused.
  bool may_write(base::MonotonicUs now_us) const {
    return !limit_.stopped && (limit_.bytes_per_s == 0 || due_us_ <= now_us);
  }
  /// Not later than this it is worth looking again.
  base::MonotonicUs due_us() const { return due_us_; }
  /// What comes now would wait longer than kWaitUsMax behind the `queued_bytes` that wait already, or
  /// RocksDB has been stopped for that long.
  bool is_overloaded(uint64_t queued_bytes, base::MonotonicUs now_us) const {
    if (limit_.stopped) return now_us - stopped_at_us_ > kWaitUsMax;
    if (limit_.bytes_per_s == 0 || queued_bytes == 0) return false;
    return static_cast<double>(queued_bytes) * 1e6 >
           static_cast<double>(limit_.bytes_per_s) * static_cast<double>(kWaitUsMax);
  }

 private:
  WriteLimit limit_;  // as it was at the last look
  base::MonotonicUs due_us_ = 0, stopped_at_us_ = 0;
};

}  // namespace tetrad::storage
