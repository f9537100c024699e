// SPDX-License-Identifier: Apache-2.0
// A metadata group without Raft: commands are applied as they come.
#pragma once

#include <catch2/catch.hpp>

#include "base/random.h"
#include "replication/meta/meta_command.h"
#include "replication/meta/meta_state.h"
#include "tests/unit/partitioner/test_nodes.h"

namespace tetrad::replication {

using partitioner::host_number;

inline TableId table_number(uint8_t number) {
  TableId id;
  id.value.octets[0] = number;
  return id;
}

inline NodeInfo node_number(uint8_t number) {
  NodeInfo node;
  node.host = host_number(number);
  node.address = "127.0.0." + std::to_string(number);
  node.data_center = "dc1";
  node.rack = "r" + std::to_string(number);
  node.store_count = 2;
  node.version = "0.1";
  return node;
}

/// Applies commands one after another, each through its bytes.
struct Group {
  MetaSnapshot state = std::make_shared<MetaState>();
  uint64_t index = 0;
  base::Random random{1};

  Result<void> apply(MetaCommandBody body) {
    MetaCommand command;
    command.id = base::make_random_uuid(random);
    command.origin = host_number(1);
    command.body = std::move(body);
    return apply_bytes(encode_meta_command(command, kFormatNewest));
  }
  Result<void> apply_bytes(const Bytes& bytes) {
    const auto decoded = decode_meta_command(bytes);
    REQUIRE(decoded);
    MetaApplied applied = apply_meta_command(state, MetaIndex{++index}, *decoded);
    state = applied.state;
    check_load();
    return applied.outcome;
  }
  void check_load() const {
    partitioner::StoreLoad counted;
    for (const auto& [id, table] : state->tables) {
      CHECK(state->table(table->incarnation) == table.get());
      for (const auto& tablet : table->tablets.tablets())
        for (const StoreAddress& member : tablet.replicas) ++counted[member];
    }
    CHECK(state->by_incarnation.size() == state->tables.size());
    CHECK(state->load == counted);
  }
  void form(uint8_t nodes) {
    BootstrapCluster bootstrap;
    bootstrap.cluster_id.octets[3] = 9;
    bootstrap.cluster_name = "test";
    bootstrap.secret = Bytes(32, 's');
    bootstrap.node = node_number(1);
    bootstrap.token_seed = 5;
    REQUIRE(apply(bootstrap));
    for (uint8_t i = 2; i <= nodes; ++i) REQUIRE(apply(PutNode{node_number(i), i}));
  }
  /// All nodes have been given the newest program.
  void upgrade() {
    for (const auto& [host, known] : MetaState(*state).nodes) {
      NodeInfo node = known;
      node.format = kFormatNewest;
      REQUIRE(apply(PutNode{node, 1}));
    }
  }
  SchemaChange change() const {
    SchemaChange schema;
    schema.expected = state->schema_version;
    return schema;
  }
  void create(uint8_t number, uint32_t tablets = 0) {
    SchemaChange schema = change();
    schema.objects.emplace_back("table/ks/t" + std::to_string(number), "text");
    schema.new_tables.push_back(
        {table_number(number), "ks", "t" + std::to_string(number), 7, tablets});
    REQUIRE(apply(schema));
  }
  const TableInfo& table(uint8_t number) const { return *state->table(table_number(number)); }
};

}  // namespace tetrad::replication
