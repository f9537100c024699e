// SPDX-License-Identifier: Apache-2.0
// Health, readiness and warnings of a cluster that loses nodes.
#include "server/admin/readiness.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/admin_node.h"

namespace tetrad::server {
namespace {

HttpResponse get(tests::AdminNode& node, const std::string& path) {
  return node.ask(*read_http_request("GET", path));
}

}  // namespace

TEST_CASE("a cluster that loses nodes says what it cannot do any more") {
  tests::AdminNode node(4);
  node.cluster.world().run_for(60'000'000);  // the table's replicas find their places
  CHECK(get(node, "/health").body == "serving\n");
  CHECK(get(node, "/ready").body == "ready\n");
  const auto warnings = [&] {
    return nlohmann::json::parse(get(node, "/status").body).at("warnings");
  };
  CHECK(warnings().empty());
  const size_t partitions = nlohmann::json::parse(get(node, "/partitions").body).size();
  CHECK(partitions > 0);

  node.cluster[3].kill();
  node.cluster.world().run_for(30'000'000);
  CHECK(get(node, "/ready").status == 200);
  REQUIRE(warnings().size() == 1);
  CHECK(warnings().at(0) ==
        fmt::format("1 of 4 nodes away: 127.0.0.4; {0} of {0} physical partitions lack a member",
                    partitions));
  CHECK(get(node, "/").body.find("<b>away</b>") != std::string::npos);

  node.cluster[2].kill();
  node.cluster[1].kill();
  node.cluster.world().run_for(30'000'000);
  CHECK(get(node, "/health").status == 200);
  CHECK(get(node, "/health").body == "serving, no quorum\n");
  const auto ready = get(node, "/ready");
  CHECK(ready.status == 503);
  CHECK(ready.body.find("no quorum: 1 of ") != std::string::npos);
  CHECK(ready.body.find(fmt::format("{0} of {0} physical partitions have too few live members",
                                    partitions)) != std::string::npos);

  node.health = "starting";
  CHECK(get(node, "/health").status == 503);
  CHECK(get(node, "/ready").body == "starting\n");
}

TEST_CASE("a node alone whose seeds are of another cluster is not ready, and says how to join") {
  tests::AdminNode node;
  auto& other = node.cluster.add();
  other.options().seeds.clear();
  other.start();
  REQUIRE(node.cluster.world().run_until([&] { return other.is_ready(); }, 10'000'000));
  const auto seeds_are = [&](std::vector<replication::Endpoint> seeds) {
    node.cluster[0].kill();
    node.cluster[0].options().seeds = std::move(seeds);
    node.cluster[0].start();
    node.serve();
    node.cluster.world().run_for(20'000'000);
  };
  const auto warnings = [&] {
    return nlohmann::json::parse(get(node, "/status").body).at("warnings");
  };
  CHECK(get(node, "/ready").body == "ready\n");
  seeds_are({other.endpoint()});
  const auto ready = get(node, "/ready");
  CHECK(ready.status == 503);
  CHECK(ready.body ==
        fmt::format("seed 127.0.0.2:7000 is of another cluster, 'Tetrad' {}; this node is alone in "
                    "'Tetrad' {}: to join the seed's, stop this node, empty its data directory "
                    "(what was written here is lost) and start it again\n",
                    other.state()->cluster_id.to_string(),
                    node.cluster[0].state()->cluster_id.to_string()));
  REQUIRE(warnings().size() == 1);
  CHECK(warnings().at(0).get<std::string>() + "\n" == ready.body);
  CHECK(get(node, "/health").body == "serving\n");
  // One that is a seed itself is where it should be.
  seeds_are({node.cluster[0].endpoint(), other.endpoint()});
  CHECK(get(node, "/ready").body == "ready\n");
  CHECK(warnings().size() == 1);
}

TEST_CASE("nodes tell one another that they ask clients for no password, or mask nothing") {
  tests::AdminNode node(3);
  const auto open = [&] { return node.cluster[0].node().membership().open_hosts(); };
  const auto unmasking = [&] { return node.cluster[0].node().membership().unmasking_hosts(); };
  CHECK(open().empty());
  CHECK(unmasking().empty());
  node.cluster[1].options().shows_masked = true;
  node.cluster[1].kill();
  node.cluster[1].start();
  node.cluster[2].options().is_open = true;
  node.cluster[2].kill();
  node.cluster[2].start();
  node.cluster.world().run_for(10'000'000);
  CHECK(open() == std::vector<HostId>{node.cluster[2].node().self()});
  CHECK(unmasking() == std::vector<HostId>{node.cluster[1].node().self()});
  node.cluster[2].kill();
  node.cluster.world().run_for(30'000'000);
  CHECK(open().empty());
  node.complaints = {"10.0.0.3 asks nobody for a password"};
  const auto warnings = nlohmann::json::parse(get(node, "/status").body).at("warnings");
  CHECK(std::ranges::count(warnings, nlohmann::json(node.complaints[0])) == 1);
}

TEST_CASE("readiness: members that are away are counted by what they are needed for") {
  replication::MetaState state;
  std::vector<HostId> hosts;
  for (uint8_t i = 1; i <= 3; ++i) {
    HostId host;
    host.value.octets[0] = i;
    replication::NodeInfo node;
    node.host = host;
    node.address = fmt::format("10.0.0.{}", i);
    node.state = replication::NodeState::kNormal;
    state.nodes[host] = node;
    hosts.push_back(host);
  }
  const auto live_but = [&](std::vector<HostId> away) {
    return measure_readiness(state, hosts.front(), hosts, true, [away](HostId host) {
      return std::ranges::find(away, host) == away.end();
    });
  };
  CHECK(live_but({}).warnings().empty());
  CHECK(live_but({hosts[0]}).obstacles().empty());
  CHECK(live_but({hosts[0]}).away == std::vector<std::string>{"10.0.0.1"});
  CHECK_FALSE(live_but({hosts[0], hosts[1]}).has_quorum());
  CHECK(live_but({hosts[0], hosts[1]}).obstacles().size() == 1);
  // A node whose disk was lost comes back with another id.
  state.nodes[hosts[1]].address = "10.0.0.1";
  CHECK(live_but({hosts[0]}).replaced == std::vector<HostId>{hosts[0]});
  CHECK(live_but({hosts[0]}).warnings().back() ==
        fmt::format("another node has the address of {0}, which is away: `tetractl remove-node "
                    "{0}` gives its replicas to others",
                    hosts[0].to_string()));
  CHECK(live_but({hosts[0], hosts[1]}).replaced.empty());
  state.nodes[hosts[1]].address = "10.0.0.2";
  CHECK(live_but({hosts[0]}).replaced.empty());
  CHECK(measure_readiness({}, hosts.front(), {}, false, [](HostId) { return true; }).obstacles() ==
        std::vector<std::string>{"this node is in no cluster yet: its log says what it waits for"});
  // Who answers with a refusal is there: nothing is given up, whatever is missing.
  const auto none_speaks = [&](std::vector<HostId> refusing) {
    return measure_readiness(
        state, hosts.front(), hosts, false, [&](HostId host) { return host == hosts.front(); },
        [refusing](HostId host) -> std::string {
          return std::ranges::count(refusing, host) != 0 ? "its secret is another one" : "";
        });
  };
  CHECK(none_speaks({}).obstacles().at(0).find("recover-metadata") != std::string::npos);
  const auto told = none_speaks({hosts[1], hosts[2]}).obstacles();
  REQUIRE(told.size() == 2);
  CHECK(told[0] ==
        "this node and 2 of 3 nodes refuse each other: its secret is another one (10.0.0.2 "
        "10.0.0.3)");
  CHECK(told[1].find("no quorum: 1 of 3") == 0);
  CHECK(told[1].find("tetractl") == std::string::npos);
  CHECK(std::ranges::count(none_speaks({hosts[1]}).warnings(),
                           "this node and 1 of 3 nodes refuse each other: its secret is another "
                           "one (10.0.0.2)") == 1);
  state.nodes[hosts[0]].state = replication::NodeState::kRemoved;
  CHECK(live_but({hosts[0]}).nodes == 2);
  CHECK(live_but({hosts[0]}).away.empty());
  CHECK(measure_readiness(state, hosts.front(), hosts, false, [](HostId) {
          return true;
        }).obstacles() == std::vector<std::string>{"the metadata group is choosing a leader"});
}

}  // namespace tetrad::server
