// SPDX-License-Identifier: Apache-2.0
// The change log of one store, over RocksDB and over the model.
#include "replication/changes/change_log.h"

#include <catch2/catch.hpp>

#include "tests/unit/replication/one_table_meta.h"
#include "tests/unit/storage/storage_rig.h"

namespace tetrad::replication {
namespace {

using storage::encoded;
using storage::record_of;
using storage::row_mutation;
using storage::value_cell;

constexpr int64_t kHourUs = int64_t{3600} * 1'000'000;
constexpr TableIncarnation kOlderLog{6}, kLaterLog{8};  // than storage::kTable

class NoTransport final : public Transport {
 public:
  bool send(const Endpoint&, Bytes, Lane) override { return true; }
  void set_receive_handler(ReceiveHandler) override {}
  uint64_t queued_bytes(const Endpoint&) const override { return 0; }
};

class LoggedMeta final : public OneTableMeta {
 public:
  explicit LoggedMeta(std::optional<TableIncarnation> log) { set(log); }
  void set(std::optional<TableIncarnation> log) {
    auto table = std::make_shared<TableInfo>();
    table->incarnation = storage::kTable;
    table->change_log = log;
    partitioner::Tablet tablet;
    tablet.epoch = SetEpoch{5};
    table->tablets = partitioner::TabletMap({tablet});
    set_table(std::move(table));
  }
  const TableInfo& table() const { return *state_->table(storage::kTable); }
};

/// A store with the log of its one table.
struct LogRig {
  storage::StoreRig rig;
  base::Random random{1};
  NoTransport transport;
  LoggedMeta meta;
  HybridClock clock;
  ChangeLogOptions options;
  std::unique_ptr<RpcNode> rpc;
  std::shared_ptr<storage::MemoryDisk> disk = std::make_shared<storage::MemoryDisk>();
  std::unique_ptr<storage::LocalLog> log;
  /// By a power cut before the next life.
  std::vector<std::optional<PowerLoss>> losses;
  std::unique_ptr<BehindStores> behind;
  std::unique_ptr<ChangeLogs> logs;

  LogRig(std::shared_ptr<storage::StoreFactory> factory, std::optional<TableIncarnation> change_log)
      : rig(std::move(factory)), meta(change_log) {
    clock.begin(rig.reactor.wall_time_us(), rig.reactor);
    begin();
  }
  ~LogRig() {
    logs.reset();
    behind.reset();
    log.reset();
  }
  void begin() {
    rpc =
        std::make_unique<RpcNode>(rig.reactor, random, transport, HostId{}, RpcOptions{}, Logger());
    log = storage::make_memory_local_log(disk, rig.reactor);
    behind = std::make_unique<BehindStores>(rig.reactor, *log, meta, clock, std::vector<bool>{true},
                                            std::exchange(losses, {}), Logger());
    logs = std::make_unique<ChangeLogs>(rig.reactor, *rpc, meta, clock,
                                        std::vector<storage::Store*>{rig.store.get()}, *behind,
                                        options, Logger());
  }
  /// As a node that forgets its time between two lives.
  void set_wall_time_us(int64_t wall_us) {
    rig.reactor.set_wall_time_us(wall_us);
    clock.begin(wall_us, rig.reactor);
  }
  void crash_and_open() {
    logs.reset();
    behind.reset();
    log.reset();
    rpc.reset();
    rig.crash();
    rig.open();
    begin();
  }
  void open_log() {
    REQUIRE(rig.comes([&] { return logs->may_take(meta.table(), 0); }));
  }
  /// As a replica applies it.
  void apply(const storage::Mutation& mutation) {
    open_log();
    const auto noted = logs->note(meta.table(), 0, mutation);
    if (!noted) FAIL(noted.error().message);
    REQUIRE(rig.apply(mutation));
  }
  void write(std::string key) { apply(row_mutation(5, key, "c", storage::inserted(10, "v"))); }

