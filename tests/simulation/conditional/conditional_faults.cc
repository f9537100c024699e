// SPDX-License-Identifier: Apache-2.0
// What goes wrong, and what changes, while conditional statements run.
#include <algorithm>

#include "partitioner/token.h"
#include "tests/simulation/conditional/conditional_cluster.h"
#include "tests/simulation/support/propose.h"
#include "tests/simulation/support/tables.h"

namespace tetrad::simulation {
namespace {

using Kind = RowOperation::Kind;
using Outcome = RowOperation::Outcome;

Task<void> run_truncate(SimNode* node, RowOperation* operation, uint64_t* place) {
  replication::SchemaChange change;
  change.expected = node->state()->schema_version;
  change.truncated_tables.push_back(node->state()->tables.begin()->first);
  const base::Deadline deadline{node->reactor().now_us() + 5 * ConditionalCluster::kOperationUs};
  auto result = co_await node->node().meta().change_schema(std::move(change), deadline, nullptr);
  operation->outcome = result ? Outcome::kApplied : Outcome::kUnknown;
  operation->ended = ++*place;
}

}  // namespace

/// Whoever waits for the node learns no more.
void ConditionalCluster::end_life(size_t node, bool power) {
  power ? cluster_[node].power_cut() : cluster_[node].kill();
  if (power) may_lack_[node] = true;
  for (const auto& operation : operations_) {
    if (operation->outcome != Outcome::kPending || operation->node != node) continue;
    operation->outcome = operation->is_write() ? Outcome::kUnknown : Outcome::kNothing;
    operation->ended = next_place();
  }
}

void ConditionalCluster::fault() {
  SimNetwork& network = cluster_.network();
  const size_t victim = random_.below(cluster_.size());
  size_t up = 0;
  for (size_t i = 0; i < cluster_.size(); ++i) up += cluster_[i].is_up() ? 1 : 0;
  static constexpr replication::Verb kVerbs[] = {replication::Verb::kPaxosPrepare,
                                                 replication::Verb::kPaxosAccept,
                                                 replication::Verb::kPaxosCommit};
  switch (random_.below(19)) {
    case 0:
      if (up + 1 < cluster_.size()) break;
      if (profile_.power_cuts && !keeps_plain() && random_.one_in(2)) {
        for (size_t i = 0; i < cluster_.size(); ++i)
          if (cluster_[i].is_up() && !random_.one_in(3)) end_life(i, true);
      } else {
        end_life(victim, profile_.power_cuts && (!keeps_plain() || all_have_all()));
      }
      break;
    case 1:
    case 2:
    case 3:
      for (size_t i = 0; i < cluster_.size(); ++i)
        if (!cluster_[i].is_up()) cluster_[i].start();
      break;
    case 4:
      cluster_.isolate(victim);
      break;
    case 5: {
      const size_t other = random_.below(cluster_.size());
      if (other != victim) network.cut(cluster_[victim].endpoint(), cluster_[other].endpoint());
      break;
    }
    case 6:
    case 7:
      network.mend_all();
      break;
    case 8:
      network.options.lost_in_million = static_cast<uint32_t>(random_.below(150'000));
      break;
    case 9:
      network.options.lost_in_million = 0;
      break;
    case 10:
      network.options.slow_one_in = static_cast<uint32_t>(2 + random_.below(12));
      network.options.slow_us = 1 + static_cast<int64_t>(random_.below(3'000'000));
      break;
    case 11:
      network.options.slow_one_in = 0;
      break;
    case 12:
      if (profile_.grows && cluster_.size() < kNodesMax) add_node().start();
      break;
    case 13:
      cluster_[victim].clock().freeze(static_cast<int64_t>(random_.below(1'500'000)));
      break;
    case 14:
      if (profile_.stalls) cluster_[victim].faults(0).parks_writes = true;
      break;
    case 15:
      network.hold(kVerbs[random_.below(3)], cluster_[victim].endpoint());
      break;
    case 16:
    case 17:
      network.hold_no_more();
      network.release_held();
      break;
    default:
      for (size_t i = 0; i < cluster_.size(); ++i) cluster_[i].faults(0).heal();
  }
}

/// A coordinator ends in the midst of a round: at the first to third message of it, which is not
/// sent any more.
void ConditionalCluster::arm_strike() {
  strike_verb_ =
      random_.one_in(3) ? replication::Verb::kPaxosCommit : replication::Verb::kPaxosAccept;
  strike_at_ = 1 + random_.below(3);
}

void ConditionalCluster::run_for(int64_t us) {
  World& world = cluster_.world();
  const base::MonotonicUs until_us = world.now_us() + us;
  while (world.run_until([this] { return struck_.has_value(); }, until_us - world.now_us())) {
    cluster_.network().options.lost_in_million = 0;
    const size_t node = *std::exchange(struck_, std::nullopt);
    if (cluster_[node].is_up()) end_life(node, profile_.power_cuts && !keeps_plain());
    if (profile_.pauses && random_.one_in(2))
      quiet_until_us_ = world.now_us() + static_cast<int64_t>(random_.below(4'000'000));
  }
  world.run_for(until_us - world.now_us());
}

/// Sees each message that is sent.
void ConditionalCluster::watch(BytesView message) {
  if (strike_at_ == 0) return;
  const auto decoded = replication::decode_envelope(message);
  if (!decoded || decoded->envelope.verb != strike_verb_ ||
      decoded->envelope.kind != replication::MessageKind::kRequest || --strike_at_ != 0)
    return;
  for (size_t i = 0; i < cluster_.size(); ++i) {
    const bool is_up = cluster_[i].is_up();
    if (cluster_[i].endpoint() == decoded->envelope.sender_endpoint)
      struck_ = i;
    else if (!is_up)
      return struck_.reset();  // one is away already
  }
  if (struck_) cluster_.network().options.lost_in_million = 1'000'000;
}

void ConditionalCluster::set_clock_right(size_t node) {
  cluster_[node].clock().step(-cluster_[node].clock().off_us());
}

/// Of one node at a time, which may end and come back meanwhile.
void ConditionalCluster::step_clock() {
  set_clock_right(stepped_);
  stepped_ = random_.below(cluster_.size());
  constexpr int64_t kStepMaxUs = 3'000'000;
  cluster_[stepped_].clock().step(static_cast<int64_t>(random_.below(2 * kStepMaxUs)) - kStepMaxUs);
  if (!profile_.power_cuts && cluster_[stepped_].is_up() && random_.one_in(2)) {
    end_life(stepped_, false);
    cluster_[stepped_].start();
  }
}

void ConditionalCluster::split() {
  size_t index = 0;
  SimNode* const via = random_ready_node(&index);
  if (via == nullptr) return;
  const auto& table = *via->state()->tables.begin()->second;
  const RingPosition at =
      partitioner::position_of(key_text(static_cast<int>(random_.below(4))) + "x");
  if (merge_instead(*via, table, at)) return;
  split_at(*via, table, at);
}

/// To any other members; where they are few the cluster then takes in more.
void ConditionalCluster::move() {
  size_t index = 0;
  SimNode* const via = random_ready_node(&index);
  if (via == nullptr) return;
  const auto state = via->state();
  const auto& table = *state->tables.begin()->second;
  const int key = static_cast<int>(random_.below(static_cast<uint64_t>(profile_.keys)));
  const partitioner::Tablet& tablet = table.tablets.find(partitioner::position_of(key_text(key)));
  if (tablet.stage != partitioner::TabletStage::kNormal) return;
  std::vector<StoreAddress> members;
  for (const auto& [host, node] : state->nodes) {
    const auto at = static_cast<std::ptrdiff_t>(random_.below(members.size() + 1));
    members.insert(members.begin() + at, {host, 0});
  }
  members.resize(1 + random_.below(std::min<size_t>(members.size(), 4)));
  via->spawn(propose(via, replication::ChangeTabletStage{table.incarnation, tablet.id, tablet.epoch,
                                                         partitioner::TabletStage::kWriteBoth,
                                                         std::move(members)}));
}

void ConditionalCluster::truncate() {
  const bool one_is_under_way = std::ranges::any_of(operations_, [](const auto& operation) {
    return operation->kind == Kind::kTruncate && operation->outcome == Outcome::kPending;
  });
  size_t index = 0;
  SimNode* const via = random_ready_node(&index);
  if (via == nullptr || one_is_under_way || !operation_room()) return;
  RowOperation& operation = new_operation(index);
  operation.kind = Kind::kTruncate;
  via->spawn(run_truncate(via, &operation, &place_));
}

/// With plain writes that are not synced only one node at a time may have lost what it
/// acknowledged.
bool ConditionalCluster::all_have_all() {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!may_lack_[i]) continue;
    if (!cluster_[i].is_up() || !cluster_[i].is_ready() || cluster_[i].is_behind()) return false;
    may_lack_[i] = false;
  }
  return true;
}

void ConditionalCluster::heal() {
  strike_at_ = 0;
  cluster_.network().mend_all();
  cluster_.network().options = NetworkOptions();
  cluster_.network().hold_no_more();
  cluster_.network().release_held();
  for (size_t i = 0; i < cluster_.size(); ++i) {
    set_clock_right(i);
    cluster_[i].faults(0).heal();
    if (!cluster_[i].is_up()) cluster_[i].start();
  }
  cluster_.world().run_for(10'000'000);
}

}  // namespace tetrad::simulation
