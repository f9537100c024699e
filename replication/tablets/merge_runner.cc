// SPDX-License-Identifier: Apache-2.0
// Pairs are chosen, or ordered, and worked on until they are one; merge_plan.h has the steps of a
// pair. A pair that does not get on, or whose tablets are no neighbours any more, is given up;
// nothing has to be taken back, since each step by itself leaves two sound tablets.
//
// Each look, on the leader of the metadata group:
//   1. Pairs under way take their next step: exchange a member, ask for a repair of both, or
//      propose the merge.
//   2. When everything is at rest, tables that have more tablets than they need are weighed, and
//      neighbours chosen that have been small and cold for long (partitioner/merge_policy.h).
//   3. Tablets of pairs are held back from balance, those of other nodes' pairs, too.
// On other nodes step 1 alone, for pairs that were ordered there. All nodes hear of all pairs: of
// two that share a tablet each would undo the other's exchanges, so the node with the higher host
// id gives its own up (hear).
#include "replication/tablets/merge_runner.h"

#include <algorithm>

#include "base/assert.h"
#include "base/data_mutants.h"
#include "replication/meta/placed_in.h"
#include "replication/tablets/load_report.h"
#include "replication/tablets/split_runner.h"

namespace tetrad::replication {

using partitioner::MergeLimits;
using partitioner::MergePair;
using partitioner::MergeTablet;
using partitioner::Tablet;
using partitioner::TabletStage;

namespace {

// Pairs under way at most, and of those the ones whose halves have different members, since they
// move rows.
constexpr size_t kPairsAtOnce = 8, kApartAtOnce = 2;
constexpr int64_t kSoonUs = 5'000;  // one look for several changes
constexpr int64_t kProposeUs = 5'000'000;
// Of messages and proposals.
constexpr int64_t kAskUs = 2'000'000, kAskAgainUs = 1'000'000;
constexpr int64_t kGivenUpUs = 600'000'000;  // a large half is read for minutes
// A pair that was given up is not chosen again for a minute.
constexpr int64_t kRestUs = 60'000'000;
/// A leader has heard of the heat of all tablets by then; and waits for as long as what it merges
/// has been cold, for a slow cluster looks cold, too.
constexpr int64_t kLeadsLeastUs = 35'000'000, kLeadsMostUs = 2 * kHeatHeardWithinUs;
// An hour of peace forgets bounces.
constexpr int64_t kPeaceUs = int64_t{3600} * 1'000'000;
// A quarter of what splits by size, half of what splits by heat: far enough apart that a merge is
// not undone at once.
constexpr uint64_t kPartOfSize = 4, kPartOfHeat = 2;
/// Of a table's throughput, at most, when half as many tablets divide it: a read at QUORUM costs
/// two units there and one here.
constexpr double kPartOfThroughput = 0.35;

}  // namespace

MergeRunner::MergeRunner(base::Reactor& reactor, RpcNode& rpc, MetaServiceImpl& meta,
                         MoveRunner& moves, HeatOptions heat, MergeOptions options, Logger logger)
    : reactor_(reactor),
      rpc_(rpc),
      meta_(meta),
      moves_(moves),
      heat_(heat),
      options_(std::move(options)),
      logger_(std::move(logger)) {
  subscription_ = meta_.subscribe([this](const MetaSnapshot& before, const MetaSnapshot& now) {
    if (before != now) look_soon();
  });
  rpc_.handle(Verb::kHoldTablets, [this](const RpcContext& context, BytesView body, auto) {
    auto tablets = decode_held_tablets(body);
    if (tablets) hear(context.from, std::move(*tablets));
  });
}

MergeRunner::~MergeRunner() {
  rpc_.handle(Verb::kHoldTablets, nullptr);
  for (const base::Reactor::TimerId timer : {timer_, soon_})
    if (timer != 0) reactor_.cancel(timer);
}

// A step of a pair shows in the metadata: go on without waiting for the next look.
void MergeRunner::look_soon() {
  if (pairs_.empty() || soon_ != 0) return;
  soon_ = reactor_.call_at(reactor_.now_us() + kSoonUs, [this] {
    soon_ = 0;
    carry_on(meta_.snapshot());
  });
}

void MergeRunner::start() {
  timer_ = reactor_.call_at(reactor_.now_us() + options_.look_every_us, [this] {
    start();
    tick();
  });
}

void MergeRunner::tick() {
  const MetaSnapshot state = meta_.snapshot();
  if (!meta_.is_leader()) {
    leads_since_us_.reset();
    seen_.clear();
    for (const PairPtr& pair : std::list<PairPtr>(pairs_))
      // Ordered ones go on: the operator asked this node.
      if (!pair->is_ordered) end(pair, fail(ErrorCode::kConflict, "this node does not lead"));
  } else if (!leads_since_us_) {
    leads_since_us_ = reactor_.now_us();
  }
  carry_on(state);
  if (options_.merge && leads_since_us_ && state->format >= kFormatMerges) choose(*state);
  hold_pairs();
}

// ---- pairs under way ----

// Without it balance moves one half away as often as the pair brings the other after it.
void MergeRunner::hold_pairs() {
  std::set<TabletId> held;
  for (const PairPtr& pair : pairs_) held.insert({pair->halves.left, pair->halves.right});
  // The end of the last pair is said once: others may merge or move its tablets then.
  if (!held.empty() || has_told_) {
    const Bytes body = encode_held_tablets(held);
    for (const auto& [host, node] : meta_.snapshot()->nodes) {
      if (host == meta_.self() || !meta_.is_live(host)) continue;
      rpc_.one_way(host, 0, Verb::kHoldTablets, body);
    }
    has_told_ = !held.empty();
  }
  held.merge(elsewhere_.held(reactor_.now_us()));
  moves_.hold(std::move(held));
}

void MergeRunner::hear(HostId from, std::set<TabletId> tablets) {
  // A copy: end() removes pairs. One that is being proposed has nothing left that could be undone.
  for (const PairPtr& pair : std::list<PairPtr>(pairs_)) {
    const bool is_shared =
        tablets.contains(pair->halves.left) || tablets.contains(pair->halves.right);
    if (!is_shared || pair->is_proposing || meta_.self() < from) continue;
    end(pair, fail(ErrorCode::kConflict, "node {} merges one of the physical partitions already",
                   from.to_string()));
  }
  elsewhere_.hear(from, std::move(tablets), reactor_.now_us());
}

bool MergeRunner::is_taken(TabletId tablet) const {
  return elsewhere_.contains(tablet, reactor_.now_us()) ||
         std::ranges::any_of(pairs_, [&](const PairPtr& pair) {
           return pair->halves.left == tablet || pair->halves.right == tablet;
         });
}

// Nothing is taken back: both halves are sound tablets (rule 12).
void MergeRunner::end(const PairPtr& pair, Result<void> outcome) {
  TETRAD_ASSERT(!pair->is_over);
  pair->is_over = true;
  pairs_.remove(pair);
  if (!outcome) {
    metrics_.given_up.add();
    not_before_us_[pair->halves.left] = reactor_.now_us() + kRestUs;
    logger_.debug("tablets not merged table={} left={} right={} reason={}", pair->table,
                  pair->halves.left.value, pair->halves.right.value, outcome.error().message);
  }
  if (pair->done) std::exchange(pair->done, nullptr)(std::move(outcome));
}

void MergeRunner::carry_on(const MetaSnapshot& state) {
  // A copy: work_on() may end pairs.
  for (const PairPtr& pair : std::list<PairPtr>(pairs_)) {
    if (pair->is_proposing) continue;
    if (reactor_.now_us() - pair->begun_us > kGivenUpUs)
      end(pair,
          fail(ErrorCode::kTimedOut, "the physical partitions were not merged in 10 minutes"));
    else
      work_on(state, pair);
  }
}

/// Nothing waits for a member that is away; and what is hot again by itself stays two.
Result<void> MergeRunner::check_sound(const FoundHalves& found, const Pair& pair) const {
  uint64_t ru_per_s = 0;
  for (const Tablet* half : {found.left, found.right}) {
    const std::vector<StoreAddress> members = all_members(*half);
    const auto bad = std::ranges::find_if(members, [this](const StoreAddress& member) {
      const StoreOutlook seen = moves_.outlook_of(member);
      return !seen.is_live || !seen.may_get || !seen.may_give;
    });
    if (bad != members.end())
      return fail(ErrorCode::kConflict, "store {} of host {} is away, full or damaged", bad->store,
                  bad->host.to_string());
    ru_per_s += meta_.tablet_heat(half->id).ru_per_s();
  }
  if (!pair.is_ordered && heat_.ru_per_s != 0 && ru_per_s >= heat_.ru_per_s)
    return fail(ErrorCode::kConflict, "the physical partitions are hot again");
  return {};
}

void MergeRunner::work_on(const MetaSnapshot& state, const PairPtr& pair) {
  TETRAD_ASSERT(!pair->is_over);
  TETRAD_ASSERT(!pair->is_proposing);
  const auto found = find_halves(*state, pair->halves);
  if (!found) return end(pair, std::unexpected(found.error()));
  if (const auto sound = check_sound(*found, *pair); !sound) return end(pair, sound);
  auto next = next_merge_step(*found, pair->left_moves, moves_.ring_nodes(*state));
  if (!next) return end(pair, std::unexpected(next.error()));
  switch (next->step) {
    case MergeStep::kWait:
      return;
    // The exchange is a move like any other; its end shows in the metadata.
    case MergeStep::kExchange:
      (void)moves_.begin(*found->table, *next->moving, std::move(next->members));
      return;
    case MergeStep::kRepair:
      return ask_for_repair(*found, *pair);
    case MergeStep::kMerge:
      pair->is_proposing = true;
      // The command names both epochs, so it is refused if anything has changed.
      tasks_.spawn(propose(pair, merge_command(*found, pair->tablets_min, pair->bounces_most)));
      return;
  }
}

/// The answer is in the metadata: equal horizons.
void MergeRunner::ask_for_repair(const FoundHalves& found, Pair& pair) {
  if (pair.asked_us != 0 && reactor_.now_us() - pair.asked_us < kAskAgainUs) return;
  // Asked again once a second until the horizons are equal; who is asked already does nothing.
  pair.asked_us = reactor_.now_us();
  const StoreAddress member = acting_member(*found.left, meta_);
  const TabletEpoch what{found.table->incarnation, found.left->id, found.left->epoch};
  rpc_.call(member.host, member.store, Verb::kRepairTogether, encode_tablet_epoch(what),
            base::Deadline{reactor_.now_us() + kAskUs},
            [this, alive = std::weak_ptr<char>(alive_), id = what.tablet](Result<Bytes> answer) {
              if (alive.expired() || answer) return;
              logger_.debug("tablets not repaired together tablet={} reason={}", id.value,
                            answer.error().message);
            });
}

Task<void> MergeRunner::propose(PairPtr pair, MergeTablets command) {
  const base::Deadline deadline{reactor_.now_us() + kProposeUs};
  MetaCommandBody body(std::move(command));
  Result<MetaIndex> proposed = co_await meta_.propose(std::move(body), deadline);
  TETRAD_ASSERT(pair->is_proposing);
  pair->is_proposing = false;
  if (pair->is_over) co_return;
  if (proposed) {
    metrics_.merged.add();
    logger_.info("tablets merged table={} left={} right={}", pair->table, pair->halves.left.value,
                 pair->halves.right.value);
    end(pair, {});
  } else if (proposed.error().code != ErrorCode::kConflict) {
    end(pair, std::unexpected(proposed.error()));
  } else {
    // kConflict: a horizon or epoch has changed; another look says what is missing.
    logger_.debug("tablets not merged yet table={} left={} reason={}", pair->table,
                  pair->halves.left.value, proposed.error().message);
  }
}

// By tetractl, also where choosing is off.
void MergeRunner::order(TabletId left, Done done) {
  const MetaSnapshot state = meta_.snapshot();
  if (state->format < kFormatMerges)
    return done(fail(ErrorCode::kConflict,
                     "not all nodes have a program that merges physical partitions yet"));
  const TableInfo* table = nullptr;
  const Tablet* tablet = nullptr;
  for (const auto& [id, info] : state->tables) {
    const auto found = std::ranges::find(info->tablets.tablets(), left, &Tablet::id);
    if (found == info->tablets.tablets().end()) continue;
    table = info.get();
    tablet = &*found;
  }
  if (tablet == nullptr)
    return done(fail(ErrorCode::kNotFound, "there is no partition {}", left.value));
  if (tablet->range.end == RingPosition::highest())
    return done(fail(ErrorCode::kConflict,
                     "partition {} is the last of its table: none is behind it", left.value));
  if (pairs_.size() >= 2 * kPairsAtOnce)
    return done(
        fail(ErrorCode::kOverloaded, "{} merges are under way: wait for one", pairs_.size()));
  TETRAD_ASSERT(table->tablets.tablets().back().id != left);
  auto pair = std::make_shared<Pair>();
  pair->halves = {table->incarnation, left, std::next(tablet)->id};
  if (is_taken(pair->halves.left) || is_taken(pair->halves.right))
    return done(fail(ErrorCode::kConflict, "partition {} is being merged already", left.value));
  pair->table = table->keyspace + "." + table->name;
  // The half with fewer bytes moves.
  pair->left_moves = meta_.tablet_bytes(left) < meta_.tablet_bytes(pair->halves.right);
  pair->begun_us = reactor_.now_us();
  pair->is_ordered = true;
  pair->done = std::move(done);
  pairs_.push_back(pair);
  static_assert(2 * 2 * kPairsAtOnce <= kHeldTabletsMax);
  TETRAD_ASSERT(pairs_.size() <= 2 * kPairsAtOnce);
  hold_pairs();
  work_on(state, pair);
}

// ---- choosing ----

bool MergeRunner::may_choose(const MetaState& state) const {
  TETRAD_ASSERT(leads_since_us_);
  // A leader that is new would take tablets for cold of which it has not heard yet.
  const int64_t leads_for_us = std::clamp(2 * options_.age_us, kLeadsLeastUs, kLeadsMostUs);
  if (reactor_.now_us() - *leads_since_us_ < leads_for_us && !TETRAD_MUTANT(merge_at_once))
    return false;
  if (pairs_.size() >= kPairsAtOnce || !moves_.is_at_rest()) return false;
  // A node that is away may hold the hottest tablet, or need the stores.
  return std::ranges::all_of(state.nodes, [this](const auto& entry) {
    const auto& [host, node] = entry;
    return node.state == NodeState::kRemoved ||
           (node.state == NodeState::kNormal && meta_.is_live(host));
  });
}

/// What placement would do is worked out again when the ring has changed.
void MergeRunner::look_at_nodes(const MetaState& state) {
  std::vector<std::pair<HostId, NodeState>> nodes;
  for (const auto& [host, node] : state.nodes) nodes.emplace_back(host, node.state);
  if (nodes == nodes_) return;
  nodes_ = std::move(nodes);
  usual_.clear();
}

// What a new table of the keyspace would begin with, what its throughput needs, what the table
// asked for.
size_t MergeRunner::tablets_min_of(const MetaState& state, const TableInfo& table) {
  const auto data_centers = placed_in(state, table.keyspace);
  auto known = usual_.find(data_centers);
  if (known == usual_.end()) {
    const partitioner::Ring ring(nodes_for(data_centers, moves_.ring_nodes(state)));
    known = usual_.emplace(data_centers, partitioner::usual_tablets(ring)).first;
  }
  const uint32_t asked_for = options_.tablets_asked_for ? options_.tablets_asked_for(table) : 0;
  return std::max<size_t>({known->second, tablets_wanted(state, table.throughput), asked_for, 1});
}

void MergeRunner::choose(const MetaState& state) {
  const base::MonotonicUs now_us = reactor_.now_us();
  ++looks_;
  look_at_nodes(state);
  std::erase_if(not_before_us_, [&](const auto& entry) { return entry.second <= now_us; });
  const bool may = may_choose(state);
  for (const auto& [id, table] : state.tables) {
    const size_t count = table->tablets.tablets().size();
    if (count <= 1) continue;
    const size_t least = tablets_min_of(state, *table);
    if (count <= least) continue;
    // How long a tablet has been what it is, as this leader saw it.
    for (const Tablet& tablet : table->tablets.tablets()) {
      Seen& seen = seen_[tablet.id];
      if (seen.look == 0 || seen.range != tablet.range) seen = {tablet.range, now_us, looks_};
      seen.look = looks_;
    }
    if (may) choose_of(state, *table, least);
  }
  std::erase_if(seen_, [this](const auto& entry) { return entry.second.look != looks_; });
}

std::vector<MergeTablet> MergeRunner::weigh(const TableInfo& table) {
  std::vector<MergeTablet> weighed;
  const auto is_sound = [this](const StoreAddress& member) {
    const StoreOutlook seen = moves_.outlook_of(member);
    return seen.is_live && seen.may_get && seen.may_give && !seen.is_vacated;
  };
  for (const Tablet& tablet : table.tablets.tablets()) {
    MergeTablet out;
    out.tablet = &tablet;
    // No size: its acting member has not reported yet.
    const auto bytes = meta_.all_tablet_bytes().find(tablet.id);
    const bool is_known = bytes != meta_.all_tablet_bytes().end();
    out.may_merge = is_known && tablet.stage == TabletStage::kNormal && !tablet.full &&
                    !is_taken(tablet.id) && !not_before_us_.contains(tablet.id) &&
                    std::ranges::all_of(tablet.replicas, is_sound);
    out.bytes = is_known ? bytes->second : 0;
    const TabletHeat heat = meta_.tablet_heat(tablet.id);
    // The busiest second of the last minute, not the mean.
    out.ru_per_s = std::max(heat.ru_per_s_most, heat.ru_per_s());
    out.bytes_per_s = std::max(heat.bytes_per_s_most, heat.bytes_per_s);
    TETRAD_ASSERT(seen_.contains(tablet.id));
    out.age_us = reactor_.now_us() - seen_.at(tablet.id).since_us;
    weighed.push_back(out);
  }
  return weighed;
}

MergeLimits MergeRunner::limits_of(const MetaState& state, const TableInfo& table,
                                   size_t tablets_min) const {
  MergeLimits limits;
  limits.bytes = std::max<uint64_t>(physical_partition_bytes_max(state, table) / kPartOfSize, 1);
  limits.ru_per_s = heat_.ru_per_s / kPartOfHeat;
  limits.bytes_per_s = heat_.bytes_per_s / kPartOfHeat;
  limits.age_us = TETRAD_MUTANT(merge_at_once) ? 0 : options_.age_us;
  limits.tablets_min = tablets_min;
  // Divided by half as many tablets, each would have more of the throughput to serve: see
  // kPartOfThroughput.
  if (!table.throughput.is_limited() || table.throughput.of_keyspace) return limits;
  const size_t half = std::max(tablets_min, (table.tablets.tablets().size() + 1) / 2);
  const double each = static_cast<double>(table.throughput.ru_per_s) / static_cast<double>(half);
  const auto most = std::max<uint64_t>(static_cast<uint64_t>(kPartOfThroughput * each), 1);
  limits.ru_per_s = limits.ru_per_s == 0 ? most : std::min(limits.ru_per_s, most);
  return limits;
}

void MergeRunner::choose_of(const MetaState& state, const TableInfo& table, size_t tablets_min) {
  const std::vector<MergeTablet> weighed = weigh(table);
  auto apart = static_cast<size_t>(
      std::ranges::count_if(pairs_, [](const PairPtr& pair) { return !pair->is_ordered; }));
  for (const MergePair& chosen :
       partitioner::choose_merges(weighed, limits_of(state, table, tablets_min))) {
    if (pairs_.size() >= kPairsAtOnce) return;
    // Pairs whose members are equal move nothing and are not counted.
    if (chosen.bytes_to_move != 0 && ++apart > kApartAtOnce) continue;
    TETRAD_ASSERT(chosen.left + 1 < weighed.size());
    const MergeTablet& left = weighed[chosen.left];
    const MergeTablet& right = weighed[chosen.left + 1];
    TETRAD_ASSERT(left.tablet->range.end == right.tablet->range.start);
    auto pair = std::make_shared<Pair>();
    pair->halves = {table.incarnation, left.tablet->id, right.tablet->id};
    pair->table = table.keyspace + "." + table.name;
    pair->left_moves = partitioner::left_half_moves(left, right);
    pair->tablets_min = static_cast<uint32_t>(tablets_min);
    if (std::min(left.age_us, right.age_us) >= kPeaceUs) pair->bounces_most = 0;
    pair->begun_us = reactor_.now_us();
    logger_.info("tablets are to be merged table={} left={} right={} bytes={} ru_per_s={}",
                 pair->table, left.tablet->id.value, right.tablet->id.value,
                 left.bytes + right.bytes, left.ru_per_s + right.ru_per_s);
    pairs_.push_back(std::move(pair));
  }
}

}  // namespace tetrad::replication