  ChangesRequest request(ChangeSequence after, uint32_t changes_max = 1000) {
    ChangesRequest out;
    out.table = storage::kTable;
    out.log = *meta.table().change_log;
    out.layout = layout_of(meta.table());
    out.after = after;
    out.changes_max = changes_max;
    return out;
  }
  Result<ChangesAnswer> ask(const ChangesRequest& wanted) {
    std::optional<Result<ChangesAnswer>> answer;
    logs->answer(0, wanted, [&](Result<ChangesAnswer> a) { answer = std::move(a); });
    REQUIRE(rig.comes([&] { return answer.has_value(); }));
    return std::move(*answer);
  }
  ChangesAnswer page(ChangeSequence after, uint32_t changes_max = 1000) {
    auto answer = ask(request(after, changes_max));
    if (!answer) FAIL(answer.error().message);
    return std::move(*answer);
  }
  void settle() { rig.reactor.advance_us(options.settle_us * 2); }
  void sweep() {
    bool done = false;
    logs->sweep_now([&] { done = true; });
    REQUIRE(rig.comes([&] { return done; }));
  }
  void pass_us(int64_t us) { rig.reactor.advance_us(us); }
};

std::string text_of(const ChangesAnswer& answer) {
  std::string text;
  for (const auto& [sequence, change] : answer.changes)
    text += fmt::format("{}/{} ", change.partition_key, change.clustering_key.value_or("static"));
  if (!text.empty()) text.pop_back();
  return text;
}

std::vector<std::shared_ptr<storage::StoreFactory>> both() {
  storage::StoreOptions options;
  options.in_memory_files = true;
  return {storage::make_memory_store_factory(std::make_shared<storage::MemoryDisk>(), options),
          storage::make_rocks_store_factory(options, Logger())};
}

}  // namespace

TEST_CASE("a change log has an entry for each row that was given values, in order of arrival") {
  for (const auto& factory : both()) {
    LogRig rig(factory, kOlderLog);
    storage::Mutation mixed = storage::mutation_of(5, "p");
    mixed.header = encoded(record_of({value_cell(9, 4, "s")}));
    mixed.rows.push_back({"a", storage::inserted(4, "v"), true});
    mixed.rows.push_back({"b", encoded(record_of({value_cell(1, 4, "v")})), false});
    mixed.rows.push_back({"c", encoded(record_of({storage::tombstone_cell(1, 4)})), false});
    mixed.rows.push_back({"d", encoded(record_of({storage::column_deletion(2, 4)})), false});
    mixed.rows.push_back({"e", encoded(record_of({}, {4, 60, 1000})), false});
    mixed.rows.push_back({"f", encoded(record_of({}, {}, {4, 1})), false});
    rig.apply(mixed);
    storage::Mutation deletes = storage::mutation_of(5, "p");
    deletes.header = encoded(record_of({}, {}, {5, 1}));
    deletes.range_tombstones.push_back({{"a", "b"}, {6, 1}});
    rig.apply(deletes);
    rig.write("q");
    CHECK(rig.page(0).changes.empty());  // too young
    CHECK(rig.page(0).exhausted);
    rig.settle();
    const ChangesAnswer all = rig.page(0);
    CHECK(text_of(all) == "p/static p/a p/b p/c p/d p/e q/c");
    CHECK(all.exhausted);
    CHECK(all.reach == 0);
    CHECK(all.scanned == all.changes.back().sequence);
    CHECK(all.changes[0].change.position == storage::position_of(5));
    CHECK(rig.logs->metrics().entries.value() == 7);

    // By pages.
    std::string text;
    ChangeSequence after = 0;
    for (int pages = 0; pages < 4; ++pages) {
      const ChangesAnswer page = rig.page(after, 2);
      text += text_of(page) + ";";
      CHECK(page.exhausted == (pages == 3));
      after = page.scanned;
    }
    CHECK(text == "p/static p/a;p/b p/c;p/d p/e;q/c;");
    CHECK(rig.page(after).changes.empty());
    CHECK(rig.page(after).scanned == after);

    // Of one partition.
    ChangesRequest narrow = rig.request(0, 1);
    narrow.partition.emplace(storage::position_of(5), "q");
    const auto page = rig.ask(narrow);
    REQUIRE(page);
    CHECK(text_of(*page) == "q/c");
    CHECK(page->scanned == after);
    narrow.partition->partition_key = "r";
    const auto nothing = rig.ask(narrow);
    REQUIRE(nothing);
    CHECK(nothing->changes.empty());
    CHECK(nothing->scanned == after);
  }
}

TEST_CASE("sequences rise over restarts, also when the clock was set back") {
  for (const auto& factory : both()) {
    LogRig rig(factory, kOlderLog);
    rig.write("a");
    rig.settle();
    const ChangeSequence first = rig.page(0).changes.back().sequence;
    CHECK(first == static_cast<ChangeSequence>(rig.rig.reactor.wall_time_us()) - 200'000);
    for (int life = 0; life < 3; ++life) {
      const ChangeSequence before = rig.page(0).changes.back().sequence;
      rig.set_wall_time_us(rig.rig.reactor.wall_time_us() - 5 * kHourUs);
      rig.crash_and_open();
      rig.open_log();
      CHECK(rig.page(before).changes.empty());
      rig.write("b");
      rig.settle();
      const ChangesAnswer page = rig.page(before);
      REQUIRE(page.changes.size() == 1);
      CHECK(page.changes[0].sequence > before);
    }
    // And over the edge of a part of the log.
    rig.set_wall_time_us(rig.rig.reactor.wall_time_us() + 20 * kHourUs);
    const ChangeSequence before = rig.page(0).changes.back().sequence;
    rig.write("c");
    rig.settle();
    CHECK(text_of(rig.page(before)) == "c/c");
    rig.crash_and_open();
    rig.open_log();
    const ChangeSequence last = rig.page(0).changes.back().sequence;
    rig.set_wall_time_us(rig.rig.reactor.wall_time_us() - 20 * kHourUs);
    rig.write("d");
    rig.settle();
    CHECK(text_of(rig.page(last)) == "d/c");
    CHECK(text_of(rig.page(0)) == "a/c b/c b/c b/c c/c d/c");
  }
}

TEST_CASE("after a power cut sequences begin above all that readers may have got") {
  for (const auto& factory : both()) {
    LogRig rig(factory, kOlderLog);
    rig.write("a");
    rig.settle();
    const ChangeSequence got = rig.page(0).changes.back().sequence;
    rig.losses = {PowerLoss{}};
    rig.crash_and_open();
    rig.open_log();
    const ChangeSequence floor = rig.behind->sequence_floor(0);
    CHECK(floor >= got + static_cast<ChangeSequence>(rig.clock.skew_max_us()));
    Error refused;
    rig.logs->answer(0, {}, [&](Result<ChangesAnswer> page) { refused = page.error(); });
    CHECK(refused.code == ErrorCode::kReplicaBehind);
    rig.behind->finish(0, [](Result<void>) {});
    REQUIRE(rig.rig.comes([&] { return !rig.behind->is_behind(0); }));
    // A life that writes nothing, and another one.
    rig.crash_and_open();
    rig.write("b");
    rig.settle();
    CHECK(rig.page(0).changes.back().sequence > floor);
  }
}

TEST_CASE("a log that is younger than its table says from where on it is complete") {
  for (const auto& factory : both()) {
    LogRig rig(factory, std::nullopt);
    REQUIRE(rig.rig.apply(row_mutation(5, "old", "c", storage::inserted(10, "v"))));
    rig.pass_us(kHourUs);
    const auto turned_on_us = static_cast<ChangeSequence>(rig.rig.reactor.wall_time_us());
    rig.meta.set(kLaterLog);
    rig.open_log();
    CHECK(rig.page(0).reach == turned_on_us);
    rig.pass_us(kHourUs);
    rig.crash_and_open();
    rig.write("new");
    rig.settle();
    const ChangesAnswer page = rig.page(0);
    CHECK(page.reach == turned_on_us);
    CHECK(text_of(page) == "new/c");
    // Off: it is gone.
    const ChangesRequest old = rig.request(0);
    rig.rig.store->retire(kLaterLog);
    rig.meta.set(std::nullopt);
    CHECK(rig.ask(old).error().code == ErrorCode::kStaleSchema);
  }
}

TEST_CASE("entries go after the retention, and the log says so first") {
  for (const auto& factory : both()) {
    LogRig rig(factory, kOlderLog);
    for (int hour = 0; hour < 30; ++hour) {
      rig.write(std::to_string(hour));
      rig.pass_us(kHourUs);
      rig.sweep();
      if (hour < 23) CHECK(rig.page(0).reach == 0);
    }
    const ChangesAnswer left = rig.page(0);
    REQUIRE(!left.changes.empty());
    CHECK(text_of(left).starts_with("6/c 7/c"));
    CHECK(rig.logs->metrics().erased.value() == 6);
    const auto now_us = static_cast<ChangeSequence>(rig.rig.reactor.wall_time_us());
    CHECK(left.reach <= now_us - 24 * kHourUs);
    CHECK(left.reach > now_us - 25 * kHourUs);
    const ChangeSequence last = left.changes.back().sequence;
    rig.crash_and_open();
    rig.open_log();
    CHECK(rig.page(0).reach == left.reach);
    // Who has read all misses nothing when all is gone.
    rig.pass_us(100 * kHourUs);
    rig.sweep();
    const ChangesAnswer empty = rig.page(last);
    CHECK(empty.changes.empty());
    CHECK(empty.reach == last + 1);
    CHECK(rig.page(last - 1).reach > last);
    rig.set_wall_time_us(rig.rig.reactor.wall_time_us() - 200 * kHourUs);
    rig.crash_and_open();
    rig.write("later");
    rig.settle();
    CHECK(text_of(rig.page(last)) == "later/c");
  }
}

TEST_CASE("the end of a log leaves out what may be on its way to other members") {
  for (const auto& factory : both()) {
    LogRig rig(factory, kOlderLog);
    rig.write("a");
    rig.settle();
    const ChangeSequence a = rig.page(0).changes.back().sequence;
    CHECK(rig.page(0).end == 0);
    rig.pass_us(rig.options.longest_deadline_us);
    rig.write("b");
    rig.settle();
    CHECK(rig.page(0).end == a);
    rig.crash_and_open();
    rig.open_log();
    CHECK(rig.page(0).end > a);  // nothing is under way
  }
}

TEST_CASE("a mutation whose entries the store refuses is refused") {
  storage::StoreOptions options;
  options.in_memory_files = true;
  options.write_queue_max_bytes = 20;
  LogRig rig(storage::make_rocks_store_factory(options, Logger()), kOlderLog);
  rig.open_log();
  const storage::Mutation mutation = row_mutation(5, "p", "c", storage::inserted(10, "v"));
  std::optional<Result<void>> first;
  rig.rig.store->apply(mutation, [&](Result<void> result) { first = std::move(result); });
  const auto noted = rig.logs->note(rig.meta.table(), 0, mutation);
  REQUIRE(!noted);
  CHECK(noted.error().code == ErrorCode::kOverloaded);
  REQUIRE(rig.rig.comes([&] { return first.has_value(); }));
  rig.settle();
  CHECK(rig.page(0).changes.empty());
  REQUIRE(rig.logs->note(rig.meta.table(), 0, mutation));
}

TEST_CASE("a store refuses pages of logs that it does not have") {
  LogRig rig(both()[0], kOlderLog);
  rig.open_log();
  ChangesRequest request = rig.request(0);
  request.log = TableIncarnation{9};
  CHECK(rig.ask(request).error().code == ErrorCode::kBehind);
  request.log = TableIncarnation{5};
  CHECK(rig.ask(request).error().code == ErrorCode::kStaleSchema);
  request = rig.request(0);
  request.layout = 4;
  CHECK(rig.ask(request).error().code == ErrorCode::kStaleEpoch);
  request.layout = 6;
  CHECK(rig.ask(request));
}

}  // namespace tetrad::replication
