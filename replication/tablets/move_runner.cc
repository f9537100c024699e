// SPDX-License-Identifier: Apache-2.0
// Changes of members, driven by the leader.
//
// On shard 0 of the leader of the metadata group. Each look:
//   1. Forget everything if this node does not lead: another leader begins with what the map says.
//   2. carry_on(): for each tablet that is not in stage kNormal, ask what its stage needs:
//      confirmations of the epoch from all members (rule 8), fills of new members (rule 10),
//      settling once they have (rule 9). Answers move it to the next stage (tablet_move.h says when).
//   3. begin_changes(): tablets that have too few members, a member that must go, or too many in
//      one rack.
//   4. begin_balance(): moves that make nodes equal (balance_plan.h).
//
// What this object knows of a change can be lost at any time: members answer again, and the map has
// the stage.
#include "replication/tablets/move_runner.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_io.h"
#include "base/data_mutants.h"
#include "partitioner/balance_policy.h"
#include "replication/meta/placed_in.h"
#include "replication/tablets/split_runner.h"
#include "storage/engine/store_status.h"

namespace tetrad::replication {

using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

/// Of one look: nodes that are far apart come nearer from look to look.
constexpr size_t kPlannedAtOnce = 1'000;

constexpr int64_t kAskUs = 2'000'000;
constexpr int64_t kProposeUs = 5'000'000;
// A member counts as down after seconds of silence: what was streamed is not undone for a moment.
constexpr int64_t kWithoutQuorumUs = 2'000'000;

// Writes need a quorum of both sets: of a new one that has none they all fail, where the old one by
// itself would serve. It may have no added member at all, when a set shrinks and one of it dies.
bool loses_writes(const MetaService& meta, const partitioner::Tablet& tablet) {
  const MetaSnapshot state = meta.snapshot();
  const auto serves = [&](const std::vector<StoreAddress>& set) {
    return has_live_quorum(state->data_centers.get(), set, [&](const StoreAddress& member) {
      return meta.is_replica_live(member);
    });
  };
  if (TETRAD_MUTANT(harmful_change_kept)) return false;
  return serves(tablet.replicas) && !serves(tablet.new_replicas);
}

const Tablet* find_tablet(const TableInfo* table, TabletId id) {
  if (table == nullptr) return nullptr;
  for (const Tablet& tablet : table->tablets.tablets())
    if (tablet.id == id) return &tablet;
  return nullptr;
}

void add_load(const TableInfo& table, partitioner::StoreLoad& load) {
  for (const Tablet& tablet : table.tablets.tablets())
    for (const StoreAddress& member : all_members(tablet)) ++load[member];
}

/// The nodes that may hold a keyspace, which most keyspaces have in common.
struct KeyspacePlace {
  partitioner::Ring ring;
  size_t members_most = 0;                          // that a tablet there can have
  std::set<std::string, std::less<>> data_centers;  // empty: all that there are
};

/// The places of one look, each made when the first keyspace needs it. Both arguments outlive it.
class KeyspacePlaces {
 public:
  KeyspacePlaces(const MetaState& state, const std::vector<partitioner::RingNode>& nodes)
      : state_(state), nodes_(nodes) {}

  /// Good as long as this object.
  const KeyspacePlace& of(const std::string& keyspace) {
    const auto data_centers = placed_in(state_, keyspace);
    const auto known = places_.find(data_centers);
    if (known != places_.end()) return known->second;
    partitioner::Ring ring(nodes_for(data_centers, nodes_));
    const size_t most = ring.replicas_of(0, partitioner::kReplicasPerDataCenter).size();
    const bool is_everywhere = ring.nodes().size() == nodes_.size();
    KeyspacePlace place{std::move(ring), most, {}};
    if (!is_everywhere) place.data_centers = data_centers;
    return places_.emplace(data_centers, std::move(place)).first->second;
  }

