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
  return {std::move(wrong), compared.trace()};
}

}  // namespace tetrad::simulation
