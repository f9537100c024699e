// SPDX-License-Identifier: Apache-2.0
// Nodes that are gone for good, with a quorum of what they had: the others go on by the operator's
// word, and what one of them has comes to all.
#include <algorithm>

#include <catch2/catch.hpp>

#include "replication/membership/leaving.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

using partitioner::TabletStage;
using replication::NodeState;
using replication::RemoveLostNodes;

constexpr int64_t kSecondUs = 1'000'000;
constexpr uint32_t kTablets = 8;

/// Nodes with a table of several tablets.
class Nodes {
 public:
  /// Of each: its data center.
  explicit Nodes(const std::vector<std::string>& centers, int64_t sync_period_us = 100'000,
                 const std::vector<size_t>& of_older_program = {}) {
    for (const std::string& center : centers) {
      SimNode& node = cluster.add(1, 1);
      if (!of_older_program.empty()) node.options().format = replication::kFormatThroughput;
      node.options().data_center = center;
      node.sync_period_us = sync_period_us;
    }
    REQUIRE(cluster.form(30 * kSecondUs));
    world.run_for(5 * kSecondUs);
    replication::SchemaChange change;
    change.new_tables.push_back(table_t());
    change.new_tables.back().initial_tablets = kTablets;
    bool created = false;
    cluster[0].spawn(change_schema_now(&cluster[0], std::move(change), &created));
    REQUIRE(world.run_until([&] { return created; }, 10 * kSecondUs));
    world.run_for(10 * kSecondUs);
    for (size_t i = 0; i < cluster.size() && !of_older_program.empty(); ++i) {
      if (std::ranges::find(of_older_program, i) != of_older_program.end()) continue;
      cluster[i].options().format = replication::kFormatNewest;
      cluster[i].start();
      REQUIRE(world.run_until([&] { return cluster[i].is_ready(); }, 30 * kSecondUs));
      world.run_for(5 * kSecondUs);
    }
  }
  const replication::TableInfo& table() { return *cluster[0].state()->tables.begin()->second; }
  const std::vector<partitioner::Tablet>& tablets() { return table().tablets.tablets(); }
  HostId host(size_t node) { return hosts_.at(node); }
  void lose(const std::vector<size_t>& nodes) {
    hosts_.clear();
    for (size_t i = 0; i < cluster.size(); ++i) hosts_.push_back(cluster[i].node().self());
    for (const size_t node : nodes) cluster[node].kill();
    const auto are_down = [&] {
      return std::ranges::none_of(nodes, [&](size_t node) { return is_live(host(node)); });
    };
    REQUIRE(world.run_until(are_down, 30 * kSecondUs));
  }
  bool is_live(HostId which) { return cluster[0].node().meta().is_live(which); }
  Result<replication::LossWith> check(const std::vector<size_t>& nodes) {
    std::vector<HostId> lost;
    for (const size_t node : nodes) lost.push_back(host(node));
    return replication::check_lost(*cluster[0].state(), lost,
                                   [this](HostId which) { return is_live(which); });
  }
  RemoveLostNodes order(const std::vector<size_t>& nodes) {
    RemoveLostNodes body;
    for (const size_t node : nodes) body.hosts.push_back(host(node));
    return body;
  }
  /// By one of those that are left, if most voters are lost.
  void lead_on() {
    const auto leads = [&](bool takes_over) {
      for (size_t i = 0; i < cluster.size(); ++i) {
        if (!cluster[i].is_up()) continue;
        auto& group = cluster[i].node().meta_group();
        if (group.is_leader() || (takes_over && group.take_over_group())) return true;
      }
      return false;
    };
    if (world.run_until([&] { return leads(false); }, 20 * kSecondUs)) return;
    REQUIRE(leads(true));
    REQUIRE(world.run_until([&] { return leads(false); }, 20 * kSecondUs));
  }
  void remove(const std::vector<size_t>& nodes) {
    cluster[0].spawn(propose(&cluster[0], order(nodes)));
  }
  bool all_rest(size_t members) {
    return std::ranges::all_of(tablets(), [&](const partitioner::Tablet& tablet) {
      return tablet.stage == TabletStage::kNormal && tablet.replicas.size() == members;
    });
  }
  /// Into the stores of these nodes alone, as far as they are members.
  void put(const std::string& key, const std::vector<size_t>& nodes) {
    const storage::Mutation row = row_of(table().incarnation, key);
    for (const StoreAddress& member : table().tablets.find(row.position).replicas)
      for (const size_t node : nodes)
        if (cluster[node].node().self() == member.host)
          cluster[node].store(member.store).apply(row, [](Result<void>) {});
  }
  bool has(size_t node, const std::string& key) {
    storage::ReadCommand command;
    command.incarnation = table().incarnation;
    command.partition_key = key;
    command.position = partitioner::position_of(key);
    bool found = false, done = false;
    cluster[node].store(0).read(command, base::kNoDeadline,
                                [&](const Result<storage::ReadResult>& result) {
                                  done = true;
                                  found = result && result->live_row_count == 1;
                                });
    world.run_until([&] { return done; }, kSecondUs);
    return found;
  }