 private:
  const MetaState& state_;
  const std::vector<partitioner::RingNode>& nodes_;
  std::map<std::set<std::string, std::less<>>, KeyspacePlace> places_;
};

/// A data centre of the tablet's members has more of them in one rack than its racks require.
bool is_crowded(const MetaState& state, const Tablet& tablet, const partitioner::Ring& ring) {
  return std::ranges::any_of(tablet.replicas, [&](const StoreAddress& member) {
    const NodeInfo* node = state.node(member.host);
    return node != nullptr &&
           partitioner::rack_excess(ring.nodes(), tablet.replicas, node->data_center) != 0;
  });
}

}  // namespace

Bytes encode_tablet_epoch(const TabletEpoch& request) {
  Bytes body;
  base::ByteWriter writer(body);
  writer.u32(request.incarnation.value);
  writer.u64(request.tablet.value);
  writer.u64(request.epoch.value);
  return body;
}

Result<TabletEpoch> decode_tablet_epoch(BytesView body) {
  base::ByteReader in(body);
  TabletEpoch request;
  TETRAD_TRY(request.incarnation.value, in.read_u32());
  TETRAD_TRY(request.tablet.value, in.read_u64());
  TETRAD_TRY(request.epoch.value, in.read_u64());
  return request;
}

MoveRunner::MoveRunner(base::Reactor& reactor, RpcNode& rpc, MetaServiceImpl& meta,
                       MoveOptions options, Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      options_(options),
      logger_(std::move(logger)),
      vacating_(options.store_replace_after_us) {}

MoveRunner::~MoveRunner() {
  if (timer_ != 0) reactor_.cancel(timer_);
}

void MoveRunner::start() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.period_us, [this] { tick(); });
}

void MoveRunner::tick() {
  start();
  const MetaSnapshot state = meta_.snapshot();
  // Nodes that join together should all be there before tablets are placed: it waits settle_us
  // after the last one.
  if (state->nodes.size() != node_count_) {
    node_count_ = state->nodes.size();
    nodes_since_us_ = reactor_.now_us();
  }
  if (!meta_.is_leader()) {
    changes_.clear();
    // The next leader watches troubles for the whole time anew.
    vacating_.forget();
    balance_has_begun_ = balance_is_ordered_ = false;
    balance_orders_.reset();
    return;
  }
  look_at_troubles(*state);
  carry_on(state);
  if (reactor_.now_us() < nodes_since_us_ + options_.settle_us) return;
  begin_changes(state);
  look_at_orders(*state);
  begin_balance(state);
}

void MoveRunner::look_at_troubles(const MetaState& state) {
  if (TETRAD_MUTANT(failed_store_live)) return;
  const auto before = vacating_.store();
  vacating_.look(
      state, meta_.store_troubles(), [this](HostId host) { return meta_.is_live(host); },
      reactor_.now_us());
  const auto now = vacating_.store();
  if (!now || now == before) return;
  metrics_.vacated.add();
  logger_.warn("tablets leave a store because of its disk host={} address={} store={} is={}",
               now->host.to_string(), state.address_of(now->host), now->store,
               storage::name_of(meta_.state_of(*now)));
}

StoreOutlook MoveRunner::outlook_of(const StoreAddress& member) const {
  const storage::StoreState state = meta_.state_of(member);
  // What may be done with a store: get tablets, give them, or be vacated.
  StoreOutlook seen;
  seen.is_live = meta_.is_replica_live(member);
  const auto disk = meta_.filling_disks().find(member.host);
  const bool has_room = disk == meta_.filling_disks().end() || disk->second != DiskUsage::kNoRoom;
  // A full disk gets nothing; a damaged store gives nothing, since what it streams may lack rows.
  seen.may_get = state == storage::StoreState::kServing && has_room;
  seen.may_give = state != storage::StoreState::kDamaged;
  seen.is_vacated = vacating_.store() == member;
  seen.is_gone =
      !seen.is_live && meta_.ticks_away(member.host) >= meta_.ticks_of(options_.stalled_us);
  return seen;
}

