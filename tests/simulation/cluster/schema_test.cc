// SPDX-License-Identifier: Apache-2.0
// Schema changes through the metadata group while nodes crash and ways are cut.
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "tests/simulation/support/cql_client.h"
#include "tests/simulation/support/sim_cluster.h"

namespace tetrad::simulation {

namespace {

using replication::MetaSnapshot;
using replication::SchemaChange;

TableId table_number(uint64_t number) {
  TableId id;
  for (int i = 0; i < 8; ++i) id.value.octets[15 - i] = static_cast<uint8_t>(number >> (8 * i));
  return id;
}

struct Outcomes {
  int done = 0, succeeded = 0, conflicts = 0, other = 0;
  std::vector<std::string> acknowledged;
  std::vector<std::string> warnings;
  std::string error;  // of the last one that failed otherwise
};

/// Adds object `name` with a table, trying again after a conflict, `deadline_us` for all.
Task<void> add_table(replication::ReplicationNode* node, base::Reactor* reactor, std::string name,
                     uint64_t number, int64_t deadline_us, Outcomes* outcomes) {
  const base::Deadline deadline{reactor->now_us() + deadline_us};
  while (true) {
    const MetaSnapshot state = node->meta().snapshot();
    SchemaChange change;
    change.expected = state->schema_version;
    change.objects.emplace_back(name, "text of " + name);
    SchemaChange::NewTable table;
    table.id = table_number(number);
    table.keyspace = "ks";
    table.name = name;
    change.new_tables.push_back(table);
    Result<void> result =
        co_await node->meta().change_schema(std::move(change), deadline, &outcomes->warnings);
    if (!result && result.error().code == ErrorCode::kConflict) {
      ++outcomes->conflicts;
      continue;
    }
    ++outcomes->done;
    if (result) {
      ++outcomes->succeeded;
      outcomes->acknowledged.push_back(name);
    } else {
      ++outcomes->other;
      outcomes->error = result.error().message;
    }
    co_return;
  }
}

/// What became of a DROP or TRUNCATE.
struct TakenAway {
  std::optional<bool> answered;  // true: without an error
  ErrorCode code = {};
  std::vector<std::string> warnings;
};

Task<void> take_away(replication::ReplicationNode* node, base::Reactor* reactor, uint64_t number,
                     bool truncates, TakenAway* out) {
  const base::Deadline deadline{reactor->now_us() + 15'000'000};
  SchemaChange change;
  change.expected = node->meta().snapshot()->schema_version;
  (truncates ? change.truncated_tables : change.dropped_tables).push_back(table_number(number));
  Result<void> result =
      co_await node->meta().change_schema(std::move(change), deadline, &out->warnings);
  if (!result) out->code = result.error().code;
  out->answered = result.has_value();
}

/// Through the node, within the time.
TakenAway taken_away(SimCluster& cluster, size_t via, uint64_t number, bool truncates,
                     int64_t within_us = 20'000'000) {
  TakenAway out;
  SimNode& node = cluster[via];
  node.spawn(take_away(&node.node(), &node.reactor(), number, truncates, &out));
  cluster.world().run_until([&] { return out.answered.has_value(); }, within_us);
  return out;
}

/// The tables 1 to `count`.
void make_tables(SimCluster& cluster, uint64_t count) {
  Outcomes made;
  for (uint64_t number = 1; number <= count; ++number)
    cluster[0].spawn(add_table(&cluster[0].node(), &cluster[0].reactor(),
                               "table/ks/" + std::to_string(number), number, 20'000'000, &made));
  REQUIRE(cluster.world().run_until([&] { return made.succeeded == static_cast<int>(count); },
                                    30'000'000));
}

void check_states_agree(SimCluster& cluster) {
  const MetaSnapshot first = cluster[0].state();
  Bytes expected;
  replication::encode_meta_state(*first, expected);
  for (size_t i = 1; i < cluster.size(); ++i) {
    Bytes other;
    replication::encode_meta_state(*cluster[i].state(), other);
    CHECK(other == expected);
  }
  std::set<uint32_t> incarnations;
  std::set<uint64_t> tablets;
  for (const auto& [id, table] : first->tables) {
    CHECK(incarnations.insert(table->incarnation.value).second);
    for (const auto& tablet : table->tablets.tablets())
      CHECK(tablets.insert(tablet.id.value).second);
  }
}

bool all_applied(SimCluster& cluster) {
  const auto leader = cluster.leader();
  if (!leader) return false;
  const auto last = cluster[*leader].node().meta_group().driver()->core().last_index();
  for (size_t i = 0; i < cluster.size(); ++i)
    if (cluster[i].node().meta_group().applied_index().value != last) return false;
  return true;
}

}  // namespace

TEST_CASE("a schema change takes under 20 ms on one node and under 100 ms on four") {
  for (const size_t nodes : {1, 4}) {
    SimCluster cluster(3, nodes);
    REQUIRE(cluster.form());
    cluster.world().run_for(2'000'000);
    for (size_t via = 0; via < nodes; ++via) {
      Outcomes outcomes;
      const auto begin_us = cluster.world().now_us();
      cluster[via].spawn(add_table(&cluster[via].node(), &cluster[via].reactor(),
                                   "table/ks/t" + std::to_string(via), via + 1, 5'000'000,
                                   &outcomes));
      REQUIRE(cluster.world().run_until([&] { return outcomes.done == 1; }, 5'000'000));
      CHECK(outcomes.succeeded == 1);
      CHECK(outcomes.warnings.empty());
      CHECK(cluster.world().now_us() - begin_us < (nodes == 1 ? 20'000 : 100'000));
      // Every live node has it when the client hears.
      for (size_t i = 0; i < nodes; ++i)
        CHECK(cluster[i].state()->schema_objects.contains("table/ks/t" + std::to_string(via)));
    }
  }
}

TEST_CASE("concurrent schema changes from all nodes are linear") {
  for (uint64_t seed = 1; seed <= seed_count(6); ++seed) {
    INFO("seed=" << seed);
    SimCluster cluster(seed, 1 + seed % 6, 2);
    REQUIRE(cluster.form());
    std::map<size_t, std::vector<uint64_t>> versions;
    std::vector<std::shared_ptr<void>> subscriptions;
    for (size_t i = 0; i < cluster.size(); ++i) {
      subscriptions.push_back(cluster[i].node().meta().subscribe(
          [&versions, i](const MetaSnapshot& before, const MetaSnapshot& now) {
            if (before->schema_version != now->schema_version)
              versions[i].push_back(now->schema_version.value);
          }));
    }
    Outcomes outcomes;
    constexpr int kEach = 6;
    uint64_t number = 1;
    for (int round = 0; round < kEach; ++round) {
      for (size_t i = 0; i < cluster.size(); ++i) {
        const std::string name = "table/ks/t" + std::to_string(number);
        cluster[i].spawn(add_table(&cluster[i].node(), &cluster[i].reactor(), name, number++,
                                   60'000'000, &outcomes));
      }
    }
    const int wanted = kEach * static_cast<int>(cluster.size());
    REQUIRE(cluster.world().run_until([&] { return outcomes.done == wanted; }, 60'000'000));
    CHECK(outcomes.succeeded == wanted);
    REQUIRE(cluster.world().run_until([&] { return all_applied(cluster); }, 10'000'000));
    check_states_agree(cluster);
    CHECK(cluster[0].state()->tables.size() == static_cast<size_t>(wanted));
    for (size_t i = 0; i < cluster.size(); ++i) {
      CHECK(std::is_sorted(versions[i].begin(), versions[i].end()));
      CHECK(versions[i].size() >= static_cast<size_t>(wanted));
    }
  }
}

TEST_CASE("of two creations of one table exactly one wins") {
  SimCluster cluster(5, 4);
  REQUIRE(cluster.form());
  Outcomes outcomes;
  const MetaSnapshot state = cluster[0].state();
  struct Once {
    static Task<void> create(replication::ReplicationNode* node, SchemaChange change,
                             base::Deadline deadline, Outcomes* outcomes) {
      Result<void> result =
          co_await node->meta().change_schema(std::move(change), deadline, nullptr);
      ++outcomes->done;
      if (result)
        ++outcomes->succeeded;
      else if (result.error().code == ErrorCode::kConflict)
        ++outcomes->conflicts;
    }
  };
  for (size_t i = 0; i < 4; ++i) {
    SchemaChange change;
    change.expected = state->schema_version;
    change.objects.emplace_back("table/ks/t", "by " + std::to_string(i));
    cluster[i].spawn(Once::create(&cluster[i].node(), change,
                                  base::Deadline{cluster.world().now_us() + 5'000'000}, &outcomes));
  }
  REQUIRE(cluster.world().run_until([&] { return outcomes.done == 4; }, 10'000'000));
  CHECK(outcomes.succeeded == 1);
  CHECK(outcomes.conflicts == 3);
}

TEST_CASE("what was acknowledged survives crashes, power cuts and partitions") {
  for (uint64_t seed = 1; seed <= seed_count(30); ++seed) {
    INFO("seed=" << seed);
    const size_t nodes = 1 + seed % 5;
    SimCluster cluster(seed, nodes);
    for (size_t i = 0; i < nodes; ++i) cluster[i].options().raft_snapshot_every = 20;
    REQUIRE(cluster.form());
    cluster.network().options.lost_in_million = 10'000;
    cluster.network().options.slow_one_in = 50;
    base::Random& random = cluster.world().random();
    Outcomes outcomes;
    uint64_t number = 1;
    for (int round = 0; round < 40; ++round) {
      const size_t via = random.below(nodes);
      if (cluster[via].is_up() && cluster[via].is_ready()) {
        const std::string name = "table/ks/t" + std::to_string(number);
        cluster[via].spawn(add_table(&cluster[via].node(), &cluster[via].reactor(), name, number++,
                                     5'000'000, &outcomes));
      }
      cluster.world().run_for(static_cast<int64_t>(random.below(300'000)));
      const size_t victim = random.below(nodes);
      switch (random.below(6)) {
        case 0:
          cluster[victim].kill();
          break;
        case 1:
          cluster[victim].power_cut();
          break;
        case 2:
          cluster.isolate(victim);
          break;
        case 3:
          cluster.network().mend_all();
          break;
        default:
          for (size_t i = 0; i < nodes; ++i)
            if (!cluster[i].is_up() && random.one_in(2)) cluster[i].start();
      }
    }
    cluster.network().mend_all();
    cluster.network().options = NetworkOptions();
    for (size_t i = 0; i < nodes; ++i)
      if (!cluster[i].is_up()) cluster[i].start();
    REQUIRE(cluster.world().run_until([&] { return cluster.is_formed() && all_applied(cluster); },
                                      60'000'000));
    check_states_agree(cluster);
    for (const std::string& name : outcomes.acknowledged)
      CHECK(cluster[0].state()->schema_objects.contains(name));
    for (size_t i = 0; i < nodes; ++i) CHECK_FALSE(cluster[i].fatal().has_value());
  }
}

TEST_CASE("a minority cannot change the schema, and catches up when the way is mended") {
  SimCluster cluster(9, 4);
  REQUIRE(cluster.form());
  cluster.world().run_for(5'000'000);
  const auto leader = cluster.leader();
  REQUIRE(leader);
  cluster.isolate(*leader);
  const size_t other = (*leader + 1) % 4;
  Outcomes cut_off, others;
  cluster[*leader].spawn(add_table(&cluster[*leader].node(), &cluster[*leader].reactor(),
                                   "table/ks/a", 1, 3'000'000, &cut_off));
  cluster[other].spawn(add_table(&cluster[other].node(), &cluster[other].reactor(), "table/ks/b", 2,
                                 20'000'000, &others));
  REQUIRE(
      cluster.world().run_until([&] { return cut_off.done == 1 && others.done == 1; }, 30'000'000));
  CHECK(cut_off.succeeded == 0);
  CHECK(others.succeeded == 1);
  cluster.network().mend_all();
  REQUIRE(cluster.world().run_until([&] { return all_applied(cluster); }, 10'000'000));
  check_states_agree(cluster);
  CHECK_FALSE(cluster[*leader].state()->schema_objects.contains("table/ks/a"));
}

TEST_CASE("without a quorum a schema change is answered before drivers give up") {
  SimCluster cluster(9, 4);
  REQUIRE(cluster.form());
  cluster.world().run_for(5'000'000);
  const auto leader = cluster.leader();
  REQUIRE(leader);
  cluster.isolate(*leader);
  cluster.world().run_for(5'000'000);  // it has seen that the others are away
  Outcomes outcomes;
  cluster[*leader].spawn(add_table(&cluster[*leader].node(), &cluster[*leader].reactor(),
                                   "table/ks/a", 1, 20'000'000, &outcomes));
  CHECK(cluster.world().run_until([&] { return outcomes.done == 1; }, 7'000'000));
  CHECK(outcomes.succeeded == 0);
  // The reason names who is away, by address.
  const std::string expected =
      "the metadata group did not answer in time: 1 of its 3 voters are live; away:";
  CHECK(outcomes.error.starts_with(expected));
  const std::string away = outcomes.error.substr(std::min(outcomes.error.size(), expected.size()));
  int named = 0;
  for (const auto& [host, node] : cluster[*leader].state()->nodes)
    named += away.find(" " + node.address) != std::string::npos ? 1 : 0;
  INFO(outcomes.error);
  CHECK(named == 2);
}

// LOCAL_QUORUM asks no other data centre: as long as a quorum of one serves a table, its rows may be
// read there, and writes acknowledged.
TEST_CASE("a table is truncated when a quorum of each data center refuses what was in it") {
  SimCluster cluster(9, 7);
  for (size_t i = 4; i < 7; ++i) cluster[i].options().data_center = "elsewhere";
  REQUIRE(cluster.form(30'000'000));
  cluster.world().run_for(5'000'000);
  make_tables(cluster, 2);
  REQUIRE(cluster.world().run_until([&] { return all_applied(cluster); }, 10'000'000));
  // Five of seven have it, but one of three elsewhere.
  cluster.isolate(5);
  cluster.isolate(6);
  CHECK(taken_away(cluster, 0, 1, true).answered == false);
  CHECK_FALSE(taken_away(cluster, 0, 2, false).warnings.empty());
  cluster.network().mend_all();
  cluster.world().run_for(5'000'000);
  cluster.isolate(6);
  CHECK(taken_away(cluster, 0, 1, true).answered == true);
}

TEST_CASE(
    "the warning about a replication factor names the data centres, where there are several") {
  SimCluster cluster(9, 3);
  cluster[2].options().data_center = "elsewhere";
  REQUIRE(cluster.form(30'000'000));
  cluster.world().run_for(5'000'000);
  CqlClient client(cluster[0]);
  const auto warned = [&](const std::string& keyspace, const std::string& replication) {
    const auto answer = client.run("CREATE KEYSPACE " + keyspace +
                                   " WITH replication = {'class': '" + replication + "}");
    if (!answer.result) return answer.result.error().message;
    return answer.warnings.empty() ? std::string() : answer.warnings.front();
  };
  const std::string here = cluster[0].options().data_center;
  const std::string begins =
      "Tetrad manages replica sets by itself: every row has up to four replicas in each data "
      "centre, ";
  const std::string ends = " is kept and shown but changes nothing";
  const std::string both =
      begins + "2 in " + here +
      " and 1 in elsewhere with the nodes there are now; the replication factor ";
  CHECK(warned("a", "NetworkTopologyStrategy', '" + here + "': 3, 'elsewhere': 1") ==
        both + "3 of " + here + ends);
  CHECK(warned("b", "NetworkTopologyStrategy', '" + here + "': 3, 'elsewhere': 2") ==
        both + "3 of " + here + " and 2 of elsewhere" + ends);
  CHECK(warned("c", "NetworkTopologyStrategy', '" + here + "': 2, 'elsewhere': 4") == "");
  CHECK(warned("d", "NetworkTopologyStrategy', 'elsewhere': 2") ==
        begins +
            "1 in elsewhere with the nodes there are now; the replication factor 2 of elsewhere" +
            ends);
  CHECK(warned("e", "SimpleStrategy', 'replication_factor': 3") == both + "3" + ends);
}

TEST_CASE("a data centre that is taken from a keyspace while it is lost is warned of") {
  SimCluster cluster(9, 4);
  cluster[3].options().data_center = "elsewhere";
  REQUIRE(cluster.form(30'000'000));
  cluster.world().run_for(5'000'000);
  CqlClient client(cluster[0]);
  const std::string here = cluster[0].options().data_center;
  const auto warned = [&](const std::string& statement) {
    const auto answer = client.run(statement);
    if (!answer.result) return answer.result.error().message;
    return answer.warnings.empty() ? std::string() : answer.warnings.front();
  };
  const std::string both =
      " WITH replication = {'class': 'NetworkTopologyStrategy', '" + here + "': 4, 'elsewhere': 4}";
  const std::string one =
      " WITH replication = {'class': 'NetworkTopologyStrategy', '" + here + "': 4}";
  CHECK(warned("CREATE KEYSPACE a" + both) == "");
  CHECK(warned("ALTER KEYSPACE a" + one) == "");
  CHECK(warned("ALTER KEYSPACE a" + both) == "");
  cluster[3].kill();
  cluster.world().run_for(30'000'000);
  const std::string kept =
      "None of the 1 nodes of data centre elsewhere is live: the keyspace keeps its replicas there "
      "until they are back, or are given up by `tetractl remove-lost-nodes --data-center "
      "elsewhere`";
  CHECK(warned("ALTER KEYSPACE a" + one) == kept);
  CHECK(warned("ALTER KEYSPACE a WITH durable_writes = true") == "");
}

// Of the two that are away no write can be acknowledged and no QUORUM read answered.
TEST_CASE("with two of four replicas away tables are truncated and dropped at once") {
  SimCluster cluster(9, 4);
  REQUIRE(cluster.form());
  cluster.world().run_for(5'000'000);
  make_tables(cluster, 2);
  const auto sets_have = [&](uint64_t number, size_t members) {
    const auto* table = cluster[0].state()->table(table_number(number));
    return std::ranges::all_of(table->tablets.tablets(), [&](const auto& tablet) {
      return tablet.replicas.size() == members && tablet.new_replicas.empty();
    });
  };
  REQUIRE(
      cluster.world().run_until([&] { return sets_have(1, 4) && sets_have(2, 4); }, 30'000'000));
  const size_t leader = *cluster.leader();
  const auto& core = cluster[leader].node().meta_group().driver()->core();
  // The one without a vote, and one with: two votes of three are left.
  std::vector<size_t> gone;
  for (const bool votes : {false, true})
    for (size_t i = 0; i < 4; ++i)
      if (i != leader && core.configuration().is_voter(cluster[i].node().self()) == votes) {
        gone.push_back(i);
        break;
      }
  REQUIRE(gone.size() == 2);
  for (const size_t i : gone) cluster[i].kill();
  cluster.world().run_for(5'000'000);  // that is seen
  const TableIncarnation before = cluster[leader].state()->table(table_number(1))->incarnation;
  for (const bool truncates : {true, false}) {
    const TakenAway out = taken_away(cluster, leader, truncates ? 1 : 2, truncates, 1'000'000);
    CHECK(out.answered == true);
    CHECK(out.warnings.empty());
  }
  for (const size_t i : gone) cluster[i].start();
  REQUIRE(cluster.world().run_until([&] { return all_applied(cluster); }, 30'000'000));
  check_states_agree(cluster);
  CHECK(cluster[gone[0]].state()->table(table_number(1))->incarnation != before);
  CHECK(cluster[gone[0]].state()->table(table_number(2)) == nullptr);
}

TEST_CASE("with three of four replicas away TRUNCATE is refused, and DROP says so") {
  SimCluster cluster(5, 7);
  REQUIRE(cluster.form(30'000'000));
  cluster.world().run_for(5'000'000);
  constexpr uint64_t kTables = 4;
  make_tables(cluster, kTables);
  cluster.world().run_for(10'000'000);
  const size_t leader = *cluster.leader();
  const auto& core = cluster[leader].node().meta_group().driver()->core();
  REQUIRE(core.configuration().voters.size() == 5);
  // Three members that do not have the majority of the votes.
  std::optional<uint64_t> table;
  std::vector<size_t> gone;
  for (uint64_t number = 1; number <= kTables && !table; ++number) {
    for (const auto& tablet :
         cluster[leader].state()->table(table_number(number))->tablets.tablets()) {
      gone.clear();
      size_t votes = 0;
      for (size_t i = 0; i < 7; ++i) {
        const HostId host = cluster[i].node().self();
        const bool is_member = std::ranges::any_of(
            tablet.replicas, [&](const StoreAddress& member) { return member.host == host; });
        const bool has_vote = core.configuration().is_voter(host);
        if (i == leader || !is_member || gone.size() == 3 || (has_vote && votes == 2)) continue;
        votes += has_vote ? 1 : 0;
        gone.push_back(i);
      }
      if (gone.size() == 3 && tablet.replicas.size() == 4) table = number;
      if (table) break;
    }
  }
  REQUIRE(table);
  for (const size_t i : gone) cluster[i].kill();
  cluster.world().run_for(5'000'000);
  const TableIncarnation before = cluster[leader].state()->table(table_number(*table))->incarnation;
  const TakenAway truncated = taken_away(cluster, leader, *table, true, 100'000);
  CHECK(truncated.answered == false);
  CHECK(truncated.code == ErrorCode::kUnavailable);
  CHECK(cluster[leader].state()->table(table_number(*table))->incarnation == before);
  const TakenAway dropped = taken_away(cluster, leader, *table, false, 12'000'000);
  CHECK(dropped.answered == true);
  CHECK(dropped.warnings.size() == 1);
}

TEST_CASE("another shard's front sees what shard 0 sees, and may change the schema") {
  SimCluster cluster(6, 2);
  REQUIRE(cluster.form());
  const SimClock clock(cluster.world());
  SimReactor shard(cluster.world(), clock);
  auto front = std::make_unique<replication::MetaFront>(shard, cluster[1].node().self(),
                                                        cluster[1].node().hub());
  const auto same = [&] { return front->snapshot() == cluster[1].state(); };
  REQUIRE(cluster.world().run_until(same, 1'000'000));
  int heard = 0;
  const auto subscription =
      front->subscribe([&](const MetaSnapshot&, const MetaSnapshot&) { ++heard; });
  struct Change {
    static Task<void> run(replication::MetaFront* front, SchemaChange change,
                          base::Deadline deadline, Outcomes* outcomes) {
      Result<void> result =
          co_await front->change_schema(std::move(change), deadline, &outcomes->warnings);
      ++outcomes->done;
      outcomes->succeeded += result ? 1 : 0;
    }
  };
  base::TaskGroup tasks;
  Outcomes outcomes;
  SchemaChange change;
  change.expected = front->snapshot()->schema_version;
  change.objects.emplace_back("keyspace/a", "text");
  const base::Deadline deadline{cluster.world().now_us() + 5'000'000};
  tasks.spawn(Change::run(front.get(), change, deadline, &outcomes));
  tasks.spawn(Change::run(front.get(), change, deadline, &outcomes));
  REQUIRE(cluster.world().run_until([&] { return outcomes.done == 2; }, 10'000'000));
  CHECK(outcomes.succeeded == 1);
  CHECK(heard > 0);
  CHECK(front->snapshot()->schema_objects.contains("keyspace/a"));
  CHECK(cluster.world().run_until([&] { return front->is_live(cluster[0].node().self()); },
                                  2'000'000));
  cluster[1].kill();
  cluster.world().run_for(2'000'000);
  CHECK(front->snapshot()->schema_objects.contains("keyspace/a"));
}

TEST_CASE("a lost voter is replaced by a learner") {
  SimCluster cluster(4, 4);
  for (size_t i = 0; i < 4; ++i) cluster[i].options().voter_away_us = 3'000'000;
  REQUIRE(cluster.form());
  cluster.world().run_for(3'000'000);
  size_t victim = 4;
  const auto& core = cluster[*cluster.leader()].node().meta_group().driver()->core();
  REQUIRE(core.configuration().voters.size() == 3);
  for (size_t i = 0; i < 4; ++i)
    if (i != *cluster.leader() && core.configuration().is_voter(cluster[i].node().self()))
      victim = i;
  const HostId lost = cluster[victim].node().self();
  cluster[victim].kill();
  CHECK(cluster.world().run_until(
      [&] {
        const auto leader = cluster.leader();
        if (!leader) return false;
        const auto& now = cluster[*leader].node().meta_group().driver()->core().configuration();
        return now.voters.size() == 3 && !now.is_voter(lost);
      },
      20'000'000));
}

TEST_CASE("DROP does not wait for replicas that are away") {
  SimCluster cluster(5);
  for (int i = 0; i < 5; ++i) cluster.add(1, 1).options().data_center = i < 3 ? "east" : "west";
  REQUIRE(cluster.form(30'000'000));
  CqlClient client(cluster[0]);
  for (const char* text :
       {"CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', 'east': 3, "
        "'west': 2}",
        "CREATE TABLE ks.t (k int PRIMARY KEY)", "CREATE TABLE ks.u (k int PRIMARY KEY)"})
    REQUIRE(client.run(text).result.has_value());
  cluster.world().run_for(30'000'000);  // tablets find their places
  const auto whole = client.run("DROP TABLE ks.u");
  CHECK(whole.result.has_value());
  CHECK(whole.warnings.empty());
  cluster[3].kill();
  cluster[4].kill();
  cluster.world().run_for(20'000'000);
  const auto dropped = client.run("DROP TABLE ks.t");
  CHECK(dropped.result.has_value());
  CHECK(dropped.took_us < 2'000'000);
  REQUIRE(dropped.warnings.size() == 1);
  CHECK(dropped.warnings[0].starts_with("It is dropped, but too few of its replicas"));
}

}  // namespace tetrad::simulation
