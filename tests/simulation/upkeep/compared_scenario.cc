// SPDX-License-Identifier: Apache-2.0
// Members of a tablet are compared while writes come to them one after another, up to a tenth of a
// second apart, all the time: that makes no difference. A write that one of them has lost does,
// whatever it wrote: a row, a deletion of one, of a range, of a partition.
#include "partitioner/token.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr int kKeys = 30, kRowsOfKey = 40;

class Compared {
 public:
  explicit Compared(uint64_t seed) : random_(seed * 6689 + 11), cluster_(seed, 4) {
    for (size_t i = 0; i < cluster_.size(); ++i)
      cluster_[i].data_options.repair.period_us = 3'600'000'000;
  }

  /// Long partitions: an end of a page that moves between two looks, a range across it, and a row
  /// that is written all the time and has lost one cell.
  std::string run_long(uint64_t what) {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    cluster_.world().run_for(5'000'000);
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    constexpr size_t kNone = SIZE_MAX;
    const std::string kb(1000, 'v');
    if (what == 0) {
      for (int row = 0; row < 40; ++row) apply(numbered(row, std::string(20'000, 'o'), 1), kNone);
      for (int row = 0; row < 2000; ++row) {
        if (row < 40)
          apply(numbered(row, "short", 2), 3);
        else
          apply(numbered(row, kb, 2), row == 100 ? 2 : kNone);
      }
      // Its first page becomes shorter, and ends behind row 100.
      base::Reactor& reactor = cluster_[3].reactor();
      reactor.call_at(
          reactor.now_us() + 1'000'000 + static_cast<int64_t>(random_.below(500'000)), [this] {
            for (int row = 0; row < 40; ++row)
              cluster_[3].store(0).apply(numbered(row, "short", 2), [](Result<void>) {});
          });
    } else if (what == 1) {
      for (int row = 0; row < 2000; ++row) apply(numbered(row, kb, 5), kNone);
      apply(deletion_of("r00010", "r00020", 4), 2);
      apply(deletion_of("r00020", "r01500", 4), kNone);
    } else {
      for (int row = 0; row < 20; ++row) apply(numbered(row, kb, 2), kNone);
      storage::Mutation lost = numbered(5, "other", 3);
      storage::RowRecord record = *storage::decode_row_record(lost.rows.front().record);
      record.cells.front().column_id = 77;
      Bytes encoded;
      storage::encode_row_record(record, encoded);
      lost.rows.front().record = encoded;
      apply(lost, 2);
      rewrite_on(4);
    }
    cluster_.world().run_for(1'000'000);
    return expect(1, fmt::format("one page has lost something, {}", what));
  }
  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    cluster_.world().run_for(5'000'000);
    const auto state = cluster_[0].state();
    incarnation_ = state->tables.begin()->second->incarnation;
    for (int i = 0; i < 300; ++i) apply(some_change(), cluster_.size());
    cluster_.world().run_for(1'000'000);
    write_on();
    if (const auto wrong = expect(0, "nothing is lost"); !wrong.empty()) return wrong;
    // On a key of its own: what is written anew is the same everywhere again.
    storage::Mutation lost = some_change();
    lost.partition_key = "lost";
    lost.position = partitioner::position_of("lost");
    apply(lost, random_.below(cluster_.size()));
    return expect(1, "a write is lost");
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  storage::Mutation some_change() {
    const std::string key = fmt::format("key{}", random_.below(kKeys));
    ++timestamp_us_;
    // Above the horizon, where deletions are compared.
    const int64_t now_s = cluster_[0].reactor().wall_time_us() / 1'000'000;
    storage::Mutation change = row_change(
        incarnation_, key, timestamp_us_,
        random_.one_in(4) ? std::nullopt : std::optional<std::string>(std::string(50, 'v')), now_s);
    storage::RowChange& row = change.rows.front();
    row.clustering_key = std::string(1, static_cast<char>('A' + random_.below(kRowsOfKey)));
    const storage::Deletion deletion{timestamp_us_, now_s};
    if (random_.one_in(6)) {
      change.range_tombstones.push_back(
          storage::RangeTombstone{{row.clustering_key, row.clustering_key + "z"}, deletion});
      change.rows.clear();
    } else if (random_.one_in(10)) {
      storage::RowRecord header;
      header.deletion = deletion;
      storage::encode_row_record(header, change.header);
      change.rows.clear();
    }
    return change;
  }
  storage::Mutation numbered(int row, std::string value, int64_t timestamp_us) {
    const int64_t now_s = cluster_[0].reactor().wall_time_us() / 1'000'000;
    storage::Mutation change =
        row_change(incarnation_, "long", 1'000'000 + timestamp_us, std::move(value), now_s);
    change.rows.front().clustering_key = fmt::format("r{:05}", row);
    return change;
  }
  storage::Mutation deletion_of(const char* from, const char* to, int64_t timestamp_us) {
    storage::Mutation change = numbered(0, "", timestamp_us);
    const int64_t now_s = cluster_[0].reactor().wall_time_us() / 1'000'000;
    change.rows.clear();
    change.range_tombstones.push_back({{from, to}, {1'000'000 + timestamp_us, now_s}});
    return change;
  }
  /// For ever: row 5 gets a value every 300 ms.
  void rewrite_on(int64_t timestamp_us) {
    apply(numbered(5, fmt::format("{}", timestamp_us), timestamp_us), SIZE_MAX);
    base::Reactor& reactor = cluster_[0].reactor();
    reactor.call_at(reactor.now_us() + 300'000,
                    [this, timestamp_us] { rewrite_on(timestamp_us + 1); });
  }
  /// To all members but the one of this number.
  void apply(const storage::Mutation& change, size_t but) {
    for (size_t i = 0; i < cluster_.size(); ++i)
      if (i != but) cluster_[i].store(0).apply(change, [](Result<void>) {});
  }
  /// For ever: 300 changes a second, each of which comes to the members at different times.
  void write_on() {
    const storage::Mutation change = some_change();
    for (size_t i = 0; i < cluster_.size(); ++i) {
      base::Reactor& reactor = cluster_[i].reactor();
      reactor.call_at(
          reactor.now_us() + static_cast<int64_t>(random_.below(100'000)),
          [this, i, change] { cluster_[i].store(0).apply(change, [](Result<void>) {}); });
    }
    base::Reactor& reactor = cluster_[0].reactor();
    reactor.call_at(reactor.now_us() + 3'300, [this] { write_on(); });
  }
  /// Compares, and says what is wrong unless as many pages differ.
  std::string expect(uint64_t differing_pages, std::string_view what) {
    replication::Comparison& comparison =
        cluster_[random_.below(cluster_.size())].data().comparison();
    if (!comparison.start("", "")) return "a comparison runs already";
    if (!cluster_.world().run_until([&] { return !comparison.progress().running; }, 600'000'000))
      return "a comparison does not come to its end";
    const auto progress = comparison.progress();
    if (!progress.failed.empty()) return "not compared: " + progress.failed.front();
    if (progress.differing_pages != differing_pages)
      return fmt::format("{} pages differ although {}", progress.differing_pages, what);
    return "";
  }

  base::Random random_;
  SimCluster cluster_;
  TableIncarnation incarnation_;
  int64_t timestamp_us_ = 1'000'000;
};

}  // namespace

ScenarioResult run_compared(uint64_t seed) {
  Compared compared(seed);
  std::string wrong = compared.run();
  if (wrong.empty()) wrong = Compared(seed).run_long(seed % 3);
  return {std::move(wrong), compared.trace()};
}

}  // namespace tetrad::simulation
