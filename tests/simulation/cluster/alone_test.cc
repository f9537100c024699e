// SPDX-License-Identifier: Apache-2.0
// Conditional statements and SERIAL reads of a partition that has one member.
#include <catch2/catch.hpp>

#include "storage/row/paxos_registers.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

/// INSERT IF NOT EXISTS of a row that is its key.
class Insert final : public replication::ConditionalStatement {
 public:
  explicit Insert(storage::Mutation row) : row_(std::move(row)) {}
  storage::ReadCommand read_command() const override {
    storage::ReadCommand command;
    command.incarnation = row_.incarnation;
    command.partition_key = row_.partition_key;
    command.position = row_.position;
    return command;
  }
  Task<Result<std::optional<storage::Mutation>>> decide(
      const storage::ReadResult& rows, replication::ConditionalMoment moment) override {
    if (!rows.partitions.empty()) co_return std::optional<storage::Mutation>();
    storage::Mutation row = row_;
    storage::RowRecord record;
    record.liveness.timestamp_us = moment.timestamp_us;
    row.rows.front().record.clear();
    storage::encode_row_record(record, row.rows.front().record);
    co_return std::optional<storage::Mutation>(std::move(row));
  }

 private:
  const storage::Mutation row_;
};

struct Answer {
  bool came = false, yes = false;
};

Task<void> insert(SimNode* node, uint32_t shard, storage::Mutation row, Answer* answer) {
  Insert statement(std::move(row));
  replication::ConditionalOptions options;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  options.contention_deadline = options.deadline;
  auto applied = co_await node->data(shard).coordinator().write_if(statement, options);
  REQUIRE(applied);
  *answer = {true, *applied};
}

Task<void> read(SimNode* node, uint32_t shard, storage::Mutation row, Answer* answer) {
  replication::ReadOptions options;
  options.level = ConsistencyLevel::kSerial;
  options.deadline = {node->reactor().now_us() + 2'000'000};
  auto rows =
      co_await node->data(shard).coordinator().read(Insert(std::move(row)).read_command(), options);
  REQUIRE(rows);
  *answer = {true, !rows->partitions.empty()};
}

class OneNode {
 public:
  OneNode() : cluster_(1) {
    cluster_.add(2, 2);
    node().options().found = true;
    node().start();
    REQUIRE(world().run_until([&] { return node().is_ready(); }, 1'000'000));
    bool created = false;
    node().spawn(create_table(&node(), 0, &created));
    REQUIRE(world().run_until([&] { return created; }, 5'000'000));
  }
  SimNode& node() { return cluster_[0]; }
  World& world() { return cluster_.world(); }
  const replication::TableInfo& table() { return *node().state()->tables.begin()->second; }
  uint32_t store_of(const storage::Mutation& row) {
    return table().tablets.find(row.position).replicas.front().store;
  }
  bool insert_if_new(uint32_t shard, const storage::Mutation& row) {
    Answer answer;
    node().spawn(insert(&node(), shard, row, &answer));
    REQUIRE(world().run_until([&] { return answer.came; }, 3'000'000));
    return answer.yes;
  }
  bool is_there(uint32_t shard, const storage::Mutation& row) {
    Answer answer;
    node().spawn(read(&node(), shard, row, &answer));
    REQUIRE(world().run_until([&] { return answer.came; }, 3'000'000));
    return answer.yes;
  }
  storage::PaxosRegisters registers(const storage::Mutation& row) {
    std::optional<storage::PaxosRegisters> found;
    node()
        .store(store_of(row))
        .read_registers({row.incarnation, row.position, row.partition_key},
                        {node().reactor().now_us() + 1'000'000},
                        [&](Result<storage::PaxosRegisters> read) {
                          REQUIRE(read);
                          found = std::move(*read);
                        });
    REQUIRE(world().run_until([&] { return found.has_value(); }, 1'000'000));
    return *found;
  }
  void put_registers(const storage::Mutation& row, const storage::PaxosRegisters& registers) {
    bool done = false;
    node()
        .store(store_of(row))
        .write_registers(
            {{row.incarnation, row.position, row.partition_key}, registers, nullptr, true}, {},
            [&](Result<void> written) { done = written.has_value(); });
    REQUIRE(world().run_until([&] { return done; }, 1'000'000));
  }

 private:
  SimCluster cluster_;
};

}  // namespace

TEST_CASE("the only member decides in one write, and writes nothing for a read") {
  OneNode one;
  const storage::Mutation row = row_of(one.table().incarnation, "key");
  const uint32_t own = one.store_of(row);
  CHECK(!one.is_there(own, row));
  CHECK(one.registers(row).empty());
  CHECK(one.insert_if_new(own, row));
  const storage::PaxosRegisters decided = one.registers(row);
  REQUIRE(decided.committed);
  CHECK(decided.settled);
  CHECK(!decided.accepted);
  CHECK(!one.insert_if_new(own, row));
  CHECK(one.is_there(own, row));
  CHECK(one.registers(row) == decided);

  // A shard without the store has to ask for votes.
  CHECK(!one.insert_if_new(1 - own, row));
  CHECK(one.is_there(1 - own, row));
  CHECK(one.registers(row).last() > decided.last());
  CHECK(!one.insert_if_new(own, row));
}

TEST_CASE("what the only member has accepted is completed before it decides alone") {
  OneNode one;
  const storage::Mutation row = row_of(one.table().incarnation, "key");
  storage::Proposal open;
  open.ballot.us = one.node().clock().wall_time_us();
  open.ballot.host = one.node().node().self();
  open.origin = open.ballot;
  storage::encode_mutation(row, open.value);
  storage::PaxosRegisters registers;
  registers.promised = open.ballot;
  registers.accepted = open;
  one.put_registers(row, registers);
  CHECK(one.is_there(one.store_of(row), row));
  CHECK(one.registers(row).committed->origin == open.origin);
}

TEST_CASE("a ballot that another coordinator was promised is refused once the member has decided") {
  OneNode one;
  const storage::Mutation row = row_of(one.table().incarnation, "key");
  storage::PaxosRegisters registers;
  registers.promised.us = one.node().clock().wall_time_us() + 1'000;
  registers.promised.host = one.node().node().self();
  one.put_registers(row, registers);
  CHECK(one.insert_if_new(one.store_of(row), row));
  CHECK(one.registers(row).last() > registers.promised);
}

}  // namespace tetrad::simulation