void MoveRunner::carry_on(const MetaSnapshot& state) {
  std::set<TabletId> under_way;
  for (const auto& [id, table] : state->tables) {
    for (const Tablet& tablet : table->tablets.tablets()) {
      if (tablet.stage == TabletStage::kNormal) continue;
      under_way.insert(tablet.id);
      work_on(*state, *table, tablet);
    }
  }
  // A proposal that is on its way keeps its entry: the map does not show it yet.
  std::erase_if(changes_, [&](const auto& entry) {
    return !entry.second.proposing && !under_way.contains(entry.first);
  });
}

void MoveRunner::work_on(const MetaState& state, const TableInfo& table, const Tablet& tablet) {
  TETRAD_ASSERT(tablet.stage != TabletStage::kNormal && !tablet.new_replicas.empty());
  Change& change = changes_[tablet.id];
  // A new stage: answers of the one before count for nothing.
  if (change.progress.epoch != tablet.epoch) {
    const bool proposing = change.proposing;
    change = Change();
    change.proposing = proposing;
    change.progress.epoch = tablet.epoch;
    change.since_us = reactor_.now_us();
  }
  const TabletEpoch what{table.incarnation, tablet.id, tablet.epoch};
  bool added_is_live = true, added_is_awaited = true;
  for (const StoreAddress& member : added_members(tablet)) {
    if (!meta_.is_replica_live(member)) {
      added_is_live = false;
      // It is taken out, and nobody waits for it.
      const NodeInfo* node = state.node(member.host);
      if (node == nullptr || node->state != NodeState::kNormal) added_is_awaited = false;
    }
  }
  if (tablet.stage == TabletStage::kStream) {
    for (const StoreAddress& member : members_to_fill(tablet, state.data_centers.get()))
      if (!change.progress.filled.contains(member)) ask(change, what, member, Verb::kPullTablet);
  }
  const std::vector<StoreAddress> members = all_members(tablet);
  // All members of both sets; W of each suffice, but who suffices is for next_stage() to say.
  for (const StoreAddress& member : members)
    if (!change.progress.confirmed.contains(member)) ask(change, what, member, Verb::kConfirmEpoch);
  // Any live member may coordinate the settling. Not before the stage before is over: a write of it
  // that is still on its way to a member would not be read.
  if (tablet.stage == TabletStage::kReadNew && change.progress.filled.empty() &&
      is_confirmed(tablet, change.progress, state.data_centers.get())) {
    const auto live = std::find_if(members.begin(), members.end(), [this](const auto& member) {
      return meta_.is_replica_live(member);
    });
    if (live != members.end()) ask(change, what, *live, Verb::kSettleTablet);
  }
  // Later there is no way back (meta_apply.cc): reads may have seen the new set.
  const bool may_give_up =
      tablet.stage == TabletStage::kWriteBoth || tablet.stage == TabletStage::kStream;
  const int64_t waited_us = reactor_.now_us() - change.since_us;
  const bool is_stalled = !added_is_live && (!added_is_awaited || waited_us > options_.stalled_us);
  const bool is_harmful = waited_us > kWithoutQuorumUs && loses_writes(meta_, tablet);
  if (may_give_up && (is_stalled || is_harmful) && !change.proposing) {
    metrics_.given_up.add();
    propose(table, {table.incarnation, tablet.id, tablet.epoch, TabletStage::kNormal, {}, true});
  }
  evaluate(state, table, tablet, change);
}

