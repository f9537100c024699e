// SPDX-License-Identifier: Apache-2.0
// The change feed of a table on a cluster: what a reader gets, and what it is told when it cannot
// get it. That it misses nothing under faults is data_simulation's.
#include <set>

#include <catch2/catch.hpp>

#include "tests/simulation/support/sim_cluster.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {

namespace {

using replication::ChangesCommand;
using replication::ChangesPage;

constexpr int64_t kSecondUs = 1'000'000;

Task<void> change_schema(SimNode* node, replication::SchemaChange change, bool* done) {
  const base::Deadline deadline{node->reactor().now_us() + 15 * kSecondUs};
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  *done = result.has_value();
}

Task<void> write_row(SimNode* node, storage::Mutation mutation, std::optional<bool>* done) {
  std::vector<storage::Mutation> mutations;
  mutations.push_back(std::move(mutation));
  replication::WriteOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + 2 * kSecondUs};
  auto result = co_await node->data().coordinator().write(std::move(mutations), options);
  if (!result) UNSCOPED_INFO(result.error().message);
  *done = result.has_value();
}

Task<void> read_changes(SimNode* node, ChangesCommand command,
                        std::optional<Result<ChangesPage>>* out) {
  replication::ReadOptions options;
  options.level = ConsistencyLevel::kQuorum;
  options.deadline = {node->reactor().now_us() + 2 * kSecondUs};
  auto result = co_await node->data().coordinator().changes(std::move(command), options);
  out->emplace(std::move(result));
}

/// Nodes with one table ks.t.
struct FeedCluster {
  SimCluster cluster;

  FeedCluster(uint64_t seed, size_t nodes, bool change_log, uint32_t stores = 1,
              uint32_t tablets = 0)
      : cluster(seed, nodes, stores) {
    for (size_t i = 0; i < nodes; ++i) cluster[i].clock_skew_max_us = 100'000;
    REQUIRE(cluster.form());
    replication::SchemaChange schema = change();
    replication::SchemaChange::NewTable table = table_t();
    table.change_log = change_log;
    table.initial_tablets = tablets;
    schema.new_tables.push_back(table);
    apply(std::move(schema));
    cluster.world().run_for(2 * kSecondUs);  // all have heard of all
  }
  replication::SchemaChange change() {
    replication::SchemaChange out;
    out.expected = cluster[0].state()->schema_version;
    return out;
  }
  void apply(replication::SchemaChange schema) {
    bool done = false;
    cluster[0].spawn(change_schema(&cluster[0], std::move(schema), &done));
    REQUIRE(cluster.world().run_until([&] { return done; }, 20 * kSecondUs));
  }
  const replication::TableInfo& table(size_t node = 0) {
    return *cluster[node].state()->tables.begin()->second;
  }
  void set_change_log(bool on) {
    replication::SchemaChange schema = change();
    schema.altered_tables.push_back({table().id, "ks", "t", 0, on});
    apply(std::move(schema));
  }
  bool write(const std::string& key, size_t via = 0) {
    std::optional<bool> done;
    cluster[via].spawn(write_row(&cluster[via], row_of(table(via).incarnation, key), &done));
    REQUIRE(cluster.world().run_until([&] { return done.has_value(); }, 5 * kSecondUs));
    return *done;
  }
  Result<ChangesPage> read(Bytes after, size_t via = 0, uint32_t changes_max = 1000,
                           int64_t since_us = 0, const std::string& key = "") {
    ChangesCommand command;
    command.incarnation = table(via).incarnation;
    command.after = std::move(after);
    command.changes_max = changes_max;
    command.since_us = since_us;
    if (!key.empty()) command.partition.emplace(partitioner::position_of(key), key);
    std::optional<Result<ChangesPage>> page;
    cluster[via].spawn(read_changes(&cluster[via], std::move(command), &page));
    REQUIRE(cluster.world().run_until([&] { return page.has_value(); }, 5 * kSecondUs));
    return std::move(*page);
  }
  void settle() { cluster.world().run_for(kSecondUs / 2); }
};

std::string text_of(const Result<ChangesPage>& page) {
  if (!page) return "error: " + page.error().message;
  if (page->must_scan) return "scan";
  std::string text;
  for (const replication::Change& change : page->changes) text += Bytes(change.partition_key) + " ";
  return text + (page->exhausted ? "." : "...");
}

}  // namespace

TEST_CASE("a reader gets what was written, once where all members live, and goes on from there") {
  FeedCluster feed(3, 4, true);
  auto page = feed.read("");
  CHECK(text_of(page) == ".");
  for (const char* key : {"a", "b", "c", "d"}) {
    REQUIRE(feed.write(key, key[0] % 4));
    feed.settle();
  }
  page = feed.read(page->next, 1, 3);
  CHECK(text_of(page) == "a b c ...");
  page = feed.read(page->next, 2, 3);
  CHECK(text_of(page) == "d .");
  page = feed.read(page->next, 3);
  CHECK(text_of(page) == ".");
  REQUIRE(feed.write("b"));
  feed.settle();
  CHECK(text_of(feed.read(page->next)) == "b .");
  CHECK(text_of(feed.read("", 0, 1000, 0, "b")) == "b .");
  CHECK(text_of(feed.read("", 0, 1, 0, "c")) == "c .");
  CHECK(page->next.size() <= 12 + 4 * 30);
  // Since a time: at most ten seconds more than was asked for.
  feed.cluster.world().run_for(30 * kSecondUs);
  REQUIRE(feed.write("e"));
  const int64_t now_us = feed.cluster[0].reactor().wall_time_us();
  feed.settle();
  CHECK(text_of(feed.read("", 0, 1000, now_us)) == "e .");
}

