// SPDX-License-Identifier: Apache-2.0
// Throughputs over a cluster: what all coordinators let in together.
#include <catch2/catch.hpp>

#include "base/sleep.h"
#include "partitioner/token.h"
#include "replication/tablets/split_runner.h"
#include "storage/row/row_weight.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

using replication::Throughput;
using storage::kWeightOfUnit;

constexpr int64_t kSecondUs = 1'000'000;

/// What clients of one kind have met.
struct Counts {
  uint64_t units = 0;  // let in
  uint64_t admitted = 0, refused = 0;
  int64_t longest_wait_us = 0, longest_retry_ms = 0;
  std::vector<uint64_t> by_client;
  std::string wrong_text;
};

int64_t retry_ms_of(const std::string& message) {
  // As clients of Azure Cosmos DB's API for Cassandra look for it.
  const size_t at = message.find(", RetryAfterMs=");
  return at == std::string::npos ? -1 : std::atoll(message.c_str() + at + 15);
}

struct ClientPlan {
  std::string key = "key";
  uint64_t units = 5;        // known before
  uint64_t units_after = 0;  // found out afterwards
  int64_t until_us = 0;
  int64_t pause_us = 1'000;
  bool obeys_retry = true;
};

Task<void> set_now(SimNode* node, std::string name, uint64_t value, bool* done) {
  replication::MetaCommandBody body(
      replication::SetSetting{std::move(name), std::to_string(value)});
  const base::Deadline deadline{node->reactor().now_us() + 5 * kSecondUs};
  auto proposed = co_await node->node().meta_group().propose(std::move(body), deadline);
  *done = proposed.has_value();
}

/// One request after the other.
Task<void> client_of_shard(SimNode* node, uint32_t shard, TableIncarnation table, ClientPlan plan,
                           size_t number, Counts* counts) {
  base::Reactor& reactor = node->reactor();
  replication::ThroughputGate& gate = node->data(shard).throughput();
  while (node->world().now_us() < plan.until_us) {
    const RingPosition position = partitioner::position_of(plan.key);
    std::vector<replication::ThroughputUse> uses;
    uses.push_back({table, position, plan.units * kWeightOfUnit});
    const base::MonotonicUs begun_us = reactor.now_us();
    Result<void> in = co_await gate.admit(std::move(uses), {begun_us + 2 * kSecondUs});
    if (in) {
      counts->units += plan.units + plan.units_after;
      ++counts->admitted;
      ++counts->by_client[number];
      counts->longest_wait_us = std::max(counts->longest_wait_us, reactor.now_us() - begun_us);
      co_await base::sleep_for(reactor, plan.pause_us);
      if (plan.units_after != 0)
        gate.settle(table, position, static_cast<int64_t>(plan.units_after * kWeightOfUnit));
    } else {
      ++counts->refused;
      const int64_t retry_ms = retry_ms_of(in.error().message);
      if (in.error().code != ErrorCode::kOverloaded || retry_ms < 1)
        counts->wrong_text = in.error().message;
      counts->longest_retry_ms = std::max(counts->longest_retry_ms, retry_ms);
      co_await base::sleep_for(reactor, plan.obeys_retry ? retry_ms * 1000 : 500);
    }
  }
}

Task<void> client(SimNode* node, TableIncarnation table, ClientPlan plan, size_t number,
                  Counts* counts) {
  return client_of_shard(node, 0, table, plan, number, counts);
}

Task<void> return_now(SimNode* node, HostId holder, replication::ReturnRequest request,
                      bool* done) {
  Bytes body = replication::encode_return_request(request);
  const base::Deadline deadline{node->reactor().now_us() + kSecondUs};
  auto taken = co_await node->node().rpc().ask(holder, 0, replication::Verb::kReturnThroughput,
                                               std::move(body), deadline);
  *done = taken.has_value();
}

struct LimitedCluster {
  SimCluster cluster;

