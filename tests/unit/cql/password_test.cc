// SPDX-License-Identifier: Apache-2.0
#include "cql/execute/password.h"

#include <catch2/catch.hpp>

namespace tetrad::cql {

namespace {

std::string refusal(const std::string& hash) {
  const auto checked = check_hashed_password(hash);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::kInvalid);
  // What is not taken is no password's, and costs nothing to find out.
  CHECK_FALSE(is_password_of("password", hash));
  return checked.error().message;
}

std::string argon(const std::string& parameters) {
  return "$argon2id$" + parameters + "$" + std::string(22, 'A') + "$" + std::string(43, 'B');
}

}  // namespace

TEST_CASE("a password is known by its hash of either kind, and no other is") {
  base::Random random(1);
  for (const auto kind : {PasswordHash::kArgon2id, PasswordHash::kBcrypt}) {
    const auto hash = hash_password("tr\xC3\xA4nen-42", new_salt(random, kind));
    REQUIRE(hash);
    CHECK(hash->starts_with(kind == PasswordHash::kArgon2id ? "$argon2id$v=19$m=19456,t=2,p=1$"
                                                            : "$2a$10$"));
    CHECK(check_hashed_password(*hash));
    CHECK(is_password_of("tr\xC3\xA4nen-42", *hash));
    CHECK_FALSE(is_password_of("tr\xC3\xA4nen-43", *hash));
    CHECK_FALSE(is_password_of("", *hash));
    CHECK_FALSE(is_password_of(BytesView("a\0b", 3), *hash));
    const auto again = hash_password("tr\xC3\xA4nen-42", new_salt(random, kind));
    CHECK(*again != *hash);
    CHECK_FALSE(hash_password(BytesView("a\0b", 3), new_salt(random, kind)));
  }
}

TEST_CASE("hashes that were made elsewhere are taken within bounds") {
  // By the argon2 program of Debian: salt "somesaltsomesalt", 2 passes, 64 MiB, 1 lane.
  const std::string elsewhere =
      "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$"
      "/DO3gTkjHTS3Fia9YkXB1y76GQrWBcPYFmpyrc7fosI";
  CHECK(check_hashed_password(elsewhere));
  CHECK(is_password_of("password", elsewhere));
  CHECK_FALSE(is_password_of("passwore", elsewhere));
  CHECK(check_hashed_password(argon("v=19$m=65536,t=8,p=8")));
  CHECK(refusal(argon("v=19$m=65537,t=2,p=1")) ==
        "Invalid hashed password value: m=65537,t=2,p=1; at most m=65536,t=8,p=8, and m at least 8 "
        "for each of p");
  for (const char* outside :
       {"v=19$m=4294967295,t=1,p=1", "v=19$m=65536,t=9,p=1", "v=19$m=65536,t=0,p=1",
        "v=19$m=65536,t=1,p=9", "v=19$m=65536,t=1,p=0", "v=19$m=15,t=1,p=2"})
    CHECK(refusal(argon(outside)).find("at most m=65536") != std::string::npos);
  for (const char* other :
       {"v=16$m=65536,t=1,p=1", "m=65536,t=1,p=1", "v=19$m=65536,t=1", "v=19$m=,t=1,p=1",
        "v=19$m=99999999999,t=1,p=1", "v=19$m=-1,t=1,p=1", "v=19$t=1,m=65536,p=1", ""})
    CHECK(refusal(argon(other)).find("not of the form") != std::string::npos);
  CHECK(refusal("$argon2id$v=19$m=65536,t=1,p=1$AAAA$" + std::string(43, 'A')).find("not of") !=
        std::string::npos);
  CHECK(refusal("$argon2id$v=19$m=65536,t=1,p=1$" + std::string(22, 'A')).find("not of") !=
        std::string::npos);
  CHECK(refusal("$argon2i$v=19$m=65536,t=1,p=1$x$y").find("Please use jBcrypt") !=
        std::string::npos);
  CHECK(refusal("$2a$15$" + std::string(53, 'a')).find("its cost is 15") != std::string::npos);
  CHECK(refusal("") == "Invalid hashed password value. Please use jBcrypt.");
}

