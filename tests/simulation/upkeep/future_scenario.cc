// SPDX-License-Identifier: Apache-2.0
// Clients write with timestamps of the future. What is written later with the time of a coordinator
// is hidden: its client is warned whenever it is, also in a wide batch, and never when it is not
// (rule 28). Timestamps that may be those of a coordinator hide nothing. Conditional statements
// pass those of the rows that they write, and only there (rule 27).
#include <limits>
#include <memory>

#include "base/sleep.h"
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

/// One conditional statement of one row, whose value it compares and replaces.
class Swap final : public replication::ConditionalStatement {
 public:
  Swap(TableIncarnation incarnation, std::string key, Bytes name)
      : incarnation_(incarnation), key_(std::move(key)), name_(std::move(name)) {}

  storage::ReadCommand read_command() const override {
    auto command = row_read(incarnation_, key_, 0);
    command.rows = {name_};
    return command;
  }
  Task<Result<std::optional<storage::Mutation>>> decide(
      const storage::ReadResult& rows, replication::ConditionalMoment its_moment) override {
    moment = its_moment;
    seen = live_value(rows, moment.now_s());
    if (seen != expected) co_return std::optional<storage::Mutation>();
    auto mutation = row_change(incarnation_, key_, moment.timestamp_us, value, 0);
    storage::RowChange& row = mutation.rows.front();
    row.clustering_key = name_;
    storage::RowRecord record;
    storage::Cell cell;
    cell.column_id = 1;
    cell.timestamp_us = moment.timestamp_us;
    cell.value = value;
    if (ttl_s != 0) cell.ttl_s = ttl_s, cell.expiry_s = moment.now_s() + ttl_s;
    record.cells.push_back(cell);
    row.record.clear();
    storage::encode_row_record(record, row.record);
    co_return std::optional<storage::Mutation>(std::move(mutation));
  }

  std::optional<std::string> expected;
  std::string value = "new";
  int32_t ttl_s = 0;
  std::optional<Result<bool>> answer;
  std::optional<std::string> seen;
  replication::ConditionalMoment moment;

 private:
  static std::optional<std::string> live_value(const storage::ReadResult& rows, int64_t now_s) {
    for (const auto& partition : rows.partitions) {
      for (const auto& row : partition.rows) {
        storage::RowRecordReader reader;
        storage::Cell cell;
        if (reader.open(row.record) && reader.next(cell) && cell.live_at(now_s))
          return std::string(cell.value);
      }
    }
    return std::nullopt;
  }

  const TableIncarnation incarnation_;
  const std::string key_;
  const Bytes name_;
};

