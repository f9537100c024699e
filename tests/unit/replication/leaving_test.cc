// SPDX-License-Identifier: Apache-2.0
// Which nodes may leave, which one is replaced by itself, and who votes meanwhile.
#include "replication/membership/leaving.h"

#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "base/random.h"
#include "partitioner/balance_policy.h"
#include "replication/meta/placed_in.h"
#include "replication/meta/voter_policy.h"
#include "replication/tablets/tablet_move.h"

namespace tetrad::replication {
namespace {

HostId host(uint8_t number) {
  HostId id;
  id.value.octets[15] = number;
  return id;
}

std::vector<VoterCandidate> three_nodes() {
  std::vector<VoterCandidate> nodes(3);
  for (uint8_t i = 0; i < 3; ++i) nodes[i].host = host(static_cast<uint8_t>(i + 1));
  return nodes;
}

/// `count` nodes and one table with one tablet on the first four of them.
MetaState cluster_of(uint8_t count) {
  MetaState state;
  for (uint8_t i = 1; i <= count; ++i) {
    NodeInfo node;
    node.host = host(i);
    node.address = "127.0.0." + std::to_string(i);
    node.data_center = "dc";
    node.state = NodeState::kNormal;
    state.nodes[node.host] = node;
  }
  auto table = std::make_shared<TableInfo>();
  table->keyspace = "ks";
  table->name = "t";
  partitioner::Tablet tablet;
  tablet.id = TabletId{1};
  tablet.range = {RingPosition::lowest(), RingPosition::highest()};
  tablet.epoch = SetEpoch{1};
  for (uint8_t i = 1; i <= std::min<uint8_t>(count, 4); ++i)
    tablet.replicas.push_back({host(i), 0});
  table->tablets = partitioner::TabletMap({tablet});
  state.tables.put(table->id, table);
  return state;
}

Outlook outlook_of_all_but(std::set<HostId> down) {
  return [down = std::move(down)](const StoreAddress& store) {
    StoreOutlook seen;
    seen.is_live = !down.contains(store.host);
    return seen;
  };
}

IsLive all_but(std::set<HostId> down) {
  return [down = std::move(down)](HostId node) { return !down.contains(node); };
}

}  // namespace

TEST_CASE("a node is not to leave where a quorum of three copies would be lost") {
  struct Case {
    uint8_t nodes;
    size_t copies_now, copies_then;
    bool may;
  };
  for (const Case& one : {Case{6, 4, 4, true}, Case{5, 4, 4, true}, Case{4, 4, 3, true},
                          Case{3, 3, 2, false}, Case{2, 2, 1, true}, Case{1, 1, 0, true}}) {
    CAPTURE(one.nodes);
    const CopiesWithout without = copies_without(cluster_of(one.nodes), host(1));
    CHECK(without.nodes_then == one.nodes - 1u);
    CHECK(without.copies_now == one.copies_now);
    CHECK(without.copies_then == one.copies_then);
    CHECK(check_copies(without).has_value() == one.may);
  }
  // Nodes of other data centers, and those that are going, hold no copy of these.
  MetaState state = cluster_of(6);
  state.nodes[host(4)].data_center = "west";
  state.nodes[host(5)].state = NodeState::kLeaving;
  state.nodes[host(6)].state = NodeState::kRemoved;
  CHECK(check_copies(copies_without(state, host(1)))
            .error()
            .message.starts_with(
                "only 2 nodes would remain in data center dc: rows would have 2 copies"));
  CHECK(check_copies(copies_without(state, host(4))));  // the only one of its own
}

TEST_CASE("a node is named by its host id, or by an address that no other node has") {
  MetaState state = cluster_of(3);
  CHECK(host_named(state, host(2).to_string()) == host(2));
  CHECK(host_named(state, host(9).to_string()) == host(9));  // check_leaving() says it is unknown
  CHECK(host_named(state, "127.0.0.2") == host(2));
  for (const char* wrong : {"nonsense", "", "127.0.0.9", "127.0.0"})
    CHECK(host_named(state, wrong).error().code == ErrorCode::kNotFound);
  state.nodes[host(3)].address = "127.0.0.2";
  CHECK(host_named(state, "127.0.0.2").error().code == ErrorCode::kConflict);
  state.nodes[host(3)].state = NodeState::kRemoved;
  CHECK(host_named(state, "127.0.0.2") == host(2));
}

TEST_CASE("a node may leave while W of every set it is in are alive, one at a time") {
  MetaState state = cluster_of(5);
  CHECK(check_leaving(state, host(9), true, all_but({})).error().code == ErrorCode::kNotFound);
  CHECK(check_leaving(state, host(1), true, all_but({})).error().code == ErrorCode::kConflict);
  CHECK(check_leaving(state, host(1), false, all_but({})));
  CHECK(check_leaving(state, host(1), true, all_but({host(1)})));
  const auto too_few = check_leaving(state, host(1), true, all_but({host(1), host(2)}));
  REQUIRE_FALSE(too_few);
  CHECK(too_few.error().code == ErrorCode::kUnavailable);
  CHECK(too_few.error().message.find("2 of 4 replicas alive and needs 3") != std::string::npos);
  // Not a member of any set: nothing to rebuild.
  CHECK(check_leaving(state, host(5), true, all_but({host(5), host(2), host(3)})));
  state.nodes[host(2)].state = NodeState::kLeaving;
  CHECK(check_leaving(state, host(1), false, all_but({})).error().message.find("is leaving") !=
        std::string::npos);
  CHECK(check_leaving(state, host(2), false, all_but({})));
  state.nodes[host(2)].state = NodeState::kRemoved;
  CHECK_FALSE(check_leaving(state, host(2), true, all_but({host(2)})));
  CHECK_FALSE(check_leaving(cluster_of(1), host(1), false, all_but({})));
}

TEST_CASE("a node that stays away is replaced only where others can take its replicas") {
  const auto long_away = [](HostId) { return uint64_t{100}; };
  CHECK(node_to_replace(cluster_of(5), all_but({host(1)}), long_away, 100) == host(1));
  CHECK_FALSE(node_to_replace(cluster_of(5), all_but({host(1)}), long_away, 101));
  CHECK_FALSE(node_to_replace(cluster_of(5), all_but({}), long_away, 100));
  CHECK_FALSE(node_to_replace(cluster_of(4), all_but({host(1)}), long_away, 100));
  CHECK_FALSE(node_to_replace(cluster_of(6), all_but({host(1), host(6)}), long_away, 100));
  CHECK(node_to_replace(cluster_of(7), all_but({host(1), host(7)}), long_away, 100));
  MetaState state = cluster_of(7);
  state.nodes[host(6)].state = NodeState::kLeaving;
  CHECK_FALSE(node_to_replace(state, all_but({host(1)}), long_away, 100));
}

TEST_CASE("a tablet's new members take the place of those that leave") {
  const MetaState state = cluster_of(6);
  std::vector<partitioner::RingNode> nodes;
  for (uint8_t i = 2; i <= 6; ++i)
    nodes.push_back({host(i), "dc", "r" + std::to_string(i), {int64_t{i} * 1000}, 1});
  const partitioner::Ring ring(nodes);
  const partitioner::Tablet tablet = state.tables.begin()->second->tablets.tablets()[0];
  const auto members = wanted_members(ring, tablet, {}, {}, outlook_of_all_but({host(1)}));
  REQUIRE(members);
  CHECK(members->size() == 4);
  CHECK(std::vector<StoreAddress>(members->begin(), members->begin() + 3) ==
        std::vector<StoreAddress>{{host(2), 0}, {host(3), 0}, {host(4), 0}});
  CHECK((members->back().host == host(5) || members->back().host == host(6)));
  CHECK_FALSE(wanted_members(ring, tablet, {}, {}, outlook_of_all_but({host(1), host(2)})));
  // With nobody to take its place the set shrinks.
  const partitioner::Ring three({nodes[0], nodes[1], nodes[2]});
  CHECK(wanted_members(three, tablet, {}, {}, outlook_of_all_but({host(1)}))->size() == 3);
}

TEST_CASE("no set waits for a dead node to take the place of one that leaves") {
  const MetaState state = cluster_of(6);
  const partitioner::Tablet tablet = state.tables.begin()->second->tablets.tablets()[0];
  std::vector<partitioner::RingNode> nodes;
  for (uint8_t i = 2; i <= 6; ++i)
    nodes.push_back({host(i), "dc", "r" + std::to_string(i), {int64_t{i} * 1000}, 1});
  const partitioner::Ring ring(nodes);
  for (const uint8_t dead : {uint8_t{5}, uint8_t{6}}) {
    const auto members = wanted_members(ring, tablet, {}, {}, outlook_of_all_but({host(dead)}));
    REQUIRE(members);
    CHECK(members->size() == 4);
    CHECK(members->back().host == host(static_cast<uint8_t>(11 - dead)));
  }
  // A dead member stays one: it may come back.
  const auto beside = wanted_members(ring, tablet, {}, {}, outlook_of_all_but({host(2), host(6)}));
  REQUIRE(beside);
  CHECK(*beside ==
        std::vector<StoreAddress>{{host(2), 0}, {host(3), 0}, {host(4), 0}, {host(5), 0}});
  // The only one that could take its place is dead: the set shrinks once nobody waits for it.
  const partitioner::Ring four({nodes[0], nodes[1], nodes[2], nodes[3]});
  const Outlook away = outlook_of_all_but({host(5)});
  CHECK_FALSE(wanted_members(four, tablet, {}, {}, away));
  const Outlook gone = [&](const StoreAddress& store) {
    StoreOutlook seen = away(store);
    seen.is_gone = !seen.is_live;
    return seen;
  };
  const auto shrunk = wanted_members(four, tablet, {}, {}, gone);
  REQUIRE(shrunk);
  CHECK(shrunk->size() == 3);
  // Or until it has room.
  const Outlook full = [](const StoreAddress& store) {
    StoreOutlook seen;
    seen.may_get = store.host != host(5);
    return seen;
  };
  CHECK_FALSE(wanted_members(four, tablet, {}, {}, full));
  // A set that has lost two gets the one that lives.
  partitioner::Tablet two = tablet;
  two.replicas = {{host(2), 0}, {host(3), 0}};
  const auto grown = wanted_members(four, two, {}, {}, away);
  REQUIRE(grown);
  CHECK(*grown == std::vector<StoreAddress>{{host(2), 0}, {host(3), 0}, {host(4), 0}});
}

TEST_CASE("a member that is lost comes back in its rack, and racks that are lost are restored") {
  const partitioner::Tablet tablet = cluster_of(8).tables.begin()->second->tablets.tablets()[0];
  // Node i on rack i % 4; of nodes 1 and 5 to 8 the ring would take another order for each start.
  for (uint8_t turn = 0; turn < 8; ++turn) {
    CAPTURE(int{turn});
    const auto ring_without = [&](std::set<uint8_t> away) {
      std::vector<partitioner::RingNode> nodes;
      for (uint8_t i = 1; i <= 8; ++i)
        if (!away.contains(i))
          nodes.push_back(
              {host(i), "dc", "r" + std::to_string(i % 4), {int64_t{(i + turn) % 8} * 1000}, 1});
      return partitioner::Ring(nodes);
    };
    const auto hosts = [](const std::optional<std::vector<StoreAddress>>& members) {
      std::set<HostId> set;
      if (members)
        for (const StoreAddress& member : *members) set.insert(member.host);
      return set;
    };
    const Outlook all = outlook_of_all_but({});
    CHECK_FALSE(wanted_members(ring_without({}), tablet, {}, {}, all));
    for (uint8_t lost = 1; lost <= 4; ++lost) {
      std::set<HostId> expected = {host(1), host(2), host(3), host(4)};
      expected.erase(host(lost));
      expected.insert(host(static_cast<uint8_t>(lost + 4)));
      CHECK(hosts(wanted_members(ring_without({lost}), tablet, {}, {}, all)) == expected);
    }
    // Two in rack 1 since rack 0 was away: back when it is, and then it stays.
    partitioner::Tablet crowded = tablet;
    crowded.replicas = {{host(1), 0}, {host(2), 0}, {host(3), 0}, {host(5), 0}};
    CHECK_FALSE(wanted_members(ring_without({4, 8}), crowded, {}, {}, all));
    const Outlook dead = outlook_of_all_but({host(4), host(8)});
    CHECK_FALSE(wanted_members(ring_without({}), crowded, {}, {}, dead));
    const auto restored = wanted_members(ring_without({}), crowded, {}, {}, all);
    REQUIRE(restored);
    CHECK(partitioner::rack_excess(ring_without({}).nodes(), *restored, "dc") == 0);
    crowded.replicas = *restored;
    CHECK_FALSE(wanted_members(ring_without({}), crowded, {}, {}, all));
  }
}

TEST_CASE("sets over several data centers come to rest with four members of each") {
  base::Random random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<partitioner::RingNode> nodes;
    std::map<std::string, size_t> in_center;
    const size_t centers = 1 + random.below(3), racks = 1 + random.below(4);
    for (size_t i = 1; i <= 3 + random.below(12); ++i) {
      const std::string center = "dc" + std::to_string(random.below(centers));
      ++in_center[center];
      nodes.push_back({host(static_cast<uint8_t>(i)),
                       center,
                       "r" + std::to_string(random.below(racks)),
                       {static_cast<int64_t>(random.below(1'000'000))},
                       1});
    }
    const partitioner::Ring ring(nodes);
    // Any members, also too few or too many of a data centre.
    partitioner::Tablet tablet = cluster_of(4).tables.begin()->second->tablets.tablets()[0];
    tablet.replicas.clear();
    for (const partitioner::RingNode& node : nodes)
      if (random.one_in(2)) tablet.replicas.push_back({node.host, 0});
    if (tablet.replicas.empty()) tablet.replicas.push_back({nodes[0].host, 0});
    int changes = 0;
    while (const auto next = wanted_members(ring, tablet, {}, {}, outlook_of_all_but({}))) {
      tablet.replicas = *next;
      REQUIRE(++changes < 20);
    }
    std::map<std::string, size_t> has;
    for (const StoreAddress& member : tablet.replicas)
      ++has[std::ranges::find(nodes, member.host, &partitioner::RingNode::host)->data_center];
    for (const auto& [center, count] : in_center) {
      INFO("round " << round << " " << center);
      CHECK(has[center] == std::min<size_t>(count, 4));
    }
  }
}