TEST_CASE("checking a role that is not there costs what checking one that is does") {
  CHECK(check_hashed_password(hash_of_nobody()));
  CHECK(hash_of_nobody().find("$m=19456,t=2,p=1$") != std::string::npos);
  CHECK_FALSE(is_password_of("", hash_of_nobody()));
}

TEST_CASE("of what may set a password logs show who it is about at most") {
  for (const auto& [text, shown] : std::initializer_list<std::pair<BytesView, BytesView>>{
           {"SELECT * FROM t WHERE a = 'x'", "SELECT * FROM t WHERE a = 'x'"},
           {"insert into user (a) values ('x')", "insert into user (a) values ('x')"},
           {"/* 'a' */ CREATE TABLE t (k int PRIMARY KEY) WITH comment = 'x'",
            "/* 'a' */ CREATE TABLE t (k int PRIMARY KEY) WITH comment = 'x'"},
           {"CREATE OR REPLACE FUNCTION f() AS 'x'", "CREATE OR REPLACE FUNCTION f() AS 'x'"},
           {"EXPLAIN SELECT a FROM t WHERE b = 'x'", "EXPLAIN SELECT a FROM t WHERE b = 'x'"},
           {"SELECT role FROM t WHERE a = 'x'", "SELECT role FROM t WHERE a = 'x'"},
           {"SELECT a FROM t WHERE b = 'it''s;' AND c = 1;",
            "SELECT a FROM t WHERE b = 'it''s;' AND c = 1;"},
           {"BEGIN BATCH INSERT INTO t (a) VALUES ('x;'); DELETE a FROM t; APPLY BATCH;",
            "BEGIN BATCH INSERT INTO t (a) VALUES ('x;'); DELETE a FROM t; APPLY BATCH;"},
           {"BEGIN BATCH DELETE FROM t WHERE a = 1; ALTER ROLE z WITH PASWORD = 'x'; APPLY BATCH",
            "BEGIN BATCH DELETE FROM t WHERE a = 1;"},
           {"SELECT a FROM t; \n-- end", "SELECT a FROM t; \n-- end"},
           {"BEGIN ALTER ROLE z WITH PASWORD = 'x'", "BEGIN ALTER ROLE"},
           {"CREATE ROLE z WITH PASSWORD = 'x'", "CREATE ROLE z"},
           {"CREATE ROLE z WITH PASSW/**/ORD = 'x'", "CREATE ROLE z"},
           {"create/* x */role z with PASWORD = x", "create"},
           {"CREATE -- x\nUSER z PASWORD 'x'", "CREATE"},
           {"ALTER ROEL z $$x$$", "ALTER ROEL z"},
           {"CRATE ROLE \"z\" WITH", "CRATE ROLE"},
           {"EXPLAIN CREATE ROLE z LOGIN = 'x'", "EXPLAIN CREATE ROLE"},
           {"GRANT ALL PRIVILEGES ON ks.* TO bob IDENTIFIED BY 'x'", "GRANT ALL PRIVILEGES"},
           {"USE ks; ALTER ROLE z WITH PASWORD = 'x'", "USE ks"},
           {"SELECT a FROM t; CREATE ROLE z PASWORD 'x'", "SELECT a FROM t;"},
           {"UPDATE ROLE z SET PASWORD = 'x'", "UPDATE ROLE z"},
           {"INSERT USER z 'x'", "INSERT USER z"},
           {"ADD USER z `x`", "ADD USER z"},
           {"'x'", ""},
           {"", ""},
           {"CREATE", "CREATE"},
           {"CREATE /* ROLE", "CREATE"}}) {
    INFO(text);
    CHECK(up_to_secret(text) == shown);
  }
}

}  // namespace tetrad::cql