/// Conditional statements beside such timestamps: they see and pass those of their own rows, and
/// all else stays of now, the `now` of their conditions too.
class FutureStatements {
 public:
  explicit FutureStatements(uint64_t seed)
      : random_(seed * 7919 + 5), cluster_(seed, 1 + seed % 4) {
    for (size_t i = 0; i < cluster_.size(); ++i) cluster_[i].clock_skew_max_us = kSkewUs;
  }

  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    cluster_.world().run_for(6'000'000);  // the tablet grows
    static constexpr int64_t kAheadUs[] = {60'000'000, kHourUs, kHourUs * 24 * 36'500};
    for (int i = 0; i < kFarPartitions; ++i) write(far_key(i), "row", now_us() + kAheadUs[i % 3]);
    others_stay_of_now("after the client's writes");
    for (int i = 0; i < 6 && wrong_.empty(); ++i) one_partition(i, now_us() + kAheadUs[i % 3]);
    others_stay_of_now("after conditional statements of those rows");
    restart();
    for (int i = 0; i < 3; ++i) swap(far_key(i), "row", "last", "again");
    others_stay_of_now("after a restart");
    for (int i = 0; i < 12 && wrong_.empty(); ++i) side_by_side(i);
    beside_a_writer();
    with_ttl();
    rising();
    at_the_end();
    passed();
    return wrong_;
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  static constexpr int64_t kSkewUs = 400'000;
  static constexpr int kFarPartitions = 60;

  static std::string far_key(int i) { return fmt::format("far{}", i); }
  int64_t now_us() { return cluster_[0].node().clock().own_us(cluster_[0].reactor()); }
  void wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  struct Asked {
    bool is_of_now = true;
    replication::ConditionalMoment moment;
  };

  /// Applied if `expected` is what is there.
  Asked swap(const std::string& key, const Bytes& name, std::optional<std::string> expected,
             const std::string& value, int32_t ttl_s = 0) {
    Asked asked;
    if (!wrong_.empty()) return asked;
    auto statement = std::make_unique<Swap>(incarnation_, key, name);
    statement->expected = std::move(expected);
    statement->value = value;
    statement->ttl_s = ttl_s;
    const bool ended = ask(*statement);
    const std::string what = fmt::format("{}/{} to {}", key, name, value);
    if (!ended)
      wrong("no answer to " + what);
    else if (!*statement->answer)
      wrong(fmt::format("{} fails: {}", what, statement->answer->error().message));
    else if (!**statement->answer)
      wrong(fmt::format("{} is not applied, it saw {}", what, statement->seen.value_or("nothing")));
    asked.moment = statement->moment;
    if (std::abs(asked.moment.now_us - now_us()) > 4 * kSkewUs)
      wrong(fmt::format("{} is of another time, by {} us", what, asked.moment.now_us - now_us()));
    asked.is_of_now = asked.moment.timestamp_us - now_us() < 4 * kSkewUs;
    return asked;
  }
  bool ask(Swap& statement) {
    SimNode* const node = ready_node(cluster_, random_.below(cluster_.size()));
    if (node == nullptr) return false;
    node->spawn(run_swap(node, &statement));
    return cluster_.world().run_until([&] { return statement.answer.has_value(); }, 4'000'000);
  }
  static Task<void> run_swap(SimNode* node, Swap* statement) {
    replication::ConditionalOptions options;
    options.deadline = {node->reactor().now_us() + 2'000'000};
    options.contention_deadline = {node->reactor().now_us() + 1'000'000};
    auto answer = co_await node->data().coordinator().write_if(*statement, options);
    statement->answer = std::move(answer);
  }

  /// A client's, with a timestamp of its own.
  void write(const std::string& key, const Bytes& name, int64_t stamp_us) {
    if (!wrong_.empty()) return;
    SimNode* const node = ready_node(cluster_, random_.below(cluster_.size()));
    std::optional<bool> done;
    if (node != nullptr) {
      auto mutation = row_change(incarnation_, key, stamp_us, "client", 0);
      mutation.rows.front().clustering_key = name;
      node->spawn(write_one(node, std::move(mutation), &done));
    }
    if (!cluster_.world().run_until([&] { return done.has_value(); }, 6'000'000) || !*done)
      wrong("a client's write fails");
  }
  static Task<void> write_one(SimNode* node, storage::Mutation mutation,
                              std::optional<bool>* done) {
    replication::WriteOptions options;
    options.level = ConsistencyLevel::kQuorum;
    options.deadline = {node->reactor().now_us() + 5'000'000};
    std::vector<storage::Mutation> mutations;
    mutations.push_back(std::move(mutation));
    auto written = co_await node->data().coordinator().write(std::move(mutations), options);
    *done = written.has_value();
  }

  /// Partitions that no client has written to: they share the buckets of those where one has.
  void others_stay_of_now(const char* when) {
    ++round_;
    for (int i = 0; i < 20 && wrong_.empty(); ++i) {
      const std::string key = fmt::format("near{}", i);
      const auto before = round_ == 1 ? std::nullopt : std::optional(std::to_string(round_ - 1));
      if (!swap(key, "row", before, std::to_string(round_)).is_of_now)
        wrong(fmt::format("{} a timestamp of {} is of the future", when, key));
    }
  }
  void one_partition(int number, int64_t far_us) {
    const std::string key = far_key(number);
    swap(key, "other", std::nullopt, "first");
    const auto first = swap(key, "row", "client", "second");
    if (first.moment.timestamp_us <= far_us - 30'000'000)
      wrong("a statement does not pass what it overwrites");
    swap(key, "other", "first", "second");
    swap(key, "row", "second", "third");
    swap(key, "row", "third", "last");
  }
  /// Of a client whose clock is ahead, and who writes to a partition all the time.
  void beside_a_writer() {
    SimNode* const node = ready_node(cluster_, random_.below(cluster_.size()));
    if (node == nullptr || !wrong_.empty()) return;
    bool ends = false;
    std::optional<bool> ended;
    for (int i = 0; i < 4; ++i) node->spawn(write_on(node, i, &ends, &ended));
    for (int i = 0; i < 5; ++i)
      swap("busy", "mine", i == 0 ? std::nullopt : std::optional(std::to_string(i - 1)),
           std::to_string(i));
    ends = true;
    cluster_.world().run_for(6'000'000);
  }
  Task<void> write_on(SimNode* node, int number, const bool* ends, std::optional<bool>* done) {
    while (!*ends) {
      auto mutation = row_change(incarnation_, "busy", now_us() + 3'000'000, "theirs", 0);
      mutation.rows.front().clustering_key = fmt::format("theirs{}", number);
      co_await write_one(node, std::move(mutation), done);
      co_await base::sleep_for(node->reactor(), 500);
    }
  }
  /// Two rows of a partition at once, both of them under one timestamp.
  void side_by_side(int i) {
    const std::string key = far_key(2);
    const std::string names[] = {fmt::format("left{}", i), fmt::format("right{}", i)};
    const int64_t far_us = now_us() + kHourUs * 24 * 36'500 * 2 + i * kHourUs;
    std::vector<std::unique_ptr<Swap>> both;
    for (const std::string& name : names) {
      write(key, name, far_us);
      both.push_back(std::make_unique<Swap>(incarnation_, key, name));
      both.back()->expected = "client";
    }
    for (auto& one : both) {
      SimNode* const node = ready_node(cluster_, random_.below(cluster_.size()));
      if (node == nullptr || !wrong_.empty()) return;
      node->spawn(run_swap(node, one.get()));
    }
    for (auto& one : both) {
      const auto ended = [&] { return one->answer.has_value(); };
      if (!cluster_.world().run_until(ended, 4'000'000) || !*one->answer || !**one->answer)
        return wrong("one of two rows of a partition is not written");
    }
    if (both[0]->moment.timestamp_us == both[1]->moment.timestamp_us)
      wrong("two values of a partition have one timestamp");
  }
  void restart() {
    if (!wrong_.empty()) return;
    const size_t victim = random_.below(cluster_.size());
    cluster_[victim].kill();
    cluster_.world().run_for(1'000'000);
    cluster_[victim].start();
    const auto all_ready = [&] {
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (!cluster_[i].is_ready()) return false;
      return true;
    };
    if (!cluster_.world().run_until(all_ready, 30'000'000)) wrong("a node does not come back");
    cluster_.world().run_for(5'000'000);
  }
  /// In a partition whose ballots are ahead of the clock a row lives as long as elsewhere.
  void with_ttl() {
    swap(far_key(0), "ttl", std::nullopt, "lives", 30);
    swap(far_key(0), "ttl", "lives", "lives still", 30);
    cluster_.world().run_for(20'000'000);
    swap(far_key(0), "ttl", "lives still", "lives on", 10);
    cluster_.world().run_for(13'000'000);
    swap(far_key(0), "ttl", std::nullopt, "is made anew", 30);
  }
  /// Whoever coordinates, and wherever a client's timestamp makes a ballot jump over those between.
  void rising() {
    int64_t last_us = 0;
    for (int i = 0; i < 40 && wrong_.empty(); ++i) {
      if (i % 4 == 3) write(far_key(1), "rising", now_us() + kHourUs * 24 * 400 + i * kHourUs);
      const auto before = i == 0       ? std::nullopt
                          : i % 4 == 3 ? std::optional<std::string>("client")
                                       : std::optional(std::to_string(i - 1));
      const Asked asked = swap(far_key(1), "rising", before, std::to_string(i));
      if (asked.moment.now_us <= last_us)
        wrong(fmt::format("now goes back by {} us", last_us - asked.moment.now_us));
      last_us = asked.moment.now_us;
    }
  }
  /// Nothing is above the last timestamp. Conditions that do not hold are told, and other rows and
  /// partitions go on.
  void at_the_end() {
    write("end", "row", std::numeric_limits<int64_t>::max());
    if (!wrong_.empty()) return;
    Swap fails(incarnation_, "end", "row"), holds(incarnation_, "end", "row");
    fails.expected = "something else";
    holds.expected = "client";
    if (!ask(fails) || !*fails.answer || **fails.answer)
      return wrong("a condition at the end of time is not told");
    if (!ask(holds) || *holds.answer || holds.answer->error().code != ErrorCode::kInvalid)
      return wrong("a statement at the end of time is not refused");
    swap("end", "other", std::nullopt, "new");
  }
  /// When the clock has passed it a client's timestamp is of no account any more.
  void passed() {
    write("soon", "row", now_us() + 15'000'000);
    if (swap("soon", "row", "client", "ahead").is_of_now) wrong("a row is written under another");
    cluster_.world().run_for(20'000'000);
    if (!swap("soon", "row", "ahead", "of now").is_of_now)
      wrong("a partition does not come back to now");
    others_stay_of_now("at the end");
  }

  base::Random random_;
  SimCluster cluster_;
  TableIncarnation incarnation_;
  int round_ = 0;
  std::string wrong_;
};

}  // namespace

ScenarioResult run_future(uint64_t seed) {
  Future scenario(seed);
  std::string wrong = scenario.run();
  FutureStatements statements(seed);
  if (wrong.empty()) wrong = statements.run();
  return {std::move(wrong), scenario.trace() * 31 + statements.trace()};
}

}  // namespace tetrad::simulation
