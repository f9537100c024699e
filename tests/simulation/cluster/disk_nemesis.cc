// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/cluster/disk_nemesis.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kSlowUs = 400'000;  // operations take up to two seconds

Error io_error() { return Error(ErrorCode::kIo, "the disk failed"); }

}  // namespace

void DiskNemesis::step(SimCluster& cluster) {
  if (!random_.one_in(3)) return;
  if (random_.one_in(4)) return heal(cluster);
  const size_t chosen = random_.below(cluster.size());
  if (victim_ && *victim_ != chosen) heal(cluster);
  victim_ = chosen;
  SimNode& node = cluster[chosen];
  switch (random_.below(8)) {
    case 0:
      return break_log(node.log_faults);
    case 1:
      return break_log(node.hint_log_faults);
    default:
      return break_store(node.faults(static_cast<uint32_t>(random_.below(node.shard_count()))));
  }
}

void DiskNemesis::break_store(StoreFaults& faults) {
  const auto slow_us = static_cast<int64_t>(random_.below(kSlowUs));
  switch (random_.below(7)) {
    case 0:
      faults.parks_writes = true;
      return;
    case 1:
      faults.hangs = true;
      return;
    case 2:
      faults.sync_us = slow_us;
      return;
    case 3:
      if (!feeds_) faults.ack_late_us = slow_us;
      return;
    case 4:
      faults.refusal = Error(ErrorCode::kIo, "the disk is full");
      return;
    case 5:
      if (feeds_) return;
      faults.failed_is_done = random_.one_in(2);
      for (uint64_t n = random_.below(5); n-- > 0;) faults.fail_next(StoreCall::kApply, io_error());
      return;
    default: {
      static constexpr StoreCall kCalls[] = {StoreCall::kRead,  StoreCall::kExport,
                                             StoreCall::kSweep, StoreCall::kSample,
                                             StoreCall::kFlush, StoreCall::kCompact};
      const StoreCall call = kCalls[random_.below(std::size(kCalls))];
      for (uint64_t n = random_.below(5); n-- > 0;) faults.fail_next(call, io_error());
    }
  }
}

/// A local log that fails ends the process, which is another scenario's: here it is slow.
void DiskNemesis::break_log(StoreFaults& faults) {
  if (random_.one_in(3))
    faults.hangs = true;
  else
    faults.sync_us = static_cast<int64_t>(random_.below(kSlowUs));
}

void DiskNemesis::heal(SimCluster& cluster) {
  if (!victim_) return;
  SimNode& node = cluster[*victim_];
  for (uint32_t store = 0; store < node.shard_count(); ++store) node.faults(store).heal();
  node.log_faults.heal();
  node.hint_log_faults.heal();
  victim_.reset();
}

}  // namespace tetrad::simulation
