// SPDX-License-Identifier: Apache-2.0
// Which tablets to move so that the nodes come to hold equal parts of the data. Pure.
//
// Each store has the same capacity. Tablets go from nodes above the mean to nodes below it, and no
// node is filled past the mean: what is moved is hardly more than what the nodes below it lack. A
// move is made only where the gap between both nodes is wider than what goes, by a margin, so that
// none is ever taken back while the sizes stay.
//
// Of what may go, a tablet of that table goes of which the one node has most more than the other.
// So each table comes to be spread over all nodes: its bytes and its requests are shared, and full
// tablets of one table do not gather on some nodes while others hold empty tablets of another.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "partitioner/tablet_map.h"
#include "partitioner/topology.h"

namespace tetrad::partitioner {

/// A tablet as the balance sees it.
struct BalanceTablet {
  /// Whom it is on when the change that is under way, if any, has ended.
  std::vector<StoreAddress> members;
  uint64_t bytes = 0;
  bool may_move = true;  // no change is under way, and it is not held where it is
  size_t table = 0;      // tablets with the same number are of one table
};

/// One member of one tablet that is to go from a store of one node to a store of another. A value.
struct BalanceMove {
  size_t tablet = 0;  // its place among those that were given
  StoreAddress from, to;
  uint64_t bytes = 0;
  bool operator==(const BalanceMove&) const = default;
};

/// When a plan is made, how far it goes, and what it leaves alone. Ratios are of the mean use of a
/// node.
struct BalanceOptions {
  /// A plan is made when a node is this far from the mean,
  double start_ratio = 0.10;
  /// and ends when all are as near as this; the limit of a plan that has begun.
  double stop_ratio = 0.05;
  /// How far past the mean a node may be filled.
  double past_mean_ratio = 0.02;
  /// The gap between two nodes is wider than a tablet by this part of it.
  double margin = 0.25;
  /// What an empty tablet weighs: it will be written to.
  uint64_t tablet_bytes = uint64_t{1} << 20;
  /// Moves of a plan that is under way: the nodes need to be at the stop ratio, not at the start's.
  bool has_begun = false;
  size_t moves_max = SIZE_MAX;
};

/// Whether a store takes tablets that it has not got.
using MayGet = std::function<bool(const StoreAddress&)>;

/// The moves in the order in which they are to be made; each data centre is levelled for itself.
/// Every member keeps its place in its set, of which a move changes one. A set never comes to have
/// two members on a node, nor more in one rack than before where that is more than its share (see
/// rack_excess). The plan after a plan that was carried out is empty.
std::vector<BalanceMove> plan_balance(std::span<const RingNode> nodes,
                                      std::span<const BalanceTablet> tablets, const MayGet& may_get,
                                      const BalanceOptions& options);

/// The bytes that a plan must move at least: what the nodes under the mean lack to it.
uint64_t least_balance_bytes(std::span<const RingNode> nodes,
                             std::span<const BalanceTablet> tablets, const BalanceOptions& options);

/// How many members are in a rack that has more of them than members / racks (rounded up), counted
/// over the members in `data_center`; hosts that are not in `nodes` are left out.
size_t rack_excess(std::span<const RingNode> nodes, std::span<const StoreAddress> members,
                   const std::string& data_center);

}  // namespace tetrad::partitioner