void MoveRunner::ask(Change& change, const TabletEpoch& what, StoreAddress member, Verb verb) {
  TETRAD_ASSERT(change.progress.epoch == what.epoch);
  auto& asked = verb == Verb::kConfirmEpoch ? change.asked_to_confirm : change.asked_to_fill;
  // Each member once at a time; the answer, or the deadline, allows the next.
  if (!meta_.is_replica_live(member) || !asked.insert(member).second) return;
  rpc_.call(member.host, member.store, verb, encode_tablet_epoch(what),
            base::Deadline{reactor_.now_us() + kAskUs},
            [this, alive = std::weak_ptr<char>(alive_), what, member, verb](Result<Bytes> answer) {
              if (!alive.expired()) on_answer(what, member, verb, answer);
            });
}

void MoveRunner::on_answer(const TabletEpoch& what, StoreAddress member, Verb verb,
                           const Result<Bytes>& answer) {
  // Answers may come after the stage is over.
  const auto found = changes_.find(what.tablet);
  if (found == changes_.end() || found->second.progress.epoch != what.epoch) return;
  Change& change = found->second;
  if (verb == Verb::kConfirmEpoch) {
    change.asked_to_confirm.erase(member);
    if (answer) change.progress.confirmed.insert(member);
  } else {
    change.asked_to_fill.erase(member);
    // 0: it is under way; 1: done.
    if (answer && *answer == BytesView("\x01")) change.progress.filled.insert(member);
  }
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(what.incarnation);
  const Tablet* tablet = find_tablet(table, what.tablet);
  // The table was dropped meanwhile.
  if (tablet == nullptr) return;
  // The last confirmation lets the settling begin. Other answers ask for nothing: one that says
  // "not yet" would ask again without end.
  const bool begins = verb == Verb::kConfirmEpoch && answer &&
                      tablet->stage == TabletStage::kReadNew && meta_.is_leader();
  if (begins)
    work_on(*state, *table, *tablet);
  else
    evaluate(*state, *table, *tablet, change);
}

// Called after each answer and each look. Proposes at most one change at a time for a tablet.
void MoveRunner::evaluate(const MetaState& state, const TableInfo& table, const Tablet& tablet,
                          const Change& change) {
  if (change.proposing || !meta_.is_leader()) return;
  const auto next = next_stage(tablet, change.progress, state.data_centers.get());
  if (!next) return;
  // Answers count for the stage that they were given in.
  TETRAD_ASSERT(change.progress.epoch == tablet.epoch);
  TETRAD_ASSERT(*next != TabletStage::kWriteBoth);
  if (*next == TabletStage::kNormal) metrics_.finished.add();
  propose(table, {table.incarnation, tablet.id, tablet.epoch, *next, {}, false});
}

void MoveRunner::begin_changes(const MetaSnapshot& state) {
  if (changes_.size() >= options_.changes_at_once || state->tables.empty()) return;
  std::vector<partitioner::RingNode> nodes = ring_nodes(*state);
  if (nodes.empty()) return;
  KeyspacePlaces places(*state, nodes);
  // Counting all tablets is work: only when the first tablet needs something.
  partitioner::StoreLoad load;  // counted when there is something to do
  // Racks change seldom and heal slowly: looked at once in racks_period_us.
  const bool looks_at_racks = reactor_.now_us() >= racks_next_us_;
  if (looks_at_racks) racks_next_us_ = reactor_.now_us() + options_.racks_period_us;
  const auto as_it_should_be = [&](const Tablet& tablet, const KeyspacePlace& place) {
    return tablet.replicas.size() >= place.members_most &&
           !(looks_at_racks && is_crowded(*state, tablet, place.ring)) &&
           std::all_of(tablet.replicas.begin(), tablet.replicas.end(), [&](const auto& member) {
             const NodeInfo* node = state->node(member.host);
             return node != nullptr && node->state == NodeState::kNormal &&
                    vacating_.store() != member &&
                    (place.data_centers.empty() || place.data_centers.contains(node->data_center));
           });
  };
  const Outlook outlook = [this](const StoreAddress& member) { return outlook_of(member); };
  for (const auto& [id, table] : state->tables) {
    partitioner::StoreLoad of_table;
    const KeyspacePlace& place = places.of(table->keyspace);
    if (place.ring.nodes().empty()) continue;
    for (const Tablet& tablet : table->tablets.tablets()) {
      if (changes_.size() >= options_.changes_at_once) return;
      if (changes_.contains(tablet.id) || as_it_should_be(tablet, place)) continue;
      if (load.empty())
        for (const auto& [other_id, other] : state->tables) add_load(*other, load);
      if (of_table.empty()) add_load(*table, of_table);
      auto members =
          wanted_members(place.ring, tablet, of_table, load, outlook, state->data_centers.get());
      if (!members) continue;
      // What was just proposed counts as there, so that not all go to the emptiest store.
      for (const StoreAddress& member : *members) {
        if (std::ranges::find(tablet.replicas, member) != tablet.replicas.end()) continue;
        ++of_table[member];
        ++load[member];
      }
      changes_[tablet.id].progress.epoch = tablet.epoch;
      metrics_.begun.add();
      propose(*table, {table->incarnation, tablet.id, tablet.epoch, TabletStage::kWriteBoth,
                       std::move(*members), false});
    }
  }
}

