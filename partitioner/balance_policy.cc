// SPDX-License-Identifier: Apache-2.0
// The plan of moves.
#include "partitioner/balance_policy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

//
// Pure. Each data centre for itself: bytes of a node are divided by its stores, so nodes of
// different size are compared fairly. An empty tablet weighs `tablet_bytes`, so that many small
// ones count, too. Ties are broken by order, so equal input gives equal moves.
//
// The next move:
//  1. the fullest node, if it is above the mean, and the emptiest, if it is below;
//  2. the tables that the one has, those first of which it has most more than the other;
//  3. of such a table the heaviest tablet that may go and fits: few moves of much;
//  4. where none fits, the next emptiest node, then the next fullest.
namespace tetrad::partitioner {

namespace {

/// What a node holds of one table.
struct Share {
  double bytes = 0;             // for each store
  std::vector<size_t> tablets;  // the heaviest first, of equal ones the first given
};

/// What a node holds, and which members make it up.
struct Holder {
  const RingNode* node = nullptr;
  double bytes = 0;  // for each store: nodes with more stores take more
  std::vector<uint64_t> of_store;
  std::map<size_t, Share> of_table;
};

/// One data centre, levelled for itself.
class Level {
 public:
  Level(std::span<const RingNode> nodes, std::span<const BalanceTablet> tablets,
        const std::string& data_center, const MayGet& may_get, const BalanceOptions& options)
      : nodes_(nodes), data_center_(data_center), may_get_(may_get), options_(options) {
    for (const RingNode& node : nodes) {
      if (node.data_center != data_center) continue;
      Holder& holder = holders_[node.host];
      holder.node = &node;
      holder.of_store.resize(std::max<uint32_t>(1, node.store_count));
    }
    // Members of other data centres are no holders here, and are left out by count().
    for (size_t i = 0; i < tablets.size(); ++i) {
      members_.push_back(tablets[i].members);
      weights_.push_back(tablets[i].bytes + options.tablet_bytes);
      tables_.push_back(tablets[i].table);
      may_move_.push_back(tablets[i].may_move);
      for (const StoreAddress& member : tablets[i].members) count(i, member, 1);
    }
    for (auto& [host, holder] : holders_)
      for (auto& [table, share] : holder.of_table)
        std::ranges::stable_sort(share.tablets, std::greater<>(),
                                 [this](size_t tablet) { return weights_[tablet]; });
    double total = 0;
    size_t stores = 0;
    for (const auto& [host, holder] : holders_) {
      for (const uint64_t bytes : holder.of_store) total += static_cast<double>(bytes);
      stores += holder.of_store.size();
    }
    mean_ = stores == 0 ? 0 : total / static_cast<double>(stores);
  }

  // Begin far from the mean, end near to it: with one limit moves would start and stop all the
  // time.
  bool is_uneven() const {
    const double ratio = options_.has_begun ? options_.stop_ratio : options_.start_ratio;
    return std::ranges::any_of(holders_, [&](const auto& entry) {
      return std::abs(entry.second.bytes - mean_) > ratio * mean_;
    });
  }

  /// One step of the algorithm at the top of this file; nothing where no move is worth while.
  std::optional<BalanceMove> next() {
    std::vector<Holder*> by_bytes;
    for (auto& [host, holder] : holders_) by_bytes.push_back(&holder);
    std::ranges::stable_sort(by_bytes, {}, &Holder::bytes);
    for (auto from = by_bytes.rbegin(); from != by_bytes.rend(); ++from) {
      // Only from above the mean to below it: so no byte is moved twice.
      if ((*from)->bytes <= mean_) break;
      for (Holder* const to : by_bytes) {
        if (to->bytes >= mean_) break;
        if (!worth_while(**from, *to)) continue;
        if (const auto move = between(**from, *to)) return move;
      }
    }
    return std::nullopt;
  }

  // What the emptier nodes lack is the least that has to be moved.
  double lack_bytes() const {
    double lack = 0;
    for (const auto& [host, holder] : holders_)
      lack += std::max(0.0, mean_ - holder.bytes) * static_cast<double>(holder.of_store.size());
    return lack;
  }

 private:
  /// Nodes that are near the mean both are left alone.
  bool worth_while(const Holder& from, const Holder& to) const {
    const double near = options_.stop_ratio * mean_;
    return from.bytes - mean_ > near || mean_ - to.bytes > near;
  }

  void count(size_t tablet, const StoreAddress& member, int sign) {
    const auto found = holders_.find(member.host);
    if (found == holders_.end() || member.store >= found->second.of_store.size()) return;
    Holder& holder = found->second;
    Share& share = holder.of_table[tables_[tablet]];
    if (sign > 0) {
      holder.of_store[member.store] += weights_[tablet];
      share.tablets.push_back(tablet);
    } else {
      holder.of_store[member.store] -= weights_[tablet];
      std::erase(share.tablets, tablet);
    }
    const double weight = static_cast<double>(weights_[tablet]);
    const double change = sign * weight / static_cast<double>(holder.of_store.size());
    holder.bytes += change;
    share.bytes += change;
  }

  std::optional<StoreAddress> emptiest_store(const Holder& holder) const {
    std::optional<StoreAddress> best;
    for (uint32_t store = 0; store < holder.of_store.size(); ++store) {
      const StoreAddress candidate{holder.node->host, store};
      if (!may_get_(candidate)) continue;
      if (!best || holder.of_store[store] < holder.of_store[best->store]) best = candidate;
    }
    return best;
  }

