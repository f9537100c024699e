// SPDX-License-Identifier: Apache-2.0
// The table option tetrad_initial_partitions.
#include <catch2/catch.hpp>

#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

class Fixture : public LocalCluster {
 public:
  Fixture() {
    CHECK(cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
              "'replication_factor': 1}") == "ok");
  }
  const partitioner::TabletMap& tablets(const std::string& table) {
    for (const auto& [id, info] : meta.snapshot()->tables)
      if (info->name == table) return info->tablets;
    FAIL("no table " + table);
    std::abort();
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a table begins with as many physical partitions as it was asked for") {
  for (const uint32_t count : {1u, 2u, 3u, 7u, 16u, 1000u, 1024u}) {
    const std::string name = "t" + std::to_string(count);
    INFO(name);
    CHECK(cql("CREATE TABLE ks." + name + " (k int PRIMARY KEY) WITH tetrad_initial_partitions = " +
              std::to_string(count)) == "ok");
    const auto& parts = tablets(name).tablets();
    REQUIRE(parts.size() == count);
    RingPosition start = RingPosition::lowest();
    const double even = 18446744073709551616.0 / count;
    for (const partitioner::Tablet& part : parts) {
      CHECK(part.range.start == start);
      const auto width = static_cast<double>(static_cast<uint64_t>(part.range.end.token) -
                                             static_cast<uint64_t>(start.token));
      if (count > 1) CHECK(std::abs(width - even) < 2048);  // doubles are that exact
      CHECK_FALSE(part.replicas.empty());
      start = part.range.end;
    }
    CHECK(start == RingPosition::highest());
  }
}

TEST_CASE_METHOD(Fixture, "the number of first partitions is kept, told and not altered") {
  CHECK(cql("CREATE TABLE ks.a (k int PRIMARY KEY) WITH tetrad_initial_partitions = 5") == "ok");
  CHECK(cql("CREATE TABLE ks.b (k int PRIMARY KEY) WITH tetrad_initial_partitions = 0") == "ok");
  CHECK(cql("CREATE TABLE ks.c (k int PRIMARY KEY)") == "ok");
  CHECK(tablets("b").tablets().size() == tablets("c").tablets().size());
  CHECK(cql("DESCRIBE TABLE ks.a").find("tetrad_initial_partitions = 5") != std::string::npos);
  CHECK(cql("DESCRIBE TABLE ks.b").find("tetrad_initial") == std::string::npos);
  CHECK(rows("SELECT table_name, tetrad_initial_partitions FROM system_schema.tables WHERE "
             "keyspace_name = 'ks'") == "'a' | 5\n'b' | null\n'c' | null");
  const std::string refused =
      "Cannot alter tetrad_initial_partitions: it counts when a table is created, afterwards "
      "physical partitions split by themselves";
  for (const char* count : {"5", "6", "0"})
    CHECK(error(std::string("ALTER TABLE ks.a WITH tetrad_initial_partitions = ") + count) ==
          refused);
  CHECK(cql("ALTER TABLE ks.a WITH comment = 'x'") == "ok");
  CHECK(cql("DESCRIBE TABLE ks.a").find("tetrad_initial_partitions = 5") != std::string::npos);
  CHECK(cql("TRUNCATE ks.a") == "ok");
  CHECK(tablets("a").tablets().size() == 5);
}

TEST_CASE_METHOD(Fixture, "numbers of first partitions that cannot be are refused") {
  const auto create = [this](const std::string& value) {
    return error("CREATE TABLE ks.x (k int PRIMARY KEY) WITH tetrad_initial_partitions = " + value);
  };
  CHECK(create("-1") == "tetrad_initial_partitions must be greater than or equal to 0 (got -1)");
  CHECK(create("1025") ==
        "tetrad_initial_partitions must be less than or equal to 1024 (got 1025)");
  CHECK(create("4294967297") == "Invalid integer value 4294967297 for 'tetrad_initial_partitions'");
  CHECK(create("'many'") == "Invalid integer value many for 'tetrad_initial_partitions'");
  CHECK(create("{'a': '1'}") ==
        "Invalid value for property 'tetrad_initial_partitions'. It should be a string");
}

}  // namespace tetrad::tests