TEST_CASE("who leaves votes no longer than it must") {
  for (uint8_t count = 2; count <= 6; ++count) {
    for (uint8_t leader = 1; leader <= 2; ++leader) {
      RaftConfiguration configuration;
      std::vector<VoterCandidate> candidates;
      for (uint8_t i = 1; i <= count; ++i) {
        candidates.push_back({host(i), "r" + std::to_string(i)});
        (i <= voters_wanted(count) ? configuration.voters : configuration.learners)
            .push_back(host(i));
      }
      candidates[0].leaving = true;
      // The leaving leader itself is never demoted; another one leads at last.
      for (int round = 0; round < 20; ++round) {
        const HostId self = round < 10 ? host(leader) : host(2);
        candidates[0].removed = round >= 10;  // until then it may be the third of three
        const auto change = next_membership_change(configuration, candidates, self);
        if (!change) continue;
        CHECK_FALSE(
            (change->server == self && change->kind != RaftMembershipChange::Kind::kPromote));
        const auto next = change_membership(configuration, *change);
        REQUIRE(next);
        configuration = *next;
      }
      INFO("nodes=" << int{count} << " leader=" << int{leader});
      CHECK_FALSE(configuration.is_voter(host(1)));
      CHECK(configuration.voters.size() == voters_wanted(count - 1u));
    }
  }
}

