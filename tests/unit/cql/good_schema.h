// SPDX-License-Identifier: Apache-2.0
// A keyspace with a table and a row in it that other objects of the schema must not harm.
#pragma once

#include <string>

#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {

class GoodSchema : public LocalCluster {
 public:
  GoodSchema() {
    settings.user_functions_enabled = true;
    run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
        "1}");
    run("USE ks");
    run("CREATE TABLE good (k int PRIMARY KEY, v text)");
    run("INSERT INTO good (k, v) VALUES (1, 'x')");
  }
  void run(const std::string& statement) {
    INFO(statement.substr(0, 200));
    const std::string answer = cql(statement);
    INFO(answer);
    CHECK_FALSE(answer.starts_with("error: "));
  }
};

}  // namespace tetrad::tests
