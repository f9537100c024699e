// SPDX-License-Identifier: Apache-2.0
// Hints: each is sent at most twice however slow their log is, none is left behind, and the count
// of what is pending comes back to nothing; refused ones do not hold up the others. One that is
// older than a repair of all members is never sent: what it carries may have been deleted and
// purged.
#include <map>

#include "replication/replica/replica_messages.h"
#include "replication/rpc/envelope.h"
#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

using replication::Verb;

constexpr int kRows = 80;

class Hints {
 public:
  explicit Hints(uint64_t seed) : random_(seed * 3'571 + 9), cluster_(seed, 4), kind_(seed % 3) {}

  std::string run() { return kind_ == 2 ? after_the_purge() : brought(); }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  SimNode& writer() { return cluster_[writer_]; }
  SimNode& away() { return cluster_[away_]; }

  /// One node misses what another writes.
  std::string miss_rows() {
    if (auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    cluster_.world().run_for(2'000'000);
    away().kill();
    int acknowledged = 0;
    for (int row = 0; row < kRows; ++row) {
      writer().spawn(write_row(&writer(), incarnation_, {.key = key_of(row)}, &acknowledged));
      cluster_.world().run_for(static_cast<int64_t>(random_.below(20'000)));
    }
    const auto all = [&] { return acknowledged == kRows; };
    if (!cluster_.world().run_until(all, 10'000'000)) return "a write fails with one node away";
    cluster_.world().run_for(4'000'000);  // what was not answered becomes a hint
    return "";
  }

  std::string brought() {
    for (size_t i = 0; i < cluster_.size(); ++i) {
      cluster_[i].data_options.hint_dispatch.page_hints = 8;
      cluster_[i].data_options.repair.look_every_us = int64_t{1} << 50;
    }
    if (auto wrong = miss_rows(); !wrong.empty()) return wrong;
    const uint64_t kept = writer().data().hints().pending_count();
    if (kept < kRows / 2) return fmt::format("{} hints of {} writes", kept, kRows);
    cluster_.network().watch(
        [this](const replication::Endpoint& to, BytesView message) { count_sent(to, message); });
    if (kind_ == 1) away().faults(0).refusal = Error(ErrorCode::kOverloaded, "not now");
    away().start();
    const base::MonotonicUs healed_us = cluster_.world().now_us() + 5'000'000;
    // The disk of the log takes two seconds for what it is given.
    for (int step = 0; step < 40 && pending() != 0; ++step) {
      writer().hint_log_faults.hangs = step % 4 != 3;
      if (cluster_.world().now_us() >= healed_us) away().faults(0).refusal.reset();
      cluster_.world().run_for(700'000);
    }
    writer().hint_log_faults.hangs = false;
    away().faults(0).refusal.reset();
    cluster_.world().run_until([this] { return pending() == 0; }, 40'000'000);
    if (pending() != 0) return fmt::format("{} hints are left behind", pending());
    if (kind_ == 0) {
      for (const auto& [key, count] : sent_)
        if (count > 2) return fmt::format("the hint of {} was sent {} times", key, count);
    }
    for (int row = 0; row < kRows; ++row) {
      const auto found = away().peek(0, row_read(incarnation_, key_of(row), 1));
      if (!found || found->live_row_count != 1)
        return fmt::format("{} is not on the node that missed it", key_of(row));
    }
    return "";
  }

  /// The writer looks for its hints after the rows were repaired, deleted and purged.
  std::string after_the_purge() {
    for (size_t i = 0; i < cluster_.size(); ++i) purge_often(cluster_[i]);
    writer().data_options.hint_dispatch.look_every_us = 40'000'000;
    if (auto wrong = miss_rows(); !wrong.empty()) return wrong;
    if (pending() == 0) return "no hints were kept";
    away().start();
    cluster_.world().run_for(10'000'000);  // repairs
    SimNode& other = cluster_[(away_ + 1) % 4 == writer_ ? (away_ + 2) % 4 : (away_ + 1) % 4];
    for (int row = 0; row < kRows; ++row) {
      int deleted = 0;
      for (int attempt = 0; attempt < 20 && deleted == 0; ++attempt) {
        other.spawn(
            write_row(&other, incarnation_,
                      {.key = key_of(row), .value = std::nullopt, .level = ConsistencyLevel::kAll},
                      &deleted));
        cluster_.world().run_until([&] { return deleted != 0; }, 500'000);
      }
      if (deleted == 0) return "a deletion fails";
    }
    cluster_.world().run_for(45'000'000);  // purges, then the hints' turn
    if (pending() != 0) return "old hints are still kept";
    for (int row = 0; row < kRows; ++row) {
      for (const auto level : {ConsistencyLevel::kOne, ConsistencyLevel::kQuorum}) {
        RowSeen seen;
        away().spawn(read_row(&away(), incarnation_, key_of(row), level, &seen));
        cluster_.world().run_until([&] { return seen.answered; }, 3'000'000);
        if (seen.value) return fmt::format("{} was deleted and is there again", key_of(row));
      }
    }
    return "";
  }

  static std::string key_of(int row) { return fmt::format("key{}", row); }
  uint64_t pending() { return writer().data().hints().pending_count(); }

  void count_sent(const replication::Endpoint& to, BytesView message) {
    if (to != away().endpoint()) return;
    const auto decoded = replication::decode_envelope(message);
    if (!decoded || decoded->envelope.verb != Verb::kMutateMerged ||
        decoded->envelope.kind != replication::MessageKind::kRequest)
      return;
    const auto request = replication::decode_mutate(message.substr(decoded->body_offset));
    if (request) ++sent_[request->mutation.partition_key];
  }

  base::Random random_;
  SimCluster cluster_;
  const uint64_t kind_;  // 0: a slow log; 1: and refusals; 2: after the purge
  const size_t writer_ = 0, away_ = 2;
  TableIncarnation incarnation_;
  std::map<std::string, int> sent_;
};

}  // namespace

ScenarioResult run_hints(uint64_t seed) {
  Hints hints(seed);
  return {hints.run(), hints.trace()};
}

}  // namespace tetrad::simulation