  /// Registers that no other member has.
  void put_registers(const std::string& key, size_t node) {
    storage::PaxosRegisters registers;
    registers.promised = {world.now_us(), host(node), 1, 0};
    const storage::PartitionName partition{table().incarnation, partitioner::position_of(key), key};
    bool done = false;
    cluster[node].store(0).write_registers({partition, registers}, {},
                                           [&](const Result<void>& written) {
                                             REQUIRE(written);
                                             done = true;
                                           });
    REQUIRE(world.run_until([&] { return done; }, kSecondUs));
  }
  bool has_registers(size_t node, const std::string& key) {
    const storage::PartitionName partition{table().incarnation, partitioner::position_of(key), key};
    bool found = false, done = false;
    cluster[node].store(0).read_registers(partition, base::kNoDeadline,
                                          [&](const Result<storage::PaxosRegisters>& registers) {
                                            done = true;
                                            found = registers && registers->promised.present();
                                          });
    world.run_until([&] { return done; }, kSecondUs);
    return found;
  }
  bool is_member(size_t node, const std::string& key) {
    const auto& members = table().tablets.find(partitioner::position_of(key)).replicas;
    return std::ranges::find(members, StoreAddress{host(node), 0}) != members.end();
  }

  SimCluster cluster{11};
  World& world = cluster.world();

 private:
  std::vector<HostId> hosts_;  // by node, when some were lost
};

}  // namespace

TEST_CASE("two of five nodes are lost for good: what one of the others has comes to all") {
  Nodes nodes({"dc1", "dc1", "dc1", "dc1", "dc1"});
  REQUIRE(nodes.all_rest(4));
  constexpr int kKeys = 60;
  const auto key = [](int i) { return "k" + std::to_string(i); };
  // Acknowledged by the two that are lost and by one more, another one each time.
  for (int i = 0; i < kKeys; ++i) nodes.put(key(i), {static_cast<size_t>(i) % 3, 3, 4});
  nodes.world.run_for(kSecondUs);
  nodes.lose({3, 4});
  CHECK(nodes.check({0}).error().message.ends_with("is alive: nothing of it is lost"));
  CHECK(nodes.check({3}).error().message.starts_with("nothing would be lost: "));
  const auto loss = nodes.check({3, 4});
  REQUIRE(loss);
  CHECK(loss->partitions <= nodes.tablets().size());
  CHECK(loss->in_doubt <= loss->partitions);
  CHECK(loss->in_doubt != 0);
  CHECK(loss->in_doubt == loss->named.size());
  CHECK(loss->without_any == 0);

  // What conditional statements have left behind on one of them alone, where two members are lost.
  std::vector<std::string> with_registers;
  for (int i = 0; i < kKeys; ++i) {
    const size_t node = static_cast<size_t>(i) % 3;
    if (!nodes.is_member(3, key(i)) || !nodes.is_member(4, key(i)) ||
        !nodes.is_member(node, key(i)))
      continue;
    with_registers.push_back(key(i));
    nodes.put_registers(key(i), node);
  }
  CHECK(with_registers.size() > kKeys / 5);
  // Which of the keys a node that stays has at all.
  std::vector<bool> is_left;
  for (int i = 0; i < kKeys; ++i) is_left.push_back(nodes.has(static_cast<size_t>(i) % 3, key(i)));
  CHECK(std::ranges::count(is_left, true) > kKeys / 2);
  nodes.remove({3, 4});
  REQUIRE(nodes.world.run_until([&] { return nodes.all_rest(3); }, 60 * kSecondUs));
  for (int i = 0; i < kKeys; ++i) {
    INFO(key(i));
    for (size_t node = 0; node < 3; ++node) CHECK(nodes.has(node, key(i)) == is_left[i]);
  }
  for (const std::string& one : with_registers) {
    INFO(one);
    size_t count = 0;
    for (size_t node = 0; node < 3; ++node) count += nodes.has_registers(node, one) ? 1 : 0;
    CHECK(count == 3);
  }
  CHECK(nodes.cluster[0].state()->node(nodes.host(3))->state == NodeState::kRemoved);
  CHECK(nodes.check({3}).error().message.ends_with("has been removed already"));
  // They go on as three nodes do, and one that comes gets its share.
  nodes.cluster.add(1, 1).start();
  CHECK(nodes.world.run_until([&] { return nodes.all_rest(4); }, 120 * kSecondUs));
}

