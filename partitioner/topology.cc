// SPDX-License-Identifier: Apache-2.0
// The ring of tokens.
#include "partitioner/topology.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/assert.h"
#include "base/random.h"

namespace tetrad::partitioner {

namespace {
/// Tokens as a circle of 2^64 places: sign bit flipped, so that order and distance are those of
/// unsigned numbers.
constexpr uint64_t place_of(int64_t token) {
  return static_cast<uint64_t>(token) ^ (uint64_t{1} << 63);
}
constexpr int64_t token_at(uint64_t place) {
  return static_cast<int64_t>(place ^ (uint64_t{1} << 63));
}
}  // namespace

Ring::Ring(std::vector<RingNode> nodes) : nodes_(std::move(nodes)) {
  std::map<std::string, size_t> data_centers;
  std::map<std::pair<std::string, std::string>, size_t> racks;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const RingNode& node = nodes_[i];
    for (const int64_t token : node.tokens) tokens_.emplace_back(token, i);
    const auto [dc, new_dc] = data_centers.try_emplace(node.data_center, data_centers_.size());
    if (new_dc) data_centers_.push_back({0, 0, node.data_center});
    DataCenter& center = data_centers_[dc->second];
    ++center.nodes;
    const auto [rack, new_rack] = racks.try_emplace({node.data_center, node.rack}, racks.size());
    if (new_rack) ++center.racks;
    data_center_of_.push_back(dc->second);
    rack_of_.push_back(rack->second);
  }
  TETRAD_ASSERT(rack_of_.size() == nodes_.size() && data_center_of_.size() == nodes_.size());
  rack_count_ = racks.size();
  std::sort(tokens_.begin(), tokens_.end());
}

std::vector<size_t> Ring::replicas_of(int64_t token, uint32_t replicas_max) const {
  struct Walk {
    uint32_t wanted, repeats_left;
  };
  std::vector<Walk> walks;
  size_t wanted = 0;
  for (const DataCenter& center : data_centers_) {
    const uint32_t members = std::min(replicas_max, center.nodes);
    walks.push_back({members, members > center.racks ? members - center.racks : 0});
    wanted += members;
  }
  std::vector<size_t> replicas;
  std::vector<bool> seen(nodes_.size()), rack_seen(rack_count_);
  const auto start =
      std::lower_bound(tokens_.begin(), tokens_.end(), std::pair<int64_t, size_t>(token, 0));
  const size_t first = static_cast<size_t>(start - tokens_.begin());
  for (size_t i = 0; i < tokens_.size() && replicas.size() < wanted; ++i) {
    const size_t node = tokens_[(first + i) % tokens_.size()].second;
    if (seen[node]) continue;
    seen[node] = true;
    Walk& walk = walks[data_center_of_[node]];
    if (walk.wanted == 0) continue;
    if (rack_seen[rack_of_[node]]) {
      if (walk.repeats_left == 0) continue;
      --walk.repeats_left;
    }
    rack_seen[rack_of_[node]] = true;
    --walk.wanted;
    replicas.push_back(node);
  }
  TETRAD_ASSERT(replicas.size() <= wanted);
  return replicas;
}

bool Ring::everyone_everywhere(uint32_t replicas_max) const {
  return std::all_of(data_centers_.begin(), data_centers_.end(),
                     [&](const DataCenter& center) { return center.nodes <= replicas_max; });
}

std::vector<int64_t> choose_tokens(const std::vector<RingNode>& nodes, size_t count,
                                   uint64_t seed) {
  base::Random random(seed);
  std::set<uint64_t> taken;
  for (const RingNode& node : nodes)
    for (const int64_t token : node.tokens) taken.insert(place_of(token));
  // -2^63 is no key's token and 2^63-1 is every ring's end: neither is given out.
  taken.insert(0);
  std::vector<int64_t> tokens;
  if (nodes.empty()) {
    TETRAD_ASSERT(count != 0);
    // Even steps from an offset of this node's own.
    const uint64_t step = std::numeric_limits<uint64_t>::max() / count;
    const uint64_t offset = 1 + random.below(step - 2);
    for (size_t i = 0; i < count; ++i) tokens.push_back(token_at(offset + i * step));
    return tokens;
  }
  while (tokens.size() < count) {
    uint64_t best_start = 0, best_gap = 0;
    for (auto it = taken.begin(); it != taken.end(); ++it) {
      const auto next = std::next(it);
      const uint64_t end = next == taken.end() ? std::numeric_limits<uint64_t>::max() : *next;
      if (end - *it > best_gap) {
        best_gap = end - *it;
        best_start = *it;
      }
    }
    TETRAD_ASSERT(best_gap > 16);
    // Between 3/8 and 5/8 of the gap, so that nodes that join at once do not interleave evenly.
    const uint64_t place = best_start + best_gap / 8 * 3 + random.below(best_gap / 4);
    if (taken.insert(place).second) tokens.push_back(token_at(place));
  }
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace tetrad::partitioner
