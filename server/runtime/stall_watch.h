// SPDX-License-Identifier: Apache-2.0
// How long the turns of a shard's event loop last, and which statement it worked on when one of
// them lasted too long.
//
// A statement is noted when work on it begins (base/loop_watch.h). At the end of the turn its
// length is known; the longest statement of a turn that took longer than kStallUs is logged, once a
// second at most.
#pragma once

#include <array>

#include "base/log.h"
#include "base/loop_watch.h"
#include "base/metrics.h"
#include "base/reactor.h"

namespace tetrad::server {

/// Measures the turns of one shard's loop, and logs those that hold it up. Belongs to that loop's
/// thread.
class StallWatch final : public base::LoopWatch {
 public:
  explicit StallWatch(Logger logger) : logger_(std::move(logger)) {}

  void begin(BytesView id, BytesView text) override;
  /// A turn is over that began at `began_us`, or in its first statement if that was earlier: after
  /// the loop has slept nobody knows when its first handler began.
  void turn_ended(base::MonotonicUs began_us, base::MonotonicUs now_us);

  const base::LatencyHistogram& turns() const { return turns_; }
  /// What is said of a stall: the text in ASCII.
  static std::string escaped(BytesView text);

  static constexpr int64_t kStallUs = 100'000;

 private:
  static constexpr size_t kTextMax = 200;
  static constexpr int64_t kLogPeriodUs = 1'000'000;
  /// The statement that the loop was last heard to work on.
  struct Statement {
    base::MonotonicUs began_us = 0;
    // Sizes of what is in the arrays: no allocation for each statement.
    size_t id_size = 0, text_size = 0;
    std::array<char, 16> id;
    std::array<char, kTextMax> text;
  };
  // Compares the statement that ends with the longest one of the turn.
  void end_statement(base::MonotonicUs now_us);

  Logger logger_;
  base::LatencyHistogram turns_;
  Statement now_, longest_;  // of this turn; began_us 0: none
  int64_t longest_us_ = 0;
  base::MonotonicUs first_us_ = 0;  // of this turn; 0: no statement
  base::MonotonicUs logged_us_ = 0;
  // Stalls since the last line of the log, which the next line counts.
  uint64_t not_logged_ = 0;
};

}  // namespace tetrad::server