  /// The tables of `from`, those first of which it has most more than `to`.
  std::vector<size_t> tables_by_surplus(const Holder& from, const Holder& to) const {
    std::vector<std::pair<double, size_t>> surplus;
    for (const auto& [table, share] : from.of_table) {
      if (share.tablets.empty()) continue;
      const auto there = to.of_table.find(table);
      surplus.emplace_back(share.bytes - (there == to.of_table.end() ? 0 : there->second.bytes),
                           table);
    }
    std::ranges::stable_sort(surplus, std::greater<>(), &std::pair<double, size_t>::first);
    std::vector<size_t> tables;
    for (const auto& [bytes, table] : surplus) tables.push_back(table);
    return tables;
  }

  std::optional<BalanceMove> between(Holder& from, const Holder& to) {
    const std::optional<StoreAddress> store = emptiest_store(to);
    if (!store) return std::nullopt;
    for (const size_t table : tables_by_surplus(from, to))
      for (const size_t tablet : from.of_table[table].tablets)
        if (const auto move = of_tablet(tablet, from, to, *store)) return move;
    return std::nullopt;
  }

  /// The move of `tablet` if it may go and leaves both nodes nearer to the mean. It counts as made.
  std::optional<BalanceMove> of_tablet(size_t tablet, const Holder& from, const Holder& to,
                                       const StoreAddress& store) {
    // What moving one byte does to the gap between both nodes, on average of the two.
    const double per_byte = (1 / static_cast<double>(from.of_store.size()) +
                             1 / static_cast<double>(to.of_store.size())) /
                            2;
    const double weight = static_cast<double>(weights_[tablet]);
    const double there = to.bytes + weight / static_cast<double>(to.of_store.size());
    // It must not fill the other past the mean, and the gap must be wider than the tablet by a
    // margin: else the next look would move it back.
    if (!may_move_[tablet] || there > mean_ * (1 + options_.past_mean_ratio) ||
        from.bytes - to.bytes < (1 + options_.margin) * weight * per_byte)
      return std::nullopt;
    const auto leaves = std::ranges::find(members_[tablet], from.node->host, &StoreAddress::host);
    if (std::ranges::find(members_[tablet], store.host, &StoreAddress::host) !=
        members_[tablet].end())
      return std::nullopt;
    std::vector<StoreAddress> after = members_[tablet];
    after[static_cast<size_t>(leaves - members_[tablet].begin())] = store;
    // Balance never crowds a rack.
    if (rack_excess(nodes_, after, data_center_) >
        rack_excess(nodes_, members_[tablet], data_center_))
      return std::nullopt;
    // Counted as done, so that the next choice sees it.
    const BalanceMove move{tablet, *leaves, store, weights_[tablet] - options_.tablet_bytes};
    count(tablet, move.from, -1);
    count(tablet, move.to, 1);
    members_[tablet] = std::move(after);
    return move;
  }

  const std::span<const RingNode> nodes_;
  const std::string data_center_;
  const MayGet& may_get_;
  const BalanceOptions options_;
  std::map<HostId, Holder> holders_;
  std::vector<std::vector<StoreAddress>> members_;
  std::vector<uint64_t> weights_;
  std::vector<size_t> tables_;
  std::vector<bool> may_move_;
  double mean_ = 0;  // of a store
};

std::set<std::string> data_centers(std::span<const RingNode> nodes) {
  std::set<std::string> names;
  for (const RingNode& node : nodes) names.insert(node.data_center);
  return names;
}

}  // namespace

std::vector<BalanceMove> plan_balance(std::span<const RingNode> nodes,
                                      std::span<const BalanceTablet> tablets, const MayGet& may_get,
                                      const BalanceOptions& options) {
  std::vector<BalanceMove> moves;
  for (const std::string& name : data_centers(nodes)) {
    Level level(nodes, tablets, name, may_get, options);
    if (!level.is_uneven()) continue;
    while (moves.size() < options.moves_max) {
      const auto move = level.next();
      if (!move) break;
      moves.push_back(*move);
    }
  }
  return moves;
}

uint64_t least_balance_bytes(std::span<const RingNode> nodes,
                             std::span<const BalanceTablet> tablets,
                             const BalanceOptions& options) {
  const MayGet any = [](const StoreAddress&) { return true; };
  double bytes = 0;
  for (const std::string& name : data_centers(nodes))
    bytes += Level(nodes, tablets, name, any, options).lack_bytes();
  return static_cast<uint64_t>(bytes);
}

size_t rack_excess(std::span<const RingNode> nodes, std::span<const StoreAddress> members,
                   const std::string& data_center) {
  std::map<std::string_view, size_t> in_rack;
  size_t count = 0;
  for (const RingNode& node : nodes)
    if (node.data_center == data_center) in_rack[node.rack];
  for (const StoreAddress& member : members) {
    const auto node = std::ranges::find(nodes, member.host, &RingNode::host);
    if (node == nodes.end() || node->data_center != data_center) continue;
    ++in_rack[node->rack];
    ++count;
  }
  if (in_rack.empty()) return 0;
  // Members over racks, rounded up.
  const size_t share = (count + in_rack.size() - 1) / in_rack.size();
  size_t excess = 0;
  for (const auto& [rack, members_there] : in_rack)
    excess += members_there - std::min(members_there, share);
  return excess;
}

}  // namespace tetrad::partitioner