  explicit LimitedCluster(uint64_t seed, size_t nodes, std::vector<Throughput> tables,
                          uint32_t tablets = 1)
      : cluster(seed, nodes) {
    REQUIRE(cluster.form());
    cluster.world().run_for(kSecondUs);  // all hear of each other
    replication::SchemaChange change;
    for (const Throughput& throughput : tables) {
      replication::SchemaChange::NewTable table = table_t();
      table.id.value.octets[0] = static_cast<uint8_t>(change.new_tables.size() + 1);
      table.name += std::to_string(change.new_tables.size());
      table.initial_tablets = tablets;
      table.throughput = throughput;
      change.new_tables.push_back(table);
    }
    apply(std::move(change));
  }
  void apply(replication::SchemaChange change) {
    bool done = false;
    cluster[0].spawn(change_schema_now(&cluster[0], std::move(change), &done));
    REQUIRE(cluster.world().run_until([&] { return done; }, 20 * kSecondUs));
  }
  const replication::TableInfo& table(size_t number = 0) {
    for (const auto& [id, table] : cluster[0].state()->tables)
      if (table->name == "t" + std::to_string(number)) return *table;
    throw std::runtime_error("no such table");
  }
  void set(const char* name, uint64_t value) {
    bool done = false;
    cluster[0].spawn(set_now(&cluster[0], name, value, &done));
    REQUIRE(cluster.world().run_until([&] { return done; }, 20 * kSecondUs));
    cluster.world().run_for(kSecondUs);
  }
  void alter(size_t number, Throughput throughput) {
    replication::SchemaChange change;
    change.altered_tables.push_back(
        {table(number).id, "ks", table(number).name, 0, false, throughput});
    apply(std::move(change));
  }
  /// `each` clients on every node.
  void start(ClientPlan plan, size_t each, Counts& counts, size_t number = 0) {
    for (size_t node = 0; node < cluster.size(); ++node) {
      if (!cluster[node].is_up()) continue;
      for (size_t i = 0; i < each; ++i) {
        counts.by_client.push_back(0);
        cluster[node].spawn(client(&cluster[node], table(number).incarnation, plan,
                                   counts.by_client.size() - 1, &counts));
      }
    }
  }
  /// Each node has a request that costs more than ten seconds give.
  void overdraw() {
    Counts counts;
    ClientPlan plan;
    plan.units_after = 1'000'000;
    plan.until_us = in(1);
    start(plan, 1, counts);
    cluster.world().run_for(kSecondUs / 2);
    REQUIRE(counts.admitted == cluster.size());
  }
  int64_t in(int64_t us) { return cluster.world().now_us() + us; }
  /// The node that lends for a key.
  size_t holder(const std::string& key, size_t number = 0) {
    const auto& info = table(number);
    const HostId host = replication::holder_of(*cluster[0].state(), cluster[0].node().meta(), info,
                                               info.tablets.find(partitioner::position_of(key)));
    for (size_t i = 0; i < cluster.size(); ++i)
      if (cluster[i].is_up() && cluster[i].node().self() == host) return i;
    throw std::runtime_error("the holder is down");
  }
};

}  // namespace

