// SPDX-License-Identifier: Apache-2.0
// Groups of addresses: how ranges are read, which of them an address is in, and who is let in.
#include "cql/schema/address_groups.h"

#include <catch2/catch.hpp>

#include "cql/execute/address_filter.h"
#include "cql/prepare/prepared_statement.h"
#include "cql/types/inet.h"
#include "replication/meta/meta_state.h"
#include "tests/support/local_cluster.h"

namespace tetrad::cql {
namespace {

std::string read(std::string_view text) {
  const auto range = AddressRange::parse(text);
  return range ? range->text() : "error: " + range.error().message;
}

AddressGroups groups(const std::map<std::string, std::vector<std::string>>& written) {
  AddressGroups::Groups out;
  for (const auto& [name, ranges] : written) {
    auto group = make_address_group(name, ranges);
    REQUIRE(group);
    out[name] = std::make_shared<const AddressGroup>(std::move(*group));
  }
  return AddressGroups(std::move(out));
}

std::set<std::string> of(const AddressGroups& all, std::string_view address) {
  return all.groups_of(*parse_inet(address));
}

/// A snapshot of roles and groups.
SchemaPtr snapshot(uint64_t version, const std::vector<Role>& roles,
                   const std::map<std::string, std::vector<std::string>>& written) {
  replication::MetaState state;
  state.schema_version = SchemaVersion{version};
  for (const Role& role : roles) state.schema_objects.put(role_key(role.name), role_text(role));
  const AddressGroups all = groups(written);
  for (const auto& [name, group] : all.all())
    state.schema_objects.put(address_group_key(name), address_group_text(*group));
  return SchemaSnapshot::build(state, nullptr, {});
}

Role role(std::string name, std::set<std::string> address_groups = {}, bool is_superuser = false) {
  Role out;
  out.name = std::move(name);
  out.can_login = true;
  out.is_superuser = is_superuser;
  out.address_groups = std::move(address_groups);
  return out;
}

}  // namespace

TEST_CASE("a range is read with the bits behind its prefix cut off") {
  CHECK(read("10.1.2.3/8") == "10.0.0.0/8");
  CHECK(read("127.0.23.77/26") == "127.0.23.64/26");
  CHECK(read("192.168.1.7/32") == "192.168.1.7/32");
  CHECK(read("1.2.3.4/0") == "0.0.0.0/0");
  CHECK(read("2001:db8::1/32") == "2001:db8:0:0:0:0:0:0/32");
  CHECK(read("::ffff:10.1.9.0/112") == "10.1.0.0/16");
  for (const char* wrong :
       {"", "/", "/8", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8",
        "10.0.0.0/x", "::1/129", "host/8", "10.0.0.0/ 8", "::ffff:10.1.9.0/95", "10.0.0.0/8 ",
        "10.0.0/8", "192.168.1/24", "10/8"})
    CHECK(read(wrong) == fmt::format("error: {} is not a valid CIDR String", wrong));
}

TEST_CASE("of an address the narrowest range counts") {
  const AddressGroups all = groups({{"all", {"0.0.0.0/0", "::/0"}},
                                    {"lab", {"10.0.0.0/8", "2001:db8::/32"}},
                                    {"desk", {"10.0.0.3/32", "192.168.0.0/16"}},
                                    {"desk2", {"10.0.0.3/32"}}});
  using Names = std::set<std::string>;
  CHECK(of(all, "10.0.0.3") == Names{"desk", "desk2"});
  CHECK(of(all, "10.0.0.4") == Names{"lab"});
  CHECK(of(all, "192.168.7.7") == Names{"desk"});
  CHECK(of(all, "8.8.8.8") == Names{"all"});
  CHECK(of(all, "2001:db8::7") == Names{"lab"});
  CHECK(of(all, "2001:db9::7") == Names{"all"});
  CHECK(of(all, "::ffff:10.0.0.3") == Names{"desk", "desk2"});
  CHECK(of(groups({{"lab", {"10.0.0.0/8"}}}), "::1").empty());
  CHECK(of(AddressGroups(), "10.0.0.1").empty());
}

TEST_CASE("a group is read as it was written, and what does not fit is refused") {
  const auto group = make_address_group("it's", std::vector<std::string>{"10.0.0.0/8", "::1/128"});
  REQUIRE(group);
  const auto read_again = read_address_group_text(address_group_text(*group));
  REQUIRE(read_again);
  CHECK(**read_again == *group);
  CHECK_FALSE(make_address_group("", std::vector<std::string>{"10.0.0.0/8"}));
  CHECK_FALSE(make_address_group("x", std::vector<std::string>{}));
  CHECK_FALSE(make_address_group("\xff", std::vector<std::string>{"10.0.0.0/8"}));
  CHECK_FALSE(make_address_group(std::string(513, 'x'), std::vector<std::string>{"10.0.0.0/8"}));
  CHECK_FALSE(make_address_group("x", std::vector<std::string>(4'097, "10.0.0.0/8")));
  for (const char* text : {"", "{}", "[]", R"({"format":2,"name":"x","cidrs":["10.0.0.0/8"]})",
                           R"({"format":1,"name":"x","cidrs":["10.0.0.0"]})",
                           R"({"format":1,"name":"x","cidrs":[]})", R"({"format":1,"name":7})"})
    CHECK_FALSE(read_address_group_text(text));
}

TEST_CASE("a snapshot follows its groups, and one that does not read has no addresses") {
  replication::MetaState state;
  state.schema_version = SchemaVersion{1};
  const auto group = make_address_group("lab", std::vector<std::string>{"10.0.0.0/8"});
  state.schema_objects.put(address_group_key("lab"), address_group_text(*group));
  const SchemaPtr first = SchemaSnapshot::build(state, nullptr, {});
  CHECK(of(*first->address_groups(), "10.1.1.1") == std::set<std::string>{"lab"});
  state.schema_version = SchemaVersion{2};
  state.schema_objects.put(address_group_key("lab"), "no group");
  const SchemaPtr second = SchemaSnapshot::build(state, first.get(), {});
  CHECK(of(*second->address_groups(), "10.1.1.1").empty());
  REQUIRE(second->unreadable(address_group_key("lab")) != nullptr);
  CHECK(second->unreadable(address_group_key("lab"))->title() == "CIDR group lab");
  state.schema_version = SchemaVersion{3};
  state.schema_objects.erase(address_group_key("lab"));
  const SchemaPtr third = SchemaSnapshot::build(state, second.get(), {});
  CHECK(third->address_groups()->all().empty());
  CHECK(third->unreadable().empty());
}

TEST_CASE("a role is let in from its groups, and again when they have changed") {
  using enum AddressMode;
  const std::map<std::string, std::vector<std::string>> written = {{"lab", {"10.0.0.0/8"}},
                                                                   {"six", {"2001:db8::/32"}}};
  const std::vector<Role> roles = {role("bound", {"lab"}), role("six", {"six"}), role("free"),
                                   role("boss", {"lab"}, true), role("lost", {"gone"})};
  const SchemaPtr schema = snapshot(7, roles, written);
  const auto asks = [&](AddressFilter& filter, const char* user, const char* address,
                        const SchemaPtr& now) {
    ClientState client;
    client.must_log_in = true;
    client.user = user;
    client.client_address = address;
    const auto checked = filter.check(client, *now, 0);
    CHECK(client.address_checked_at.has_value() == checked.has_value());
    return checked ? "" : checked.error().message;
  };
  AddressFilter enforcing({kEnforce, false}, Logger());
  CHECK(asks(enforcing, "bound", "10.1.1.1", schema) == "");
  CHECK(asks(enforcing, "bound", "11.1.1.1", schema) ==
        "You do not have access from this IP 11.1.1.1");
  CHECK(asks(enforcing, "bound", "fe80::1%eth0", schema) != "");
  CHECK(asks(enforcing, "six", "2001:db8::9", schema) == "");
  CHECK(asks(enforcing, "six", "10.1.1.1", schema) != "");
  CHECK(asks(enforcing, "free", "11.1.1.1", schema) == "");
  CHECK(asks(enforcing, "boss", "11.1.1.1", schema) == "");
  CHECK(asks(enforcing, "lost", "10.1.1.1", schema) != "");
  CHECK(enforcing.accepted() == AddressFilter::Counts{{"lab", 1}, {"six", 1}});
  CHECK(enforcing.rejected() == AddressFilter::Counts{{"Undefined", 2}, {"lab", 2}});

  AddressFilter strict({kEnforce, true}, Logger());
  CHECK(asks(strict, "boss", "11.1.1.1", schema) != "");
  CHECK(asks(strict, "boss", "10.1.1.1", schema) == "");

  AddressFilter watching({kMonitor, false}, Logger());
  CHECK(asks(watching, "bound", "11.1.1.1", schema) == "");
  CHECK(asks(watching, "free", "10.1.1.1", schema) == "");
  CHECK(watching.accepted() == AddressFilter::Counts{{"Undefined", 1}, {"lab", 1}});

  // Of a connection that stays.
  ClientState client;
  client.must_log_in = true;
  client.user = "bound";
  client.client_address = "10.1.1.1";
  CHECK(enforcing.check(client, *schema, 0));
  const uint64_t looked = enforcing.accepted()["lab"];
  CHECK(enforcing.check(client, *schema, 0));
  CHECK(enforcing.accepted()["lab"] == looked);
  CHECK_FALSE(enforcing.check(client, *snapshot(8, roles, {{"lab", {"12.0.0.0/8"}}}), 0));
  CHECK(enforcing.check(client, *snapshot(9, roles, written), 0));
}

namespace {

/// With groups, and with roles that log in.
class BoundRoles : public tests::LocalCluster {
 public:
  BoundRoles() {
    put(role_key("root"), role_text(role("root", {}, true)));
    for (const std::string name : {"lab", "ks/lab"})
      put(address_group_key(name),
          address_group_text(*make_address_group(name, std::vector<std::string>{"10.0.0.0/8"})));
    client.must_log_in = true;
    client.user = "root";
    CHECK(cql("CREATE ROLE ann WITH LOGIN = true AND ACCESS FROM CIDRS {'lab'}") == "ok");
    CHECK(cql("CREATE ROLE head WITH LOGIN = true") == "ok");
    CHECK(cql("GRANT ALTER ON ROLE ann TO head") == "ok");
  }
  const Role& ann() { return *schema()->roles()->find("ann"); }

 private:
  void put(const std::string& key, const std::string& text) {
    replication::SchemaChange change;
    change.expected = meta.snapshot()->schema_version;
    change.objects.emplace_back(key, text);
    REQUIRE(run_task(reactor, meta.change_schema(std::move(change), {INT64_MAX}, nullptr)));
  }
};

}  // namespace

TEST_CASE_METHOD(BoundRoles, "only superusers change from where a role is used, their own too") {
  for (const char* user : {"ann", "head"}) {
    client.user = user;
    for (const char* from : {"ALL CIDRS", "CIDRS {'lab'}"})
      CHECK(error(fmt::format("ALTER ROLE ann WITH ACCESS FROM {}", from)) ==
            "Only superusers are allowed to alter access from CIDR groups.");
  }
  CHECK(ann().address_groups == std::set<std::string>{"lab"});
  client.user = "root";
  CHECK(cql("ALTER ROLE ann WITH ACCESS FROM ALL CIDRS") == "ok");
  CHECK(ann().address_groups.empty());
}

TEST_CASE_METHOD(BoundRoles, "roles and groups that begin with a keyspace's name stay without it") {
  CHECK(cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
            "'replication_factor': 1}") == "ok");
  CHECK(cql("CREATE ROLE \"ks/ann\"") == "ok");
  CHECK(cql("DROP KEYSPACE ks") == "ok");
  CHECK(schema()->keyspace("ks") == nullptr);
  CHECK(schema()->roles()->find("ks/ann") != nullptr);
  CHECK(schema()->address_groups()->all().contains("ks/lab"));
}

TEST_CASE("an object is a keyspace's by its kind") {
  for (const char* key : {"keyspace/ks", "table/ks/t", "type/ks/t", "function/ks/f"})
    CHECK(is_of_keyspace(key));
  for (const char* key : {"role/ks", "role/ks/t", "cidr_group/ks", "cidr_group/ks/t"})
    CHECK_FALSE(is_of_keyspace(key));
}

}  // namespace tetrad::cql
