// SPDX-License-Identifier: Apache-2.0
// What a role may do: by itself, by the roles that are granted to it, by the parents of a resource;
// and the form in which the metadata keeps roles.
#include "cql/schema/roles.h"

#include <catch2/catch.hpp>

namespace tetrad::cql {
namespace {

using enum Permission;

class Roles {
 public:
  Role& operator[](const std::string& name) {
    Role& role = roles_[name];
    role.name = name;
    return role;
  }
  RoleSet set() const {
    RoleSet::Roles out;
    for (const auto& [name, role] : roles_) out[name] = std::make_shared<const Role>(role);
    return RoleSet(std::move(out));
  }

 private:
  std::map<std::string, Role> roles_;
};

std::vector<std::string> names_of(const std::vector<const Role*>& roles) {
  std::vector<std::string> out;
  for (const Role* role : roles) out.push_back(role->name);
  return out;
}

std::vector<std::string> path_up(std::optional<std::string> resource) {
  std::vector<std::string> out;
  for (; resource; resource = parent_of(*resource)) out.push_back(*resource);
  return out;
}

const std::vector<std::string> kResources = {
    kAllData,
    keyspace_resource("ks"),
    tables_resource("ks"),
    table_resource("ks", "t"),
    kAllFunctions,
    functions_resource("ks"),
    function_resource("ks", "f", {"int", "map<int, text>"}),
    kAllRoles,
    role_resource("a"),
    kAllMbeans,
    "mbean/org.apache:type=x",
};

}  // namespace

TEST_CASE("a resource is below its keyspace and below the root of its kind") {
  using Path = std::vector<std::string>;
  CHECK(path_up(table_resource("ks", "t")) == Path{"data/ks/t", "data/ks/*", "data/ks", "data"});
  CHECK(path_up(tables_resource("ks")) == Path{"data/ks/*", "data/ks", "data"});
  CHECK(path_up(function_resource("ks", "f", {"int", "text"})) ==
        Path{"functions/ks/f[int, text]", "functions/ks", "functions"});
  CHECK(path_up(role_resource("a")) == Path{"roles/a", "roles"});
}

TEST_CASE("a slash in the name of a role, an mbean or a type names no parent") {
  using Path = std::vector<std::string>;
  CHECK(path_up(role_resource("a/b")) == Path{"roles/a/b", "roles"});
  CHECK(path_up("mbean/a/b/*") == Path{"mbean/a/b/*", "mbean"});
  CHECK(path_up(function_resource("ks", "f", {"\"a/b\""})) ==
        Path{"functions/ks/f[\"a/b\"]", "functions/ks", "functions"});
}

TEST_CASE("a right on all keyspaces is none on those that show roles and the server's state") {
  for (const std::string keyspace : {"system_auth", "system_views", "system_tetrad"}) {
    const auto path = path_up(table_resource(keyspace, "t"));
    CHECK(path.back() == keyspace_resource(keyspace));
  }
  CHECK(path_up(table_resource("system_schema", "t")).back() == kAllData);
}

TEST_CASE("resources are shown as Cassandra shows them") {
  std::vector<std::string> shown;
  for (const std::string& resource : kResources) shown.push_back(shown_resource(resource));
  CHECK(shown == std::vector<std::string>{"<all keyspaces>", "<keyspace ks>", "<all tables in ks>",
                                          "<table ks.t>", "<all functions>",
                                          "<all functions in ks>",
                                          "<function ks.f(int, map<int, text>)>", "<all roles>",
                                          "<role a>", "<all mbeans>", "<mbean org.apache:type=x>"});
}

TEST_CASE("what can be granted depends on the kind of the resource") {
  const PermissionSet data =
      set_of(kAlter, kDrop, kSelect, kModify, kAuthorize, kUnmask, kSelectMasked);
  const PermissionSet functions = set_of(kAlter, kDrop, kAuthorize, kExecute);
  const PermissionSet roles = set_of(kAlter, kDrop, kAuthorize, kDescribe);
  const PermissionSet mbeans = set_of(kSelect, kModify, kAuthorize, kDescribe, kExecute);
  const PermissionSet create = set_of(kCreate);
  const std::vector<int> expected = {data | create,
                                     data | create,
                                     data | create,
                                     data,
                                     functions | create,
                                     functions | create,
                                     functions,
                                     roles | create,
                                     roles,
                                     mbeans,
                                     mbeans};
  std::vector<int> applicable;
  for (const std::string& resource : kResources) applicable.push_back(applicable_to(resource));
  CHECK(applicable == expected);
  // A role may have any name.
  CHECK(applicable_to(role_resource("a/*")) == roles);
}

TEST_CASE("a role has its own rights and those of roles granted to it, directly or not") {
  Roles roles;
  roles["reader"].grants[keyspace_resource("ks")] = set_of(kSelect);
  roles["team"].member_of = {"reader"};
  roles["team"].grants[table_resource("ks", "t")] = set_of(kModify);
  roles["ann"].member_of = {"team"};
  roles["ann"].grants[kAllData] = set_of(kDescribe);
  const RoleSet set = roles.set();
  CHECK(names_of(set.with_granted("ann")) == std::vector<std::string>{"ann", "reader", "team"});
  CHECK(set.permissions("ann", table_resource("ks", "t")) == set_of(kSelect, kModify, kDescribe));
  CHECK(set.permissions("ann", table_resource("ks", "u")) == set_of(kSelect, kDescribe));
  CHECK(set.permissions("ann", table_resource("other", "t")) == set_of(kDescribe));
  CHECK(set.permissions("team", table_resource("ks", "t")) == set_of(kSelect, kModify));
  CHECK(set.has_role("ann", "reader"));
  CHECK(set.has_role("ann", "ann"));
  CHECK_FALSE(set.has_role("reader", "ann"));
}

TEST_CASE("a right on a table is none on its keyspace or on another's tables") {
  Roles roles;
  roles["ann"].grants[table_resource("ks", "t")] = set_of(kSelect);
  roles["bob"].grants[tables_resource("ks")] = set_of(kSelect);
  const RoleSet set = roles.set();
  for (const std::string& resource :
       {keyspace_resource("ks"), tables_resource("ks"), table_resource("ks", "tt"), kAllData})
    CHECK(set.permissions("ann", resource) == 0);
  CHECK(set.permissions("bob", table_resource("ks", "t")) == set_of(kSelect));
  CHECK(set.permissions("bob", keyspace_resource("ks")) == 0);
  CHECK(set.permissions("bob", table_resource("ks2", "t")) == 0);
}

TEST_CASE("a role that is not there has no rights and no roles") {
  Roles roles;
  roles["ann"].member_of = {"gone"};
  const RoleSet set = roles.set();
  CHECK(set.find("gone") == nullptr);
  CHECK(set.with_granted("gone").empty());
  CHECK(set.permissions("gone", kAllData) == 0);
  CHECK_FALSE(set.is_superuser("gone"));
  CHECK(names_of(set.with_granted("ann")) == std::vector<std::string>{"ann"});
  CHECK_FALSE(set.has_role("ann", "gone"));
}

TEST_CASE("roles that are granted to each other are gone through once") {
  Roles roles;
  roles["a"].member_of = {"b"};
  roles["b"].member_of = {"c", "b"};
  roles["c"].member_of = {"a"};
  roles["c"].grants[kAllRoles] = set_of(kDescribe);
  const RoleSet set = roles.set();
  CHECK(names_of(set.with_granted("b")) == std::vector<std::string>{"a", "b", "c"});
  CHECK_FALSE(set.is_superuser("a"));
  CHECK(set.permissions("a", role_resource("x")) == set_of(kDescribe));
}

TEST_CASE("a superuser, by itself or by a role, may do all that applies") {
  Roles roles;
  roles["root"].is_superuser = true;
  roles["admins"].member_of = {"root"};
  roles["ann"].member_of = {"admins"};
  roles["bob"];
  const RoleSet set = roles.set();
  for (const char* name : {"root", "ann"}) {
    CHECK(set.is_superuser(name));
    for (const std::string& resource : kResources)
      CHECK(set.permissions(name, resource) == applicable_to(resource));
    CHECK(set.permissions(name, table_resource("system_auth", "roles")) != 0);
  }
  CHECK_FALSE(set.is_superuser("bob"));
  CHECK(set.permissions("bob", kAllData) == 0);
}

TEST_CASE("a superuser is usable who can log in, with a password, from everywhere") {
  Roles roles;
  CHECK_FALSE(roles.set().has_usable_superuser());
  Role& ann = roles["ann"];
  ann.can_login = true;
  ann.salted_hash = "x";
  CHECK_FALSE(roles.set().has_usable_superuser());
  roles["root"].is_superuser = true;
  CHECK_FALSE(roles.set().has_usable_superuser());
  ann.member_of = {"root"};
  CHECK(roles.set().has_usable_superuser());
  ann.datacenters = {"dc1"};
  CHECK_FALSE(roles.set().has_usable_superuser());
  ann.datacenters.clear();
  ann.salted_hash.clear();
  CHECK_FALSE(roles.set().has_usable_superuser());
  ann.salted_hash = "x";
  ann.can_login = false;
  CHECK_FALSE(roles.set().has_usable_superuser());
}

TEST_CASE("a role is read as it was written") {
  Role role;
  role.name = "a \"b\"/\n\xc3\xa9";
  CHECK(*read_role_text(role_text(role)).value() == role);
  role.salted_hash = "$2a$10$x";
  role.can_login = role.is_superuser = true;
  role.member_of = {"b", "c"};
  role.datacenters = {"dc1"};
  for (const std::string& resource : kResources) role.grants[resource] = applicable_to(resource);
  CHECK(*read_role_text(role_text(role)).value() == role);
}

TEST_CASE("the text of a role that does not read is an error") {
  for (const char* text :
       {"", "[]", "{}", "null", "{\"format\":2,\"name\":\"a\",\"login\":true,\"superuser\":true}",
        "{\"format\":1,\"login\":true,\"superuser\":true}",
        "{\"format\":1,\"name\":1,\"login\":true,\"superuser\":true}",
        "{\"format\":1,\"name\":\"a\",\"login\":\"yes\",\"superuser\":true}",
        "{\"format\":1,\"name\":\"a\",\"login\":true,\"superuser\":true,\"member_of\":[1]}",
        "{\"format\":1,\"name\":\"a\",\"login\":true,\"superuser\":true,"
        "\"grants\":{\"data\":[\"FLY\"]}}",
        "{\"format\":1,\"name\":\"a\",\"login\":true,\"superuser\":true,"
        "\"grants\":{\"data\":[1]}}"}) {
    INFO(text);
    const auto role = read_role_text(text);
    REQUIRE_FALSE(role.has_value());
    CHECK(role.error().code == ErrorCode::kCorruption);
  }
}

}  // namespace tetrad::cql