TEST_CASE("clients of all nodes together get the throughput and no more") {
  for (const size_t nodes : {1, 4}) {
    for (uint64_t seed = 1; seed <= seed_count(3); ++seed) {
      INFO("nodes=" << nodes << " seed=" << seed);
      LimitedCluster limited(seed, nodes, {{1000, false}});
      Counts counts;
      ClientPlan plan;
      plan.until_us = limited.in(20 * kSecondUs);
      limited.start(plan, 40 / nodes, counts);
      limited.cluster.world().run_for(21 * kSecondUs);
      CHECK(counts.wrong_text.empty());
      // What the bucket held, twenty seconds, and slices that are overdrawn.
      CHECK(counts.units <= 1000 + 20'000 + nodes * 110);
      CHECK(counts.units >= 19'500);
      CHECK(counts.longest_wait_us <= 100'000 + 20'000);
      CHECK(counts.refused > 0);
      CHECK(counts.longest_retry_ms <= 1'000);
      CHECK(std::ranges::min(counts.by_client) > 0);
    }
  }
}

TEST_CASE("who comes again at once is refused and takes nothing from the others") {
  LimitedCluster limited(1, 4, {{1000, false}});
  Counts rude, polite;
  ClientPlan plan;
  plan.until_us = limited.in(10 * kSecondUs);
  limited.start(plan, 2, polite);
  plan.obeys_retry = false;
  limited.start(plan, 50, rude);
  limited.cluster.world().run_for(11 * kSecondUs);
  const uint64_t units = rude.units + polite.units;
  CHECK(units <= 11'500);
  CHECK(units >= 9'700);
  CHECK(std::ranges::min(polite.by_client) > 0);
  CHECK(rude.refused > 1000);
}

TEST_CASE("what a request costs beyond what was known is a debt that is paid first") {
  LimitedCluster limited(2, 4, {{1000, false}});
  Counts counts;
  ClientPlan plan;
  plan.units = 1;
  plan.units_after = 499;
  plan.until_us = limited.in(30 * kSecondUs);
  limited.start(plan, 1, counts);
  limited.cluster.world().run_for(31 * kSecondUs);
  CHECK(counts.wrong_text.empty());
  // Each node may overdraw by one request before it hears that there is nothing left.
  CHECK(counts.units <= 1000 + 30'000 + 4 * 600);
  CHECK(counts.units >= 27'000);
}

TEST_CASE("a debt holds a table up for ten seconds at most") {
  LimitedCluster limited(3, 1, {{400, false}});
  limited.overdraw();
  ClientPlan plan;
  plan.until_us = limited.in(20 * kSecondUs);
  Counts later;
  limited.start(plan, 1, later);
  limited.cluster.world().run_for(9 * kSecondUs);
  CHECK(later.admitted == 0);
  CHECK(later.longest_retry_ms > 9'000);
  limited.cluster.world().run_for(2 * kSecondUs);
  CHECK(later.admitted > 0);
}

TEST_CASE("who waits for a debt to be paid hears of a higher throughput at once") {
  LimitedCluster limited(8, 4, {{400, false}});
  limited.overdraw();
  ClientPlan plan;
  plan.obeys_retry = false;
  plan.until_us = limited.in(20 * kSecondUs);
  Counts later;
  limited.start(plan, 1, later);
  limited.cluster.world().run_for(kSecondUs);
  CHECK(later.admitted == 0);
  limited.alter(0, {40'000, false});
  limited.cluster.world().run_for(kSecondUs);
  CHECK(later.admitted > 100);
}

TEST_CASE("what was lent at a higher throughput does not count at a lower one") {
  LimitedCluster limited(9, 4, {{10'000, false}});
  Counts counts;
  ClientPlan plan;
  plan.until_us = limited.in(kSecondUs);
  limited.start(plan, 5, counts);
  limited.cluster.world().run_for(2 * kSecondUs);
  limited.alter(0, {400, false});
  plan.until_us = limited.in(10 * kSecondUs);
  Counts later;
  limited.start(plan, 5, later);
  limited.cluster.world().run_for(11 * kSecondUs);
  CHECK(later.units <= 4'400 + 4 * 80);
  CHECK(later.units >= 3'800);
}

TEST_CASE("what was lent at a higher throughput does not come back at a lower one") {
  LimitedCluster limited(9, 4, {{10'000, false}});
  Counts few;
  ClientPlan plan;
  plan.pause_us = 20'000;
  plan.until_us = limited.in(kSecondUs);
  limited.start(plan, 1, few);
  limited.cluster.world().run_for(kSecondUs);
  limited.alter(0, {400, false});
  limited.cluster.world().run_for(kSecondUs);  // nobody uses what was lent
  Counts later;
  plan.pause_us = 1'000;
  plan.until_us = limited.in(10 * kSecondUs);
  limited.start(plan, 5, later);
  limited.cluster.world().run_for(11 * kSecondUs);
  CHECK(later.units <= 4'400 + 4 * 80);
  CHECK(later.units >= 3'800);
}

TEST_CASE("what others do not use pays what a physical partition owes") {
  LimitedCluster limited(3, 4, {{1200, false}}, 3);
  limited.overdraw();
  ClientPlan plan;
  plan.obeys_retry = false;
  plan.until_us = limited.in(20 * kSecondUs);
  Counts later;
  limited.start(plan, 1, later);
  limited.cluster.world().run_for(2 * kSecondUs);
  CHECK(later.admitted == 0);
  limited.cluster.world().run_for(4 * kSecondUs);
  CHECK(later.admitted > 0);
}

TEST_CASE("a physical partition gets what the others of its table do not use, up to what it may") {
  for (const bool is_bounded : {false, true}) {
    INFO("is_bounded=" << is_bounded);
    LimitedCluster limited(4, 4, {{1200, false}}, 3);
    if (is_bounded) limited.set(replication::kSettingPhysicalPartitionRuPerS, 600);
    const auto& tablets = limited.table().tablets;
    REQUIRE(tablets.tablets().size() == 3);
    const auto other_key = [&](const std::string& key) {
      for (int i = 0;; ++i)
        if (tablets.find(partitioner::position_of(std::to_string(i))).id !=
            tablets.find(partitioner::position_of(key)).id)
          return std::to_string(i);
    };
    Counts one, other;
    ClientPlan plan;
    plan.until_us = limited.in(20 * kSecondUs);
    limited.start(plan, 20, one);
    limited.cluster.world().run_for(10 * kSecondUs);
    const uint64_t most = is_bounded ? 600 : 1200;
    CHECK(one.units <= 10 * most + 1'000);
    CHECK(one.units >= 9 * most);
    const uint64_t before = one.units;
    plan.key = other_key(plan.key);
    limited.start(plan, 20, other);
    limited.cluster.world().run_for(11 * kSecondUs);
    // Both more than their part, and together what there is.
    CHECK(one.units - before >= 4'500);
    CHECK(other.units >= 4'500);
    CHECK(one.units - before + other.units <= 12'000 + 800);
    CHECK(one.units - before + other.units >= 11'000);
  }
}

TEST_CASE("what shards have borrowed and do not use comes back to those that do") {
  // As much as one second gives, of which every shard of four nodes holds a part.
  SimCluster cluster(10, 4, 4, 4);
  REQUIRE(cluster.form());
  cluster.world().run_for(kSecondUs);
  replication::SchemaChange change;
  change.new_tables.push_back(table_t());
  change.new_tables.back().initial_tablets = 1;
  change.new_tables.back().throughput = {400, false};
  bool done = false;
  cluster[0].spawn(change_schema_now(&cluster[0], std::move(change), &done));
  REQUIRE(cluster.world().run_until([&] { return done; }, 20 * kSecondUs));
  const TableIncarnation table = cluster[0].state()->tables.begin()->second->incarnation;
  Counts idle, busy;
  idle.by_client.resize(16);
  busy.by_client.resize(10);
  ClientPlan plan;
  plan.units = 1;
  const auto run = [&](SimNode& node, uint32_t shard, size_t number, Counts& counts) {
    plan.until_us = cluster.world().now_us() + 10 * kSecondUs;
    node.spawn(client_of_shard(&node, shard, table, plan, number, &counts));
  };
  plan.pause_us = 11 * kSecondUs;  // one request each
  for (size_t i = 0; i < 16; ++i) run(cluster[i / 4], static_cast<uint32_t>(i % 4), i, idle);
  cluster.world().run_for(kSecondUs);
  CHECK(idle.admitted == 16);
  plan.pause_us = 1'000;
  for (size_t i = 0; i < 10; ++i) run(cluster[3], 3, i, busy);
  cluster.world().run_for(kSecondUs);
  CHECK(busy.units >= 700);  // all that has flowed in since, and what the others gave back
  // A second's worth is held, another flows in; a slice of 40 is in hand, and one on its way.
  CHECK(busy.units <= 800 + 2 * 40);
}

TEST_CASE("what was not used for minutes may be used above the throughput, where that is set") {
  for (const bool is_killed : {false, true}) {
    INFO("is_killed=" << is_killed);
    LimitedCluster limited(11, 4, {{400, false}});
    limited.set(replication::kSettingBurstRuPerS, 3000);
    limited.cluster.world().run_for(100 * kSecondUs);
    if (is_killed) {
      limited.cluster[limited.holder("key")].kill();
      limited.cluster.world().run_for(10 * kSecondUs);
    }
    Counts counts;
    ClientPlan plan;
    plan.until_us = limited.in(40 * kSecondUs);
    limited.start(plan, 40, counts);
    limited.cluster.world().run_for(5 * kSecondUs);
    // Banked were forty thousand, or four thousand by the new holder.
    if (is_killed) {
      CHECK(counts.units <= 3'000 + 4'500);
      continue;
    }
    CHECK(counts.units >= 5 * 3'000);
    CHECK(counts.units <= 5 * 3'400 + 1'000);
    limited.cluster.world().run_for(20 * kSecondUs);
    const uint64_t before = counts.units;
    CHECK(before <= 40'000 + 26 * 400 + 500);
    limited.cluster.world().run_for(10 * kSecondUs);
    CHECK(counts.units - before <= 10 * 400 + 200);
  }
}

TEST_CASE("all nodes know what is used of a throughput, and the busiest second of the hour") {
  LimitedCluster limited(12, 4, {{400, false}});
  Counts counts;
  ClientPlan plan;
  plan.until_us = limited.in(20 * kSecondUs);
  limited.start(plan, 10, counts);
  limited.cluster.world().run_for(15 * kSecondUs);
  const uint64_t tablet = limited.table().tablets.tablets().front().id.value;
  for (size_t i = 0; i < 4; ++i) {
    const auto used = limited.cluster[i].node().meta().used_throughput(tablet);
    CHECK(used.used_ru_per_s >= 350);
    CHECK(used.used_ru_per_s <= 500);
    CHECK(used.busiest_ru_per_s >= 400);
    CHECK(used.busiest_ru_per_s <= 900);  // with what the bucket held
    CHECK(used.refused > 0);
    CHECK(used.refused <= counts.refused);
    CHECK(used.hour != 0);
  }
  limited.cluster.world().run_for(20 * kSecondUs);
  const auto calm = limited.cluster[3].node().meta().used_throughput(tablet);
  CHECK(calm.used_ru_per_s == 0);
  CHECK(calm.busiest_ru_per_s >= 400);
  // Its next holder goes on from there.
  limited.cluster[limited.holder("key")].kill();
  limited.cluster.world().run_for(10 * kSecondUs);
  plan.until_us = limited.in(kSecondUs);
  limited.start(plan, 1, counts);
  limited.cluster.world().run_for(15 * kSecondUs);
  for (size_t i = 0; i < 4; ++i)
    if (limited.cluster[i].is_up())
      CHECK(limited.cluster[i].node().meta().used_throughput(tablet).busiest_ru_per_s >= 400);
}

TEST_CASE("tables without a throughput of their own share their keyspace's") {
  LimitedCluster limited(5, 4, {{1000, true}, {1000, true}, {400, false}, {}});
  CHECK(!limited.cluster[0].data().throughput().limits(limited.table(3).incarnation));
  Counts shared, own;
  ClientPlan plan;
  plan.until_us = limited.in(10 * kSecondUs);
  limited.start(plan, 5, shared, 0);
  limited.start(plan, 5, shared, 1);
  limited.start(plan, 5, own, 2);
  limited.cluster.world().run_for(11 * kSecondUs);
  CHECK(shared.units <= 11'000 + 4 * 110);
  CHECK(shared.units >= 9'700);
  CHECK(own.units <= 4'400 + 4 * 50);
  CHECK(own.units >= 3'800);
}

TEST_CASE("what a keyspace owes stays where the table that owes it gets a throughput of its own") {
  LimitedCluster limited(5, 4, {{1000, true}, {1000, true}});
  limited.overdraw();
  limited.alter(0, {1000, false});
  Counts later;
  ClientPlan plan;
  plan.obeys_retry = false;
  plan.until_us = limited.in(20 * kSecondUs);
  // All look anew who holds what.
  limited.cluster[limited.holder("key", 1) == 3 ? 2 : 3].kill();
  limited.start(plan, 1, later, 1);
  limited.cluster.world().run_for(8 * kSecondUs);
  CHECK(later.admitted == 0);
  limited.cluster.world().run_for(4 * kSecondUs);
  CHECK(later.admitted > 0);
}

TEST_CASE("a node that has long kept a bucket is given nothing by one that thought it did") {
  LimitedCluster limited(14, 4, {{400, false}});
  limited.cluster.world().run_for(20 * kSecondUs);
  const auto& tablet = limited.table().tablets.tablets().front();
  const size_t holder = limited.holder("key");
  replication::ReturnRequest request{limited.table().incarnation, tablet.id, tablet.range.end};
  request.returned = 4'000 * kWeightOfUnit;
  request.is_handed_over = true;
  SimNode& other = limited.cluster[(holder + 1) % 4];
  bool done = false;
  other.spawn(return_now(&other, limited.cluster[holder].node().self(), request, &done));
  REQUIRE(limited.cluster.world().run_until([&] { return done; }, kSecondUs));
  Counts counts;
  ClientPlan plan;
  plan.until_us = limited.in(5 * kSecondUs);
  limited.start(plan, 10, counts);
  limited.cluster.world().run_for(6 * kSecondUs);
  CHECK(counts.units <= 400 + 2'000 + 4 * 50);
  CHECK(counts.units >= 2'000);
}

TEST_CASE("shards that go on without the node that lends have even parts") {
  SimCluster cluster(15, 4, 4, 4);
  REQUIRE(cluster.form());
  cluster.world().run_for(kSecondUs);
  replication::SchemaChange change;
  change.new_tables.push_back(table_t());
  change.new_tables.back().initial_tablets = 1;
  change.new_tables.back().throughput = {800, false};
  bool done = false;
  cluster[0].spawn(change_schema_now(&cluster[0], std::move(change), &done));
  REQUIRE(cluster.world().run_until([&] { return done; }, 20 * kSecondUs));
  const replication::MetaSnapshot state = cluster[0].state();
  const replication::TableInfo& table = *state->tables.begin()->second;
  const HostId holder = replication::holder_of(*state, cluster[0].node().meta(), table,
                                               table.tablets.find(partitioner::position_of("key")));
  Counts counts;
  counts.by_client.resize(4 * 4 * 4);
  ClientPlan plan;
  plan.units = 1;
  plan.until_us = cluster.world().now_us() + 20 * kSecondUs;
  for (size_t i = 0; i < counts.by_client.size(); ++i)
    if (cluster[i / 16].node().self() != holder)
      cluster[i / 16].spawn(client_of_shard(&cluster[i / 16], static_cast<uint32_t>(i % 4),
                                            table.incarnation, plan, i, &counts));
  cluster.world().run_for(5 * kSecondUs);
  const uint64_t before = counts.units;
  for (size_t i = 0; i < 4; ++i)
    if (cluster[i].is_up() && cluster[i].node().self() == holder) cluster[i].kill();
  cluster.world().run_for(3 * kSecondUs);
  CHECK(counts.units - before <= 3 * 800 + 600);
  CHECK(counts.units - before >= 1'500);
}

TEST_CASE("the throughput goes on when the node that lends is killed or cut off") {
  for (const bool killed : {true, false}) {
    INFO("killed=" << killed);
    LimitedCluster limited(6, 4, {{1000, false}});
    const size_t holder = limited.holder("key");
    const size_t other = (holder + 1) % 4;
    Counts counts;
    ClientPlan plan;
    plan.until_us = limited.in(22 * kSecondUs);
    for (int i = 0; i < 20; ++i) {
      counts.by_client.push_back(0);
      limited.cluster[other].spawn(client(&limited.cluster[other], limited.table().incarnation,
                                          plan, counts.by_client.size() - 1, &counts));
    }
    limited.cluster.world().run_for(2 * kSecondUs);
    const uint64_t before = counts.units;
    if (killed)
      limited.cluster[holder].kill();
    else
      limited.cluster.isolate(holder);
    limited.cluster.world().run_for(10 * kSecondUs);
    CHECK(counts.units - before <= 10'000 + 2'500);
    CHECK(counts.units - before >= 8'000);
    limited.cluster.world().run_for(10 * kSecondUs);
    CHECK(counts.units - before <= 20'000 + 3'500);
    CHECK(counts.units - before >= 17'500);
  }
}

TEST_CASE("a throughput counts from when it is set, and no longer when it is taken away") {
  LimitedCluster limited(7, 4, {{}});
  auto& gate = limited.cluster[1].data().throughput();
  CHECK(!gate.limits(limited.table().incarnation));
  limited.alter(0, {400, false});
  limited.cluster.world().run_for(kSecondUs);
  CHECK(gate.limits(limited.table().incarnation));
  Counts counts;
  ClientPlan plan;
  plan.until_us = limited.in(30 * kSecondUs);
  limited.start(plan, 10, counts);
  limited.cluster.world().run_for(10 * kSecondUs);
  CHECK(counts.units <= 4'400 + 4 * 50);
  limited.alter(0, {4'000, false});
  const uint64_t before = counts.units;
  limited.cluster.world().run_for(10 * kSecondUs);
  CHECK(counts.units - before >= 36'000);
  CHECK(counts.units - before <= 40'000 + 4 * 500);
  limited.alter(0, {});
  limited.cluster.world().run_for(kSecondUs);
  CHECK(!gate.limits(limited.table().incarnation));
  const uint64_t refused = counts.refused;
  limited.cluster.world().run_for(5 * kSecondUs);
  CHECK(counts.refused == refused);
}

}  // namespace tetrad::simulation
