// SPDX-License-Identifier: Apache-2.0
// Several members lose power, or one that has just been filled, or all that a data centre has:
// nothing that W had is lost, and what one disk has kept of a write is found again (rules 9 and 20).
#include <algorithm>

#include "tests/simulation/upkeep/power_clients.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kWriteUs = 2'200'000;

Task<void> read_to_end(SimNode* node, TableIncarnation incarnation, int* ended) {
  RowSeen row;
  co_await read_row(node, incarnation, "k", ConsistencyLevel::kQuorum, &row);
  ++*ended;
}

class SetsRun {
 public:
  SetsRun(uint64_t seed, size_t nodes) : random_(seed * 40692 + 3), cluster_(seed, nodes) {
    for (size_t i = 0; i < nodes; ++i) set_up(cluster_[i]);
    for (size_t i = 0; i < nodes; ++i) who_.push_back(i);
    for (size_t i = nodes; i > 1; --i) std::swap(who_[i - 1], who_[random_.below(i)]);
  }
  SimCluster& cluster() { return cluster_; }

  /// Two of four members are cut. One of the two others missed the write: of the other it is to be
  /// had, not of the one that lost it, too.
  std::string two_of_four() {
    if (const auto wrong = begin(4); !wrong.empty()) return wrong;
    cluster_.isolate(who_[3]);
    if (const auto wrong = steps_.must_acknowledge(node(2), "1"); !wrong.empty()) return wrong;
    node(0).power_cut();
    node(1).power_cut();
    cluster_.network().mend_all();
    node(0).start();
    node(1).start();
    if (const auto wrong = steps_.wait_until_complete({&node(0), &node(1)}, {}, "1");
        !wrong.empty())
      return wrong;
    cluster_.isolate(who_[2]);
    return steps_.must_see(node(3), "1", "without who has all");
  }

  /// All are cut. Of the two that have the write one has it on disk, and comes back last.
  std::string all() {
    node(0).sync = storage::CommitLogSync::kGroup;
    if (const auto wrong = begin(3); !wrong.empty()) return wrong;
    cluster_.isolate(who_[2]);
    if (const auto wrong = steps_.must_acknowledge(node(1), "1"); !wrong.empty()) return wrong;
    // Perhaps the other one had acknowledged.
    cluster_.world().run_for(kSecond / 100);
    for (size_t i = 0; i < 3; ++i) node(i).power_cut();
    cluster_.network().mend_all();
    node(1).start();
    node(2).start();
    const base::MonotonicUs until_us = cluster_.world().now_us() + 6 * kSecond;
    while (cluster_.world().now_us() < until_us) {
      RowSeen row;
      node(1).spawn(read_row(&node(1), steps_.incarnation(), "k", ConsistencyLevel::kQuorum, &row));
      cluster_.world().run_for(2'500'000);
      if (row.answered && row.value != "1")
        return "before all have come back nothing is read, 1 was acknowledged";
    }
    node(0).start();
    if (const auto wrong = steps_.wait_until_complete({&node(0), &node(1), &node(2)}, {}, "1");
        !wrong.empty())
      return wrong;
    cluster_.isolate(who_[0]);
    return steps_.must_see(node(2), "1", "without the disk that kept it");
  }

  /// A fourth member is cut when it has just become one: it has what it was filled with.
  std::string filled() {
    if (const auto wrong = begin(3); !wrong.empty()) return wrong;
    cluster_.isolate(who_[2]);
    if (const auto wrong = steps_.must_acknowledge(node(0), "1"); !wrong.empty()) return wrong;
    cluster_.network().mend_all();
    cluster_.world().run_for(150 * kSecond + static_cast<int64_t>(random_.below(60 * kSecond)));
    SimNode& fourth = cluster_.add();
    set_up(fourth);
    fourth.sync_period_us = 60 * kSecond;
    fourth.start();
    if (const auto wrong = steps_.wait_until_grown(4); !wrong.empty()) return wrong;
    fourth.power_cut();
    fourth.start();
    if (const auto wrong = steps_.wait_until_complete({&fourth}, {}, "1"); !wrong.empty())
      return wrong;
    size_t held = 0;
    for (size_t i = 0; i < cluster_.size(); ++i) {
      const auto found = cluster_[i].peek(0, row_read(steps_.incarnation(), "k", 1));
      held += found && value_of(*found) == "1" ? 1 : 0;
    }
    return held >= 3 ? "" : fmt::format("an acknowledged write is on {} of 4 members", held);
  }

