// SPDX-License-Identifier: Apache-2.0
// What is wrong with the disk under one store, or under a node's local log. A test sets it at any
// moment; FaultyStore and FaultyLocalLog obey. It outlives the lives of its node.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "base/result.h"
#include "storage/engine/store.h"

namespace tetrad::simulation {

enum class StoreCall { kApply, kRead, kExport, kSweep, kSample, kFlush, kCompact, kLogWrite };

struct StoreFaults {
  /// The store is behind: writes wait, in order, until it is over; reads go on.
  bool parks_writes = false;
  /// The disk does not answer: writes are parked, and all else that needs the disk waits, too.
  bool hangs = false;
  /// A write is on its way to the disk for so long: it can no more be taken back, and is not seen
  /// and not acknowledged yet. Flushes take so long, and of a local log the synced batches.
  int64_t sync_us = 0;
  /// A write is acknowledged so much later than it was done.
  int64_t ack_late_us = 0;
  /// What it holds does not read for clients. What streams get is what is left of it.
  bool rotten = false;
  /// Every write is refused with it: a full disk, for example.
  std::optional<Error> refusal;
  /// The next calls of a kind fail, one for each error.
  std::map<StoreCall, std::deque<Error>> next_errors;
  /// A write that fails by next_errors is done all the same.
  bool failed_is_done = false;

  /// What the store says of itself, as the real one does after a while; a test sets it beside the
  /// fault.
  storage::StoreState state = storage::StoreState::kServing;

  /// What came of it.
  struct Figures {
    uint64_t parked = 0, held = 0, failed = 0;
  } figures;

  bool holds_writes() const { return parks_writes || hangs; }
  void fail_next(StoreCall call, Error error) { next_errors[call].push_back(std::move(error)); }
  bool is_to_fail(StoreCall call) const {
    const auto found = next_errors.find(call);
    return found != next_errors.end() && !found->second.empty();
  }
  std::optional<Error> take_error(StoreCall call) {
    if (!is_to_fail(call)) return std::nullopt;
    auto& errors = next_errors[call];
    Error error = std::move(errors.front());
    errors.pop_front();
    ++figures.failed;
    return error;
  }
  /// All is well again.
  void heal() {
    const Figures kept = figures;
    *this = {};
    figures = kept;
  }
};

/// How often it is looked whether a fault is over.
inline constexpr int64_t kFaultLookUs = 2'000;
inline constexpr int64_t kStateLookUs = 500'000;

}  // namespace tetrad::simulation
