// SPDX-License-Identifier: Apache-2.0
// Tablets that other nodes bring together. A merge is ordered at any node; balance, planned by the
// leader of the metadata group, would move what that node has just moved, and so would a merge that
// another node was asked for with one of the two tablets. Who works on a pair says so to all nodes
// when it begins and each second from then on; who has not heard for kHeldUs takes the pair for
// ended.
//
//   kHoldTablets, one-way
//   request := u8 version (1), varint count, varint tablet*
//   Example: 01 02 21 22 holds tablets 33 and 34.
#pragma once

#include <map>
#include <set>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/reactor.h"
#include "base/result.h"

namespace tetrad::replication {

/// More than a node works on at once (merge_runner.cc).
inline constexpr size_t kHeldTabletsMax = 64;

Bytes encode_held_tablets(const std::set<TabletId>& tablets);
/// Errors: kCorruption.
Result<std::set<TabletId>> decode_held_tablets(BytesView body);

/// What each node has said last. Owned by the MergeRunner, on the first shard's thread. Always: at
/// most kHeldTabletsMax of each node.
class HeldTablets {
 public:
  static constexpr int64_t kHeldUs = 5'000'000;

  /// Takes the place of what `from` said before.
  void hear(HostId from, std::set<TabletId> tablets, base::MonotonicUs now_us);
  /// Of all nodes.
  std::set<TabletId> held(base::MonotonicUs now_us) const;
  bool contains(TabletId tablet, base::MonotonicUs now_us) const;

 private:
  /// The last message of one node.
  struct Said {
    std::set<TabletId> tablets;
    base::MonotonicUs at_us = 0;
  };
  std::map<HostId, Said> said_;
};

}  // namespace tetrad::replication