TEST_CASE("a data center is lost for good: the other one is alone from then on, and grows") {
  Nodes nodes({"east", "east", "east", "west", "west"});
  REQUIRE(nodes.all_rest(5));
  for (int i = 0; i < 20; ++i) nodes.put("k" + std::to_string(i), {0, 3, 4});
  nodes.lose({3, 4});
  REQUIRE(nodes.check({3, 4}));
  nodes.remove({3, 4});
  REQUIRE(nodes.world.run_until([&] { return nodes.all_rest(3); }, 60 * kSecondUs));
  CHECK(nodes.cluster[0].state()->data_centers == nullptr);
  for (int i = 0; i < 20; ++i)
    for (size_t node = 0; node < 3; ++node) CHECK(nodes.has(node, "k" + std::to_string(i)));
  nodes.cluster.add(1, 1).options().data_center = "east";
  nodes.cluster[5].start();
  CHECK(nodes.world.run_until([&] { return nodes.all_rest(4); }, 120 * kSecondUs));
}

TEST_CASE("what one of the others had outlasts a power cut of those that it has come to") {
  Nodes nodes({"east", "east", "east", "west", "west"}, 3 * kSecondUs);
  REQUIRE(nodes.all_rest(5));
  const auto key = [](int i) { return "k" + std::to_string(i); };
  for (int i = 0; i < 20; ++i) nodes.put(key(i), {0, 3, 4});
  nodes.world.run_for(200 * kSecondUs);
  nodes.lose({3, 4});
  nodes.lead_on();
  nodes.remove({3, 4});
  REQUIRE(nodes.world.run_until([&] { return nodes.all_rest(3); }, 60 * kSecondUs));
  for (const size_t node : {1, 2}) {
    nodes.cluster[node].power_cut();
    nodes.cluster[node].start();
  }
  const auto are_whole = [&] {
    return std::ranges::all_of(std::vector<size_t>{1, 2}, [&](size_t node) {
      return nodes.cluster[node].is_ready() && !nodes.cluster[node].is_behind();
    });
  };
  REQUIRE(nodes.world.run_until(are_whole, 60 * kSecondUs));
  for (int i = 0; i < 20; ++i)
    for (size_t node = 0; node < 3; ++node) CHECK(nodes.has(node, key(i)));
}

TEST_CASE("one of those that are left is lost, too, before the others have what it had") {
  Nodes nodes({"east", "east", "east", "west", "west"});
  REQUIRE(nodes.all_rest(5));
  nodes.lose({2, 3, 4});
  nodes.lead_on();
  nodes.remove({3, 4});
  nodes.world.run_for(20 * kSecondUs);
  // Read is from all of them, and node 2 does not answer.
  REQUIRE(nodes.cluster[0].state()->node(nodes.host(3))->state == NodeState::kRemoved);
  CHECK_FALSE(nodes.all_rest(3));
  const auto loss = nodes.check({2});
  REQUIRE(loss);
  CHECK(loss->in_doubt == kTablets);
  CHECK(loss->without_any == 0);
  nodes.remove({2});
  CHECK(nodes.world.run_until([&] { return nodes.all_rest(2); }, 60 * kSecondUs));
}

TEST_CASE("one of two that are left is damaged: the other one goes on, and a third is filled") {
  Nodes nodes({"dc1", "dc1", "dc1", "dc1"});
  REQUIRE(nodes.all_rest(4));
  for (int i = 0; i < 20; ++i) nodes.put("k" + std::to_string(i), {0, 2, 3});
  nodes.world.run_for(kSecondUs);
  nodes.lose({2, 3});
  nodes.cluster[1].kill();
  nodes.cluster[1].rot(0);
  nodes.cluster[1].start();
  nodes.world.run_for(5 * kSecondUs);
  nodes.lead_on();
  nodes.remove({2, 3});
  const auto are_left = [&] {
    return std::ranges::all_of(nodes.tablets(), [](const partitioner::Tablet& tablet) {
      return tablet.stage == TabletStage::kNormal && tablet.replicas.size() <= 2;
    });
  };
  REQUIRE(nodes.world.run_until(are_left, 60 * kSecondUs));
  nodes.cluster.add(1, 1).start();
  const auto are_replaced = [&] {
    return nodes.cluster[1].stores_renewed() == 1 && nodes.all_rest(3);
  };
  CHECK(nodes.world.run_until(are_replaced, 300 * kSecondUs));
  for (int i = 0; i < 20; ++i)
    for (const size_t node : {0, 4}) CHECK(nodes.has(node, "k" + std::to_string(i)));
}

