// SPDX-License-Identifier: Apache-2.0
// The four members of a tablet hold different rows of one partition: what was acknowledged is on
// three of them, what failed on one. Quorum reads page through it with limits. Of every row they
// see a state that is not older than the last acknowledged one.
#include <array>

#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr int kRows = 8;
constexpr int kChanges = 40;

Bytes row_name(int row) { return std::string(1, static_cast<char>('a' + row)); }

struct Change {
  int64_t timestamp_us = 0;
  bool deletes = false;
};

/// What is known of one row.
struct RowPast {
  Change acknowledged;          // the last one; timestamp 0: none
  std::vector<Change> unknown;  // failed, and later than that
};

struct Seen {
  bool answered = false;
  std::array<int64_t, kRows> timestamps{};
};

Task<void> read_all(SimNode* node, storage::ReadCommand command, Seen* seen) {
  for (int page = 0; page < 3 * kRows; ++page) {
    replication::ReadOptions options;
    options.level = ConsistencyLevel::kQuorum;
    options.deadline = {node->reactor().now_us() + 2'000'000};
    auto read = co_await node->data().coordinator().read(command, options);
    if (!read) co_return;
    for (const auto& partition : read->partitions) {
      for (const auto& row : partition.rows) {
        storage::RowRecordReader reader;
        if (reader.open(row.record))
          seen->timestamps[static_cast<size_t>(row.clustering_key[0] - 'a')] =
              reader.liveness().timestamp_us;
      }
    }
    if (read->exhausted) {
      seen->answered = true;
      co_return;
    }
    command.resume_after = read->complete_up_to;
  }
}

bool explained(const RowPast& past, int64_t seen_us) {
  const auto fits = [&](const Change& change) {
    return change.deletes ? seen_us == 0 : seen_us == change.timestamp_us;
  };
  if (fits(past.acknowledged)) return true;
  for (const Change& change : past.unknown)
    if (fits(change)) return true;
  return seen_us == 0 && past.acknowledged.timestamp_us == 0;
}

}  // namespace

ScenarioResult run_divergence(uint64_t seed) {
  base::Random random(seed * 7127 + 29);
  SimCluster cluster(seed, 4);
  for (size_t i = 0; i < cluster.size(); ++i)
    cluster[i].data_options.repair.period_us = 3'600'000'000;
  const auto run = [&]() -> std::string {
    if (const auto wrong = form_with_table(cluster); !wrong.empty()) return wrong;
    cluster.world().run_for(5'000'000);
    const auto state = cluster[0].state();
    const replication::TableInfo& table = *state->tables.begin()->second;
    const auto members = table.tablets.find(partitioner::position_of("key")).replicas;
    if (members.size() != cluster.size()) return "the tablet has not four members";

    std::array<RowPast, kRows> past;
    int64_t timestamp_us = 1'000'000;
    const auto change_row = [&](bool acknowledged) {
      const int row = static_cast<int>(random.below(kRows));
      const Change change{++timestamp_us, random.one_in(2)};
      auto mutation = row_change(table.incarnation, "key", change.timestamp_us,
                                 change.deletes ? std::nullopt : std::optional<std::string>("v"),
                                 change.timestamp_us / 1'000'000);
      mutation.rows.front().clustering_key = row_name(row);
      const size_t chosen = random.below(members.size());
      for (size_t i = 0; i < members.size(); ++i) {
        if ((i == chosen) == acknowledged) continue;
        for (size_t n = 0; n < cluster.size(); ++n)
          if (cluster[n].node().self() == members[i].host)
            cluster[n].store(members[i].store).apply(mutation, [](Result<void>) {});
      }
      RowPast& known = past[static_cast<size_t>(row)];
      if (acknowledged) {
        known.acknowledged = change;
        known.unknown.clear();
      } else {
        known.unknown.push_back(change);
      }
    };
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < kChanges; ++i) change_row(random.one_in(2));
      cluster.world().run_for(10'000);
      storage::ReadCommand command;
      command.incarnation = table.incarnation;
      command.partition_key = "key";
      command.position = partitioner::position_of("key");
      command.now_s = 1;
      command.reversed = random.one_in(3);
      command.row_limit = 1 + static_cast<uint32_t>(random.below(4));
      Seen seen;
      SimNode& via = cluster[random.below(cluster.size())];
      via.spawn(read_all(&via, command, &seen));
      if (!cluster.world().run_until([&] { return seen.answered; }, 20'000'000))
        return "a read does not come to its end";
      for (int row = 0; row < kRows; ++row) {
        RowPast& known = past[static_cast<size_t>(row)];
        const int64_t saw_us = seen.timestamps[static_cast<size_t>(row)];
        if (!explained(known, saw_us))
          return fmt::format("row {} is seen with {} although {} was acknowledged", row_name(row),
                             saw_us, known.acknowledged.timestamp_us);
      }
    }
    return "";
  };
  return {run(), trace_of(cluster)};
}

}  // namespace tetrad::simulation
