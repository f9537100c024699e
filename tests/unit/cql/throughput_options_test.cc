// SPDX-License-Identifier: Apache-2.0
// The options of tables and keyspaces that limit their throughput, and what replication gets of
// them.
#include <catch2/catch.hpp>

#include "cql/prepare/describe.h"
#include "cql/schema/schema_text.h"
#include "replication/tablets/split_runner.h"
#include "tests/support/local_cluster.h"

namespace tetrad::tests {
namespace {

using replication::Throughput;

class Fixture : public LocalCluster {
 public:
  Fixture() {
    CHECK(cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
              "'replication_factor': 4}") == "ok");
  }
  const replication::TableInfo& info(const std::string& table) {
    state_ = meta.snapshot();
    for (const auto& [id, found] : state_->tables)
      if (found->name == table) return *found;
    FAIL("no table " + table);
    std::abort();
  }
  Throughput throughput(const std::string& table) { return info(table).throughput; }
  size_t tablets(const std::string& table) { return info(table).tablets.tablets().size(); }
  cql::SchemaPtr schema() { return cql::SchemaSnapshot::build(*meta.snapshot(), nullptr, {}); }
  std::string described(const std::string& table) {
    return cql::describe_table(*schema()->table("ks", table), false);
  }
  std::string described_keyspace(const std::string& name = "ks") {
    return cql::describe_keyspace(*schema()->keyspace(name));
  }
  /// What system_schema says of the table, autoscale first.
  std::string told(const std::string& table) {
    return rows(
        "SELECT cosmosdb_autoscale_max_throughput, cosmosdb_provisioned_throughput FROM "
        "system_schema.tables WHERE keyspace_name = 'ks' AND table_name = '" +
        table + "'");
  }
  std::string told_of_keyspace(const std::string& name = "ks") {
    return rows(
        "SELECT cosmosdb_autoscale_max_throughput, cosmosdb_provisioned_throughput FROM "
        "system_schema.keyspaces WHERE keyspace_name = '" +
        name + "'");
  }
  /// With the custom payload of a request.
  std::string with_payload(BytesView payload, const std::string& text) {
    options.throughput_payload = payload;
    const std::string answer = cql(text);
    options.throughput_payload.reset();
    return answer;
  }

 private:
  replication::MetaSnapshot state_;
};

const std::string kProvisionedRule =
    "cosmosdb_provisioned_throughput must be 0, which is no limit, or a multiple of 100 from 400 "
    "to "
    "1000000 (got ";
const std::string kAutoscaleRule =
    "cosmosdb_autoscale_max_throughput must be 0, which is no limit, or a multiple of 1000 from "
    "1000 to 1000000 (got ";

}  // namespace

TEST_CASE_METHOD(Fixture, "a throughput of a table is kept, told, described and given on") {
  for (const char* name : {"cosmosdb", "tetrad"}) {
    INFO(name);
    const std::string prefix = name;
    CHECK(cql("CREATE TABLE ks.p (k int PRIMARY KEY) WITH " + prefix +
              "_provisioned_throughput = 400") == "ok");
    CHECK(cql("CREATE TABLE ks.a (k int PRIMARY KEY) WITH " + prefix +
              "_autoscale_max_throughput = 1000 AND comment = 'x'") == "ok");
    CHECK(cql("CREATE TABLE ks.n (k int PRIMARY KEY) WITH " + prefix +
              "_provisioned_throughput = 0") == "ok");
    CHECK(throughput("p") == Throughput{400, false});
    CHECK(throughput("a") == Throughput{1000, false});
    CHECK(throughput("n") == Throughput{});
    CHECK(meta.snapshot()->limited_tables == 2);
    CHECK(told("p") == "null | 400");
    CHECK(told("a") == "1000 | null");
    CHECK(told("n") == "null | null");
    CHECK(described("p").find("\n    AND cosmosdb_provisioned_throughput = 400\n") !=
          std::string::npos);
    CHECK(described("a").find("\n    AND cosmosdb_autoscale_max_throughput = 1000\n") !=
          std::string::npos);
    CHECK(described("a").find("provisioned") == std::string::npos);
    CHECK(described("n").find("throughput") == std::string::npos);
    for (const char* table : {"p", "a", "n"}) {
      const std::string text = described(table);
      CHECK(cql(std::string("DROP TABLE ks.") + table) == "ok");
      CHECK(cql(text) == "ok");
      CHECK(described(table) == text);
    }
    CHECK(throughput("p") == Throughput{400, false});
    CHECK(throughput("a") == Throughput{1000, false});
    for (const char* table : {"p", "a", "n"})
      CHECK(cql(std::string("DROP TABLE ks.") + table) == "ok");
  }
  CHECK(cql("CREATE TABLE ks.p (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = "
            "'1000000'") == "ok");
  CHECK(throughput("p").ru_per_s == 1'000'000);
  CHECK(cql("TRUNCATE ks.p") == "ok");
  CHECK(throughput("p") == Throughput{1'000'000, false});
}