  /// One is cut, and of the messages some are lost while it fetches: of a long answer it goes on
  /// where it was, and does not begin anew.
  std::string lossy() {
    for (size_t i = 0; i < 2; ++i) {
      node(i).data_options.recent_fetch.page_bytes = 100;
      node(i).data_options.recent_fetch.page_timeout_us = 300'000;
    }
    if (const auto wrong = begin(2); !wrong.empty()) return wrong;
    constexpr int kLossyRows = 200;
    int written = 0;
    for (int i = 0; i < kLossyRows; ++i)
      steps_.write(node(1), {.key = fmt::format("row{}", i)}, &written);
    if (!cluster_.world().run_until([&] { return written == kLossyRows; }, 3 * kSecond))
      return "a write fails";
    node(0).power_cut();
    node(0).start();
    cluster_.network().options.lost_in_million = 30'000;
    const auto complete = [&] { return node(0).is_ready() && !node(0).is_behind(); };
    if (!cluster_.world().run_until(complete, 120 * kSecond))
      return "what was lost is not fetched while some messages are lost";
    for (int i = 0; i < kLossyRows; ++i) {
      const std::string key = fmt::format("row{}", i);
      const auto found = node(0).peek(0, row_read(steps_.incarnation(), key, 1));
      if (!found || value_of(*found) != "value") return key + " is not fetched";
    }
    return "";
  }

  /// All `count` nodes of a second data centre are cut: R of their own there are none, so what all
  /// others have is all that there is.
  std::string all_of_center(size_t count) {
    std::vector<SimNode*> cut;
    for (size_t i = 0; i < count; ++i) {
      cut.push_back(&cluster_.add());
      set_up(*cut.back());
      cut.back()->options().data_center = "small";
    }
    if (const auto wrong = begin(3 + count); !wrong.empty()) return wrong;
    if (const auto wrong = steps_.must_acknowledge(node(0), "1"); !wrong.empty()) return wrong;
    for (SimNode* const one : cut) one->power_cut();
    for (SimNode* const one : cut) one->start();
    const auto is_ready = [&] { return cut.front()->is_ready(); };
    if (!cluster_.world().run_until(is_ready, kSecond)) return "a node does not come back";
    // What cannot be answered yet is refused.
    int begun = 0, ended = 0;
    for (; begun < 10; ++begun) {
      cut.front()->spawn(read_to_end(cut.front(), steps_.incarnation(), &ended));
      cluster_.world().run_for(kSecond / 10);
    }
    const auto is_over = [&] { return ended == begun; };
    if (!cluster_.world().run_until(is_over, 3 * kSecond)) return "a read does not end";
    return steps_.wait_until_complete(cut, {}, "1");
  }

 private:
  SimNode& node(size_t index) { return cluster_[who_[index]]; }

  static void set_up(SimNode& node) {
    node.clock_skew_max_us = 0;
    node.sync_period_us = 5 * kSecond;
    node.options().clock_skew_max_us = 400'000;
    node.data_options.horizon = {400'000, kWriteUs};
    node.data_options.recent_fetch.write_us = kWriteUs;
    node.data_options.recent_fetch.longest_us = kWriteUs;
    node.data_options.hint_dispatch.look_every_us = kSecond * 1000;
  }
  std::string begin(size_t members) {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    if (const auto wrong = steps_.wait_until_grown(members); !wrong.empty()) return wrong;
    cluster_.world().run_for(3 * kSecond + static_cast<int64_t>(random_.below(kSecond)));
    return "";
  }

  base::Random random_;
  SimCluster cluster_;
  PowerSteps steps_{cluster_};
  std::vector<size_t> who_;
};

}  // namespace

ScenarioResult run_power_sets(uint64_t seed) {
  if (seed % 4 == 3) {
    SetsRun run(seed, 2);
    std::string wrong = run.lossy();
    return {std::move(wrong), trace_of(run.cluster())};
  }
  SetsRun run(seed, seed % 3 == 0 ? 4 : 3);
  std::string wrong = seed % 3 == 0 ? run.two_of_four() : seed % 3 == 1 ? run.all() : run.filled();
  return {std::move(wrong), trace_of(run.cluster())};
}

ScenarioResult run_power_centers(uint64_t seed) {
  SetsRun run(seed, 3);
  std::string wrong = run.all_of_center(1 + seed % 2);
  return {std::move(wrong), trace_of(run.cluster())};
}

}  // namespace tetrad::simulation
