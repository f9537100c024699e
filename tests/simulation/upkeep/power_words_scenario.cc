// SPDX-License-Identifier: Apache-2.0
// A disk loses what it had taken, and nothing on its machine says so: it lied about a cut, or was
// put back from a copy. What the node had told others of its stores, or of its starts, says it
// (rule 20): an acknowledged write is found again before the two that lack it are asked alone.
#include <algorithm>

#include "tests/simulation/upkeep/power_clients.h"

namespace tetrad::simulation {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kWriteUs = 2'200'000;

class WordsRun {
 public:
  explicit WordsRun(uint64_t seed) : random_(seed * 69621 + 7), cluster_(seed, 3) {
    for (size_t i = 0; i < 3; ++i) {
      set_up(cluster_[i]);
      who_.push_back(i);
    }
    for (size_t i = 3; i > 1; --i) std::swap(who_[i - 1], who_[random_.below(i)]);
  }
  SimCluster& cluster() { return cluster_; }

  /// What was not synced is gone, and the machine goes on as if its process had been killed.
  std::string lost_in_silence() {
    if (const auto wrong = begin(); !wrong.empty()) return wrong;
    if (const auto wrong = write_without_third(); !wrong.empty()) return wrong;
    run_for(kSecond);  // it is told
    node(0).kill_and_lose();
    return come_back();
  }

  /// The disk is put back from a copy of a life before.
  std::string put_back() {
    if (const auto wrong = begin(); !wrong.empty()) return wrong;
    node(0).kill();
    const SimNode::DiskCopy copy = node(0).copy_disk();
    node(0).start();
    if (const auto wrong = steps_.wait_until_complete({&node(0)}, {}, ""); !wrong.empty())
      return wrong;
    // Perhaps it is told how far the store has written, perhaps only that there was this life.
    const bool is_told = random_.one_in(3);
    if (is_told) run_for(kSecond + static_cast<int64_t>(random_.below(kSecond)));
    if (const auto wrong = write_without_third(); !wrong.empty()) return wrong;
    if (is_told) run_for(kSecond);
    node(0).put_back(copy);
    return come_back();
  }

  /// The process is killed, and nothing is lost: nothing is fetched either.
  std::string killed() {
    if (const auto wrong = begin(); !wrong.empty()) return wrong;
    if (const auto wrong = steps_.must_acknowledge(node(1), "1"); !wrong.empty()) return wrong;
    run_for(static_cast<int64_t>(random_.below(kSecond)));
    for (int i = 0; i < 3; ++i) {
      node(0).kill();
      run_for(static_cast<int64_t>(random_.below(3 * kSecond)));
      node(0).start();
      for (int step = 0; step < 100; ++step) {
        run_for(kSecond / 20);
        if (node(0).is_behind()) return "a store that has lost nothing is taken to be behind";
      }
    }
    return steps_.must_see(node(0), "1", "after the node was killed");
  }

 private:
  SimNode& node(size_t index) { return cluster_[who_[index]]; }
  void run_for(int64_t us) { cluster_.world().run_for(us); }

  static void set_up(SimNode& node) {
    node.clock_skew_max_us = 0;
    node.sync_period_us = 60 * kSecond;
    node.options().clock_skew_max_us = 400'000;
    node.data_options.horizon = {400'000, kWriteUs};
    node.data_options.recent_fetch.write_us = kWriteUs;
    node.data_options.recent_fetch.longest_us = kWriteUs;
    node.data_options.hint_dispatch.look_every_us = kSecond * 1000;
  }
  std::string begin() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    if (const auto wrong = steps_.wait_until_grown(3); !wrong.empty()) return wrong;
    run_for(3 * kSecond + static_cast<int64_t>(random_.below(kSecond)));
    return "";
  }
  /// On the first two, of which the second has heard what the first has.
  std::string write_without_third() {
    cluster_.isolate(who_[2]);
    return steps_.must_acknowledge(node(1), "1");
  }
  std::string come_back() {
    cluster_.network().mend_all();
    node(0).start();
    // It hears of it at once, and then fetches.
    const auto behind = [&] { return node(0).is_behind(); };
    cluster_.world().run_until(behind, 3 * kSecond);
    if (const auto wrong = steps_.wait_until_complete({&node(0)}, {}, "1"); !wrong.empty())
      return wrong;
    cluster_.isolate(who_[1]);
    return steps_.must_see(node(2), "1", "without who has not lost it");
  }

  base::Random random_;
  SimCluster cluster_;
  PowerSteps steps_{cluster_};
  std::vector<size_t> who_;
};

}  // namespace

ScenarioResult run_power_words(uint64_t seed) {
  WordsRun run(seed);
  std::string wrong = seed % 3 == 1   ? run.lost_in_silence()
                      : seed % 3 == 2 ? run.put_back()
                                      : run.killed();
  return {std::move(wrong), trace_of(run.cluster())};
}

}  // namespace tetrad::simulation
