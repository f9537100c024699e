// SPDX-License-Identifier: Apache-2.0
// Tablets whose logical partitions have little but Paxos registers, as INSERT IF NOT EXISTS and
// DELETE, or SERIAL reads of what is not there, leave them: they move, split and are repaired.
#include <algorithm>

#include <catch2/catch.hpp>

#include "storage/row/paxos_registers.h"
#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

using partitioner::TabletStage;

const replication::TableInfo& the_table(SimCluster& cluster) {
  return *cluster[0].state()->tables.begin()->second;
}

bool all_normal_with(SimCluster& cluster, size_t members) {
  return std::ranges::all_of(the_table(cluster).tablets.tablets(), [&](const auto& tablet) {
    return tablet.stage == TabletStage::kNormal && tablet.replicas.size() == members;
  });
}

/// Above every purge horizon.
storage::PaxosRegisters registers_of(uint64_t number) {
  storage::PaxosRegisters registers;
  registers.promised = {int64_t{1} << 60, {}, number + 1, 0};
  registers.promised.host.value.octets[0] = 1;
  registers.accepted = storage::Proposal{registers.promised, registers.promised, {}, ""};
  return registers;
}

/// Every `rows_every`th with a row; 0: none.
void fill(SimCluster& cluster, size_t partitions, size_t rows_every) {
  const TableIncarnation incarnation = the_table(cluster).incarnation;
  size_t written = 0;
  for (size_t i = 0; i < partitions; ++i) {
    const storage::Mutation row = row_of(incarnation, "key" + std::to_string(i));
    const storage::PaxosRegisters registers = registers_of(i);
    const bool has_row = rows_every != 0 && i % rows_every == 0;
    cluster[0].store(0).write_registers({{incarnation, row.position, row.partition_key},
                                         registers,
                                         has_row ? &row : nullptr,
                                         false},
                                        {},
                                        [&](Result<void> result) { written += result ? 1 : 0; });
    if (i % 1000 == 999) cluster.world().run_for(1'000);
  }
  REQUIRE(cluster.world().run_until([&] { return written == partitions; }, 10'000'000));
}

size_t registers_at(SimCluster& cluster, size_t node) {
  size_t count = 0;
  Bytes after;
  for (bool exhausted = false; !exhausted;) {
    bool answered = false;
    cluster[node].store(0).list_registers(the_table(cluster).incarnation, {}, after, 10'000,
                                          [&](Result<storage::Store::RegistersPage> page) {
                                            REQUIRE(page);
                                            count += page->entries.size();
                                            exhausted = page->exhausted;
                                            after = page->next;
                                            answered = true;
                                          });
    REQUIRE(cluster.world().run_until([&] { return answered; }, 10'000'000));
  }
  return count;
}

Task<void> split(SimNode* node, const partitioner::Tablet* tablet, TableIncarnation incarnation,
                 RingPosition at) {
  const base::Deadline deadline{node->reactor().now_us() + 2'000'000};
  auto result = co_await node->node().meta_group().propose(
      replication::SplitTablet{incarnation, tablet->id, tablet->range, at}, deadline);
  (void)result;
}

}  // namespace

TEST_CASE("tablets with hundreds of thousands of registers move, are repaired and split") {
  struct Case {
    size_t partitions, rows_every;
  };
  const Case each = GENERATE(Case{200'000, 0}, Case{50'000, 3});
  INFO("partitions=" << each.partitions << " rows every=" << each.rows_every);
  SimCluster cluster(1, 3);
  for (size_t i = 0; i < cluster.size(); ++i) {
    replication::RepairOptions& repair = cluster[i].data_options.repair;
    repair.look_every_us = 200'000;
    repair.period_us = 1'000'000;
    repair.retry_us = 300'000;
  }
  cluster[0].options().found = true;
  cluster[0].start();
  REQUIRE(cluster.world().run_until([&] { return cluster[0].is_ready(); }, 1'000'000));
  bool created = false;
  cluster[0].spawn(create_table(&cluster[0], 0, &created));
  REQUIRE(cluster.world().run_until([&] { return created; }, 5'000'000));
  fill(cluster, each.partitions, each.rows_every);

  cluster[1].start();
  REQUIRE(cluster.world().run_until([&] { return all_normal_with(cluster, 2); }, 60'000'000));
  CHECK(registers_at(cluster, 1) == each.partitions);

  const int64_t moved_us = cluster[0].clock().wall_time_us();
  const auto repaired = [&] {
    return std::ranges::all_of(the_table(cluster).tablets.tablets(),
                               [&](const auto& tablet) { return tablet.repaired_us > moved_us; });
  };
  CHECK(cluster.world().run_until(repaired, 60'000'000));

  const partitioner::Tablet whole = the_table(cluster).tablets.tablets().front();
  const RingPosition middle = row_of(the_table(cluster).incarnation, "key1").position;
  const size_t tablets = the_table(cluster).tablets.tablets().size();
  cluster[0].spawn(split(&cluster[0], &whole, the_table(cluster).incarnation, middle));
  CHECK(cluster.world().run_until(
      [&] { return the_table(cluster).tablets.tablets().size() > tablets; }, 5'000'000));
  cluster[2].start();
  REQUIRE(cluster.world().run_until([&] { return all_normal_with(cluster, 3); }, 60'000'000));
  for (size_t node = 0; node < cluster.size(); ++node)
    CHECK(registers_at(cluster, node) == each.partitions);
}

}  // namespace tetrad::simulation
