// SPDX-License-Identifier: Apache-2.0
// Placement of tables on nodes and stores.
#include "partitioner/placement.h"

#include <algorithm>
#include <limits>
#include <set>

namespace tetrad::partitioner {

//
// Pure. While there are at most as many nodes as a set has members, every node has every range, and
// the ring is cut evenly. Later the ring's tokens say who has what: neighbouring tokens with the
// same members are one tablet, so a table begins with as few tablets as the ring allows.
namespace {

constexpr size_t kFirstNodes = 4;

/// Ends of `count` even parts of the ring; the last is the ring's end.
std::vector<RingPosition> even_cuts(uint32_t count) {
  std::vector<RingPosition> ends;
  const auto whole = static_cast<unsigned __int128>(1) << 64;
  for (uint32_t i = 1; i < count; ++i) {
    const auto place = static_cast<uint64_t>(whole * i / count);
    ends.push_back(
        RingPosition::end_of_token(static_cast<int64_t>((place - 1) ^ (uint64_t{1} << 63))));
  }
  ends.push_back(RingPosition::highest());
  return ends;
}

/// Ends of the parts of the ring in which the set of members is the same.
std::vector<RingPosition> ring_cuts(const Ring& ring, uint32_t replicas_max) {
  std::vector<int64_t> tokens;
  for (const auto& [token, node] : ring.tokens()) tokens.push_back(token);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  const auto members = [&](int64_t token) {
    const std::vector<size_t> replicas = ring.replicas_of(token, replicas_max);
    return std::set<size_t>(replicas.begin(), replicas.end());
  };
  // As sets: the order of members makes no other tablet.
  std::vector<RingPosition> ends;
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < tokens.size(); ++i) {
    // The end of the ring is added below.
    if (tokens[i] == kLast) break;
    const int64_t next = i + 1 < tokens.size() ? tokens[i + 1] : kLast;
    if (members(tokens[i]) != members(next)) ends.push_back(RingPosition::end_of_token(tokens[i]));
  }
  ends.push_back(RingPosition::highest());
  return ends;
}

/// Cuts the widest parts in two until there are `count`; the first of equal ones, so every node
/// comes to the same cuts.
void cut_further(std::vector<RingPosition>& ends, uint32_t count) {
  while (ends.size() < count) {
    size_t widest = 0;
    uint64_t width_max = 0;
    int64_t start_of_widest = 0;
    int64_t start = std::numeric_limits<int64_t>::min();
    for (size_t i = 0; i < ends.size(); ++i) {
      const uint64_t width = static_cast<uint64_t>(ends[i].token) - static_cast<uint64_t>(start);
      if (width > width_max) {
        width_max = width;
        widest = i;
        start_of_widest = start;
      }
      start = ends[i].token;
    }
    const auto middle =
        static_cast<int64_t>(static_cast<uint64_t>(start_of_widest) + width_max / 2);
    ends.insert(ends.begin() + static_cast<ptrdiff_t>(widest), RingPosition::end_of_token(middle));
  }
}

uint64_t load_of(const StoreLoad& load, StoreAddress store) {
  const auto found = load.find(store);
  return found == load.end() ? 0 : found->second;
}

/// The node's store that has the fewest tablets of the table, and of those the fewest of all.
StoreAddress least_loaded(const RingNode& node, const StoreLoad& of_table, const StoreLoad& load) {
  StoreAddress best{node.host, 0};
  // A table is spread over a node's stores before the total is.
  const auto loads = [&](const StoreAddress& store) {
    return std::pair(load_of(of_table, store), load_of(load, store));
  };
  for (uint32_t store = 1; store < node.store_count; ++store) {
    const StoreAddress candidate{node.host, store};
    if (loads(candidate) < loads(best)) best = candidate;
  }
  return best;
}

/// As many as give every store of the first four nodes a tablet.
uint32_t stores_of_first(const Ring& ring) {
  uint32_t count = 0;
  for (size_t i = 0; i < std::min(kFirstNodes, ring.nodes().size()); ++i)
    count = std::max(count, ring.nodes()[i].store_count);
  return count;
}

}  // namespace

size_t usual_tablets(const Ring& ring, uint32_t replicas_max) {
  const size_t count = std::max<size_t>(stores_of_first(ring), 1);
  if (ring.everyone_everywhere(replicas_max)) return count;
  return std::max(count, ring_cuts(ring, replicas_max).size());
}

Result<std::vector<Tablet>> place_table(const Ring& ring, const PlacementOptions& options,
                                        StoreLoad& load) {
  if (ring.tokens().empty()) return fail(ErrorCode::kInvalid, "no node to place a table on");
  const uint32_t count = options.tablets == 0 ? stores_of_first(ring) : options.tablets;
  if (count > kTabletsPerTableMax)
    return fail(ErrorCode::kInvalid, "{} physical partitions in one table, at most {}", count,
                kTabletsPerTableMax);
  std::vector<RingPosition> ends;
  if (ring.everyone_everywhere(options.replicas_max)) {
    ends = even_cuts(count);
  } else {
    ends = ring_cuts(ring, options.replicas_max);
    cut_further(ends, count);
  }
  std::vector<Tablet> tablets;
  StoreLoad of_table;
  RingPosition start = RingPosition::lowest();
  uint64_t id = options.first_tablet_id;
  for (const RingPosition end : ends) {
    Tablet tablet;
    tablet.id = TabletId{id++};
    tablet.range = {start, end};
    tablet.epoch = SetEpoch{1};
    for (const size_t node : ring.replicas_of(end.token, options.replicas_max)) {
      // Counted at once: the next tablet goes elsewhere.
      const StoreAddress store = least_loaded(ring.nodes()[node], of_table, load);
      ++of_table[store];
      ++load[store];
      tablet.replicas.push_back(store);
    }
    start = end;
    tablets.push_back(std::move(tablet));
  }
  return tablets;
}

// Members that stay keep their store; only what is added is chosen.
std::vector<StoreAddress> desired_replicas(const Ring& ring, const Tablet& tablet,
                                           uint32_t replicas_max, const StoreLoad& of_table,
                                           const StoreLoad& load) {
  std::vector<StoreAddress> kept, added;
  for (const size_t index : ring.replicas_of(tablet.range.end.token, replicas_max)) {
    const RingNode& node = ring.nodes()[index];
    const auto member = std::find_if(tablet.replicas.begin(), tablet.replicas.end(),
                                     [&](const StoreAddress& r) { return r.host == node.host; });
    if (member != tablet.replicas.end())
      kept.push_back(*member);
    else
      added.push_back(least_loaded(node, of_table, load));
  }
  kept.insert(kept.end(), added.begin(), added.end());
  return kept;
}

}  // namespace tetrad::partitioner