TEST_CASE_METHOD(Fixture, "texts of tables and keyspaces without a throughput say nothing of it") {
  CHECK(cql("CREATE TABLE ks.n (k int PRIMARY KEY)") == "ok");
  CHECK(cql::table_text(*schema()->table("ks", "n")).find("throughput") == std::string::npos);
  CHECK(cql::keyspace_text(*schema()->keyspace("ks")).find("throughput") == std::string::npos);
}

TEST_CASE_METHOD(Fixture, "throughputs that cannot be are refused in one sentence") {
  const auto create = [this](const std::string& with) {
    return error("CREATE TABLE ks.x (k int PRIMARY KEY) WITH " + with);
  };
  for (const char* value : {"-400", "1", "399", "300", "450", "1000100", "4294967696", "1.5", "abc",
                            "", "99999999999999999999"}) {
    const std::string given = std::string("'") + value + "'";
    CHECK(create("cosmosdb_provisioned_throughput = " + given) == kProvisionedRule + value + ")");
    CHECK(create("cosmosdb_autoscale_max_throughput = " + given) == kAutoscaleRule + value + ")");
    CHECK(error("ALTER KEYSPACE ks WITH cosmosdb_autoscale_max_throughput = " + given) ==
          kAutoscaleRule + value + ")");
  }
  for (const char* value : {"400", "1100", "1001000"})
    CHECK(create("cosmosdb_autoscale_max_throughput = " + std::string(value)) ==
          kAutoscaleRule + value + ")");
  CHECK(create("cosmosdb_provisioned_throughput = -400") == kProvisionedRule + "-400)");
  CHECK(create("cosmosdb_provisioned_throughput = true") == kProvisionedRule + "true)");
  CHECK(create("tetrad_provisioned_throughput = 450") ==
        "tetrad" + kProvisionedRule.substr(8) + "450)");
  CHECK(create("cosmosdb_provisioned_throughput = '" + std::string(5000, '4') + "'") ==
        kProvisionedRule + std::string(32, '4') + "...)");
  CHECK(create("cosmosdb_provisioned_throughput = {'a': '1'}") ==
        "Invalid value for property 'cosmosdb_provisioned_throughput'. It should be a string");
  CHECK(create("cosmosdb_provisioned_throughput = 400 AND tetrad_provisioned_throughput = 400") ==
        "Multiple definitions for property 'cosmosdb_provisioned_throughput'");
  const std::string both =
      "cosmosdb_provisioned_throughput (got 4000) and cosmosdb_autoscale_max_throughput (got 5000) "
      "cannot both be given: one of them is the limit";
  const std::string with =
      "cosmosdb_provisioned_throughput = 4000 AND tetrad_autoscale_max_throughput = 5000";
  CHECK(create(with) == both);
  CHECK(error("CREATE KEYSPACE other WITH " + with) == both);
  const auto statement = try_prepare("ALTER KEYSPACE ks WITH " + with);
  REQUIRE(statement);
  const auto refused = execute(*statement, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConfig);
  CHECK(meta.snapshot()->tables.empty());
}

TEST_CASE_METHOD(Fixture, "naming one throughput in ALTER takes away the other") {
  CHECK(cql("CREATE TABLE ks.t (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 0 AND "
            "cosmosdb_autoscale_max_throughput = 5000") == "ok");
  const auto alter = [this](const std::string& with) {
    CHECK(cql("ALTER TABLE ks.t WITH " + with) == "ok");
    CHECK(cql("ALTER KEYSPACE ks WITH " + with) == "ok");
    CHECK(told("t") == told_of_keyspace());
    return told("t");
  };
  CHECK(alter("tetrad_provisioned_throughput = 5000") == "null | 5000");
  CHECK(throughput("t") == Throughput{5000, false});
  CHECK(alter("cosmosdb_autoscale_max_throughput = 6000") == "6000 | null");
  CHECK(throughput("t") == Throughput{6000, false});
  CHECK(alter("cosmosdb_autoscale_max_throughput = 7000 AND cosmosdb_provisioned_throughput = 0") ==
        "7000 | null");
  CHECK(cql("ALTER TABLE ks.t WITH comment = 'x' AND tetrad_max_partition_mb = 7") == "ok");
  CHECK(throughput("t") == Throughput{7000, false});
  CHECK(cql("ALTER TABLE ks.t ADD v int") == "ok");
  CHECK(throughput("t") == Throughput{7000, false});
  CHECK(alter("cosmosdb_provisioned_throughput = 0") == "null | null");
  CHECK(throughput("t") == Throughput{});
  CHECK(meta.snapshot()->limited_tables == 0);
}

