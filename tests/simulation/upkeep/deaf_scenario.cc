// SPDX-License-Identifier: Apache-2.0
// A tablet grows from one member to four. Its first member gives what it holds, and then hears no
// more of the metadata. A stage is left when W of both sets have confirmed it: what was
// acknowledged is seen by who still reads that member alone (rule 8).
#include <array>

#include "tests/simulation/upkeep/scenarios.h"

namespace tetrad::simulation {
namespace {

constexpr size_t kKeys = 6;

struct Key {
  bool is_written = false, is_read = false;  // under way
  int64_t acknowledged = 0;                  // the newest
  std::string wrong;
};

Task<void> write_number(SimNode* node, TableIncarnation incarnation, std::string name,
                        int64_t number, Key* key) {
  RowWrite write{.key = std::move(name), .value = std::to_string(number), .is_restamped = true};
  const Result<void> done = co_await try_write(node, incarnation, std::move(write));
  key->is_written = false;
  if (done) key->acknowledged = number;
}

Task<void> read_number(SimNode* node, TableIncarnation incarnation, std::string name, Key* key) {
  const int64_t acknowledged = key->acknowledged;
  RowSeen row;
  co_await read_row(node, incarnation, name, ConsistencyLevel::kQuorum, &row);
  key->is_read = false;
  if (!row.answered) co_return;
  const int64_t number = row.value ? std::stoll(*row.value) : 0;
  if (number < acknowledged)
    key->wrong = fmt::format("a quorum read of {} saw {} although {} was acknowledged before it",
                             name, number, acknowledged);
}

class Deaf {
 public:
  explicit Deaf(uint64_t seed) : random_(seed * 5443 + 11), cluster_(seed, 1) {}

  std::string run() {
    if (const auto wrong = form_with_table(cluster_); !wrong.empty()) return wrong;
    incarnation_ = cluster_[0].state()->tables.begin()->second->incarnation;
    replication::Endpoint first = cluster_[0].endpoint();
    cluster_.network().hold(replication::Verb::kStreamRange, first);
    for (int i = 0; i < 3; ++i) cluster_.add().start();
    const auto is_asked = [&] { return cluster_.network().held() != 0; };
    if (!cluster_.world().run_until(is_asked, 30'000'000)) return "nothing is streamed";
    if (const auto wrong = depose(); !wrong.empty()) return wrong;

    cluster_.network().set_deaf(first, true);
    cluster_.network().hold_no_more();
    cluster_.network().release_held();
    for (int n = 0; n < 600; ++n)
      if (const auto wrong = step(); !wrong.empty()) return wrong;
    if (is_grown()) return "the tablet has grown without its first member";
    cluster_.network().hear_all();
    for (int n = 0; n < 4'000 && !is_grown(); ++n)
      if (const auto wrong = step(); !wrong.empty()) return wrong;
    return is_grown() ? "" : "the tablet does not grow";
  }
  uint64_t trace() { return trace_of(cluster_); }

 private:
  /// Another than the first node leads the metadata group.
  std::string depose() {
    for (size_t i = 1; i < cluster_.size(); ++i)
      cluster_.network().cut(cluster_[0].endpoint(), cluster_[i].endpoint());
    const auto is_led = [&] {
      const auto leader = cluster_.leader();
      return leader && *leader != 0;
    };
    if (!cluster_.world().run_until(is_led, 30'000'000)) return "no other node leads";
    cluster_.network().mend_all();
    cluster_.world().run_for(3'000'000);
    return is_led() ? "" : "the first node leads again";
  }
  bool is_grown() {
    for (size_t i = 1; i < cluster_.size(); ++i) {
      const auto& tablet = cluster_[i].state()->table(incarnation_)->tablets.tablets().front();
      if (tablet.stage == partitioner::TabletStage::kNormal && tablet.replicas.size() == 4)
        return true;
    }
    return false;
  }
  std::string step() {
    const size_t i = random_.below(kKeys);
    const std::string name = "key" + std::to_string(i);
    SimNode* via = ready_node(cluster_, random_.below(cluster_.size()));
    if (via != nullptr && via->state()->table(incarnation_) != nullptr) {
      Key& key = keys_[i];
      if (!key.is_written && random_.one_in(2)) {
        key.is_written = true;
        via->spawn(write_number(via, incarnation_, name, ++number_, &key));
      } else if (!key.is_read) {
        key.is_read = true;
        via->spawn(read_number(via, incarnation_, name, &key));
      }
    }
    cluster_.world().run_for(static_cast<int64_t>(random_.below(20'000)));
    for (const Key& key : keys_)
      if (!key.wrong.empty()) return key.wrong;
    return "";
  }

  base::Random random_;
  SimCluster cluster_;
  TableIncarnation incarnation_;
  int64_t number_ = 0;
  std::array<Key, kKeys> keys_;
};

}  // namespace

ScenarioResult run_deaf(uint64_t seed) {
  Deaf scenario(seed);
  std::string wrong = scenario.run();
  return {std::move(wrong), scenario.trace()};
}

}  // namespace tetrad::simulation