std::vector<BalanceChange> MoveRunner::plan_within(const MetaState& state,
                                                   const BalanceLimits& limits,
                                                   bool is_ordered) const {
  const uint64_t start_percent =
      setting_or(state, kSettingBalanceStartPercent, kBalanceStartPercentDefault);
  // While a store is vacated nothing else moves.
  if ((start_percent >= kBalanceOffPercent && !is_ordered) || vacating_.store()) return {};
  const std::vector<partitioner::RingNode> nodes = ring_nodes(state);
  std::map<TabletId, std::vector<StoreAddress>> proposed;
  // Proposals that the map does not show yet count as made.
  for (const auto& [id, change] : changes_)
    if (change.proposing) proposed[id] = change.wanted;
  const auto bytes_of = [this](TabletId id) -> std::optional<uint64_t> {
    const auto known = meta_.all_tablet_bytes().find(id);
    if (known == meta_.all_tablet_bytes().end()) return std::nullopt;
    return known->second;
  };
  const auto outlook = [this](const StoreAddress& member) { return outlook_of(member); };
  partitioner::BalanceOptions balance = options_.balance;
  balance.start_ratio = static_cast<double>(start_percent) / 100;
  // Once begun it goes on to the nearer limit: start and stop at one limit would flap.
  balance.has_begun = balance_has_begun_ || is_ordered;
  balance.moves_max = kPlannedAtOnce;
  return balance_changes({state, nodes, bytes_of, outlook, proposed, held_}, balance, limits);
}