TEST_CASE_METHOD(Fixture, "tables without a throughput of their own share the keyspace's") {
  for (const char* table : {"a", "b"})
    CHECK(cql(fmt::format("CREATE TABLE ks.{} (k int PRIMARY KEY)", table)) == "ok");
  CHECK(cql("CREATE TABLE ks.own (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 500") ==
        "ok");
  CHECK(cql("ALTER KEYSPACE ks WITH cosmosdb_provisioned_throughput = 2000") == "ok");
  CHECK(told_of_keyspace() == "null | 2000");
  CHECK(throughput("a") == Throughput{2000, true});
  CHECK(throughput("b") == Throughput{2000, true});
  CHECK(throughput("own") == Throughput{500, false});
  CHECK(cql("CREATE TABLE ks.later (k int PRIMARY KEY) WITH cdc = true") == "ok");
  CHECK(throughput("later") == Throughput{2000, true});

  CHECK(cql("ALTER TABLE ks.own WITH cosmosdb_provisioned_throughput = 0") == "ok");
  CHECK(throughput("own") == Throughput{2000, true});
  CHECK(cql("ALTER TABLE ks.own WITH cosmosdb_autoscale_max_throughput = 3000") == "ok");
  CHECK(throughput("own") == Throughput{3000, false});
  CHECK(cql("ALTER TABLE ks.a WITH tetrad_max_partition_mb = 3") == "ok");
  CHECK(throughput("a") == Throughput{2000, true});

  CHECK(cql("ALTER KEYSPACE ks WITH cosmosdb_autoscale_max_throughput = 4000") == "ok");
  CHECK(throughput("a") == Throughput{4000, true});
  CHECK(info("a").max_partition_mb == 3);
  CHECK(info("later").change_log.has_value());
  CHECK(throughput("own") == Throughput{3000, false});
  CHECK(cql("ALTER KEYSPACE ks WITH durable_writes = false") == "ok");
  CHECK(throughput("a") == Throughput{4000, true});
  const std::string text = described_keyspace();
  CHECK(text.ends_with("AND durable_writes = false AND cosmosdb_autoscale_max_throughput = 4000;"));
  CHECK(cql("ALTER KEYSPACE ks WITH cosmosdb_provisioned_throughput = 0") == "ok");
  CHECK(throughput("a") == Throughput{});
  CHECK(meta.snapshot()->limited_tables == 1);
  CHECK(cql("DROP KEYSPACE ks") == "ok");
  CHECK(cql(text) == "ok");
  CHECK(described_keyspace() == text);
}

TEST_CASE_METHOD(Fixture, "a keyspace with a throughput needs no replication") {
  CHECK(cql("CREATE KEYSPACE a WITH cosmosdb_autoscale_max_throughput = 5000") == "ok");
  CHECK(warnings.empty());
  CHECK(told_of_keyspace("a") == "5000 | null");
  CHECK(rows("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'a'") ==
        "{'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor': '4'}");
  CHECK(cql("CREATE KEYSPACE b WITH tetrad_provisioned_throughput = 400 AND durable_writes = "
            "false") == "ok");
  CHECK(described_keyspace("b") ==
        "CREATE KEYSPACE b WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
        "'4'}  AND durable_writes = false AND cosmosdb_provisioned_throughput = 400;");
}

