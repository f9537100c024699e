// SPDX-License-Identifier: Apache-2.0
#include "partitioner/merge_policy.h"

#include <algorithm>
#include <tuple>

namespace tetrad::partitioner {

namespace {

constexpr uint64_t kMoveBytesLeast = uint64_t{1} << 20;  // an empty tablet is not moved for nothing
// By bounces: how much longer than before a pair must have been cold.
constexpr int64_t kAgeFactors[] = {1, 10, 60, 60};

size_t members_apart(const Tablet& a, const Tablet& b) {
  return static_cast<size_t>(std::ranges::count_if(a.replicas, [&](const StoreAddress& member) {
    return std::ranges::find(b.replicas, member) == b.replicas.end();
  }));
}

bool are_cold_and_small(const MergeTablet& left, const MergeTablet& right,
                        const MergeLimits& limits) {
  const int64_t age_us =
      limits.age_us * age_factor(std::max(left.tablet->bounces, right.tablet->bounces));
  const auto is_below = [](uint64_t sum, uint64_t limit) { return limit == 0 || sum < limit; };
  return std::min(left.age_us, right.age_us) >= age_us && left.bytes + right.bytes < limits.bytes &&
         is_below(left.ru_per_s + right.ru_per_s, limits.ru_per_s) &&
         is_below(left.bytes_per_s + right.bytes_per_s, limits.bytes_per_s);
}

const RingNode* node_of(std::span<const RingNode> nodes, const StoreAddress& member) {
  const auto found = std::ranges::find(nodes, member.host, &RingNode::host);
  return found == nodes.end() ? nullptr : &*found;
}

}  // namespace

int64_t age_factor(uint8_t bounces) { return kAgeFactors[std::min(bounces, kBouncesMost)]; }

bool left_half_moves(const MergeTablet& left, const MergeTablet& right) {
  return left.bytes < right.bytes;
}

std::vector<MergePair> choose_merges(std::span<const MergeTablet> tablets,
                                     const MergeLimits& limits) {
  std::vector<MergePair> possible;
  for (size_t i = 0; i + 1 < tablets.size(); ++i) {
    const MergeTablet& left = tablets[i];
    const MergeTablet& right = tablets[i + 1];
    if (!left.may_merge || !right.may_merge ||
        left.tablet->replicas.size() != right.tablet->replicas.size() ||
        !are_cold_and_small(left, right, limits))
      continue;
    // What a move costs at least, so that pairs with equal members come first.
    const uint64_t each = std::max(std::min(left.bytes, right.bytes), kMoveBytesLeast);
    possible.push_back({i, members_apart(*left.tablet, *right.tablet) * each});
  }
  // What moves least, then what is coldest, then by place: the same choice everywhere.
  const auto order = [&](const MergePair& pair) {
    return std::tuple(pair.bytes_to_move,
                      tablets[pair.left].ru_per_s + tablets[pair.left + 1].ru_per_s, pair.left);
  };
  std::ranges::sort(possible, {}, order);
  std::vector<MergePair> chosen;
  std::vector<bool> taken(tablets.size());
  for (const MergePair& pair : possible) {
    // A tablet is in one pair at most, and the table keeps its least number.
    if (tablets.size() <= limits.tablets_min + chosen.size()) break;
    if (taken[pair.left] || taken[pair.left + 1]) continue;
    taken[pair.left] = taken[pair.left + 1] = true;
    chosen.push_back(pair);
  }
  return chosen;
}

std::optional<std::vector<StoreAddress>> step_towards(std::span<const StoreAddress> moving,
                                                      std::span<const StoreAddress> target,
                                                      std::span<const RingNode> nodes) {
  std::vector<StoreAddress> members(moving.begin(), moving.end());
  const auto is_in = [](const StoreAddress& member, std::span<const StoreAddress> set) {
    return std::ranges::find(set, member) != set.end();
  };
  /// 0: on the same node, 1: in its rack, 2: in its data centre; unset: they are not exchanged.
  const auto distance = [&](const StoreAddress& from,
                            const StoreAddress& to) -> std::optional<int> {
    if (from.host == to.host) return 0;
    // Never two members on one node.
    if (std::ranges::find(members, to.host, &StoreAddress::host) != members.end())
      return std::nullopt;
    const RingNode* here = node_of(nodes, from);
    const RingNode* there = node_of(nodes, to);
    if (here == nullptr || there == nullptr || here->data_center != there->data_center)
      return std::nullopt;
    return here->rack == there->rack ? 1 : 2;
  };
  std::optional<std::tuple<int, size_t, size_t>> best;
  for (size_t from = 0; from < members.size(); ++from) {
    if (is_in(members[from], target)) continue;
    for (size_t to = 0; to < target.size(); ++to) {
      if (is_in(target[to], members)) continue;
      const auto far = distance(members[from], target[to]);
      if (far && (!best || std::tuple(*far, from, to) < *best)) best = std::tuple(*far, from, to);
    }
  }
  if (best) {
    members[std::get<1>(*best)] = target[std::get<2>(*best)];
    return members;
  }
  const bool same = moving.size() == target.size() &&
                    std::ranges::all_of(members, [&](const auto& m) { return is_in(m, target); });
  if (!same) return std::nullopt;
  return members;
}

}  // namespace tetrad::partitioner