// What an operator sees as the plan: without the limits on what moves at once.
std::vector<BalanceChange> MoveRunner::balance_plan(const MetaState& state) const {
  return plan_within(state, {SIZE_MAX, SIZE_MAX, 1'000'000'000}, true);
}

/// What was ordered before this node led is not begun again.
void MoveRunner::look_at_orders(const MetaState& state) {
  const uint64_t orders = setting_or(state, kSettingBalanceOrders, 0);
  if (balance_orders_ && orders != *balance_orders_) {
    logger_.info("tablets are balanced by order");
    balance_is_ordered_ = true;
    balance_next_us_ = 0;
  }
  balance_orders_ = orders;
}

/// What is vacated and what heals goes before: begin_changes() comes first and has no limit but
/// `changes_at_once`.
void MoveRunner::begin_balance(const MetaSnapshot& state) {
  if (options_.balance_period_us == 0 || reactor_.now_us() < balance_next_us_) return;
  const auto changes = plan_within(*state, options_.balance_limits, balance_is_ordered_);
  // It goes on to the nearer limit until nothing is under way or to be done.
  balance_has_begun_ = !changes.empty() || (balance_has_begun_ && !changes_.empty());
  if (!balance_has_begun_) balance_is_ordered_ = false;
  balance_next_us_ = reactor_.now_us() + (balance_has_begun_ ? std::min(options_.balance_pause_us,
                                                                        options_.balance_period_us)
                                                             : options_.balance_period_us);
  for (const BalanceChange& change : changes) {
    if (changes_.contains(change.tablet)) continue;
    logger_.info("tablet moves for balance table={}.{} tablet={} bytes={} from={}/{} to={}/{}",
                 change.table->keyspace, change.table->name, change.tablet.value, change.bytes,
                 change.from.host.to_string(), change.from.store, change.to.host.to_string(),
                 change.to.store);
    changes_[change.tablet].progress.epoch = change.epoch;
    metrics_.begun.add();
    metrics_.balanced.add();
    metrics_.balanced_bytes.add(change.bytes);
    propose(*change.table, {change.table->incarnation, change.tablet, change.epoch,
                            TabletStage::kWriteBoth, change.members, false});
  }
}

// For merges: members are exchanged one by one (merge_runner.cc).
bool MoveRunner::begin(const TableInfo& table, const Tablet& tablet,
                       std::vector<StoreAddress> members) {
  if (changes_.contains(tablet.id)) return false;
  TETRAD_ASSERT(tablet.stage == TabletStage::kNormal);
  changes_[tablet.id].progress.epoch = tablet.epoch;
  metrics_.begun.add();
  propose(table, {table.incarnation, tablet.id, tablet.epoch, TabletStage::kWriteBoth,
                  std::move(members), false});
  return true;
}

std::vector<partitioner::RingNode> MoveRunner::ring_nodes(const MetaState& state) const {
  std::vector<partitioner::RingNode> nodes;
  for (const auto& [host, node] : state.nodes) {
    // A node all of whose stores are vacated gets nothing.
    if (node.state == NodeState::kNormal && !vacating_.is_whole_node(node))
      nodes.push_back({host, node.data_center, node.rack, node.tokens, node.store_count});
  }
  return nodes;
}

void MoveRunner::propose(const TableInfo& table, ChangeTabletStage change) {
  TETRAD_ASSERT(!changes_[change.tablet].proposing);
  TETRAD_ASSERT((change.next == TabletStage::kWriteBoth) == !change.new_replicas.empty());
  changes_[change.tablet].proposing = true;
  changes_[change.tablet].wanted = change.new_replicas;
  tasks_.spawn(run_proposal(table.keyspace + "." + table.name, std::move(change)));
}

Task<void> MoveRunner::run_proposal(std::string name, ChangeTabletStage change) {
  const TabletId id = change.tablet;
  const TableIncarnation incarnation = change.incarnation;
  const int stage = static_cast<int>(change.next);
  const size_t members = change.new_replicas.size();
  const bool gives_up = change.give_up;
  MetaCommandBody body(std::move(change));
  const base::Deadline deadline{reactor_.now_us() + kProposeUs};
  Result<MetaIndex> proposed = co_await meta_.propose(std::move(body), deadline);
  const auto found = changes_.find(id);
  // Refused or timed out: the next look sees what the map says.
  if (found != changes_.end()) found->second.proposing = false;
  if (!proposed) {
    logger_.debug("tablet stage refused table={} tablet={} stage={} reason={}", name, id.value,
                  stage, proposed.error().message);
    co_return;
  }
  if (members != 0)
    logger_.debug("tablet changes members table={} tablet={} members={}", name, id.value, members);
  else if (stage == 0)
    logger_.debug("tablet {} table={} tablet={}",
                  gives_up ? "stays as it was" : "has its new members", name, id.value);
  // At once, without waiting for the next round.
  const MetaSnapshot state = meta_.snapshot();
  const TableInfo* table = state->table(incarnation);
  const Tablet* tablet = find_tablet(table, id);
  if (tablet != nullptr && tablet->stage != TabletStage::kNormal && meta_.is_leader())
    work_on(*state, *table, *tablet);
}

}  // namespace tetrad::replication