TEST_CASE_METHOD(Fixture,
                 "a table begins with as many physical partitions as its throughput needs") {
  const auto created = [this](const std::string& with) {
    CHECK(cql("CREATE TABLE ks.t (k int PRIMARY KEY) WITH " + with) == "ok");
    const size_t count = tablets("t");
    CHECK(cql("DROP TABLE ks.t") == "ok");
    return count;
  };
  CHECK(created("cosmosdb_provisioned_throughput = 400") == 1);
  CHECK(created("cosmosdb_provisioned_throughput = 10000") == 1);
  CHECK(created("cosmosdb_provisioned_throughput = 10100") == 2);
  CHECK(created("cosmosdb_provisioned_throughput = 45000") == 5);
  CHECK(created("cosmosdb_autoscale_max_throughput = 45000") == 5);
  CHECK(created("cosmosdb_provisioned_throughput = 1000000") == 100);
  CHECK(created("cosmosdb_provisioned_throughput = 45000 AND tetrad_initial_partitions = 7") == 7);
  CHECK(created("cosmosdb_provisioned_throughput = 45000 AND tetrad_initial_partitions = 3") == 5);

  CHECK(cql("CREATE TABLE ks.t (k int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 45000") ==
        "ok");
  for (const partitioner::Tablet& tablet : info("t").tablets.tablets()) {
    const auto width = static_cast<double>(static_cast<uint64_t>(tablet.range.end.token) -
                                           static_cast<uint64_t>(tablet.range.start.token));
    CHECK(std::abs(width - 18446744073709551616.0 / 5) < 4096);
  }
  // What is shared does not say how many.
  CHECK(cql("CREATE TABLE ks.usual (k int PRIMARY KEY)") == "ok");
  CHECK(cql("ALTER KEYSPACE ks WITH cosmosdb_provisioned_throughput = 45000") == "ok");
  CHECK(cql("CREATE TABLE ks.shared (k int PRIMARY KEY)") == "ok");
  CHECK(throughput("shared") == Throughput{45'000, true});
  CHECK(tablets("shared") == tablets("usual"));

  replication::MetaState state;
  const auto wanted = [&state](uint32_t ru_per_s) {
    return replication::tablets_wanted(state, {ru_per_s, false});
  };
  state.settings[replication::kSettingPhysicalPartitionRuPerS] = "500";
  CHECK(wanted(0) == 0);
  CHECK(wanted(400) == 1);
  CHECK(wanted(500) == 1);
  CHECK(wanted(600) == 2);
  CHECK(wanted(1'000'000) == 2000);
  CHECK(replication::tablets_wanted(state, {1'000'000, true}) == 0);
  state.settings[replication::kSettingPhysicalPartitionRuPerS] = "1";
  CHECK(wanted(1'000'000) == 4096);
}

TEST_CASE_METHOD(Fixture, "the custom payload stands for the option, where there is none") {
  CHECK(with_payload("45000", "CREATE TABLE ks.t (k int PRIMARY KEY)") == "ok");
  CHECK(told("t") == "null | 45000");
  CHECK(tablets("t") == 5);
  CHECK(with_payload("500", "ALTER TABLE ks.t WITH comment = 'x'") == "ok");
  CHECK(throughput("t") == Throughput{500, false});
  CHECK(with_payload("600", "ALTER TABLE ks.t WITH cosmosdb_provisioned_throughput = 700") == "ok");
  CHECK(throughput("t") == Throughput{700, false});
  CHECK(with_payload("bad", "ALTER TABLE ks.t WITH tetrad_autoscale_max_throughput = 2000") ==
        "ok");
  CHECK(throughput("t") == Throughput{2000, false});
  CHECK(with_payload("0", "ALTER TABLE ks.t WITH comment = 'y'") == "ok");
  CHECK(throughput("t") == Throughput{});

  CHECK(with_payload("1000", "ALTER KEYSPACE ks WITH durable_writes = true") == "ok");
  CHECK(throughput("t") == Throughput{1000, true});
  CHECK(with_payload("1200", "CREATE KEYSPACE other WITH durable_writes = true") == "ok");
  CHECK(told_of_keyspace("other") == "null | 1200");
  CHECK(with_payload("1300", "CREATE KEYSPACE third WITH cosmosdb_autoscale_max_throughput = 0") ==
        "ok");
  CHECK(told_of_keyspace("third") == "null | null");

  // Statements that have no such option do not look at it.
  for (const char* text : {"ALTER TABLE ks.t ADD v int", "INSERT INTO ks.t (k) VALUES (1)",
                           "TRUNCATE ks.t", "CREATE TYPE ks.u (a int)"})
    CHECK(with_payload("bad", text) == "ok");
  CHECK(throughput("t") == Throughput{1000, true});

  const auto refused = [this](BytesView payload) {
    return with_payload(payload, "CREATE TABLE ks.x (k int PRIMARY KEY)").substr(7);
  };
  for (const char* value : {"", "450", "+400", " 400", "400.0", "four"})
    CHECK(refused(value) == kProvisionedRule + value + ")");
  CHECK(refused(BytesView("4\0\xff", 3)) == kProvisionedRule + "0x3400ff)");
  CHECK(refused(std::string(5000, '\n')) ==
        kProvisionedRule + "0x" + "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a)");
}

}  // namespace tetrad::tests
