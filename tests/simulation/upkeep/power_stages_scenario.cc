// SPDX-License-Identifier: Apache-2.0
// A member loses power at the worst moments: three members, of which one missed what the other two
// acknowledged, or what a read had found on one. What was answered before is answered after, by any
// two (rules 3, 20 and 28).
#include <algorithm>

#include "tests/simulation/upkeep/power_clients.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kWriteUs = 2'200'000;
constexpr uint64_t kMarks = 3;  // the stage in which stamps are far ahead

class StagesRun {
 public:
  StagesRun(uint64_t seed, uint64_t stage)
      : clocks_us_(stage == kMarks ? 4 * kSecond : 400'000),
        random_(seed * 69621 + 7),
        cluster_(seed, 3) {
    for (size_t i = 0; i < 3; ++i) {
      SimNode& node = cluster_[i];
      node.clock_skew_max_us = 0;
      node.sync_period_us = 5 * kSecond;
      node.options().clock_skew_max_us = clocks_us_;
      node.data_options.horizon = {clocks_us_, kWriteUs};
      node.data_options.recent_fetch.write_us = kWriteUs;
      node.data_options.recent_fetch.longest_us = kWriteUs;
      node.data_options.hint_dispatch.look_every_us = kSecond * 1000;
    }
    for (size_t i = 3; i > 1; --i) std::swap(who_[i - 1], who_[random_.below(i)]);
  }
  SimCluster& cluster() { return cluster_; }

  std::string run(uint64_t stage) {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    if (const auto wrong = steps_.wait_until_grown(3); !wrong.empty()) return wrong;
    cluster_.world().run_for(3 * kSecond + static_cast<int64_t>(random_.below(kSecond)));
    switch (stage) {
      case 0:
        return missed(false);
      case 1:
        return missed(true);
      case 2:
        return under_way();
      case kMarks:
        return marks();
      default:
        return written_back();
    }
  }

 private:
  SimNode& cut_one() { return cluster_[who_[0]]; }  // loses power
  SimNode& other() { return cluster_[who_[1]]; }    // has all
  SimNode& misser() { return cluster_[who_[2]]; }

  void isolate_misser() {
    cluster_.cut(who_[2], who_[0]);
    cluster_.cut(who_[2], who_[1]);
  }
  /// The misser hears of what it missed from the one that lost it, or not at all.
  void mend_all_but_misser_and_other() {
    cluster_.network().mend_all();
    cluster_.cut(who_[1], who_[2]);
  }
  /// A read through the one that is cut tells the misser, too.
  std::vector<SimNode*> some_readers() {
    std::vector<SimNode*> readers{&misser()};
    if (random_.one_in(2)) readers.push_back(&cut_one());
    return readers;
  }
  std::string without_the_other(const std::string& wanted) {
    cluster_.network().mend_all();
    cluster_.cut(who_[0], who_[1]);
    cluster_.cut(who_[1], who_[2]);
    for (SimNode* via : {&cut_one(), &misser()})
      if (auto wrong = steps_.must_see(*via, wanted, "without who has all"); !wrong.empty())
        return wrong;
    return "";
  }

  /// The third member missed an acknowledged write; one of the two that have it loses power.
  std::string missed(bool ends_again) {
    isolate_misser();
    if (const auto wrong = steps_.must_acknowledge(other(), "1"); !wrong.empty()) return wrong;
    cut_one().power_cut();
    mend_all_but_misser_and_other();
    cut_one().start();
    if (ends_again) {
      cluster_.world().run_for(static_cast<int64_t>(100'000 + random_.below(kSecond)));
      cut_one().kill();
      cut_one().start();
    }
    const auto wrong = steps_.wait_until_complete({&cut_one()}, some_readers(), "1");
    return wrong.empty() ? without_the_other("1") : wrong;
  }

  /// The write is on its way to the other, or waits for its disk, while the first, which has
  /// acknowledged it, is cut. The misser, which coordinates it, cannot take it.
  std::string under_way() {
    const bool on_its_way = random_.one_in(2);
    SimNetwork& network = cluster_.network();
    misser().faults(0).refusal = Error(ErrorCode::kOverloaded, "this store takes no writes");
    if (on_its_way)
      network.hold(replication::Verb::kMutate, other().endpoint());
    else
      other().faults(0).parks_writes = true;
    int count = 0;
    steps_.write(misser(), {.key = "k", .value = "1"}, &count);
    cluster_.world().run_for(10'000 + static_cast<int64_t>(random_.below(10'000)));
    cut_one().power_cut();
    cut_one().start();
    cluster_.world().run_for(1'600'000);
    network.hold_no_more();
    network.release_held();
    other().faults(0).heal();
    cluster_.world().run_for(600'000);
    misser().faults(0).heal();
    if (count == 0) return "";
    cluster_.cut(who_[1], who_[2]);
    const auto wrong = steps_.wait_until_complete({&cut_one()}, {&misser()}, "1");
    return wrong.empty() ? without_the_other("1") : wrong;
  }

  /// An acknowledged stamp of the future is lost with the mark; the next write is later all the
  /// same.
  std::string marks() {
    isolate_misser();
    const int64_t future_us = other().reactor().wall_time_us() + clocks_us_ * 9 / 10;
    for (SimNode* node : {&cut_one(), &other()})
      node->store(0).apply(row_change(steps_.incarnation(), "k", future_us, "future", 1),
                           [](Result<void>) {});
    cluster_.world().run_for(kSecond / 100);
    if (const auto wrong = steps_.must_acknowledge(other(), "1"); !wrong.empty()) return wrong;
    cut_one().power_cut();
    cluster_.network().mend_all();
    cluster_.isolate(who_[1]);
    cut_one().start();
    int count = 0;
    const base::MonotonicUs until_us = cluster_.world().now_us() + clocks_us_ * 3 / 4;
    while (count == 0 && cluster_.world().now_us() < until_us) {
      steps_.write(misser(), {.key = "k", .value = "2", .within_us = 300'000}, &count);
      cluster_.world().run_until([&] { return count != 0; }, 20'000);
    }
    cluster_.world().run_for(kSecond);  // those that are still under way
    if (count == 0) return "";
    cluster_.network().mend_all();
    const auto wrong =
        steps_.wait_until_complete({&cut_one()}, {&cut_one(), &other(), &misser()}, "2");
    if (!wrong.empty()) return wrong;
    for (SimNode* via : {&cut_one(), &other(), &misser()})
      if (auto later = steps_.must_see(*via, "2", "at the end"); !later.empty()) return later;
    return "";
  }

  /// A write of long ago that failed is on one member; a read brought it to another and answered.
  std::string written_back() {
    other().store(0).apply(row_change(steps_.incarnation(), "k", 1, "1", 1), [](Result<void>) {});
    // It is not among what is recent: idle stores note each minute what the disk has.
    cluster_.world().run_for(150 * kSecond + static_cast<int64_t>(random_.below(60 * kSecond)));
    isolate_misser();
    if (const auto wrong = steps_.must_see(cut_one(), "1", "before the cut"); !wrong.empty())
      return wrong;
    cut_one().power_cut();
    mend_all_but_misser_and_other();
    cut_one().start();
    // The misser alone with who lost it; by its own it need not have it.
    const auto wrong = steps_.wait_until_complete({&cut_one()}, {}, "1");
    return wrong.empty() ? without_the_other("1") : wrong;
  }

  const int64_t clocks_us_;
  base::Random random_;
  SimCluster cluster_;
  PowerSteps steps_{cluster_};
  std::array<size_t, 3> who_{0, 1, 2};
};

}  // namespace

ScenarioResult run_power_stages(uint64_t seed) {
  StagesRun run(seed, seed % 5);
  std::string wrong = run.run(seed % 5);
  return {std::move(wrong), trace_of(run.cluster())};
}

}  // namespace tetrad::simulation