TEST_CASE("no change of voters costs the metadata group its majority") {
  // All states of five nodes: each votes or learns, answers or does not, stays or leaves.
  constexpr int kNodes = 5, kKinds = 8;
  int states = 1, changes = 0;
  for (int i = 0; i < kNodes; ++i) states *= kKinds;
  for (int state = 0; state < states; ++state) {
    RaftConfiguration configuration;
    std::vector<VoterCandidate> candidates;
    for (int i = 0, rest = state; i < kNodes; ++i, rest /= kKinds) {
      VoterCandidate& node = candidates.emplace_back();
      node.host = host(static_cast<uint8_t>(i + 1));
      node.away = (rest & 2) != 0;
      node.caught_up = !node.away;
      node.leaving = (rest & 4) != 0;
      ((rest & 1) != 0 ? configuration.voters : configuration.learners).push_back(node.host);
    }
    const auto has_majority = [&] {
      const auto live = std::ranges::count_if(candidates, [&](const VoterCandidate& node) {
        return !node.away && configuration.is_voter(node.host);
      });
      return 2 * static_cast<size_t>(live) > configuration.voters.size();
    };
    const auto leader = std::ranges::find_if(candidates, [&](const VoterCandidate& node) {
      return !node.away && configuration.is_voter(node.host);
    });
    if (leader == candidates.end() || !has_majority()) continue;
    for (int round = 0; round < 12; ++round) {
      const auto change = next_membership_change(configuration, candidates, leader->host);
      if (!change) break;
      const auto next = change_membership(configuration, *change);
      REQUIRE(next);
      configuration = *next;
      ++changes;
      if (!has_majority()) FAIL_CHECK("state " << state << " round " << round);
      REQUIRE(round < 11);
    }
  }
  CHECK(changes > 10'000);
}

TEST_CASE("a leaving voter goes after the dead one, where two would be left") {
  RaftConfiguration configuration;
  configuration.voters = {host(1), host(2), host(3)};
  std::vector<VoterCandidate> nodes = three_nodes();
  nodes[0].away = true;
  nodes[0].caught_up = false;
  nodes[1].leaving = true;
  for (const HostId expected : {host(1), host(2)}) {
    const auto change = next_membership_change(configuration, nodes, host(3));
    REQUIRE(change);
    CHECK(change->kind == RaftMembershipChange::Kind::kDemote);
    CHECK(change->server == expected);
    configuration = *change_membership(configuration, *change);
  }
  CHECK_FALSE(next_membership_change(configuration, nodes, host(3)));
}

TEST_CASE("the third voter of two nodes that stay goes when it has left") {
  RaftConfiguration configuration;
  configuration.voters = {host(1), host(2), host(3)};
  std::vector<VoterCandidate> nodes = three_nodes();
  nodes[2].leaving = true;
  CHECK_FALSE(next_membership_change(configuration, nodes, host(1)));
  nodes[2].removed = true;
  for (const HostId expected : {host(3), host(2)}) {
    const auto change = next_membership_change(configuration, nodes, host(1));
    REQUIRE(change);
    CHECK(change->kind == RaftMembershipChange::Kind::kDemote);
    CHECK(change->server == expected);
    configuration = *change_membership(configuration, *change);
  }
  CHECK(configuration.voters == std::vector<HostId>{host(1)});
  // A fourth node takes its place at once.
  configuration.voters = {host(1), host(2), host(3)};
  configuration.learners = {host(4)};
  nodes[2].removed = false;
  nodes.push_back({.host = host(4), .rack = ""});
  for (const auto kind :
       {RaftMembershipChange::Kind::kPromote, RaftMembershipChange::Kind::kDemote}) {
    const auto change = next_membership_change(configuration, nodes, host(1));
    REQUIRE(change);
    CHECK(change->kind == kind);
    configuration = *change_membership(configuration, *change);
  }
  CHECK(configuration.voters == std::vector<HostId>{host(1), host(2), host(4)});
}

TEST_CASE("a second voter comes when the third can follow at once") {
  RaftConfiguration configuration;
  configuration.voters = {host(1)};
  configuration.learners = {host(2), host(3)};
  std::vector<VoterCandidate> nodes = three_nodes();
  nodes[1].away = true;
  CHECK_FALSE(next_membership_change(configuration, nodes, host(1)));
  nodes[1] = {.host = host(2), .rack = "", .caught_up = false};
  CHECK_FALSE(next_membership_change(configuration, nodes, host(1)));
  nodes[1].caught_up = true;
  for (size_t voters = 2; voters <= 3; ++voters) {
    const auto change = next_membership_change(configuration, nodes, host(1));
    REQUIRE(change);
    CHECK(change->kind == RaftMembershipChange::Kind::kPromote);
    configuration = *change_membership(configuration, *change);
    CHECK(configuration.voters.size() == voters);
  }
  // Two that are there already become three, also one by one.
  configuration.voters.pop_back();
  configuration.learners = {host(3)};
  CHECK(next_membership_change(configuration, nodes, host(1)));
}

TEST_CASE("the last node of a keyspace's data centers stays") {
  MetaState state = cluster_of(2);
  state.nodes[host(2)].data_center = "elsewhere";
  const auto everyone = all_but({});
  CHECK(check_leaving(state, host(1), false, everyone));
  state.schema_objects.put(placement_key("ks"), placement_text({"dc"}));
  const auto refused = check_leaving(state, host(1), false, everyone);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.starts_with("keyspace ks has its rows on node"));
  CHECK(check_leaving(state, host(2), false, everyone));
  state.schema_objects.put(placement_key("ks"), placement_text({"dc", "elsewhere"}));
  CHECK(check_leaving(state, host(1), false, everyone));
}

TEST_CASE("the data centers of a keyspace, as text") {
  MetaState state;
  CHECK(placed_in(state, "ks").empty());
  CHECK(placement_text({"east", "west"}) == "east\nwest\n");
  state.schema_objects.put(placement_key("ks"), "east\nwest\n");
  CHECK(placed_in(state, "ks") == std::set<std::string, std::less<>>{"east", "west"});
  CHECK(placed_in(state, "other").empty());
  const std::vector<partitioner::RingNode> nodes = {{host(1), "east", "r", {1}, 1},
                                                    {host(2), "south", "r", {2}, 1}};
  CHECK(nodes_for(placed_in(state, "ks"), nodes).size() == 1);
  CHECK(nodes_for(placed_in(state, "other"), nodes).size() == 2);
}

}  // namespace tetrad::replication
