// SPDX-License-Identifier: Apache-2.0
// What members tell of the heat of their tablets, and what it is of each tablet as a whole. Each
// shard tells shard 0 of its node of what has changed by a quarter, of all once in 30 s; shard 0
// tells the other nodes.
//
//   kHeat, one-way
//   report := u8 version (1), varint count, entry*
//   entry  := varint store, varint tablet, varint W, varint read RU/s, varint write RU/s,
//             varint bytes/s, varint most RU/s, varint most bytes/s
#pragma once

#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/reactor.h"
#include "base/result.h"
#include "replication/tablets/heat.h"

namespace tetrad::replication {

/// What one store tells of one tablet.
struct ToldHeat {
  uint32_t store = 0;
  TabletId tablet;
  uint32_t write_quorum = 1;  // of its members
  TabletHeat heat;
  friend bool operator==(const ToldHeat&, const ToldHeat&) = default;
};

using HeatReport = std::vector<ToldHeat>;
/// More go in the next report.
inline constexpr size_t kHeatReportEntriesMax = 2048;

Bytes encode_heat(const HeatReport& report);
/// Errors: kCorruption.
Result<HeatReport> decode_heat(BytesView body);

/// On shard 0 of every node. What nobody has repeated for kHeatHeardWithinUs and a little is
/// forgotten, so it is as large as the tablets are that have work.
class HeatBoard {
 public:
  using ByTablet = std::unordered_map<TabletId, TabletHeat>;

  void take(HostId from, const HeatReport& report, base::MonotonicUs now_us);
  /// Those that have any.
  const ByTablet& all() const { return sums_; }
  TabletHeat of(TabletId tablet) const;
  /// Rises with each change.
  uint64_t version() const { return version_; }

 private:
  /// What one member has said last of a tablet, and when.
  struct Told {
    StoreAddress member;
    TabletHeat heat;
    base::MonotonicUs at_us = 0;
  };
  /// What the members of a tablet have said. `write_quorum` is never 0: what is read is divided by
  /// it.
  struct OfTablet {
    uint32_t write_quorum = 1;
    std::vector<Told> members;
  };
  void sum_up(TabletId tablet, const OfTablet& told);
  void forget_old(base::MonotonicUs now_us);

  std::unordered_map<TabletId, OfTablet> told_;
  ByTablet sums_;
  uint64_t version_ = 0;
  base::MonotonicUs forgotten_us_ = 0;
};

}  // namespace tetrad::replication
