// SPDX-License-Identifier: Apache-2.0
// Which changes of members make the nodes hold equal parts: what the policy (partitioner/
// balance_policy.h) wants, as far as it may be done now. Pure; the leader's MoveRunner begins them.
//
// The sizes are those that the acting members report, one for each tablet: who holds it is in the
// map. So a store is never taken for empty because its node has not reported, also by a leader that
// is new; tablets of unknown size stay, and nothing is planned while more than one in twenty is
// unknown.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "partitioner/balance_policy.h"
#include "replication/meta/meta_state.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {

/// A cluster setting, in percent of the mean: balance begins when a node holds more or less by it.
inline constexpr const char* kSettingBalanceStartPercent = "balance_start_percent";
inline constexpr uint64_t kBalanceStartPercentDefault = 10;
/// From this on tablets are not moved for balance, unless it is ordered.
inline constexpr uint64_t kBalanceOffPercent = 100;
/// How often an operator has ordered it: each time the nodes are made equal once, however near they
/// are already.
inline constexpr const char* kSettingBalanceOrders = "balance_orders";

/// How many moves may be under way at once, those that heal among them.
struct BalanceLimits {
  size_t per_store = 2;  // in, and as many out
  size_t per_node = 8;   // in, and as many out
  size_t per_node_of_cluster = 2;
};

/// One member of one tablet goes from a store to another.
struct BalanceChange {
  const TableInfo* table = nullptr;  // of the state that was given
  TabletId tablet;
  SetEpoch epoch;
  std::vector<StoreAddress> members;  // afterwards, each in its place
  StoreAddress from, to;
  uint64_t bytes = 0;
};

/// What a plan is made from.
struct BalanceView {
  const MetaState& state;
  /// Those that may hold data.
  const std::vector<partitioner::RingNode>& nodes;
  /// Unset: it has not been reported.
  std::function<std::optional<uint64_t>(TabletId)> bytes_of;
  Outlook outlook;
  /// Sets that were proposed and may not be in the state yet.
  const std::map<TabletId, std::vector<StoreAddress>>& proposed;
  /// They are brought together with a neighbour: they go where that is.
  const std::set<TabletId>& held;
};

/// The changes to begin now, in order. A set is left alone while it changes, has a member that is
/// not live or not on the ring, or one that may not give.
std::vector<BalanceChange> balance_changes(const BalanceView& view,
                                           const partitioner::BalanceOptions& options,
                                           const BalanceLimits& limits);

}  // namespace tetrad::replication
