// SPDX-License-Identifier: Apache-2.0
// The admin port's routes, over a simulated node.
#include <fstream>
#include <set>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/admin_node.h"

namespace tetrad::server {
namespace {

HttpResponse ask(tests::AdminNode& node, const std::string& method, const std::string& target) {
  auto request = read_http_request(method, target);
  INFO(target);
  REQUIRE(request);
  if (method == "POST") request->token = "secret";
  return node.ask(*request);
}

std::string error_of(const HttpResponse& response) {
  return nlohmann::json::parse(response.body).at("error");
}

/// The simulated table has no schema; orders that name it want one.
void describe_table(tests::AdminNode& node) {
  replication::SchemaChange change;
  change.objects = {{"keyspace/ks", "the keyspace"},
                    {"table/ks/t", "the table"},
                    {"role/ks", "a role of that name"}};
  bool done = false;
  node.cluster[0].spawn(simulation::change_schema_now(&node.cluster[0], std::move(change), &done));
  REQUIRE(node.cluster.world().run_until([&] { return done; }, 10'000'000));
}

/// What it is asked so that it answers.
std::string example_of(const AdminService::Route& route) {
  const std::string path(route.path);
  if (path == "/cidr-groups-of") return path + "?address=10.0.0.1";
  return path == "/endpoints" ? path + "?keyspace=ks&table=t&key=1" : path;
}

}  // namespace

TEST_CASE("admin routes: each answers its method, and no other") {
  tests::AdminNode node;
  std::set<std::string_view> paths;
  for (const auto& route : AdminService::routes()) {
    CAPTURE(route.path);
    CHECK(paths.insert(route.path).second);
    const std::string other = route.method == "GET" ? "POST" : "GET";
    CHECK(ask(node, other, std::string(route.path)).status == 405);
    if (route.method != "GET") continue;
    const auto answer = ask(node, "GET", example_of(route));
    CHECK(answer.status == 200);
    CHECK(answer.body.empty() == (route.path == "/metrics"));  // nothing is registered here
  }
  CHECK(ask(node, "GET", "/nothing").status == 404);
  CHECK(error_of(ask(node, "GET", "/ring?verbose=1")) == "/ring takes no parameter verbose");
  CHECK(ask(node, "GET", "/health").body == "serving\n");
  node.complaints = {"the schema of table a.b does not read: no"};  // serves all the same
  CHECK(ask(node, "GET", "/health").status == 200);
  CHECK(ask(node, "GET", "/health").body == "serving\nthe schema of table a.b does not read: no\n");
  node.health = "starting";
  CHECK(ask(node, "GET", "/health").status == 503);
}

TEST_CASE("admin routes: each order is in the audit log, and no fact") {
  tests::AdminNode node;
  const auto order = [&](const std::string& target, const std::string& token) {
    node.trail.records.clear();
    auto request = read_http_request("POST", target);
    REQUIRE(request);
    request->token = token;
    request->client_address = "10.0.0.9";
    request->client_port = 51234;
    node.ask(*request);
    return node.trail.records;
  };
  size_t orders = 0;
  for (const auto& route : AdminService::routes()) {
    CAPTURE(route.path);
    if (route.access != AdminService::Access::kOrder) {
      node.trail.records.clear();
      ask(node, "GET", example_of(route));
      CHECK(node.trail.records.empty());
      continue;
    }
    ++orders;
    // What it does not take is not recorded: nobody knows what it is.
    const auto records = order(std::string(route.path) + "?password=sekret", "secret");
    REQUIRE(records.size() == 1);
    CHECK(records[0].subject.category == cql::AuditCategory::kAdmin);
    CHECK(records[0].subject.type == "ORDER");
    CHECK(records[0].user == "token");
    CHECK(records[0].client_address == "10.0.0.9");
    CHECK(records[0].client_port == 51234);
    CHECK(records[0].text == route.path.substr(1));
    CHECK(records[0].error == fmt::format("{} takes no parameter password", route.path));
    const auto refused = order(std::string(route.path), "sekret");
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].subject.category == cql::AuditCategory::kAuth);
    CHECK(refused[0].subject.type == "UNAUTHORIZED_ATTEMPT");
    CHECK(refused[0].user.empty());
    CHECK(refused[0].text == route.path.substr(1));
    CHECK(refused[0].error.starts_with("orders carry the content of "));
    CHECK(refused[0].error.find("sekret") == std::string::npos);
  }
  CHECK(orders > 25);
  CHECK(order("/drain", "").empty());  // tetractl asks so where the token is
  auto records = order("/timeout?ms=2500&type=read", "secret");
  REQUIRE(records.size() == 1);
  CHECK(records[0].text == "timeout type='read' ms='2500'");
  CHECK(records[0].error.empty());
  records = order("/log-level?level=no'ne", "secret");
  REQUIRE(records.size() == 1);
  CHECK(records[0].text == "log-level level='no''ne'");
  CHECK_FALSE(records[0].error.empty());
  // The order may be what makes room for the log; who may not give it adds nothing to what waits.
  node.trail.is_full = true;
  CHECK(order("/timeout?ms=2400&type=read", "secret").size() == 1);
  CHECK(node.controls.read_ms == 2400);
  CHECK(order("/drain", "sekret").empty());
}