TEST_CASE("a page ends by the bytes of its keys, too") {
  FeedCluster feed(15, 4, true, 4, 8);
  constexpr size_t kKeys = 100, kKeyBytes = 60'000;
  const auto key_of = [](size_t i) { return fmt::format("{:03}", i) + Bytes(kKeyBytes - 3, 'k'); };
  for (size_t i = 0; i < kKeys; ++i) REQUIRE(feed.write(key_of(i), i % 4));
  feed.settle();
  Bytes after;
  std::multiset<Bytes> seen;
  for (bool exhausted = false; !exhausted;) {
    const auto page = feed.read(after);
    REQUIRE(page);
    CHECK(page->changes.size() * kKeyBytes <= (1u << 20) + kKeyBytes);
    CHECK((page->changes.size() * kKeyBytes >= (1u << 20) || page->exhausted));
    for (const replication::Change& change : page->changes) seen.insert(change.partition_key);
    after = page->next;
    exhausted = page->exhausted;
  }
  for (size_t i = 0; i < kKeys; ++i) CHECK(seen.contains(key_of(i)));
  CHECK(seen.size() == kKeys);
}

TEST_CASE("a page needs as many members as any quorum of writers must meet") {
  FeedCluster feed(5, 3, true);
  REQUIRE(feed.write("a"));
  feed.cluster[1].kill();
  REQUIRE(feed.write("b"));
  feed.settle();
  CHECK(text_of(feed.read("")) == "a b .");
  feed.cluster[2].kill();
  const auto timed_out = feed.read("");  // not known to be down yet
  REQUIRE(!timed_out);
  CHECK(timed_out.error().code == ErrorCode::kReadTimeout);
  feed.cluster.world().run_for(20 * kSecondUs);
  const auto refused = feed.read("");
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kUnavailable);
  // What a member has missed comes with it.
  feed.cluster[1].start();
  feed.cluster.world().run_for(10 * kSecondUs);
  CHECK(text_of(feed.read("", 1)).starts_with("a b "));
}

TEST_CASE("places of another table, and what are none, are refused") {
  FeedCluster feed(7, 2, false);
  CHECK(text_of(feed.read("")) == "error: table ks.t keeps no change log");
  feed.set_change_log(true);
  auto page = feed.read("");
  REQUIRE(page);
  CHECK(page->must_scan);  // the log does not reach back to the beginning of time
  page = feed.read(page->next);
  CHECK(text_of(page) == ".");
  CHECK(feed.read("rubbish").error().code == ErrorCode::kInvalid);
  const Bytes old = page->next;
  replication::SchemaChange truncate = feed.change();
  truncate.truncated_tables.push_back(feed.table().id);
  feed.apply(std::move(truncate));
  const auto refused = feed.read(old);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kInvalid);
  CHECK(refused.error().message.find("has ended") != std::string::npos);
  // The new log is as old as what is left of the table.
  CHECK(text_of(feed.read("")) == ".");
  const Bytes newer = feed.read("")->next;
  feed.set_change_log(false);
  feed.set_change_log(true);
  CHECK(feed.read(newer).error().code == ErrorCode::kInvalid);
}

TEST_CASE("who asks for more than the logs of enough members hold is told to read the table") {
  FeedCluster feed(9, 2, false);
  REQUIRE(feed.write("before"));
  feed.cluster.network().set_deaf(feed.cluster[1].endpoint(), true);
  bool altered = false;
  replication::SchemaChange schema = feed.change();
  schema.altered_tables.push_back({feed.table().id, "ks", "t", 0, true});
  feed.cluster[0].spawn(change_schema(&feed.cluster[0], std::move(schema), &altered));
  feed.cluster.world().run_for(3 * kSecondUs);
  REQUIRE(feed.table(0).change_log);
  REQUIRE(!feed.table(1).change_log);
  feed.cluster.world().run_for(12 * kSecondUs);
  const int64_t since_us = feed.cluster[0].reactor().wall_time_us();
  REQUIRE(feed.write("unlogged by the second"));
  feed.settle();
  auto first = feed.read("", 0, 1000, since_us);
  CHECK(text_of(first) == "unlogged by the second .");
  feed.cluster.network().hear_all();
  REQUIRE(feed.cluster.world().run_until([&] { return feed.table(1).change_log.has_value(); },
                                         20 * kSecondUs));
  feed.settle();
  feed.cluster[0].kill();
  // The only one left began its log too late.
  auto page = feed.read("", 1, 1000, since_us);
  CHECK(text_of(page) == "scan");
  CHECK(text_of(feed.read(page->next, 1)) == ".");
  // The place in a log that nobody has seen yet counts from the beginning.
  CHECK(text_of(feed.read(first->next, 1)) == "scan");
}

}  // namespace tetrad::simulation