TEST_CASE("lost nodes are removed where they had an older program, and not where others have one") {
  Nodes nodes({"dc1", "dc1", "dc1", "dc1"}, 100'000, {2, 3});
  REQUIRE(nodes.all_rest(4));
  CHECK(nodes.cluster[0].state()->format < replication::kFormatLostNodes);
  nodes.lose({2, 3});
  REQUIRE(nodes.check({2, 3}));
  // From whichever node.
  nodes.lead_on();
  const size_t other = nodes.cluster[0].node().meta_group().is_leader() ? 1 : 0;
  nodes.cluster[other].spawn(propose(&nodes.cluster[other], nodes.order({2, 3})));
  CHECK(nodes.world.run_until([&] { return nodes.all_rest(2); }, 60 * kSecondUs));
  CHECK(nodes.cluster[0].state()->format == replication::kFormatNewest);

  Nodes older({"dc1", "dc1", "dc1", "dc1"}, 100'000, {1});
  REQUIRE(older.all_rest(4));
  older.lose({2, 3});
  CHECK(older.check({2, 3}).error().message.find("does not know of lost nodes") !=
        std::string::npos);
  older.lead_on();
  for (const size_t via : {0, 1})
    older.cluster[via].spawn(propose(&older.cluster[via], older.order({2, 3})));
  older.world.run_for(10 * kSecondUs);
  for (const size_t node : {0, 1}) CHECK_FALSE(older.cluster[node].fatal());
  CHECK(older.cluster[0].state()->node(older.host(2))->state == NodeState::kNormal);
}

TEST_CASE("with most voters of the metadata group another one takes it over, by order") {
  Nodes nodes({"dc1", "dc1", "dc1", "dc1"});
  REQUIRE(nodes.all_rest(4));
  const auto group = [&](size_t node) -> replication::MetaServiceImpl& {
    return nodes.cluster[node].node().meta_group();
  };
  const auto leads = [&](size_t node) { return group(node).is_leader(); };
  std::vector<size_t> voters, others;
  for (size_t i = 0; i < 4; ++i) {
    const auto& members = group(0).driver()->core().configuration();
    (members.is_voter(nodes.cluster[i].node().self()) ? voters : others).push_back(i);
  }
  REQUIRE(voters.size() == 3);
  const std::vector<size_t> lost = {voters[0], voters[1]};
  const size_t last = voters[2], other = others[0];
  CHECK(group(last).take_over_group().error().message.ends_with("nothing of it is lost"));
  for (const size_t node : lost) nodes.cluster[node].kill();
  nodes.world.run_for(20 * kSecondUs);
  CHECK_FALSE(leads(last));
  CHECK(group(other).take_over_group().error().message.find("give the order there") !=
        std::string::npos);
  REQUIRE(group(last).take_over_group());
  REQUIRE(nodes.world.run_until([&] { return leads(last); }, 10 * kSecondUs));
  RemoveLostNodes body;
  for (const auto& [host, node] : nodes.cluster[last].state()->nodes)
    if (!nodes.cluster[last].node().meta().is_live(host) &&
        host != nodes.cluster[last].node().self())
      body.hosts.push_back(host);
  REQUIRE(body.hosts.size() == 2);
  nodes.cluster[other].spawn(propose(&nodes.cluster[other], body));
  const auto rests = [&] {
    const auto& table = *nodes.cluster[other].state()->tables.begin()->second;
    return std::ranges::all_of(table.tablets.tablets(), [&](const partitioner::Tablet& tablet) {
      return tablet.stage == TabletStage::kNormal && tablet.replicas.size() == 2;
    });
  };
  REQUIRE(nodes.world.run_until(rests, 60 * kSecondUs));
  // Those that were lost come back after all: they hear that they were removed, and change nothing.
  for (const size_t node : lost) nodes.cluster[node].start();
  nodes.world.run_for(60 * kSecondUs);
  CHECK(leads(last));
  CHECK(rests());
  CHECK(nodes.cluster[last].state()->node(body.hosts[0])->state == NodeState::kRemoved);
}

}  // namespace tetrad::simulation
