// SPDX-License-Identifier: Apache-2.0
// Clients write with timestamps of the future. What is written later with the time of a coordinator
// is hidden: its client is warned whenever it is, also in a wide batch, and never when it is not
// (rule 28). Timestamps that may be those of a coordinator hide nothing.
#include "replication/coordinator/restamp.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr const char* kKey = "key";
constexpr int64_t kHourUs = int64_t{3600} * 1'000'000;
constexpr int kWideRows = 2500;  // more than are looked at together

Bytes name_of(int row) { return fmt::format("{:06}", row); }

class Future {
 public:
  explicit Future(uint64_t seed) : random_(seed * 8161 + 3), cluster_(seed, 1 + seed % 4) {
    for (size_t i = 0; i < cluster_.size(); ++i) cluster_[i].clock_skew_max_us = 50'000;
  }

  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    cluster_.world().run_for(6'000'000);  // the tablet grows
    const int hidden = 1 + static_cast<int>(random_.below(100));
    by_client({row(hidden, "client")});
    by_server({row(hidden, "server")}, true, "a hidden row");
    by_server({row(hidden + 1, "server")}, false, "a row beside it");
    by_server({row(hidden, std::nullopt)}, true, "a deletion that its row outlives");
    by_server({range(0, hidden)}, false, "a deletion of what lies before it");
    by_server({range(0, hidden + 1)}, true, "a deletion of many rows");
    by_server({partition()}, true, "a deletion of the partition");

    // The last row of a wide batch is hidden by one of many deletions.
    storage::Mutation deletions = mutation();
    for (int i = 0; i < 300; ++i)
      deletions.range_tombstones.push_back(
          range(200'000 + 10 * i, 200'001 + 10 * i).range_tombstones[0]);
    const int last = 200'000 + 10 * static_cast<int>(random_.below(300));
    by_client({deletions});
    by_server({wide(last, 1)}, true, "a wide batch");
    by_server({wide(last, 0)}, false, "a wide batch beside it");

    // So far ahead a coordinator may be that is ahead of this one.
    ahead_us_ = 9'000'000;
    by_client({row(7777, "client")});
    by_server({row(7777, "server")}, false, "a row that was written a little ahead of time");
    if (!wrong_.empty()) return wrong_;
    if (value_of(7777) != "server") return "a row written a little ahead of time hides a later one";
    if (value_of(hidden) != "client") return "a client's timestamp of the future does not win";
    if (value_of(hidden + 1) != std::nullopt) return "a deletion of the partition left a row";
    return "";
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  storage::Mutation mutation() {
    storage::Mutation out = row_change(incarnation_, kKey, stamp_us_, "", 0);
    out.rows.clear();
    return out;
  }
  storage::Mutation row(int number, const std::optional<std::string>& value) {
    auto out = row_change(incarnation_, kKey, stamp_us_, value, stamp_us_ / 1'000'000);
    out.rows.front().clustering_key = name_of(number);
    return out;
  }
  storage::Mutation range(int first, int end) {
    storage::Mutation out = mutation();
    out.range_tombstones.push_back(
        {{name_of(first), name_of(end)}, {stamp_us_, stamp_us_ / 1'000'000}});
    return out;
  }
  storage::Mutation partition() {
    storage::Mutation out = mutation();
    storage::RowRecord header;
    header.deletion = {stamp_us_, stamp_us_ / 1'000'000};
    storage::encode_row_record(header, out.header);
    return out;
  }
  /// Many rows that nothing hides, and so many that end with `last`.
  storage::Mutation wide(int last, int with) {
    storage::Mutation out = mutation();
    for (int i = 0; i < kWideRows; ++i)
      out.rows.push_back(std::move(row(100'000 + i, "wide").rows.front()));
    for (int i = 0; i < with; ++i) out.rows.push_back(std::move(row(last, "wide").rows.front()));
    return out;
  }

  /// All stamps of what `make` gave are replaced by that of the one who writes.
  void by_client(const std::vector<storage::Mutation>& mutations) {
    write(mutations, cluster_[0].node().clock().own_us(cluster_[0].reactor()) + ahead_us_, false,
          false, "a client's write");
  }
  void by_server(const std::vector<storage::Mutation>& mutations, bool warns, const char* what) {
    write(mutations, 0, true, warns, what);
  }
  void write(std::vector<storage::Mutation> mutations, int64_t stamp_us, bool is_server, bool warns,
             const char* what) {
    if (!wrong_.empty()) return;
    SimNode& node = cluster_[random_.below(cluster_.size())];
    for (storage::Mutation& each : mutations) {
      if (is_server) stamp_us = node.data().coordinator().next_timestamp_us();
      if (!replication::restamp(each, stamp_us_, stamp_us)) wrong_ = "a mutation does not read";
    }
    std::vector<std::string> warnings;
    std::optional<bool> done;
    node.spawn(write_stamped(&node, std::move(mutations),
                             is_server ? std::optional(stamp_us) : std::nullopt, &warnings, &done));
    if (!cluster_.world().run_until([&] { return done.has_value(); }, 6'000'000) || !*done)
      wrong_ = fmt::format("{} fails", what);
    else if (warnings.size() != (warns ? 1 : 0))
      wrong_ = fmt::format("{}: {} warnings {}", what, warnings.size(),
                           warnings.empty() ? "" : warnings.front());
    else if (warns && !warnings.front().starts_with("What was written is hidden by a timestamp"))
      wrong_ = fmt::format("{}: {}", what, warnings.front());
  }
  static Task<void> write_stamped(SimNode* node, std::vector<storage::Mutation> mutations,
                                  std::optional<int64_t> server_us,
                                  std::vector<std::string>* warnings, std::optional<bool>* done) {
    replication::WriteOptions options;
    options.level = ConsistencyLevel::kQuorum;
    options.deadline = {node->reactor().now_us() + 5'000'000};
    options.server_timestamp_us = server_us;
    options.warnings = warnings;
    auto written = co_await node->data().coordinator().write(std::move(mutations), options);
    *done = written.has_value();
  }
  std::optional<std::string> value_of(int number) {
    RowSeen seen;
    SimNode& node = cluster_[random_.below(cluster_.size())];
    node.spawn(read_one(&node, incarnation_, name_of(number), &seen));
    if (!cluster_.world().run_until([&] { return seen.answered; }, 3'000'000)) return "no answer";
    return seen.value;
  }
  static Task<void> read_one(SimNode* node, TableIncarnation incarnation, Bytes name,
                             RowSeen* seen) {
    replication::ReadOptions options;
    options.level = ConsistencyLevel::kQuorum;
    options.deadline = {node->reactor().now_us() + 2'000'000};
    auto command = row_read(incarnation, kKey, node->data().coordinator().now_us() / 1'000'000);
    command.rows = {std::move(name)};
    auto read = co_await node->data().coordinator().read(std::move(command), options);
    seen->answered = read.has_value();
    if (read) seen->value = simulation::value_of(*read);
  }

  static constexpr int64_t stamp_us_ = 1;  // what is made has this one first
  base::Random random_;
  SimCluster cluster_;
  TableIncarnation incarnation_;
  int64_t ahead_us_ = kHourUs;
  std::string wrong_;
};

}  // namespace

ScenarioResult run_future(uint64_t seed) {
  Future scenario(seed);
  std::string wrong = scenario.run();
  return {std::move(wrong), scenario.trace()};
}

}  // namespace tetrad::simulation