TEST_CASE("admin routes: who may give no orders cannot fill the audit log") {
  tests::AdminNode node;
  const auto refuse = [&](const std::string& target) {
    auto request = read_http_request("POST", target);
    REQUIRE(request);
    request->token = "sekret";
    node.ask(*request);
  };
  refuse("/setting?name=" + std::string(60'000, 'x'));
  REQUIRE(node.trail.records.size() == 1);
  CHECK(node.trail.records[0].text.size() == 203);
  CHECK(node.trail.records[0].text.ends_with("xxx..."));
  for (int i = 0; i < 100; ++i) refuse("/drain");
  CHECK(node.trail.records.size() == 60);
  node.cluster.world().run_for(60'000'000);
  for (int i = 0; i < 2; ++i) refuse("/drain");
  REQUIRE(node.trail.records.size() == 62);
  CHECK(node.trail.records[60].error.ends_with("; 41 before it are not recorded"));
  CHECK(node.trail.records[61].error == node.trail.records[59].error);
  // Orders are not counted.
  for (int i = 0; i < 100; ++i) {
    auto request = read_http_request("POST", "/timeout?ms=2500&type=read");
    REQUIRE(request);
    request->token = "secret";
    node.ask(*request);
  }
  CHECK(node.trail.records.size() == 162);
}

TEST_CASE("admin routes: an order that the end of the node cuts off is in the audit log") {
  tests::AdminNode node;
  auto request = read_http_request("POST", "/flush");
  REQUIRE(request);
  request->token = "secret";
  node.service->handle(*request, [](const HttpResponse&) {});
  REQUIRE(node.trail.records.empty());
  node.service.reset();
  REQUIRE(node.trail.records.size() == 1);
  CHECK(node.trail.records[0].text == "flush");
  CHECK(node.trail.records[0].error == "the node ended before the order did");
}

TEST_CASE("admin routes: orders are refused with the reason, and carried out") {
  tests::AdminNode node;
  const auto order = [&](const std::string& target) { return ask(node, "POST", target); };
  CHECK(order("/split?id=x").status == 400);
  CHECK(error_of(order("/split?id=99")) == "there is no partition 99");
  CHECK(error_of(order("/repair?keyspace=none")) == "there is no keyspace none");
  CHECK(error_of(order("/remove-node?host=7")) ==
        "'7' is no host id and no address of a node; `tetractl status` lists both");
  CHECK(order("/decommission").status == 409);      // the only node
  for (const char* cancel : {"", "false", "TRUE"})  // none asks the node to leave
    CHECK(order(std::string("/decommission?cancel=") + cancel).status == 400);
  for (const char* force : {"", "false", "1"})
    CHECK(order(std::string("/decommission?force=") + force).status == 400);
  CHECK(order("/log-level?level=loud").status == 400);
  CHECK(order("/log-level?level=warn").status == 200);
  CHECK(order("/flush").status == 200);
  CHECK(order("/compact").status == 200);
  CHECK(error_of(order("/compact?keyspace=none")) == "there is no keyspace none");
  CHECK(error_of(order("/flush?keyspace=none")) == "there is no keyspace none");
  CHECK(error_of(order("/flush?tables=t")) == "tables are named with their keyspace");
  CHECK(order("/setting?name=x&value=1").status == 400);
  CHECK(order("/setting?name=max_logical_partition_mb&value=0").status == 400);
  CHECK(order("/setting?name=max_logical_partition_mb&value=7").status == 200);
  const auto planned = nlohmann::json::parse(ask(node, "GET", "/rebalance-plan").body);
  CHECK(planned.at("moves").empty());  // one node has nobody to give to
  CHECK(planned.at("bytes") == 0);
  const auto described = nlohmann::json::parse(ask(node, "GET", "/describe-cluster").body);
  CHECK(described.at("settings").at("max_logical_partition_mb") == "7");
  const auto& of_schema = described.at("schema_nodes");
  CHECK(of_schema.at("current").size() == 1);
  CHECK(of_schema.at("older").empty());
  CHECK(of_schema.at("unreachable").empty());
  for (const char* times : {"1", "2"}) {
    CHECK(order("/rebalance").status == 200);
    CHECK(node.cluster[0].state()->settings.at(replication::kSettingBalanceOrders) == times);
  }
}

TEST_CASE("admin routes: reading certificates again answers what came of it") {
  tests::AdminNode node;
  const auto reload = [&] { return ask(node, "POST", "/reload-certificates"); };
  CHECK(reload().status == 409);  // without any
  node.certificates = {"clients: node.crt", "nodes: node.crt"};
  CHECK(reload().status == 200);
  CHECK(nlohmann::json::parse(reload().body).at("certificates").size() == 2);
  node.certificates_well = false;
  CHECK(reload().status == 500);
  CHECK(error_of(reload()) == "clients: node.crt\nnodes: node.crt");
}

TEST_CASE("admin routes: the parts of the ring that nodes own are those of a keyspace's tables") {
  tests::AdminNode node(3);
  const auto nodes = nlohmann::json::parse(ask(node, "GET", "/status").body).at("nodes");
  REQUIRE(nodes.size() == 3);
  for (const auto& one : nodes) {
    CHECK(one.at("owns").get<double>() == Approx(1.0));  // of one table, which all three have
    CHECK(one.at("tokens") == 16);
  }
  CHECK(error_of(ask(node, "GET", "/status?keyspace=none")) == "there is no keyspace none");
}

TEST_CASE(
    "admin routes: status shows the last load of a node that is down, and nothing of its stores") {
  tests::AdminNode node(3);
  const HostId host = node.cluster[2].node().self();
  const auto row = [&] {
    const auto nodes = nlohmann::json::parse(ask(node, "GET", "/status").body).at("nodes");
    const auto is_it = [&](const auto& one) { return one.at("host_id") == host.to_string(); };
    return *std::ranges::find_if(nodes, is_it);
  };
  const auto set_bytes = [&](uint64_t bytes, size_t but = 0) {
    const auto state = node.cluster[0].state();
    const auto& tablets = state->tables.begin()->second->tablets.tablets();
    for (size_t i = but; i < tablets.size(); ++i)
      node.cluster[0].node().meta_group().set_tablet_bytes(tablets[i].id, bytes);
    return tablets.size() * bytes;
  };
  const auto is_live = [&] { return node.cluster[0].node().meta().is_live(host); };
  CHECK(row().at("bytes").is_null());  // nobody has said anything yet
  REQUIRE(node.cluster.world().run_until(is_live, 60'000'000));
  set_bytes(1'000, 1);
  CHECK(row().at("bytes").is_null());  // nor has everybody: a part is not its load
  uint64_t bytes = set_bytes(1'000);
  CHECK(row().at("bytes") == bytes);
  CHECK(row().at("stores") == "serving");
  node.cluster[2].kill();
  REQUIRE(node.cluster.world().run_until([&] { return !is_live(); }, 60'000'000));
  set_bytes(9'000'000);  // what its peers report goes on to grow
  CHECK(row().at("live") == false);
  CHECK(row().at("stores").is_null());
  CHECK(row().at("bytes") <= bytes);  // or less, where they reported meanwhile
  node.cluster[2].start();
  REQUIRE(node.cluster.world().run_until(is_live, 60'000'000));
  bytes = set_bytes(5'000);
  CHECK(row().at("bytes") == bytes);
  CHECK(row().at("stores") == "serving");
}

TEST_CASE("admin routes: the keys that get most work are told for all, a keyspace or a table") {
  tests::AdminNode node;
  describe_table(node);
  node.controls.hot = {{"ks", "t", "a:1", 4, -7, 900, 100, 0.5},
                       {"other", "t", "\xff", 5, 8, 0, 400.5, 0.25}};
  const auto keys_of = [&](const std::string& target) {
    return nlohmann::json::parse(ask(node, "GET", target).body).at("hot_keys");
  };
  const auto all = keys_of("/hot-keys");
  REQUIRE(all.size() == 2);
  CHECK(all.at(0).at("key") == "a:1");
  CHECK(all.at(0).at("reads_ru_per_s") == 900);
  CHECK(all.at(0).at("token") == -7);
  CHECK(all.at(1).at("writes_ru_per_s") == 400.5);
  CHECK(keys_of("/hot-keys?keyspace=ks").size() == 1);
  CHECK(keys_of("/hot-keys?keyspace=ks&table=t").at(0).at("share") == 0.5);
  CHECK(error_of(ask(node, "GET", "/hot-keys?keyspace=none")) == "there is no keyspace none");
  CHECK(error_of(ask(node, "GET", "/hot-keys?keyspace=ks&table=no")) == "there is no table ks.no");
}

TEST_CASE("admin routes: clients are let in, kept out and listed by order") {
  tests::AdminNode node;
  const auto info = [&] { return nlohmann::json::parse(ask(node, "GET", "/info").body); };
  const auto warnings = [&] {
    return nlohmann::json::parse(ask(node, "GET", "/status").body).at("warnings");
  };
  CHECK(ask(node, "POST", "/binary").status == 400);
  CHECK(ask(node, "POST", "/binary?running=no").status == 400);
  CHECK(info().at("native_transport_active") == true);
  CHECK(ask(node, "POST", "/binary?running=false").status == 200);
  CHECK(info().at("native_transport_active") == false);
  CHECK(ask(node, "GET", "/ready").status == 503);
  REQUIRE(warnings().size() == 1);
  CHECK(warnings().at(0).get<std::string>().find("enablebinary") != std::string::npos);
  CHECK(ask(node, "POST", "/binary?running=true").status == 200);
  CHECK(ask(node, "GET", "/ready").status == 200);
  CHECK(ask(node, "POST", "/drain").status == 200);
  CHECK_FALSE(node.controls.serves);
  node.controls.is_stopping = true;
  CHECK(ask(node, "POST", "/drain").status == 409);
  node.controls.connected = {{"10.0.0.7", "", "ks", "driver\xFF", "1", 4711, 5, false, 9}};
  const auto clients = nlohmann::json::parse(ask(node, "GET", "/clients").body).at("clients");
  REQUIRE(clients.size() == 1);
  CHECK(clients.at(0).at("user") == "anonymous");
  CHECK(clients.at(0).at("requests") == 9);
}

TEST_CASE("admin routes: timeouts and the part that is traced are changed within bounds") {
  tests::AdminNode node;
  const auto info = [&] { return nlohmann::json::parse(ask(node, "GET", "/info").body); };
  CHECK(ask(node, "POST", "/timeout?type=read").status == 400);
  CHECK(ask(node, "POST", "/timeout?type=read&ms=1s").status == 400);
  CHECK(error_of(ask(node, "POST", "/timeout?type=x&ms=1")) == "no such type");
  CHECK(ask(node, "POST", "/timeout?type=read&ms=77").status == 200);
  CHECK(info().at("timeouts_ms").at("read") == 77);
  for (const char* wrong : {"", "x", "-0.1", "1.1", "nan", "1x"})
    CHECK(ask(node, "POST", "/trace-probability?probability=" + std::string(wrong)).status == 400);
  CHECK(info().at("trace_probability") == 0);
  CHECK(ask(node, "POST", "/trace-probability?probability=0.25").status == 200);
  CHECK(info().at("trace_probability") == 0.25);
  CHECK(info().at("start_number") == 7);
  CHECK(info().at("tokens").size() == 16);
  CHECK(info().at("hint_window_ms") == 10'800'000);
  CHECK(info().at("default_replication_factor") == 1);
  CHECK(info().at("data_directory") == "/data");
  CHECK(info().at("seeds") == nlohmann::json({"10.0.0.1:7000", "db2.example.com:7000"}));
}

TEST_CASE("admin routes: snapshots are taken of what is named, listed and cleared") {
  tests::AdminNode node;
  describe_table(node);
  const auto order = [&](const std::string& target) { return ask(node, "POST", target); };
  const auto rows = [&] {
    return nlohmann::json::parse(ask(node, "GET", "/snapshots").body).at("snapshots");
  };
  for (const char* wrong :
       {"tag=a/b", "tag=..", "ttl=1", "ttl=59s", "ttl=x", "ttl=99999999999999999999s",
        "ttl=18446744073709551615d", "skip_flush=maybe", "keyspaces=ks&tables=ks.t", "tables=t",
        "tables=.t", "tables=ks."})
    CHECK(order("/snapshot?" + std::string(wrong)).status == 400);
  CHECK(error_of(order("/snapshot?keyspaces=none")) == "there is no keyspace none");
  CHECK(error_of(order("/snapshot?tables=ks.none")) == "there is no table ks.none");
  CHECK(rows().empty());
  CHECK(order("/snapshot?tag=one&keyspaces=ks").status == 200);
  CHECK(order("/snapshot?tag=two&tables=ks.t&ttl=1h&skip_flush=true").status == 200);
  CHECK(order("/snapshot").status == 200);  // named after the time
  CHECK(order("/snapshot?tag=one").status == 409);
  REQUIRE(rows().size() == 3);
  int expiring = 0;
  for (const auto& row : rows()) {
    CHECK(row.at("keyspace") == "ks");
    CHECK(row.at("table") == "t");
    if (row.contains("expires_ms"))
      expiring +=
          row.at("expires_ms").get<int64_t>() - row.at("created_ms").get<int64_t>() == 3'600'000;
  }
  CHECK(expiring == 1);
  CHECK(error_of(order("/clear-snapshot")) == "Specify snapshot name or --all");
  CHECK(order("/clear-snapshot?tag=one&all=true").status == 400);
  CHECK(order("/clear-snapshot?tag=../ks").status == 400);
  CHECK(order("/clear-snapshot?tag=one").status == 200);
  CHECK(rows().size() == 2);
  CHECK(order("/clear-snapshot?all=true&keyspaces=other").status == 200);
  CHECK(rows().size() == 2);
  CHECK(order("/clear-snapshot?all=true").status == 200);
  CHECK(rows().empty());
}

TEST_CASE("a snapshot keeps the schema, ranges and incarnations that a restore needs") {
  tests::AdminNode node(3);
  describe_table(node);
  REQUIRE(ask(node, "POST", "/snapshot?tag=one").status == 200);
  std::ifstream file(node.data_directory + "/snapshots/one/manifest.json");
  const auto manifest = nlohmann::json::parse(file);
  const auto state = node.cluster[0].state();
  const auto& table = *state->tables.begin()->second;
  CHECK(manifest.at("schema") ==
        nlohmann::json({{"keyspace/ks", "the keyspace"}, {"table/ks/t", "the table"}}));
  REQUIRE(manifest.at("tables").size() == 1);
  const auto& kept = manifest.at("tables").at(0);
  CHECK(kept.at("incarnation") == table.incarnation.value);
  CHECK(kept.at("id") == table.id.to_string());
  REQUIRE(kept.at("partitions").size() == table.tablets.tablets().size());
  CHECK(kept.at("partitions").at(0).at("start").at(0) ==
        table.tablets.tablets().front().range.start.token);
  CHECK(kept.at("partitions").at(0).at("replicas").size() == 3);
  CHECK(manifest.at("node").at("tokens").size() == 16);
  CHECK(manifest.at("cluster").at("id") == state->cluster_id.to_string());
  CHECK(manifest.at("stores").size() == 1);
}

TEST_CASE("admin routes: groups of addresses are made within bounds, and dropped") {
  tests::AdminNode node;
  const auto update = [&](const std::string& name, size_t count) {
    std::string target = "/update-cidr-group?name=" + name + "&cidrs=";
    for (size_t i = 0; i < count; ++i)
      target += fmt::format("{}10.{}.{}.0/24", i == 0 ? "" : ",", i / 256, i % 256);
    return ask(node, "POST", target);
  };
  for (const char* name : {"a", "b"}) CHECK(update(name, 4'096).status == 200);
  CHECK(update("c", 1'808).status == 200);
  CHECK(error_of(update("d", 1)) == "there are 10000 CIDRs at most in all groups, not 10001");
  CHECK(update("c", 1'807).status == 200);  // its own do not count twice
  CHECK(update("d", 1).status == 200);
  CHECK(ask(node, "POST", "/drop-cidr-group?name=a").status == 200);
  CHECK(nlohmann::json::parse(ask(node, "GET", "/cidr-groups").body).at("groups") ==
        nlohmann::json({"b", "c", "d"}));
}

TEST_CASE("admin routes: endpoints are the replicas of the key's physical partition") {
  tests::AdminNode node(3);
  const auto asked =
      nlohmann::json::parse(ask(node, "GET", "/endpoints?keyspace=ks&table=t&key=1").body);
  CHECK(asked.at("endpoints").size() == 3);
  CHECK(ask(node, "GET", "/endpoints?keyspace=ks&table=none&key=1").status == 404);
  CHECK(ask(node, "GET", "/endpoints?key=1").status == 404);
}

TEST_CASE("admin routes: files are counted by the keys that they are encrypted with") {
  tests::AdminNode node;
  const auto asked = nlohmann::json::parse(ask(node, "GET", "/disk-encryption").body);
  CHECK(asked.at("key_of_new_files") == "k2");
  REQUIRE(asked.at("keys").size() == 2);
  CHECK(asked.at("keys")[0] ==
        nlohmann::json({{"key", "k1"}, {"new_files", false}, {"files", 3}, {"bytes", 5000}}));
  CHECK(asked.at("keys")[1].at("new_files") == true);
  node.encrypted = fail(ErrorCode::kIo, "cannot read the folder");
  CHECK(ask(node, "GET", "/disk-encryption").status == 500);
}

TEST_CASE("admin routes: who may ask what") {
  using Access = AdminService::Access;
  tests::AdminNode node;
  for (const auto& route : AdminService::routes()) {
    CAPTURE(route.path);
    CHECK((route.access == Access::kOrder) == (route.method == "POST"));
    const auto status_of = [&](auto change) {
      HttpRequest request = *read_http_request(route.method, example_of(route));
      request.host = "127.0.0.1:9180";
      change(request);
      return node.ask(request).status;
    };
    const bool is_public = route.access == Access::kPublic, is_order = route.method == "POST";
    CHECK(status_of([](auto& request) { request.outside = true; }) == (is_public ? 200 : 403));
    CHECK(status_of([](auto& request) {
            request.host = "evil.example";
            request.token = "secret";
          }) == (is_public ? 200 : 403));
    CHECK(status_of([](auto&) {}) == (is_order ? 401 : 200));
    if (!is_order) continue;
    CHECK(status_of([](auto& request) { request.token = "secreT"; }) == 401);
    CHECK(status_of([](auto& request) { request.token = "secret2"; }) == 401);
    CHECK(status_of([](auto& request) {
            request.token = "secret";
            request.origin = "http://evil.example";
          }) == 403);
    CHECK(status_of([](auto& request) {
            request.token = "secret";
            request.query["unknown"] = "x";
          }) == 400);
  }
  const auto unasked = read_http_request("POST", "/flush");
  CHECK(nlohmann::json::parse(node.ask(*unasked).body).at("token_file") == "/data/admin_token");
}

TEST_CASE("a repair by hand follows a table whose replica set grows meanwhile") {
  tests::AdminNode node(3);
  const auto members = [&] {
    return node.cluster[0]
        .state()
        ->tables.begin()
        ->second->tablets.tablets()
        .front()
        .replicas.size();
  };
  CHECK(members() == 3);
  node.cluster.world().run_for(5'000'000);
  node.cluster.add();
  node.cluster[3].start();
  int repairs = 0, repaired = 0;
  while (members() < 4) {
    REQUIRE(++repairs < 10'000);
    const auto answer = ask(node, "POST", "/repair");
    INFO(answer.body);
    REQUIRE(answer.body.find("changed") == std::string::npos);
    repaired += answer.status == 200;  // a member that is starting is away for a moment
  }
  CHECK(repaired > 0);
  node.cluster[3].kill();
  node.cluster.world().run_for(30'000'000);
  const auto answer = ask(node, "POST", "/repair");
  CHECK(answer.status == 500);
  CHECK(error_of(answer).ends_with("; away: 127.0.0.4"));
}

namespace {

/// Power cuts of three nodes with a table: whom the service asks is the first.
struct CutNodes {
  CutNodes() : node(3) {
    for (size_t i = 0; i < 3; ++i) node.cluster[i].clock_skew_max_us = 0;
    run_s(10);
  }
  void run_s(int64_t seconds) { node.cluster.world().run_for(seconds * 1'000'000); }
  void cut(const std::vector<size_t>& who, const std::vector<size_t>& come_back) {
    for (const size_t one : who) {
      if (one == 0) node.service.reset();
      node.cluster[one].power_cut();
    }
    for (const size_t one : come_back) node.cluster[one].start();
    REQUIRE(node.cluster.world().run_until(
        [&] {
          for (const size_t one : come_back)
            if (!node.cluster[one].is_ready()) return false;
          return true;
        },
        30'000'000));
    if (node.service == std::nullopt) node.serve();
    run_s(1);
  }
  std::string health() { return ask(node, "GET", "/health").body; }
  std::string warnings() {
    return nlohmann::json::parse(ask(node, "GET", "/status").body).at("warnings").dump();
  }
  HttpResponse recover() { return ask(node, "POST", "/recover?loss=accepted"); }

  tests::AdminNode node;
};

}  // namespace

TEST_CASE("stores that a power cut has put behind are named, own ones and those of others") {
  CutNodes nodes;
  CHECK(nodes.health() == "serving\n");
  nodes.cut({1}, {1});
  CHECK(nodes.health() == "serving\n");
  CHECK(nodes.warnings().find("store 0 of 127.0.0.2 is behind after a power cut: it answers no "
                              "read until it has fetched") != std::string::npos);
  nodes.cut({0}, {0});
  CHECK(nodes.health().starts_with("serving\nstore 0 is behind after a power cut"));
  nodes.run_s(30);
  CHECK(nodes.health() == "serving\n");
  CHECK(nodes.warnings() == "[]");
}

TEST_CASE("what can still be fetched after a power cut is not given up") {
  CutNodes nodes;
  CHECK(ask(nodes.node, "POST", "/recover").status == 400);
  CHECK(nodes.recover().status == 409);
  CHECK(error_of(nodes.recover()).starts_with("no store of this node is behind"));
  nodes.cut({0}, {0});
  CHECK(error_of(nodes.recover()).find("can still be fetched") != std::string::npos);
  nodes.run_s(30);
  CHECK(nodes.health() == "serving\n");
}

TEST_CASE("after a cut of all what an absent member may have is given up by order only") {
  CutNodes nodes;
  nodes.cut({0, 1, 2}, {0, 1});
  nodes.run_s(60);
  CHECK(nodes.health().find("from 127.0.0.3, which it waits for") != std::string::npos);
  const HttpResponse given_up = nodes.recover();
  INFO(given_up.body);
  REQUIRE(given_up.status == 200);
  const auto lost = nlohmann::json::parse(given_up.body).at("may_have_lost").at(0);
  CHECK(lost.at("store") == 0);
  CHECK(lost.at("count") == 1);
  CHECK(lost.at("partitions").at(0).get<std::string>().find("physical partition") !=
        std::string::npos);
  nodes.run_s(20);
  CHECK(nodes.health() == "serving\n");
}

TEST_CASE("after a cut of all who come back together need no order") {
  CutNodes nodes;
  nodes.cut({0, 1, 2}, {0, 1, 2});
  nodes.run_s(30);
  CHECK(nodes.health() == "serving\n");
  CHECK(nodes.warnings() == "[]");
}

}  // namespace tetrad::server
